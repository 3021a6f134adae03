//! The part of UCP's C interface that is needed here and in `benches/peer_ucx`, written by hand from the documented interface and
//! checked against sizes and offsets measured with the headers of UCX 1.13.1 on x86-64.
//!
//! Newer versions of the 1.x interface keep these layouts: every structure starts with a mask of the fields
//! that are set, and new fields are added behind.
//!
//! Not here: anything that calls. `tests/pair/ucx_layouts.c` compares all of this with the installed headers.

#![allow(dead_code, reason = "not every user needs everything")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::offset_of;

/// `ucs_status_t`: a packed enumeration, one byte. 0 is success, 1 in progress, below 0 an error.
pub(super) type Status = i8;
pub(super) type Handle = *mut c_void;

/// `ucp_params_t`.
#[repr(C)]
pub(super) struct ContextParams {
    pub(super) field_mask: u64,
    pub(super) features: u64,
    pub(super) request_size: usize,
    pub(super) request_init: *const c_void,
    pub(super) request_cleanup: *const c_void,
    pub(super) tag_sender_mask: u64,
    pub(super) mt_workers_shared: c_int,
    pub(super) estimated_num_eps: usize,
    pub(super) estimated_num_ppn: usize,
    pub(super) name: *const c_char,
}

/// `ucp_worker_params_t`.
#[repr(C)]
pub(super) struct WorkerParams {
    pub(super) field_mask: u64,
    pub(super) thread_mode: c_int,
    pub(super) cpu_mask: [u64; 16],
    pub(super) events: c_uint,
    pub(super) user_data: *mut c_void,
    pub(super) event_fd: c_int,
    pub(super) flags: u64,
    pub(super) name: *const c_char,
    pub(super) am_alignment: usize,
    pub(super) client_id: u64,
}

/// `ucp_ep_params_t`.
#[repr(C)]
pub(super) struct EndpointParams {
    pub(super) field_mask: u64,
    pub(super) address: *const c_void,
    pub(super) err_mode: c_int,
    pub(super) err_handler: [*const c_void; 2],
    pub(super) user_data: *mut c_void,
    pub(super) flags: c_uint,
    pub(super) sockaddr: [*const c_void; 2],
    pub(super) conn_request: Handle,
    pub(super) name: *const c_char,
    pub(super) local_sockaddr: [*const c_void; 2],
}

/// `ucp_request_param_t`, its unions as the one member that is used.
#[repr(C)]
pub(super) struct RequestParam {
    pub(super) op_attr_mask: u32,
    pub(super) flags: u32,
    pub(super) request: *mut c_void,
    pub(super) callback: Callback,
    pub(super) datatype: u64,
    pub(super) user_data: *mut c_void,
    pub(super) reply_buffer: *mut c_void,
    pub(super) memory_type: c_int,
    pub(super) receive_info: *mut ReceiveInfo,
    pub(super) memory: Handle,
}

/// `ucp_tag_recv_info_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiveInfo {
    pub(super) sender_tag: u64,
    pub(super) length: usize,
}

/// The callbacks of a request, of which one is meant.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) union Callback {
    pub(super) receive: Option<ReceiveCallback>,
    pub(super) send: Option<SendCallback>,
}

/// `ucp_send_nbx_callback_t`.
pub(super) type SendCallback = extern "C" fn(*mut c_void, Status, *mut c_void);
/// `ucp_tag_recv_nbx_callback_t`.
pub(super) type ReceiveCallback = extern "C" fn(*mut c_void, Status, *const ReceiveInfo, *mut c_void);

pub(super) type ConfigRead = unsafe extern "C" fn(*const c_char, *const c_char, *mut Handle) -> Status;
pub(super) type ConfigModify = unsafe extern "C" fn(Handle, *const c_char, *const c_char) -> Status;
pub(super) type Release = unsafe extern "C" fn(Handle);
pub(super) type InitVersion =
    unsafe extern "C" fn(c_uint, c_uint, *const ContextParams, Handle, *mut Handle) -> Status;
pub(super) type WorkerCreate = unsafe extern "C" fn(Handle, *const WorkerParams, *mut Handle) -> Status;
pub(super) type WorkerAddress = unsafe extern "C" fn(Handle, *mut *mut c_void, *mut usize) -> Status;
pub(super) type ReleaseAddress = unsafe extern "C" fn(Handle, *mut c_void);
pub(super) type EndpointCreate = unsafe extern "C" fn(Handle, *const EndpointParams, *mut Handle) -> Status;
pub(super) type EndpointClose = unsafe extern "C" fn(Handle, *const RequestParam) -> *mut c_void;
pub(super) type TagSend =
    unsafe extern "C" fn(Handle, *const c_void, usize, u64, *const RequestParam) -> *mut c_void;
