//! What this program was built from, so that results can name it.

use serde::Serialize;

/// Version, commit and compiler.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Build {
    /// The crate's version.
    pub(crate) version: &'static str,
    /// The commit of the sources, where it was known.
    pub(crate) commit: &'static str,
    /// The compiler's own words.
    pub(crate) compiler: &'static str,
    /// Whether optimisations were off, so that times mean little.
    pub(crate) debug: bool,
}

/// This program's.
pub(crate) const BUILD: Build = Build {
    version: env!("CARGO_PKG_VERSION"),
    commit: env!("TAGMATCH_COMMIT"),
    compiler: env!("TAGMATCH_RUSTC"),
    debug: cfg!(debug_assertions),
};
