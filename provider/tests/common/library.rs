//! libfabric itself, opened as an application that was linked with it has it.

use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::OnceLock;

use tagmatch::provider::abi::{fi_info, version};
use tagmatch::provider::client::{DupInfo, FreeInfo, GetInfo, Library, OpenFabric};

/// The functions of libfabric that are no tables.
pub(crate) struct Fabric {
    pub(crate) library: Library,
    pub(crate) getinfo: GetInfo,
    pub(crate) freeinfo: FreeInfo,
    pub(crate) dupinfo: DupInfo,
    pub(crate) fabric: OpenFabric,
    /// Its own version.
    pub(crate) version: u32,
}

/// libfabric with the provider in its path. Every test comes here before it does anything else.
pub(crate) fn fabric() -> &'static Fabric {
    static FABRIC: OnceLock<Fabric> = OnceLock::new();
    FABRIC.get_or_init(load)
}

fn load() -> Fabric {
    let folder = provider_folder();
    // SAFETY: every test waits here before it reads an environment, and no other thread writes one.
    unsafe { std::env::set_var("FI_PROVIDER_PATH", &folder) };
    for (name, value) in super::settings() {
        // SAFETY: as above.
        unsafe { std::env::set_var(name, value) };
    }
    let library = Library::open().unwrap();
    let Library { getinfo, freeinfo, dupinfo, fabric, version, .. } = library;
    Fabric { library, getinfo, freeinfo, dupinfo, fabric, version }
}

/// A folder with the provider under the name that libfabric looks for: beside the test's own program, since only `cargo
/// build` puts a copy of the library one folder up, and by a relative link, which every test finds or makes alike. One of a
/// process's own, under its number, would be taken for that of another process with the same number later, and lead to what
/// was built then.
fn provider_folder() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.set_file_name("provider");
    std::fs::create_dir_all(&folder).unwrap();
    let link = folder.join("libtagmatch-fi.so");
    match std::os::unix::fs::symlink("../libtagmatch_fi.so", &link) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => panic!("{}: {error}", link.display()),
    }
    folder
}

impl Fabric {
    /// The first info for these hints, of this provider. The hints' `fabric_attr` names it.
    ///
    /// # Errors
    /// What `fi_getinfo` returns.
    pub(crate) fn info(&self, api: u32, change: impl FnOnce(&mut fi_info)) -> Result<*mut fi_info, c_int> {
        self.info_at(0, api, change)
    }

    /// The same for an endpoint at this port of the loopback interface; 0: any.
    ///
    /// # Errors
    /// As [`Self::info`].
    pub(crate) fn info_at(
        &self,
        port: u16,
        api: u32,
        change: impl FnOnce(&mut fi_info),
    ) -> Result<*mut fi_info, c_int> {
        let name = |hints: &mut fi_info| {
            // SAFETY: parts of an empty info are not null, and strings are the C library's.
            unsafe { (*hints.fabric_attr).prov_name = libc::strdup(c"tagmatch".as_ptr()) };
            change(hints);
        };
        let infos = super::with_environment(|| self.library.infos(api, Some((c"127.0.0.1", port)), name));
        infos.map(tagmatch::provider::client::Infos::into_raw)
    }

    /// The interface that applications ask this library for.
    pub(crate) fn api(&self) -> u32 {
        self.version.min(version(2, 6))
    }
}
