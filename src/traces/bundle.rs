//! The recorded traces that come with this crate, compressed, in the program itself: 1.2 MB.
//!
//! They are described in `traces/README.md`; what is in them in `traces/STATS.md`.

use super::{ReadError, Trace};

/// A trace in the program.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// The name of its file.
    pub name: &'static str,
    /// Its content, compressed.
    pub bytes: &'static [u8],
}

impl Bundled {
    /// Read it.
    ///
    /// # Errors
    /// Never, unless the build is damaged.
    pub fn read(&self) -> Result<Trace, ReadError> {
        Trace::from_bytes(self.name, self.bytes)
    }
}

/// All recorded traces, by name.
#[must_use]
pub const fn bundled() -> &'static [Bundled] {
    &BUNDLED
}

macro_rules! bundle {
    ($($name:literal),* $(,)?) => {
        [$(Bundled { name: $name, bytes: include_bytes!(concat!("../../traces/", $name)) }),*]
    };
}

static BUNDLED: [Bundled; 22] = bundle![
    "amg8-busy.r4.zst",
    "amg8-typ.r3.zst",
    "deepposted4-reverse.r0.zst",
    "hpcg8-busy.r7.zst",
    "imb-coll8-tag1.r0.zst",
    "imb-exchange8.r4.zst",
    "incast8-any.r0.zst",
    "incast8-directed.r0.zst",
    "lammps-melt8-busy.r2.zst",
    "lammps-melt8-typ.r6.zst",
    "lulesh27-center.r13.zst",
    "lulesh27-typ.r15.zst",
    "masterworker8.r0.zst",
    "miniamr8-busy.r0.zst",
    "minife27-busy.r17.zst",
    "minife8-busy.r2.zst",
    "minimd8-busy.r4.zst",
    "netpipe2-anysource.r1.zst",
    "snap9-busy.r4.zst",
    "wildmix-deep8.r4.zst",
    "wildmix8-tag1.r5.zst",
    "wildmix8.r4.zst",
];
