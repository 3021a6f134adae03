//! The targets.

mod engine;
mod environment;
mod names;
mod reports;
mod traces;
mod wire;

/// Something that reads bytes which others have made.
#[derive(Debug)]
pub struct Target {
    /// Its name on the command line, and of its folder of kept inputs.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Read this. Panics where a promise is broken. True: it got past the first checks.
    pub run: fn(&[u8]) -> bool,
    /// Inputs that mean something.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Inputs that were worth keeping: a line of hexadecimal digits each.
    kept: &'static str,
    /// Bytes of the longest input that is of use.
    pub length_max: usize,
    /// Bytes of memory that may be in use for an input beside 64 for each of its bytes.
    pub memory_max: usize,
}

impl Target {
    /// Seeds, and what was kept: two groups.
    ///
    /// # Panics
    /// A line of what was kept is none.
    #[must_use]
    pub fn inputs(&self) -> Vec<Vec<Vec<u8>>> {
        let lines = self.kept.lines().filter(|line| !line.starts_with('#'));
        let kept = lines.map(|line| bytes(line).expect("pairs of hexadecimal digits"));
        vec![(self.seeds)(), kept.collect()]
    }
}

/// Out of hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = (0..digits.len()).step_by(2).map(|at| digits.get(at..at + 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "wire",
        about: "messages of peers",
        run: wire::run,
        seeds: wire::seeds,
        kept: include_str!("../../corpus/wire.txt"),
        length_max: 512,
        memory_max: 4096,
    },
    Target {
        name: "traces",
        about: "recorded traces, plain, zstd and gzip",
        run: traces::run,
        seeds: traces::seeds,
        kept: include_str!("../../corpus/traces.txt"),
        length_max: 4096,
        // Of zstd: its first bytes may ask for a window of 128 MiB.
        memory_max: 3 << 27,
    },
    Target {
        name: "environment",
        about: "run-time parameters",
        run: environment::run,
        seeds: environment::seeds,
        kept: include_str!("../../corpus/environment.txt"),
        length_max: 1024,
        memory_max: 65_536,
    },
    Target {
        name: "names",
        about: "addresses: of endpoints, of queue pairs",
        run: names::run,
        seeds: names::seeds,
        kept: include_str!("../../corpus/names.txt"),
        length_max: 128,
        memory_max: 160_000,
    },
    Target {
        name: "reports",
        about: "statistics of processes, as files",
        run: reports::run,
        seeds: reports::seeds,
        kept: include_str!("../../corpus/reports.txt"),
        length_max: 2048,
        memory_max: 65_536,
    },
    Target {
        name: "engine",
        about: "devices that tell what they may not, beside whatever users do",
        run: engine::run,
        seeds: engine::seeds,
        kept: include_str!("../../corpus/engine.txt"),
        length_max: 2048,
        memory_max: 1 << 20,
    },
];
