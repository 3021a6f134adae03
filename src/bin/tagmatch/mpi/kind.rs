//! Which MPI an mpirun belongs to, by what it says of itself.
//!
//! The same program has many names: Debian's mpirun is mpirun.openmpi, mpiexec.openmpi and orterun too, MPICH's is
//! mpiexec.hydra. What it calls itself changes with its name (orte/tools/orterun of Open MPI 4 says "Open MPI" where it is
//! called mpirun, and "OpenRTE" where it is called otherwise), so that neither its name nor one word is relied on.

use serde::Serialize;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An MPI's program that starts jobs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Launcher {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Whose it is.
    pub(crate) kind: Kind,
    /// In its own words.
    pub(crate) version: String,
}

/// The MPIs that the provider serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) enum Kind {
    /// Open MPI before 5, whose runtime is its own.
    OpenMpi4,
    /// Open MPI 5 and later, whose runtime is PRRTE.
    OpenMpi5,
    /// MPICH with its process manager hydra.
    Mpich,
}

impl Launcher {
    /// The one that is named (a path, or a name to look for), or the first in PATH.
    pub(crate) fn find(named: Option<&OsStr>) -> Result<Self, String> {
        let path = match named {
            Some(named) if Path::new(named).components().count() > 1 => PathBuf::from(named),
            Some(named) => {
                in_path(named).ok_or_else(|| format!("there is no {} in PATH", named.display()))?
            }
            None => in_path(OsStr::new("mpirun")).ok_or(NO_MPI)?,
        };
        let launcher = match Said::by(&path)? {
            Said::Launcher(kind, version) => Self { path, kind, version },
            Said::Runtime(version) => Self::of_runtime(&path, &version)?,
        };
        launcher.must_use_libfabric().map(|()| launcher)
    }

    /// Open MPI's mpirun beside a program of PRRTE. That program itself starts Open MPI's jobs too, but reads none of what is
    /// set for Open MPI.
    fn of_runtime(path: &Path, version: &str) -> Result<Self, String> {
        let own = LAUNCHERS_OF_5.iter().flat_map(|name| beside(path, name)).find_map(|path| {
            match Said::by(&path) {
                Ok(Said::Launcher(kind @ Kind::OpenMpi5, version)) => Some(Self { path, kind, version }),
                Ok(_) | Err(_) => None,
            }
        });
        own.ok_or_else(|| {
            format!(
                "{} is {version}, without an mpirun of Open MPI 5 or later beside it. Name the mpirun of the Open MPI \
                 that it belongs to with --mpirun.",
                path.display()
            )
        })
    }

    /// MPICH is built for one network layer or several, and says for which.
    fn must_use_libfabric(&self) -> Result<(), String> {
        if self.kind != Kind::Mpich {
            return Ok(());
        }
        let output = beside(&self.path, "mpichversion")
            .find_map(|path| Command::new(path).stdin(Stdio::null()).output().ok());
        let Some(output) = output else { return Ok(()) };
        let said = String::from_utf8_lossy(&output.stdout);
        match said.lines().find_map(|line| line.strip_prefix("MPICH Device:")) {
            Some(device) if !device.contains("ofi") => Err(format!(
                "the MPICH of {} is built for {} and does not use libfabric",
                self.path.display(),
                device.trim()
            )),
            Some(_) | None => Ok(()),
        }
    }
}

/// What a program says that it is.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Said {
    /// A program that starts jobs of this MPI, and its version in its own words.
    Launcher(Kind, String),
    /// One of PRRTE, the runtime of Open MPI 5, with its version.
    Runtime(String),
}

impl Said {
    /// Asked with `--version`. Some answer that they do not know that on their standard error.
    fn by(path: &Path) -> Result<Self, String> {
        let output = Command::new(path).arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{} cannot be run: {error}", path.display()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        // A PRRTE that was moved (as a wheel of Python's is) says nothing of itself.
        let moved = || is_of_runtime(path).then(|| Self::Runtime("PRRTE".into()));
        recognise(&said).or_else(moved).ok_or_else(|| {
            let complaints = String::from_utf8_lossy(&output.stderr);
            let mut lines = said.lines().chain(complaints.lines());
            let first = lines.find(|line| !line.trim().is_empty()).unwrap_or("nothing");
            format!("{} is neither Open MPI's nor MPICH's: it says \"{first}\"", path.display())
        })
    }
}

