//! Opening the library and finding its functions.

use std::ffi::CStr;
use std::sync::OnceLock;

use libc::{c_char, c_int, c_void, size_t};

use super::types::{
    ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq, ibv_device, ibv_device_attr, ibv_gid,
    ibv_gid_entry, ibv_mr, ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_attr, ibv_qp_init_attr, ibv_srq,
    ibv_srq_init_attr,
};

/// The library, opened once for the whole process and never closed: providers keep threads and handlers in it.
///
/// # Errors
/// There is no library, or it lacks a function.
pub fn library() -> Result<&'static Library, &'static LoadError> {
    static LIBRARY: OnceLock<Result<Library, LoadError>> = OnceLock::new();
    LIBRARY.get_or_init(Library::load).as_ref()
}

/// Why there is no verbs on this machine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// `dlopen` failed.
    #[error(
        "libibverbs.so.1 cannot be opened ({reason}): install the package libibverbs1 (Debian) or libibverbs"
    )]
    NoLibrary {
        /// The loader's words.
        reason: String,
    },
    /// `dlsym` failed.
    #[error("libibverbs.so.1 has no function {symbol}: it is older than rdma-core 25 or not libibverbs")]
    NoSymbol {
        /// The function.
        symbol: &'static str,
    },
}

macro_rules! functions {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        /// The functions of libibverbs, as `verbs.h` declares them, and what the opening found out.
        #[derive(Debug)]
        pub struct Library {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($argument: $type),*) $(-> $result)?,)*
            /// `_ibv_query_gid_ex`, from rdma-core 32 on: says which GIDs are RoCE v2.
            pub query_gid_ex: Option<
                unsafe extern "C" fn(*mut ibv_context, u32, u32, *mut ibv_gid_entry, u32, size_t) -> c_int,
            >,
            /// What `ibv_fork_init` returned: 0, or the errno for which a fork would break registered memory.
            pub fork_errno: c_int,
        }

        impl Library {
            fn find(handle: Handle) -> Result<Self, LoadError> {
                Ok(Self {
                    $($name: {
                        let symbol = handle.symbol(concat!(stringify!($name), "\0"));
                        let symbol = symbol.ok_or(LoadError::NoSymbol { symbol: stringify!($name) })?;
                        // SAFETY: the function of that name has this type (verbs.h); both are pointers.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) $(-> $result)?>(symbol) }
                    },)*
                    query_gid_ex: handle.symbol("_ibv_query_gid_ex\0").map(|symbol| {
                        // SAFETY: the function of that name has this type (verbs.h); both are pointers.
                        unsafe { std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn(*mut ibv_context, u32, u32, *mut ibv_gid_entry, u32, size_t) -> c_int,
                        >(symbol) }
                    }),
                    fork_errno: 0,
                })
            }
        }
    };
}

