//! One job: a program on so many ranks, by `tagmatch mpirun`, with a limit of time.

use crate::installed::{Mpi, folder};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

/// What is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) program: &'static str,
    pub(crate) ranks: u32,
    pub(crate) arguments: &'static [&'static str],
}

/// On which MPI and how.
#[derive(Debug)]
pub(crate) struct Setup {
    mpi: &'static Mpi,
    arguments: &'static [&'static str],
    /// Arguments of programs that hold for this setup alone.
    extra: Option<(&'static str, &'static str)>,
    library: PathBuf,
    /// On a simulated card, which all of its processes share.
    on_card: bool,
    way: Way,
}

/// By which way messages go between ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Network,
    /// Through memory that they share.
    Shared,
    /// The same, but to and from rank 0.
    Mixed,
}

impl Setup {
    /// With these arguments of `tagmatch mpirun`.
    pub(crate) fn new(mpi: &'static Mpi, arguments: &'static [&'static str]) -> Self {
        Self { mpi, arguments, extra: None, library: library().to_owned(), on_card: false, way: Way::Network }
    }

    /// And with this argument of this program.
    pub(crate) fn with(mut self, program: &'static str, argument: &'static str) -> Self {
        self.extra = Some((program, argument));
        self
    }

    /// On a simulated card.
    pub(crate) fn on_card(mut self) -> Self {
        self.on_card = true;
        self
    }

    /// Through memory that all ranks share.
    pub(crate) fn shared(mut self) -> Self {
        self.way = Way::Shared;
        self
    }

    /// Through memory that all ranks share but the first, which has the network alone.
    pub(crate) fn mixed(mut self) -> Self {
        self.way = Way::Mixed;
        self
    }

    /// With a provider that cannot be loaded.
    pub(crate) fn without_provider(mpi: &'static Mpi) -> Self {
        let broken = folder().join("broken");
        let library = broken.join("libtagmatch-fi.so");
        fs::create_dir_all(&broken)
            .and_then(|()| fs::write(&library, "no library"))
            .unwrap_or_else(|error| panic!("{error}"));
        Self { mpi, arguments: &[], extra: None, library, on_card: false, way: Way::Network }
    }

    /// The job must end well and say that all was right.
    pub(crate) fn passes(&self, job: Job) {
        let output = self.run(job);
        let said = text(&output);
        assert_ne!(output.status.code(), Some(TIMED_OUT), "{job:?} is not done after {SECONDS} s: {said}");
        assert!(output.status.success(), "{job:?}: {}: {said}", output.status);
        let line = format!("{}: {} ranks, ", job.program, job.ranks);
        assert!(
            said.lines().any(|said| said.starts_with(&line) && said.ends_with(" checks, all right")),
            "{job:?}: {said}"
        );
    }

    /// The job must end well, and each of its processes tell what it counted: the counters of all together.
    pub(crate) fn counters(&self, job: Job) -> HashMap<String, u64> {
        let output = self.run_with(job, &["--stats", "--json"]);
        let said = text(&output);
        assert!(output.status.success(), "{job:?}: {}: {said}", output.status);
        let told: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{job:?}: {error}: {said}"));
        let processes = told["processes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ranks: Vec<_> = processes.iter().map(|process| process["rank"].as_u64()).collect();
        let all: Vec<_> = (0..u64::from(job.ranks)).map(Some).collect();
        assert_eq!((ranks, told["asked"].as_u64()), (all, Some(job.ranks.into())), "{job:?}: {said}");
        let total = told["total"].as_object().into_iter().flatten();
        total.filter_map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect()
    }

    /// The job must fail in time: what it said.
    pub(crate) fn fails(&self, job: Job) -> String {
        let output = self.run(job);
        let said = text(&output);
        assert_ne!(output.status.code(), Some(TIMED_OUT), "{job:?} is not done after {SECONDS} s: {said}");
        assert!(!output.status.success(), "{job:?}: {said}");
        said
    }

    fn run(&self, job: Job) -> Output {
        self.run_with(job, &[])
    }

    /// With more arguments of `tagmatch mpirun`.
    fn run_with(&self, job: Job, more: &[&str]) -> Output {
        let ready = self.mpi.ready();
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", SECONDS]);
        if self.on_card {
            command.args([env!("CARGO_BIN_EXE_tagmatch"), "hca", "--"]);
        }
        command.args([env!("CARGO_BIN_EXE_tagmatch"), "mpirun", "--mpirun"]);
        command.arg(&ready.mpirun).args(self.arguments).args(more);
        command.args(["-n", &job.ranks.to_string()]);
        if self.way == Way::Mixed {
            command.args(["sh", "-c", RANK_0_APART]);
        }
        command.arg(ready.programs.join(job.program)).args(job.arguments);
        let extra = self.mpi.extra.iter().chain(&self.extra).filter(|(program, _)| *program == job.program);
        command.args(extra.map(|(_, argument)| argument));
        for (name, _) in std::env::vars_os() {
            let is_setting = |name: &str| SETTINGS.iter().any(|start| name.starts_with(start));
            if name.to_str().is_some_and(is_setting) {
                command.env_remove(name);
            }
        }
        // What is not said here would be as the provider likes it.
        command.env("FI_TAGMATCH_SHM", if self.way == Way::Network { "0" } else { "1" });
        command.env("TAGMATCH_FI_LIB", &self.library).stdin(Stdio::null());
        command.output().unwrap_or_else(|error| panic!("timeout cannot be run: {error}"))
    }
}

/// The provider, built as the rest is: it belongs to another package, whose libraries cargo does not build for these
/// tests.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let program = Path::new(env!("CARGO_BIN_EXE_tagmatch"));
        let folder = program.parent().unwrap_or(Path::new("."));
        let profile = if folder.ends_with("release") { "release" } else { "test" };
        // All of the workspace, so that features are those of a test of all, and little is built twice.
        let built = Command::new(env!("CARGO"))
            .args(["build", "--locked", "--quiet", "--workspace", "--lib", "--bins", "--profile", profile])
            .arg("--target-dir")
            .arg(folder.parent().unwrap_or(folder))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .unwrap_or_else(|error| panic!("cargo: {error}"));
        assert!(built.success(), "the provider cannot be built");
        folder.join("libtagmatch_fi.so")
    })
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs what follows: rank 0, as both kinds of MPI say it, without shared memory.
const RANK_0_APART: &str = "if [ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 0 ]; then export FI_TAGMATCH_SHM=0; fi; exec \"$0\" \"$@\"";
/// One job at a time.
pub(crate) static TURN: Mutex<()> = Mutex::new(());
/// Time limit of one job, far above what any needs. `timeout` answers 124 then.
const SECONDS: &str = "180";
const TIMED_OUT: i32 = 124;
/// Variables that would change what is tested.
const SETTINGS: [&str; 5] = ["FI_", "OMPI_", "PRTE_", "PMIX_", "MPIR_"];
