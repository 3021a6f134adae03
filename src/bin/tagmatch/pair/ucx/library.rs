//! UCX found at run time: the library opened, its functions by name.
//!
//! Not here: what they are called with.

#![allow(dead_code, reason = "not every user needs everything")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use super::ffi;

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, symbol: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

/// The functions used, valid for the rest of the process: the library is never closed.
#[derive(Clone, Copy)]
pub(super) struct Library {
    pub(super) config_read: ffi::ConfigRead,
    pub(super) config_modify: ffi::ConfigModify,
    pub(super) config_release: ffi::Release,
    pub(super) init_version: ffi::InitVersion,
    pub(super) cleanup: ffi::Release,
    pub(super) worker_create: ffi::WorkerCreate,
    pub(super) worker_destroy: ffi::Release,
    pub(super) worker_address: ffi::WorkerAddress,
    pub(super) release_address: ffi::ReleaseAddress,
    pub(super) endpoint_create: ffi::EndpointCreate,
    pub(super) endpoint_close: ffi::EndpointClose,
    pub(super) tag_send: ffi::TagSend,
    pub(super) tag_receive: ffi::TagReceive,
    pub(super) tag_probe: ffi::TagProbe,
    pub(super) tag_message_receive: ffi::TagMessageReceive,
    pub(super) request_cancel: ffi::RequestCancel,
    pub(super) request_free: ffi::Release,
    pub(super) progress: ffi::Progress,
    pub(super) version_string: ffi::VersionString,
}

macro_rules! symbol {
    ($library:expr, $name:literal) => {{
        let address = address_of($library, $name)?;
        // SAFETY: the symbol is a function of libucp whose documented signature is the field's type.
        unsafe { std::mem::transmute_copy(&address) }
    }};
}

impl Library {
    /// Opens the installed library, or says why not.
    pub(super) fn open() -> Result<Self, String> {
        let name = CString::new(LIBRARY).map_err(|error| error.to_string())?;
        // SAFETY: a nul-terminated name; libucp's constructors may run at any time.
        let library = unsafe { dlopen(name.as_ptr(), NOW | LOCAL) };
        if library.is_null() {
            return Err(last_error().unwrap_or_else(|| format!("{LIBRARY} not found")));
        }
        Ok(Self {
            config_read: symbol!(library, "ucp_config_read"),
            config_modify: symbol!(library, "ucp_config_modify"),
            config_release: symbol!(library, "ucp_config_release"),
            init_version: symbol!(library, "ucp_init_version"),
            cleanup: symbol!(library, "ucp_cleanup"),
            worker_create: symbol!(library, "ucp_worker_create"),
            worker_destroy: symbol!(library, "ucp_worker_destroy"),
            worker_address: symbol!(library, "ucp_worker_get_address"),
            release_address: symbol!(library, "ucp_worker_release_address"),
            endpoint_create: symbol!(library, "ucp_ep_create"),
            endpoint_close: symbol!(library, "ucp_ep_close_nbx"),
            tag_send: symbol!(library, "ucp_tag_send_nbx"),
            tag_receive: symbol!(library, "ucp_tag_recv_nbx"),
            tag_probe: symbol!(library, "ucp_tag_probe_nb"),
            tag_message_receive: symbol!(library, "ucp_tag_msg_recv_nbx"),
            request_cancel: symbol!(library, "ucp_request_cancel"),
            request_free: symbol!(library, "ucp_request_free"),
            progress: symbol!(library, "ucp_worker_progress"),
            version_string: symbol!(library, "ucp_get_version_string"),
        })
    }
}

fn address_of(library: *mut c_void, name: &str) -> Result<*mut c_void, String> {
    let symbol = CString::new(name).map_err(|error| error.to_string())?;
    // SAFETY: an open library and a nul-terminated name.
    let address = unsafe { dlsym(library, symbol.as_ptr()) };
    if address.is_null() {
        return Err(last_error().unwrap_or_else(|| format!("{LIBRARY} has no {name}")));
    }
    Ok(address)
}

fn last_error() -> Option<String> {
    // SAFETY: no argument; the text is copied before any other call of its family.
    let text = unsafe { dlerror() };
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, so it is a nul-terminated string.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}

/// Of the UCX 1.x series.
const LIBRARY: &str = "libucp.so.0";
/// `RTLD_NOW` and `RTLD_LOCAL` of glibc and musl on Linux.
const NOW: c_int = 2;
const LOCAL: c_int = 0;
