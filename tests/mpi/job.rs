//! One job: a program on so many ranks, by `tagmatch mpirun`, with a limit of time.

use crate::installed::{Mpi, folder};
use std::collections::HashMap;
use std::ffi::OsStr;
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
    /// Ranks talk through memory that they share.
    over_shared_memory: bool,
}

impl Setup {
    /// With these arguments of `tagmatch mpirun`.
    pub(crate) fn new(mpi: &'static Mpi, arguments: &'static [&'static str]) -> Self {
        Self {
            mpi,
            arguments,
            extra: None,
            library: library().to_owned(),
            on_card: false,
            over_shared_memory: false,
        }
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

    /// Through shared memory where ranks are on one host.
    pub(crate) fn over_shared_memory(mut self) -> Self {
        self.over_shared_memory = true;
        self
    }

    /// With a provider that cannot be loaded.
    pub(crate) fn without_provider(mpi: &'static Mpi) -> Self {
        let broken = folder().join("broken");
        let library = broken.join("libtagmatch-fi.so");
        fs::create_dir_all(&broken)
            .and_then(|()| fs::write(&library, "no library"))
            .unwrap_or_else(|error| panic!("{error}"));
        Self { mpi, arguments: &[], extra: None, library, on_card: false, over_shared_memory: false }
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

    /// The job must end well: counters of all its processes together.
    pub(crate) fn counters(&self, job: Job) -> HashMap<String, u64> {
        let file = folder().join(format!("counters-{}-{}", std::process::id(), job.program));
        let output = self.run_with(job, &[("FI_TAGMATCH_STATS", file.as_os_str())]);
        let said = text(&output);
        assert!(output.status.success(), "{job:?}: {}: {said}", output.status);
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let _removed = fs::remove_file(&file);
        let mut counters = HashMap::new();
        for (name, value) in text.lines().filter_map(|line| line.split_once(' ')) {
            *counters.entry(name.to_owned()).or_default() += value.parse::<u64>().unwrap_or(0);
        }
        counters
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

    fn run_with(&self, job: Job, variables: &[(&str, &OsStr)]) -> Output {
        let ready = self.mpi.ready();
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", SECONDS]);
        if self.on_card {
            command.args([env!("CARGO_BIN_EXE_tagmatch"), "hca", "--"]);
        }
        command.args([env!("CARGO_BIN_EXE_tagmatch"), "mpirun", "--mpirun"]);
        command.arg(&ready.mpirun).args(self.arguments);
        command
            .args(["-n", &job.ranks.to_string()])
            .arg(ready.programs.join(job.program))
            .args(job.arguments);
        let extra = self.mpi.extra.iter().chain(&self.extra).filter(|(program, _)| *program == job.program);
        command.args(extra.map(|(_, argument)| argument));
        for (name, _) in std::env::vars_os() {
            let is_setting = |name: &str| SETTINGS.iter().any(|start| name.starts_with(start));
            if name.to_str().is_some_and(is_setting) {
                command.env_remove(name);
            }
        }
        command.envs(variables.iter().copied());
        command.envs(self.over_shared_memory.then_some(("FI_TAGMATCH_SHM", "1")));
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

/// One job at a time.
pub(crate) static TURN: Mutex<()> = Mutex::new(());
/// Time limit of one job, far above what any needs. `timeout` answers 124 then.
const SECONDS: &str = "180";
const TIMED_OUT: i32 = 124;
/// Variables that would change what is tested.
const SETTINGS: [&str; 5] = ["FI_", "OMPI_", "PRTE_", "PMIX_", "MPIR_"];
