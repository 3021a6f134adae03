//! Which traces a command is about.

use std::fs;
use std::path::{Path, PathBuf};
use tagmatch::traces::layout::{self, Layout};
use tagmatch::traces::{Bundled, Trace, bundled};

/// A trace that is still to be read.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// In this program.
    Bundled(Bundled),
    /// In a file.
    File(PathBuf),
}

impl Input {
    /// Read it.
    pub(crate) fn read(&self, layout: Layout) -> Result<Trace, String> {
        let trace = match self {
            Self::Bundled(bundled) => bundled.read(),
            Self::File(path) => Trace::open(path),
        }
        .map_err(|error| error.to_string())?;
        layout::apply(layout, trace).map_err(|error| format!("{error}; try --layout recorded"))
    }

    /// What to call it while it is read.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Bundled(bundled) => bundled.name.to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }
}

/// The traces that the arguments name: those in the program if there are no arguments.
pub(crate) fn inputs(paths: &[PathBuf]) -> Result<Vec<Input>, String> {
    if paths.is_empty() {
        return Ok(bundled().iter().copied().map(Input::Bundled).collect());
    }
    let mut all = Vec::new();
    for path in paths {
        all.extend(files(path)?.into_iter().map(Input::File));
    }
    Ok(all)
}

/// The file, or the traces in the folder.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    if path.is_dir() { folder(path) } else { Ok(vec![path.to_owned()]) }
}

/// The traces in a folder, by name. Whether they are traces is found out when they are read.
fn folder(path: &Path) -> Result<Vec<PathBuf>, String> {
    let shown = path.display();
    let entries =
        fs::read_dir(path).map_err(|error| format!("{shown}: the folder cannot be read: {error}"))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.map_err(|error| format!("{shown}: the folder cannot be read: {error}"))?.path();
        let is_named_so = file.extension().is_some_and(|end| ENDINGS.iter().any(|&ending| end == ending));
        if is_named_so && file.is_file() {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(format!(
            "{shown}: no trace in this folder (looked for *.zst, *.gz and *.trace); name the files themselves"
        ));
    }
    files.sort();
    Ok(files)
}

const ENDINGS: [&str; 3] = ["zst", "gz", "trace"];
