//! Installs the library with its own Makefile, once, into a folder of the tests.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The folder of the package.
pub(crate) fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where it is installed.
pub(crate) fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(install)
}

fn install() -> PathBuf {
    let prefix = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("installed");
    let argument = |name: &str, value: &Path| format!("{name}={}", value.display());
    let mut make = Command::new("make");
    make.arg("-C").arg(package()).arg("install");
    make.arg(argument("ARCHIVE", &archive())).arg(argument("PREFIX", &prefix));
    make.arg(argument("BUILD", &prefix.join("build")));
    // Of a make that runs the tests.
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("DESTDIR");
    run(&mut make);
    prefix
}

/// The archive that cargo built beside this program. There may be others, of other features or profiles; each is built anew
/// before tests run when sources have changed, so the newest is never of old sources.
fn archive() -> PathBuf {
    let folder = std::env::current_exe().unwrap();
    let folder = folder.parent().unwrap();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with("libtagmatch_c") && name.ends_with(".a")
    };
    let archives = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(is_ours);
    let newest = archives.max_by_key(|path| path.metadata().and_then(|found| found.modified()).unwrap());
    newest.unwrap_or_else(|| panic!("cargo built no libtagmatch_c.a into {}", folder.display()))
}

/// Run a program that must succeed.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// What a program that must succeed prints.
pub(crate) fn printed(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).unwrap()
}
