//! Which MPI an mpirun belongs to, by what it says of itself.

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
        let output = Command::new(&path).arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{} cannot be run: {error}", path.display()))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let (kind, version) = recognise(&said).ok_or_else(|| {
            let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
            format!("{} is neither Open MPI's nor MPICH's: it says \"{first}\"", path.display())
        })?;
        let launcher = Self { path, kind, version };
        launcher.must_use_libfabric().map(|()| launcher)
    }

    /// MPICH is built for one network layer or several, and says for which.
    fn must_use_libfabric(&self) -> Result<(), String> {
        if self.kind != Kind::Mpich {
            return Ok(());
        }
        let path = self.path.with_file_name("mpichversion");
        let Ok(output) = Command::new(path).stdin(Stdio::null()).output() else {
            return Ok(());
        };
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

/// Whose mpirun says this with `--version`.
fn recognise(said: &str) -> Option<(Kind, String)> {
    let first = said.lines().find(|line| !line.trim().is_empty())?.trim();
    if let Some((_, version)) = first.split_once("(Open MPI) ") {
        let major: u32 = version.split('.').next()?.parse().ok()?;
        let kind = if major < 5 { Kind::OpenMpi4 } else { Kind::OpenMpi5 };
        return Some((kind, format!("Open MPI {version}")));
    }
    let version = said.lines().find_map(|line| line.trim().strip_prefix("Version:"))?;
    first.starts_with("HYDRA").then(|| (Kind::Mpich, format!("MPICH {}", version.trim())))
}

fn in_path(name: &OsStr) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

const NO_MPI: &str = "there is no mpirun in PATH. Install an MPI (on Debian: apt-get install openmpi-bin libopenmpi-dev), \
    or name its mpirun with --mpirun.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mpi_is_known_by_its_first_words() {
        let open = recognise("mpirun (Open MPI) 4.1.4\n\nReport bugs\n");
        assert_eq!(open, Some((Kind::OpenMpi4, "Open MPI 4.1.4".into())));
        let five = recognise("mpirun (Open MPI) 5.0.11\n");
        assert_eq!(five, Some((Kind::OpenMpi5, "Open MPI 5.0.11".into())));
        let later = recognise("mpirun (Open MPI) 6.0.0a1\n");
        assert_eq!(later, Some((Kind::OpenMpi5, "Open MPI 6.0.0a1".into())));
        let hydra = recognise("HYDRA build details:\n    Version:      5.0.2\n    CC: cc\n");
        assert_eq!(hydra, Some((Kind::Mpich, "MPICH 5.0.2".into())));
    }

    #[test]
    fn another_is_not_taken_for_one_of_them() {
        assert_eq!(recognise("Intel(R) MPI Library for Linux* OS, Version 2021.5\n"), None);
        assert_eq!(recognise(""), None);
        assert_eq!(recognise("mpirun (Open MPI) unknown\n"), None);
    }
}
