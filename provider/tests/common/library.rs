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

/// A folder with the provider under the name that libfabric looks for.
fn provider_folder() -> PathBuf {
    let mut built = std::env::current_exe().unwrap();
    // Beside the test's own program: only `cargo build` puts a copy one folder up.
    built.pop();
    let library = built.join("libtagmatch_fi.so");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("provider-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let link = folder.join("libtagmatch-fi.so");
    // One that an older process of this number has left may be of another build.
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(&library, &link).unwrap_or_else(|error| panic!("{}: {error}", link.display()));
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
