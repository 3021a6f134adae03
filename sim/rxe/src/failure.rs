//! Why a command was not run, said to the person who asked for it.

use std::io;
use std::path::{Path, PathBuf};

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Programs are missing; the packages that have them.
    #[error("{}", missing(.backend, .packages))]
    Missing {
        /// Which way of running needs them.
        backend: &'static str,
        /// What is missing, and the package that has it.
        packages: Vec<(String, &'static str)>,
    },
    /// No way of running works here: what each of them lacks.
    #[error("nothing here can run it:{}", .0.iter().map(|why| format!("\n  {why}")).collect::<String>())]
    NothingWorks(Vec<String>),
    /// What was asked for cannot be had in this way.
    #[error("{0}")]
    Refused(String),
    /// The kernel that was made ready is not as it should be.
    #[error("the kernel cannot be used: {0}")]
    Kernel(String),
    /// A program that was needed on the way failed: its command line, and what it said.
    #[error("`{command}` failed: {said}")]
    Tool {
        /// The command line.
        command: String,
        /// What it said, or how it ended.
        said: String,
    },
    /// A file or directory cannot be used.
    #[error("{}: {error}", .path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The system refused something else.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: String,
        /// The error of the system.
        error: io::Error,
    },
}

impl Failure {
    pub(crate) fn file(path: &Path, error: io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }

    pub(crate) fn system(what: impl Into<String>, error: io::Error) -> Self {
        Self::System { what: what.into(), error }
    }
}

fn missing(backend: &str, packages: &[(String, &'static str)]) -> String {
    let list: Vec<String> =
        packages.iter().map(|(what, package)| format!("{what} (package {package})")).collect();
    format!(
        "{backend} needs {}; with --install, as root, they are installed, or\n  apt-get install --no-install-recommends {}",
        list.join(", "),
        names(packages).join(" ")
    )
}

/// The packages, each once.
pub(crate) fn names(packages: &[(String, &'static str)]) -> Vec<&'static str> {
    let mut names: Vec<&str> = packages.iter().map(|(_, package)| *package).collect();
    names.sort_unstable();
    names.dedup();
    names
}
