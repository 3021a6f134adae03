//! What the tests of the repository itself share: the files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the repository.
#[derive(Debug)]
pub(crate) struct Text {
    /// Its path from the top, with `/`.
    pub(crate) path: String,
    /// Its content.
    pub(crate) text: String,
}

/// All text files of the repository, by path. Build output and version control are left out.
pub(crate) fn texts() -> Vec<Text> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(top, &mut files);
    files.sort();
    files
        .into_iter()
        .filter_map(|file| {
            let text = fs::read_to_string(&file).ok()?;
            let path = file.strip_prefix(top).ok()?.to_string_lossy().replace('\\', "/");
            Some(Text { path, text })
        })
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() {
            if name != "target" && name != ".git" {
                collect(&path, files);
            }
        } else if name != ".git" && name != "Cargo.lock" {
            files.push(path);
        }
    }
}
