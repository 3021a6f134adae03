//! A context, a worker and an endpoint of UCX, for tags and one thread; for the benches too.

use super::ffi;
use super::library::Library;
use std::ffi::{CString, c_void};
use std::ptr;

/// A context with these settings of `ucx_info -c`, over those of the environment.
pub(super) fn context(library: &Library, settings: &[(&str, &str)]) -> Result<ffi::Handle, String> {
    let mut config = ptr::null_mut();
    // SAFETY: no prefix, no file, room for the answer.
    check("ucp_config_read", unsafe { (library.config_read)(ptr::null(), ptr::null(), &mut config) })?;
    let modified = settings.iter().try_for_each(|(name, value)| modify(library, config, name, value));
    let params = ffi::ContextParams {
        field_mask: ffi::CONTEXT_FEATURES,
        features: ffi::FEATURE_TAG,
        request_size: 0,
        request_init: ptr::null(),
        request_cleanup: ptr::null(),
        tag_sender_mask: 0,
        mt_workers_shared: 0,
        estimated_num_eps: 0,
        estimated_num_ppn: 0,
        name: ptr::null(),
    };
    let mut context = ptr::null_mut();
    // SAFETY: parameters whose mask names only fields that are set, a live configuration, room for the answer.
    let status =
        unsafe { (library.init_version)(ffi::API_MAJOR, ffi::API_MINOR, &params, config, &mut context) };
    // SAFETY: the configuration read above, not used again.
    unsafe { (library.config_release)(config) };
    modified?;
    check("ucp_init", status)?;
    Ok(context)
}

fn modify(library: &Library, config: ffi::Handle, name: &str, value: &str) -> Result<(), String> {
    let name = CString::new(name).map_err(|error| error.to_string())?;
    let value = CString::new(value).map_err(|error| error.to_string())?;
    // SAFETY: a live configuration and two strings, which are copied.
    let status = unsafe { (library.config_modify)(config, name.as_ptr(), value.as_ptr()) };
    check("ucp_config_modify", status)
}

pub(super) fn worker(library: &Library, context: ffi::Handle) -> Result<ffi::Handle, String> {
    let params = ffi::WorkerParams {
        field_mask: ffi::WORKER_THREAD_MODE,
        thread_mode: ffi::THREAD_MODE_SINGLE,
        cpu_mask: [0; 16],
        events: 0,
        user_data: ptr::null_mut(),
        event_fd: 0,
        flags: 0,
        name: ptr::null(),
        am_alignment: 0,
        client_id: 0,
    };
    let mut worker = ptr::null_mut();
    // SAFETY: a live context, parameters whose mask names only fields that are set, room for the answer.
    check("ucp_worker_create", unsafe { (library.worker_create)(context, &params, &mut worker) })?;
    Ok(worker)
}

/// From a worker to the one of this address.
pub(super) fn endpoint(
    library: &Library,
    worker: ffi::Handle,
    address: *const c_void,
) -> Result<ffi::Handle, String> {
    let params = ffi::EndpointParams {
        field_mask: ffi::ENDPOINT_REMOTE_ADDRESS,
        address,
        err_mode: 0,
        err_handler: [ptr::null(); 2],
        user_data: ptr::null_mut(),
        flags: 0,
        sockaddr: [ptr::null(); 2],
        conn_request: ptr::null_mut(),
        name: ptr::null(),
        local_sockaddr: [ptr::null(); 2],
    };
    let mut endpoint = ptr::null_mut();
    // SAFETY: a live worker, the address of one, room for the answer.
    check("ucp_ep_create", unsafe { (library.endpoint_create)(worker, &params, &mut endpoint) })?;
    Ok(endpoint)
}

/// End all three, the endpoint at once and if it is not null.
///
/// # Safety
/// They are live, belong to each other, and are not used again.
pub(super) unsafe fn end(
    library: &Library,
    context: ffi::Handle,
    worker: ffi::Handle,
    endpoint: ffi::Handle,
) {
    if !endpoint.is_null() {
        let close = ffi::RequestParam { op_attr_mask: ffi::OP_FLAGS, flags: ffi::CLOSE_FORCE, ..no_param() };
        // SAFETY: a live endpoint, not used again.
        let request = unsafe { (library.endpoint_close)(endpoint, &close) };
        // SAFETY: a live worker, used by this thread alone.
        while unsafe { (library.progress)(worker) } != 0 {}
        if !request.is_null() && request.addr() < ffi::ERROR_POINTER_MIN {
            // SAFETY: the request of the close above; freeing it early is allowed (ucp.h, `ucp_request_free`).
            unsafe { (library.request_free)(request) };
        }
    }
    // SAFETY: a live worker without endpoints, not used again.
    unsafe { (library.worker_destroy)(worker) };
    // SAFETY: a live context without workers, not used again.
    unsafe { (library.cleanup)(context) };
}

/// Of a request, nothing but that its data is bytes.
pub(super) const fn no_param() -> ffi::RequestParam {
    ffi::RequestParam {
        op_attr_mask: 0,
        flags: 0,
        request: ptr::null_mut(),
        callback: ffi::Callback { receive: None },
        datatype: ffi::DATATYPE_BYTES,
        user_data: ptr::null_mut(),
        reply_buffer: ptr::null_mut(),
        memory_type: 0,
        receive_info: ptr::null_mut(),
        memory: ptr::null_mut(),
    }
}

pub(super) fn check(call: &str, status: ffi::Status) -> Result<(), String> {
    if status < 0 { Err(format!("{call}: status {status}")) } else { Ok(()) }
}
