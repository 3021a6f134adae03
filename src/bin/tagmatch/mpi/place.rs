//! Where the provider is: a directory whose `libtagmatch-fi.so` libfabric loads.
//!
//! libfabric loads every file of the directories in FI_PROVIDER_PATH whose name ends in `-fi.so`. An installed provider
//! has such a name; what a build makes has not, since a crate's file has no hyphens. Then there is a directory beside it
//! with a link of the right name, which is made where it is missing and stays: it belongs to the build.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// The value for FI_PROVIDER_PATH, given what it is.
pub(crate) fn directory(set: Option<&str>) -> Result<String, String> {
    let set = set.filter(|set| !set.is_empty());
    let installed = |set: &str| {
        folders(set).map(|folder| Path::new(folder).join(INSTALLED)).find(|library| library.exists())
    };
    if let Some((set, library)) = set.and_then(|set| Some((set, installed(set)?))) {
        of_library(&library)?;
        return Ok(set.to_owned());
    }
    let folder = own()?;
    let folder = folder.to_str().filter(|folder| !folder.contains(':')).ok_or_else(|| {
        format!("FI_PROVIDER_PATH cannot name {}: it has a colon or is no text", folder.display())
    })?;
    // A leading @ is about all of the list.
    Ok(match set.map(|set| (set.strip_prefix('@'), set)) {
        None => folder.to_owned(),
        Some((Some(rest), _)) => format!("@{folder}:{rest}"),
        Some((None, set)) => format!("{folder}:{set}"),
    })
}

fn folders(set: &str) -> impl Iterator<Item = &str> {
    set.strip_prefix('@').unwrap_or(set).split(':').filter(|folder| !folder.is_empty())
}

/// The directory of this program's own provider.
fn own() -> Result<PathBuf, String> {
    if let Some(named) = env::var_os(VARIABLE) {
        let named = PathBuf::from(named);
        let found = fs::canonicalize(&named)
            .map_err(|error| format!("{VARIABLE} names {}: {error}", named.display()))?;
        return of_library(&found);
    }
    let program = env::current_exe().map_err(|error| format!("this program is nowhere: {error}"))?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let library = folder.join("../lib/tagmatch");
    let places = [folder.join(INSTALLED), library.join(INSTALLED), folder.join(BUILT)];
    match places.iter().find(|place| place.exists()) {
        Some(place) => of_library(&std::path::absolute(place).unwrap_or_else(|_| place.clone())),
        None => Err(format!(
            "there is no {INSTALLED} or {BUILT} in {}, nor in ../lib/tagmatch. In the sources, \
             `cargo build -p tagmatch-fi` (with --release for a release build) makes it; or set {VARIABLE} to its place.",
            folder.display()
        )),
    }
}

/// The directory in which libfabric finds this library.
fn of_library(library: &Path) -> Result<PathBuf, String> {
    let folder = library.parent().unwrap_or(Path::new("/"));
    private(library)?;
    private(folder)?;
    if library.file_name().is_some_and(|name| name == INSTALLED) {
        return Ok(folder.to_owned());
    }
    let name = library.file_name().ok_or_else(|| format!("{} is no file", library.display()))?;
    let linked = folder.join(LINKED);
    let target = Path::new("..").join(name);
    link(&linked, &target).map_err(|error| {
        format!(
            "{} cannot be made: {error}. Link {} to a file {INSTALLED} elsewhere, and set {VARIABLE} to that.",
            linked.join(INSTALLED).display(),
            library.display()
        )
    })?;
    private(&linked)?;
    Ok(linked)
}

/// Make the link unless it is there. Another process may do the same at the same time.
fn link(linked: &Path, target: &Path) -> io::Result<()> {
    let place = linked.join(INSTALLED);
    let is_there = || fs::read_link(&place).is_ok_and(|there| there == target);
    if is_there() {
        return Ok(());
    }
    match fs::create_dir(linked) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    // Under another name first, so that it is never missing; not one that libfabric would load.
    let new = linked.join(format!("new-{}", std::process::id()));
    let _ = fs::remove_file(&new);
    symlink(target, &new)?;
    fs::rename(&new, &place)
}

/// Refuse what anybody may write: it would be loaded into every process of the job.
fn private(path: &Path) -> Result<(), String> {
    let mode = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?.mode();
    if mode & 0o002 == 0 {
        Ok(())
    } else {
        Err(format!("{} can be written by anybody, and would be loaded into MPI programs", path.display()))
    }
}

/// As libfabric looks for it.
const INSTALLED: &str = "libtagmatch-fi.so";
/// As it is built.
const BUILT: &str = "libtagmatch_fi.so";
/// The directory beside it that has the link.
const LINKED: &str = "tagmatch-fi";
const VARIABLE: &str = "TAGMATCH_FI_LIB";
