//! A directory that is one run's alone and gone with it, whatever ends the run: one that was killed leaves it to the next.
//!
//! Who holds the lock of the file in it, be it this process or a program that inherited it, keeps it.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A directory of this run's own, removed at its end. Fields are dropped in this order.
pub(crate) struct RunDirectory {
    /// Locked as long as the run lasts: the programs hold it too.
    pub(crate) alive: File,
    pub(crate) path: Removed,
}

/// A directory that is removed if nobody holds its lock any more.
pub(crate) struct Removed(PathBuf);

impl Deref for Removed {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        remove_unused(&self.0);
    }
}

impl RunDirectory {
    /// In the directory of temporary files (`TMPDIR`), with a name that begins so.
    pub(crate) fn new(prefix: &str) -> Result<Self, String> {
        let failed =
            |error| format!("there can be no run directory in {}: {error}", env::temp_dir().display());
        // The programs may go elsewhere.
        let parent = std::path::absolute(env::temp_dir()).map_err(failed)?;
        Self::make(&parent, prefix).map_err(failed)
    }

    fn make(parent: &Path, prefix: &str) -> io::Result<Self> {
        remove_stale(parent, prefix);
        for number in 0..u32::MAX {
            let path = parent.join(format!("{prefix}{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    // Locked before it has its name: whoever finds it free knows that the run is over.
                    let alive = File::create(path.join("new"))?;
                    alive.lock()?;
                    fs::rename(path.join("new"), path.join(ALIVE))?;
                    return Ok(Self { alive, path: Removed(path) });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }
}

/// Remove the directories of runs that were killed, where no program of them is left. A run that lives removes its own.
fn remove_stale(parent: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| name.strip_prefix(prefix)) else { continue };
        let process = number.split('-').next().unwrap_or_default();
        if !Path::new("/proc").join(process).exists() {
            remove_unused(&entry.path());
        }
    }
}

/// Remove a run directory of this user's whose lock is free. Others may put anything into a folder that all share: what
/// is no such directory is left alone, and does not keep who looks at it.
fn remove_unused(path: &Path) {
    let is_own = |found: fs::Metadata| {
        found.is_dir() && fs::metadata("/proc/self").is_ok_and(|own| own.uid() == found.uid())
    };
    if !fs::symlink_metadata(path).is_ok_and(is_own) {
        return;
    }
    // To open a pipe would wait for whoever writes to it.
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let Ok(alive) = File::options().read(true).custom_flags(flags).open(path.join(ALIVE)) else { return };
    if alive.metadata().is_ok_and(|found| found.is_file()) && alive.try_lock().is_ok() {
        // Nobody is left who could be told of a failure; the next run tries again.
        let _ = fs::remove_dir_all(path);
    }
}

const ALIVE: &str = "alive";
