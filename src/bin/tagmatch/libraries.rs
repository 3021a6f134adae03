//! The libraries that are opened at run time: which of them this machine has, of what version, in which file.
//!
//! libfabric says its version. libibverbs and its drivers have no call for that, but files whose names end with it, which
//! is how reports of bugs name them.

use serde::Serialize;

/// One library.
#[derive(Debug, Serialize)]
pub(crate) struct Library {
    pub(crate) name: &'static str,
    /// None where there is no such library, or its file's name has none.
    pub(crate) version: Option<String>,
    /// Its file, without links.
    pub(crate) file: Option<String>,
    /// Why there is none.
    pub(crate) absent: Option<String>,
}

impl Library {
    /// In one line, for a person.
    pub(crate) fn line(&self) -> String {
        let Self { name, version, file, absent } = self;
        let version = version.as_deref().unwrap_or("of unknown version");
        match (absent, file) {
            (Some(why), _) => format!("{name}: none: {why}"),
            (None, Some(file)) => format!("{name} {version} ({file})"),
            (None, None) => format!("{name} {version}"),
        }
    }
}

/// All of them. They are opened for that, as they are before devices or providers are looked at.
#[cfg(target_os = "linux")]
pub(crate) fn libraries() -> Vec<Library> {
    linux::libraries()
}

/// None are looked for on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn libraries() -> Vec<Library> {
    Vec::new()
}

#[cfg(target_os = "linux")]
mod linux {
    use super::Library;
    use std::fs;
    use std::path::Path;
    use tagmatch::provider::client;

    pub(super) fn libraries() -> Vec<Library> {
        let fabric = client::Library::open();
        #[cfg(target_pointer_width = "64")]
        let verbs = tagmatch::device::verbs::devices().err().map(|error| error.to_string());
        #[cfg(not(target_pointer_width = "64"))]
        let verbs = Some("this program does not use it on 32 bits".to_owned());
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let file = |name: &str| loaded(&maps, name).map(str::to_owned);
        let mut all = vec![match fabric {
            Ok(library) => Library {
                name: "libfabric",
                version: Some(format!("{}.{}", library.version >> 16, library.version & 0xffff)),
                file: file("libfabric.so"),
                absent: None,
            },
            Err(error) => absent("libfabric", error),
        }];
        let Some(core) = file("libibverbs.so") else {
            let why = verbs.unwrap_or_else(|| "its file is not among those of this process".into());
            all.push(absent("libibverbs", why));
            all.push(absent("libmlx5", "there is no libibverbs to use it".into()));
            return all;
        };
        let driver = file("libmlx5").or_else(|| driver_beside(Path::new(&core)));
        all.push(present("libibverbs", core));
        all.push(match driver {
            Some(driver) => present("libmlx5", driver),
            None => {
                absent("libmlx5", "not beside libibverbs (Debian: apt-get install ibverbs-providers)".into())
            }
        });
        all
    }

    /// The driver that libibverbs would load if there were a device for it.
    fn driver_beside(core: &Path) -> Option<String> {
        let folder = core.parent()?.join("libibverbs");
        let files = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        let is_it = |path: &std::path::PathBuf| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("libmlx5"))
        };
        let driver = fs::canonicalize(files.filter(is_it).max()?).ok()?;
        Some(driver.to_string_lossy().into_owned())
    }

    fn present(name: &'static str, file: String) -> Library {
        Library { name, version: version(&file), file: Some(file), absent: None }
    }

    fn absent(name: &'static str, why: String) -> Library {
        Library { name, version: None, file: None, absent: Some(why) }
    }

    /// The file of a process's map (proc(5)) whose name begins so.
    pub(super) fn loaded<'a>(maps: &'a str, name: &str) -> Option<&'a str> {
        let paths = maps.lines().filter_map(|line| Some(&line[line.find('/')?..]));
        let mut paths = paths.filter(|path| !path.ends_with(" (deleted)"));
        paths.find(|path| path.rsplit('/').next().is_some_and(|file| file.starts_with(name)))
    }

    /// What stands behind `.so.`, if it is numbers.
    pub(super) fn version(file: &str) -> Option<String> {
        let (_, version) = file.rsplit('/').next()?.split_once(".so.")?;
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        version.split('.').all(is_number).then(|| version.to_owned())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_file_is_found_in_a_map_by_how_its_name_begins() {
            let maps = "7f00-7f01 r-xp 00000000 08:01 12  /a/libibverbs.so.1.2/no\n\
                        7f01-7f02 r-xp 00000000 00:00 0  [heap]\n\
                        7f02-7f03 r-xp 00000000 08:01 13  /a b/libibverbs.so.9 (deleted)\n\
                        7f03-7f04 r-xp 00000000 08:01 13  /a b/libibverbs.so.1.14.44.0\n";
            assert_eq!(loaded(maps, "libibverbs.so"), Some("/a b/libibverbs.so.1.14.44.0"));
            assert_eq!(loaded(maps, "libmlx5"), None);
            assert_eq!(loaded("", "libmlx5"), None);
        }

        #[test]
        fn a_version_is_numbers_behind_so() {
            assert_eq!(version("/x/libmlx5.so.1.24.44.0").as_deref(), Some("1.24.44.0"));
            for none in
                ["/x/libmlx5-rdmav34.so", "/x.so.1/libmlx5.so", "/x/libmlx5.so.", "/x/libmlx5.so.1.x", ""]
            {
                assert_eq!(version(none), None, "{none}");
            }
        }
    }
}
