//! What takes long to make is made once and kept: kernels, each in a directory that says in its name what it was made
//! from. A directory is there whole or not at all, however many runs make it at the same time.

use crate::failure::Failure;
use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The directory of all that is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The directory named, or that of this user: $XDG_CACHE_HOME/tagmatch/rxe, or that in ~/.cache.
    pub(crate) fn new(named: Option<&Path>) -> Result<Self, Failure> {
        let user = || {
            let set = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
            let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
            base.map(|base| base.join("tagmatch/rxe"))
        };
        let folder = named.map(Path::to_owned).or_else(user);
        let folder = folder.ok_or_else(|| {
            Failure::Refused(
                "neither XDG_CACHE_HOME nor HOME is set: --cache says where kernels are kept".into(),
            )
        })?;
        let absolute = std::path::absolute(&folder).map_err(|error| Failure::file(&folder, error))?;
        Ok(Self { folder: absolute })
    }

    /// What is there under this name.
    pub(crate) fn find(&self, name: &str) -> Option<PathBuf> {
        Some(self.folder.join(name)).filter(|path| path.is_dir())
    }

    /// The newest of what was made under names that begin so.
    pub(crate) fn newest(&self, prefix: &str) -> Option<PathBuf> {
        let entries = fs::read_dir(&self.folder).ok()?.filter_map(Result::ok);
        let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        named
            .max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok())
            .map(|entry| entry.path())
    }

    /// What is there under this name, made if it is not: in the directory that `make` is given.
    pub(crate) fn get(
        &self,
        name: &str,
        make: impl FnOnce(&Path) -> Result<(), Failure>,
    ) -> Result<PathBuf, Failure> {
        if let Some(found) = self.find(name) {
            return Ok(found);
        }
        let failed = |error: io::Error| Failure::file(&self.folder, error);
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let lock = File::create(self.folder.join("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        if let Some(found) = self.find(name) {
            return Ok(found);
        }
        // Who holds the lock is alone: what stands here was left behind.
        let new = self.folder.join("new");
        if new.exists() {
            fs::remove_dir_all(&new).map_err(failed)?;
        }
        fs::create_dir(&new).map_err(failed)?;
        let result = make(&new).and_then(|()| {
            let whole = self.folder.join(name);
            fs::rename(&new, &whole).map_err(failed).map(|()| whole)
        });
        if result.is_err() {
            // The next one that makes it does this first.
            let _ = fs::remove_dir_all(&new);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::RunDirectory;

    #[test]
    fn what_was_made_is_there_next_time_and_what_failed_is_not() {
        let folder = RunDirectory::new().unwrap();
        let cache = Cache::new(Some(folder.path())).unwrap();
        let failed = cache.get("linux-1", |path| {
            fs::write(path.join("half"), "").unwrap();
            Err(Failure::Kernel("no luck".into()))
        });
        assert!(failed.is_err() && cache.find("linux-1").is_none() && cache.newest("linux").is_none());
        let make =
            |path: &Path| fs::write(path.join("whole"), "").map_err(|error| Failure::file(path, error));
        let made = cache.get("linux-1", make).unwrap();
        assert!(made.join("whole").exists() && !made.join("half").exists());
        let again = cache.get("linux-1", |_| Err(Failure::Kernel("made twice".into()))).unwrap();
        assert_eq!((Some(again), Some(made.clone())), (Some(made.clone()), cache.newest("linux-")));
    }
}