pub(super) type TagReceive =
    unsafe extern "C" fn(Handle, *mut c_void, usize, u64, u64, *const RequestParam) -> *mut c_void;
pub(super) type TagProbe = unsafe extern "C" fn(Handle, u64, u64, c_int, *mut ReceiveInfo) -> Handle;
pub(super) type TagMessageReceive =
    unsafe extern "C" fn(Handle, *mut c_void, usize, Handle, *const RequestParam) -> *mut c_void;
pub(super) type RequestCancel = unsafe extern "C" fn(Handle, *mut c_void);
pub(super) type Progress = unsafe extern "C" fn(Handle) -> c_uint;
pub(super) type VersionString = unsafe extern "C" fn() -> *const c_char;

pub(super) const API_MAJOR: c_uint = 1;
/// Oldest minor version with everything above.
pub(super) const API_MINOR: c_uint = 10;
pub(super) const CONTEXT_FEATURES: u64 = 1 << 0;
pub(super) const FEATURE_TAG: u64 = 1 << 0;
pub(super) const WORKER_THREAD_MODE: u64 = 1 << 0;
pub(super) const THREAD_MODE_SINGLE: c_int = 0;
pub(super) const ENDPOINT_REMOTE_ADDRESS: u64 = 1 << 0;
pub(super) const OP_CALLBACK: u32 = 1 << 1;
pub(super) const OP_USER_DATA: u32 = 1 << 2;
pub(super) const OP_DATATYPE: u32 = 1 << 3;
pub(super) const OP_FLAGS: u32 = 1 << 4;
pub(super) const OP_MEMORY_TYPE: u32 = 1 << 6;
pub(super) const OP_NO_IMMEDIATE: u32 = 1 << 16;
pub(super) const DATATYPE_BYTES: u64 = 1 << 3;
pub(super) const CLOSE_FORCE: u32 = 1 << 0;
/// `UCS_ERR_CANCELED`.
pub(super) const CANCELLED: Status = -16;
/// Pointers from here up are negated errors (`UCS_PTR_IS_ERR`, `UCS_ERR_LAST` = -100).
pub(super) const ERROR_POINTER_MIN: usize = usize::MAX - 99;

#[cfg(target_arch = "x86_64")]
const _: () = {
    assert!(size_of::<ContextParams>() == 80);
    assert!(offset_of!(ContextParams, request_init) == 24);
    assert!(offset_of!(ContextParams, tag_sender_mask) == 40);
    assert!(offset_of!(ContextParams, mt_workers_shared) == 48);
    assert!(offset_of!(ContextParams, estimated_num_eps) == 56);
    assert!(offset_of!(ContextParams, name) == 72);
    assert!(size_of::<WorkerParams>() == 200);
    assert!(offset_of!(WorkerParams, thread_mode) == 8);
    assert!(offset_of!(WorkerParams, cpu_mask) == 16);
    assert!(offset_of!(WorkerParams, events) == 144);
    assert!(offset_of!(WorkerParams, user_data) == 152);
    assert!(offset_of!(WorkerParams, event_fd) == 160);
    assert!(offset_of!(WorkerParams, flags) == 168);
    assert!(offset_of!(WorkerParams, client_id) == 192);
    assert!(size_of::<EndpointParams>() == 104);
    assert!(offset_of!(EndpointParams, address) == 8);
    assert!(offset_of!(EndpointParams, err_mode) == 16);
    assert!(offset_of!(EndpointParams, err_handler) == 24);
    assert!(offset_of!(EndpointParams, user_data) == 40);
    assert!(offset_of!(EndpointParams, flags) == 48);
    assert!(offset_of!(EndpointParams, sockaddr) == 56);
    assert!(offset_of!(EndpointParams, conn_request) == 72);
    assert!(offset_of!(EndpointParams, local_sockaddr) == 88);
    assert!(size_of::<RequestParam>() == 72);
    assert!(offset_of!(RequestParam, flags) == 4);
    assert!(offset_of!(RequestParam, request) == 8);
    assert!(offset_of!(RequestParam, callback) == 16);
    assert!(offset_of!(RequestParam, datatype) == 24);
    assert!(offset_of!(RequestParam, user_data) == 32);
    assert!(offset_of!(RequestParam, reply_buffer) == 40);
    assert!(offset_of!(RequestParam, memory_type) == 48);
    assert!(offset_of!(RequestParam, receive_info) == 56);
    assert!(offset_of!(RequestParam, memory) == 64);
    assert!(size_of::<ReceiveInfo>() == 16);
    assert!(offset_of!(ReceiveInfo, length) == 8);
};
