//! The other side of libfabric: its library, opened at run time, as an application that was linked with it has it.
//!
//! For programs that measure or test providers, this one and others. Nothing here is used by the provider itself.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use super::abi::{fi_fabric_attr, fi_info, fid_fabric, version};

/// `fi_getinfo(3)`.
pub type GetInfo =
    unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const fi_info, *mut *mut fi_info) -> c_int;
/// `fi_freeinfo`.
pub type FreeInfo = unsafe extern "C" fn(*mut fi_info);
/// `fi_dupinfo`; of null an empty info with all its parts.
pub type DupInfo = unsafe extern "C" fn(*const fi_info) -> *mut fi_info;
/// `fi_fabric(3)`.
pub type OpenFabric = unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int;
type Strerror = unsafe extern "C" fn(c_int) -> *const c_char;

/// The functions of libfabric that are no tables. They stay valid: the library is never closed.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// `fi_getinfo`.
    pub getinfo: GetInfo,
    /// `fi_freeinfo`.
    pub freeinfo: FreeInfo,
    /// `fi_dupinfo`.
    pub dupinfo: DupInfo,
    /// `fi_fabric`.
    pub fabric: OpenFabric,
    strerror: Strerror,
    /// Its own version, as `fi_version(3)` gives it.
    pub version: u32,
}

impl Library {
    /// The installed one. It reads the environment and loads providers when it is first asked for an info.
    ///
    /// # Errors
    /// There is none, with the name of the package; or it lacks a function.
    pub fn open() -> Result<Self, String> {
        // SAFETY: opening a library of the system runs its constructors.
        let library = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err("libfabric.so.1 is not installed (Debian: apt-get install libfabric1)".into());
        }
        let own = symbol(library, c"fi_version")?;
        // SAFETY: `uint32_t fi_version(void)`.
        let own: unsafe extern "C" fn() -> u32 = unsafe { std::mem::transmute(own) };
        Ok(Self {
            // SAFETY: the declared types of these functions (rdma/fabric.h, rdma/fi_errno.h).
            getinfo: unsafe { std::mem::transmute::<*mut c_void, GetInfo>(symbol(library, c"fi_getinfo")?) },
            // SAFETY: as above.
            freeinfo: unsafe {
                std::mem::transmute::<*mut c_void, FreeInfo>(symbol(library, c"fi_freeinfo")?)
            },
            // SAFETY: as above.
            dupinfo: unsafe { std::mem::transmute::<*mut c_void, DupInfo>(symbol(library, c"fi_dupinfo")?) },
            // SAFETY: as above.
            fabric: unsafe { std::mem::transmute::<*mut c_void, OpenFabric>(symbol(library, c"fi_fabric")?) },
            // SAFETY: as above.
            strerror: unsafe {
                std::mem::transmute::<*mut c_void, Strerror>(symbol(library, c"fi_strerror")?)
            },
            // SAFETY: it takes nothing.
            version: unsafe { own() },
        })
    }

    /// The interface that applications ask this library for.
    #[must_use]
    pub fn api(&self) -> u32 {
        self.version.min(version(2, 6))
    }

    /// An error that a call returned, in words; its sign does not matter.
    #[must_use]
    pub fn words(&self, error: isize) -> String {
        let code = c_int::try_from(error.unsigned_abs()).unwrap_or(c_int::MAX);
        // SAFETY: it takes any number.
        let text = unsafe { (self.strerror)(code) };
        if text.is_null() {
            return format!("error {error}");
        }
        // SAFETY: a static string (fi_strerror(3)).
        let text = unsafe { CStr::from_ptr(text) };
        format!("{} ({error})", text.to_string_lossy())
    }

    /// Infos for these hints, for an endpoint at an address of this host (none: wherever it likes) and a port, 0: any.
    ///
    /// # Errors
    /// What `fi_getinfo` returns, a negative code.
    pub fn infos(
        &self,
        api: u32,
        at: Option<(&CStr, u16)>,
        change: impl FnOnce(&mut fi_info),
    ) -> Result<Infos, c_int> {
        // SAFETY: null makes an empty info with all its parts.
        let hints = unsafe { (self.dupinfo)(ptr::null()) };
        if hints.is_null() {
            return Err(-libc::ENOMEM);
        }
        let hints = Infos { first: hints, free: self.freeinfo };
        // SAFETY: it is ours, and nobody else knows it.
        change(unsafe { &mut *hints.first });
        let mut first = ptr::null_mut();
        let service = at.map(|(_, port)| CString::new(port.to_string()).unwrap_or_default());
        let (node, service, flags) = match (&at, &service) {
            (Some((node, _)), Some(service)) => (node.as_ptr(), service.as_ptr(), super::abi::FI_SOURCE),
            _ => (ptr::null(), ptr::null(), 0),
        };
        // SAFETY: strings and hints are ours, and a place for the list.
        let result = unsafe { (self.getinfo)(api, node, service, flags, hints.first, &raw mut first) };
        if result == 0 { Ok(Infos { first, free: self.freeinfo }) } else { Err(result) }
    }
}

/// A list of infos of the library, freed when it is dropped.
#[derive(Debug)]
pub struct Infos {
    first: *mut fi_info,
    free: FreeInfo,
}

impl Infos {
    /// The first of the list.
    #[must_use]
    pub const fn first(&self) -> *mut fi_info {
        self.first
    }

    /// The list, for the caller to free.
    #[must_use]
    pub fn into_raw(self) -> *mut fi_info {
        let first = self.first;
        std::mem::forget(self);
        first
    }

    /// Names of the providers in the list, each once, in order.
    #[must_use]
    pub fn providers(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut info = self.first;
        while !info.is_null() {
            // SAFETY: an info of the list.
            let fields = unsafe { &*info };
            // SAFETY: infos of the library have all parts.
            let attributes = unsafe { &*fields.fabric_attr };
            if !attributes.prov_name.is_null() {
                // SAFETY: a string of the library's.
                let name = unsafe { CStr::from_ptr(attributes.prov_name) }.to_string_lossy().into_owned();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            info = fields.next;
        }
        names
    }
}

impl Drop for Infos {
    fn drop(&mut self) {
        // SAFETY: a list of the library, freed once.
        unsafe { (self.free)(self.first) };
    }
}

fn symbol(library: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: an open library and a string.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() { Err(format!("libfabric has no {}", name.to_string_lossy())) } else { Ok(found) }
}

const NAME: &CStr = c"libfabric.so.1";