/// Who says this with `--version`.
fn recognise(said: &str) -> Option<Said> {
    let first = said.lines().find(|line| !line.trim().is_empty())?.trim();
    if let Some((_, version)) = first.split_once("(PRRTE) ") {
        return Some(Said::Runtime(format!("PRRTE {version}")));
    }
    // The runtime of Open MPI 4 and before has the version of the Open MPI that it is a part of.
    let open = ["(Open MPI) ", "(OpenRTE) "].iter().find_map(|whose| first.split_once(whose));
    if let Some((_, version)) = open {
        let major: u32 = version.split('.').next()?.parse().ok()?;
        let kind = if major < 5 { Kind::OpenMpi4 } else { Kind::OpenMpi5 };
        return Some(Said::Launcher(kind, format!("Open MPI {version}")));
    }
    let version = said.lines().find_map(|line| line.trim().strip_prefix("Version:"))?;
    first.starts_with("HYDRA").then(|| Said::Launcher(Kind::Mpich, format!("MPICH {}", version.trim())))
}

fn is_of_runtime(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"prte"))
}

/// Programs of this name beside another, and beside what that one is a link to.
fn beside(path: &Path, name: &str) -> impl Iterator<Item = PathBuf> {
    let target = std::fs::canonicalize(path).ok().map(|target| target.with_file_name(name));
    [Some(path.with_file_name(name)), target].into_iter().flatten().filter(|path| path.is_file())
}

fn in_path(name: &OsStr) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

const NO_MPI: &str = "there is no mpirun in PATH. Install an MPI (on Debian: apt-get install openmpi-bin libopenmpi-dev), \
    or name its mpirun with --mpirun.";
/// As Open MPI itself has it, and as Debian does.
const LAUNCHERS_OF_5: [&str; 2] = ["mpirun", "mpirun.openmpi"];

#[cfg(test)]
mod tests {
    use super::*;

    fn launcher(said: &str) -> Option<(Kind, String)> {
        match recognise(said)? {
            Said::Launcher(kind, version) => Some((kind, version)),
            Said::Runtime(version) => panic!("{version}"),
        }
    }

    #[test]
    fn each_mpi_is_known_by_its_first_words() {
        let open = launcher("mpirun (Open MPI) 4.1.4\n\nReport bugs\n");
        assert_eq!(open, Some((Kind::OpenMpi4, "Open MPI 4.1.4".into())));
        let five = launcher("mpirun (Open MPI) 5.0.11\n");
        assert_eq!(five, Some((Kind::OpenMpi5, "Open MPI 5.0.11".into())));
        let later = launcher("mpirun (Open MPI) 6.0.0a1\n");
        assert_eq!(later, Some((Kind::OpenMpi5, "Open MPI 6.0.0a1".into())));
        let hydra = launcher("HYDRA build details:\n    Version:      5.0.2\n    CC: cc\n");
        assert_eq!(hydra, Some((Kind::Mpich, "MPICH 5.0.2".into())));
    }

    #[test]
    fn open_mpi_is_known_under_whichever_name_it_is_called() {
        for name in ["mpirun.openmpi", "mpiexec", "mpiexec.openmpi", "orterun"] {
            let said = format!("{name} (OpenRTE) 4.1.4\n\nReport bugs\n");
            assert_eq!(launcher(&said), Some((Kind::OpenMpi4, "Open MPI 4.1.4".into())));
            let said = format!("{name} (Open MPI) 5.0.11\n");
            assert_eq!(launcher(&said), Some((Kind::OpenMpi5, "Open MPI 5.0.11".into())));
        }
        let runtime = recognise("prterun (PRRTE) 3.0.14\n");
        assert_eq!(runtime, Some(Said::Runtime("PRRTE 3.0.14".into())), "which has a version of its own");
    }

    #[test]
    fn another_is_not_taken_for_one_of_them() {
        assert_eq!(recognise("Intel(R) MPI Library for Linux* OS, Version 2021.5\n"), None);
        assert_eq!(recognise(""), None);
        assert_eq!(recognise("mpirun (Open MPI) unknown\n"), None);
    }
}