functions! {
    fn ibv_fork_init() -> c_int;
    fn ibv_get_device_list(num_devices: *mut c_int) -> *mut *mut ibv_device;
    fn ibv_free_device_list(list: *mut *mut ibv_device);
    fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context;
    fn ibv_close_device(context: *mut ibv_context) -> c_int;
    fn ibv_query_device(context: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int;
    /// Fills a structure without the last three fields; [`super::inline::query_port`] is better.
    fn ibv_query_port(context: *mut ibv_context, port: u8, attr: *mut ibv_port_attr) -> c_int;
    fn ibv_query_gid(context: *mut ibv_context, port: u8, index: c_int, gid: *mut ibv_gid) -> c_int;
    fn ibv_get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> c_int;
    fn ibv_ack_async_event(event: *mut ibv_async_event);
    fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
    fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int;
    fn ibv_reg_mr(pd: *mut ibv_pd, addr: *mut c_void, length: size_t, access: c_int) -> *mut ibv_mr;
    /// As `ibv_reg_mr`, of memory whose addresses in requests begin at `iova`.
    fn ibv_reg_mr_iova(
        pd: *mut ibv_pd, addr: *mut c_void, length: size_t, iova: u64, access: c_int,
    ) -> *mut ibv_mr;
    fn ibv_dereg_mr(mr: *mut ibv_mr) -> c_int;
    fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel;
    fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int;
    fn ibv_create_cq(
        context: *mut ibv_context, cqe: c_int, cq_context: *mut c_void, channel: *mut ibv_comp_channel,
        comp_vector: c_int,
    ) -> *mut ibv_cq;
    fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int;
    fn ibv_get_cq_event(
        channel: *mut ibv_comp_channel, cq: *mut *mut ibv_cq, cq_context: *mut *mut c_void,
    ) -> c_int;
    fn ibv_ack_cq_events(cq: *mut ibv_cq, events: u32);
    fn ibv_create_srq(pd: *mut ibv_pd, attr: *mut ibv_srq_init_attr) -> *mut ibv_srq;
    fn ibv_destroy_srq(srq: *mut ibv_srq) -> c_int;
    fn ibv_create_qp(pd: *mut ibv_pd, attr: *mut ibv_qp_init_attr) -> *mut ibv_qp;
    fn ibv_modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int;
    fn ibv_query_qp(
        qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int, init_attr: *mut ibv_qp_init_attr,
    ) -> c_int;
    fn ibv_destroy_qp(qp: *mut ibv_qp) -> c_int;
    fn ibv_wc_status_str(status: u32) -> *const c_char;
    fn ibv_event_type_str(event: u32) -> *const c_char;
}

impl Library {
    fn load() -> Result<Self, LoadError> {
        let mut library = Self::find(Handle::open(c"libibverbs.so.1")?)?;
        // Before anything is registered, so that a child process does not take registered pages away.
        // SAFETY: no object of the library exists yet.
        library.fork_errno = unsafe { (library.ibv_fork_init)() };
        Ok(library)
    }

    /// The words of the library for a work-completion status.
    #[must_use]
    pub fn status_text(&self, status: u32) -> &'static str {
        // SAFETY: any number is allowed; the result is a constant of the library.
        let text = unsafe { (self.ibv_wc_status_str)(status) };
        constant(text)
    }

    /// The words of the library for an asynchronous event.
    #[must_use]
    pub fn event_text(&self, event: u32) -> &'static str {
        // SAFETY: any number is allowed; the result is a constant of the library.
        let text = unsafe { (self.ibv_event_type_str)(event) };
        constant(text)
    }
}

/// A constant string of the library, which is never closed.
fn constant(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "unknown";
    }
    // SAFETY: a constant that ends with 0.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().unwrap_or("unknown")
}

#[derive(Clone, Copy, Debug)]
struct Handle(*mut c_void);

impl Handle {
    fn open(name: &CStr) -> Result<Self, LoadError> {
        // SAFETY: the name ends with 0. Initialisers of the library run, as they would if it were linked.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(LoadError::NoLibrary { reason: last_error() });
        }
        Ok(Self(handle))
    }

    /// The name ends with 0.
    fn symbol(self, name: &'static str) -> Option<*mut c_void> {
        let name = CStr::from_bytes_with_nul(name.as_bytes()).ok()?;
        // SAFETY: the handle is open, the name ends with 0.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!symbol.is_null()).then_some(symbol)
    }
}

fn last_error() -> String {
    // SAFETY: no preconditions.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".into();
    }
    // SAFETY: the loader's string ends with 0 and lives until the next call of the loader by this thread.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named_with_what_to_install() {
        let error = Handle::open(c"libthereisnosuchthing.so.1").unwrap_err();
        assert!(error.to_string().contains("libibverbs1"), "{error}");
        assert!(error.to_string().contains("libthereisnosuchthing"), "{error}");
    }

    #[test]
    fn a_library_without_the_functions_is_refused_with_the_name_of_the_first() {
        let other = Handle::open(c"libc.so.6").unwrap();
        let error = Library::find(other).unwrap_err();
        assert_eq!(error, LoadError::NoSymbol { symbol: "ibv_fork_init" });
    }

    #[test]
    fn the_library_of_this_machine_has_every_function_or_is_not_there() {
        match library() {
            Ok(library) => {
                assert_eq!(library.fork_errno, 0);
                assert!(library.status_text(super::super::IBV_WC_TM_RNDV_INCOMPLETE).contains("rendezvous"));
                assert_ne!(library.event_text(super::super::IBV_EVENT_SRQ_ERR), "unknown");
            }
            Err(error) => assert!(matches!(error, LoadError::NoLibrary { .. }), "{error}"),
        }
    }
}
