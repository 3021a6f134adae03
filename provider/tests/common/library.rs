//! libfabric itself, opened as an application that was linked with it has it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::OnceLock;

use tagmatch::provider::abi::{self, fi_fabric_attr, fi_info, fid_fabric, version};

type GetInfo =
    unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const fi_info, *mut *mut fi_info) -> c_int;
type FreeInfo = unsafe extern "C" fn(*mut fi_info);
type DupInfo = unsafe extern "C" fn(*const fi_info) -> *mut fi_info;
type OpenFabric = unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int;

/// The functions of libfabric that are no tables.
pub(crate) struct Fabric {
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
    // SAFETY: opening a library of the system runs its constructors.
    let library = unsafe { libc::dlopen(c"libfabric.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!library.is_null(), "libfabric.so.1 is not installed (Debian: libfabric1)");
    let own = symbol(library, c"fi_version");
    // SAFETY: `uint32_t fi_version(void)`.
    let own: unsafe extern "C" fn() -> u32 = unsafe { std::mem::transmute(own) };
    Fabric {
        // SAFETY: the declared types of these functions.
        getinfo: unsafe { std::mem::transmute::<*mut c_void, GetInfo>(symbol(library, c"fi_getinfo")) },
        // SAFETY: as above.
        freeinfo: unsafe { std::mem::transmute::<*mut c_void, FreeInfo>(symbol(library, c"fi_freeinfo")) },
        // SAFETY: as above.
        dupinfo: unsafe { std::mem::transmute::<*mut c_void, DupInfo>(symbol(library, c"fi_dupinfo")) },
        // SAFETY: as above.
        fabric: unsafe { std::mem::transmute::<*mut c_void, OpenFabric>(symbol(library, c"fi_fabric")) },
        // SAFETY: it takes nothing.
        version: unsafe { own() },
    }
}

fn symbol(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: an open library and a string.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!found.is_null(), "libfabric has no {name:?}");
    found
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
    match std::os::unix::fs::symlink(&library, &link) {
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
        let service = CString::new(port.to_string()).unwrap();
        // SAFETY: null makes an empty info with all its parts.
        let hints = unsafe { (self.dupinfo)(ptr::null()) };
        // SAFETY: it is ours.
        let fields = unsafe { &mut *hints };
        let name = CString::new("tagmatch").unwrap();
        // SAFETY: parts of an empty info are not null, and strings are the C library's.
        unsafe { (*fields.fabric_attr).prov_name = libc::strdup(name.as_ptr()) };
        change(fields);
        let mut info = ptr::null_mut();
        // SAFETY: strings and hints are ours, and a place for the list.
        let result = super::with_environment(|| unsafe {
            (self.getinfo)(api, c"127.0.0.1".as_ptr(), service.as_ptr(), abi::FI_SOURCE, hints, &raw mut info)
        });
        // SAFETY: ours, and not used any more.
        unsafe { (self.freeinfo)(hints) };
        if result == 0 { Ok(info) } else { Err(result) }
    }

    /// The interface that applications ask this library for.
    pub(crate) fn api(&self) -> u32 {
        self.version.min(version(2, 6))
    }
}
