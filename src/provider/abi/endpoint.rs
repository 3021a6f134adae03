//! Messages, and the tables of an endpoint's calls (`rdma/fi_endpoint.h`, `fi_tagged.h`, `fi_rma.h`, `fi_atomic.h`,
//! `fi_collective.h`, `fi_cm.h`).

use super::types::*;
use libc::{c_int, c_void, iovec, size_t, ssize_t};

#[repr(C)]
pub struct fi_msg {
    pub msg_iov: *const iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: size_t,
    pub addr: u64,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
pub struct fi_msg_tagged {
    pub msg_iov: *const iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: size_t,
    pub addr: u64,
    pub tag: u64,
    pub ignore: u64,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
pub struct fi_ops_ep {
    pub size: size_t,
    pub cancel: unsafe extern "C" fn(*mut fid, *mut c_void) -> ssize_t,
    pub getopt: unsafe extern "C" fn(*mut fid, c_int, c_int, *mut c_void, *mut size_t) -> c_int,
    pub setopt: unsafe extern "C" fn(*mut fid, c_int, c_int, *const c_void, size_t) -> c_int,
    pub tx_ctx: Slot,
    pub rx_ctx: Slot,
    pub rx_size_left: unsafe extern "C" fn(*mut fid_ep) -> ssize_t,
    pub tx_size_left: unsafe extern "C" fn(*mut fid_ep) -> ssize_t,
    pub export_xpu: Slot,
}

#[repr(C)]
pub struct fi_ops_cm {
    pub size: size_t,
    pub setname: unsafe extern "C" fn(*mut fid, *mut c_void, size_t) -> c_int,
    pub getname: unsafe extern "C" fn(*mut fid, *mut c_void, *mut size_t) -> c_int,
    pub getpeer: unsafe extern "C" fn(*mut fid_ep, *mut c_void, *mut size_t) -> c_int,
    pub connect: unsafe extern "C" fn(*mut fid_ep, *const c_void, *const c_void, size_t) -> c_int,
    pub listen: unsafe extern "C" fn(*mut fid_pep) -> c_int,
    pub accept: unsafe extern "C" fn(*mut fid_ep, *const c_void, size_t) -> c_int,
    pub reject: unsafe extern "C" fn(*mut fid_pep, *mut fid, *const c_void, size_t) -> c_int,
    pub shutdown: unsafe extern "C" fn(*mut fid_ep, u64) -> c_int,
    pub join: Slot,
}

#[repr(C)]
pub struct fi_ops_msg {
    pub size: size_t,
    pub recv:
        unsafe extern "C" fn(*mut fid_ep, *mut c_void, size_t, *mut c_void, u64, *mut c_void) -> ssize_t,
    pub recvv: unsafe extern "C" fn(
        *mut fid_ep,
        *const iovec,
        *mut *mut c_void,
        size_t,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub recvmsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg, u64) -> ssize_t,
    pub send:
        unsafe extern "C" fn(*mut fid_ep, *const c_void, size_t, *mut c_void, u64, *mut c_void) -> ssize_t,
    pub sendv: unsafe extern "C" fn(
        *mut fid_ep,
        *const iovec,
        *mut *mut c_void,
        size_t,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub sendmsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg, u64) -> ssize_t,
    pub inject: unsafe extern "C" fn(*mut fid_ep, *const c_void, size_t, u64) -> ssize_t,
    pub senddata: unsafe extern "C" fn(
        *mut fid_ep,
        *const c_void,
        size_t,
        *mut c_void,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub injectdata: unsafe extern "C" fn(*mut fid_ep, *const c_void, size_t, u64, u64) -> ssize_t,
}

#[repr(C)]
pub struct fi_ops_tagged {
    pub size: size_t,
    pub recv: unsafe extern "C" fn(
        *mut fid_ep,
        *mut c_void,
        size_t,
        *mut c_void,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub recvv: unsafe extern "C" fn(
        *mut fid_ep,
        *const iovec,
        *mut *mut c_void,
        size_t,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub recvmsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg_tagged, u64) -> ssize_t,
    pub send: unsafe extern "C" fn(
        *mut fid_ep,
        *const c_void,
        size_t,
        *mut c_void,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub sendv: unsafe extern "C" fn(
        *mut fid_ep,
        *const iovec,
        *mut *mut c_void,
        size_t,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub sendmsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg_tagged, u64) -> ssize_t,
    pub inject: unsafe extern "C" fn(*mut fid_ep, *const c_void, size_t, u64, u64) -> ssize_t,
    pub senddata: unsafe extern "C" fn(
        *mut fid_ep,
        *const c_void,
        size_t,
        *mut c_void,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub injectdata: unsafe extern "C" fn(*mut fid_ep, *const c_void, size_t, u64, u64, u64) -> ssize_t,
}

#[repr(C)]
pub struct fi_rma_iov {
    pub addr: u64,
    pub len: size_t,
    pub key: u64,
}

#[repr(C)]
pub struct fi_msg_rma {
    pub msg_iov: *const iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: size_t,
    pub addr: u64,
    pub rma_iov: *const fi_rma_iov,
    pub rma_iov_count: size_t,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
pub struct fi_ops_rma {
    pub size: size_t,
    pub read: unsafe extern "C" fn(
        *mut fid_ep,
        *mut c_void,
        size_t,
        *mut c_void,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub readv: unsafe extern "C" fn(
        *mut fid_ep,
        *const iovec,
        *mut *mut c_void,
        size_t,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub readmsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg_rma, u64) -> ssize_t,
    pub write: unsafe extern "C" fn(
        *mut fid_ep,
        *const c_void,
        size_t,
        *mut c_void,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub writev: unsafe extern "C" fn(
        *mut fid_ep,
        *const iovec,
        *mut *mut c_void,
        size_t,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub writemsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg_rma, u64) -> ssize_t,
    pub inject: unsafe extern "C" fn(*mut fid_ep, *const c_void, size_t, u64, u64, u64) -> ssize_t,
    pub writedata: unsafe extern "C" fn(
        *mut fid_ep,
        *const c_void,
        size_t,
        *mut c_void,
        u64,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> ssize_t,
    pub injectdata: unsafe extern "C" fn(*mut fid_ep, *const c_void, size_t, u64, u64, u64, u64) -> ssize_t,
}

#[repr(C)]
pub struct fi_ioc {
    pub addr: *mut c_void,
    pub count: size_t,
}

#[repr(C)]
pub struct fi_rma_ioc {
    pub addr: u64,
    pub count: size_t,
    pub key: u64,
}

#[repr(C)]
pub struct fi_msg_atomic {
    pub msg_iov: *const fi_ioc,
    pub desc: *mut *mut c_void,
    pub iov_count: size_t,
    pub addr: u64,
    pub rma_iov: *const fi_rma_ioc,
    pub rma_iov_count: size_t,
    pub datatype: c_int,
    pub op: c_int,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
pub struct fi_atomic_attr {
    pub count: size_t,
    pub size: size_t,
}

#[repr(C)]
pub struct fi_ops_atomic {
    pub size: size_t,
    pub write: unsafe extern "C" fn(
        *mut fid_ep,
        *const c_void,
        size_t,
        *mut c_void,
        u64,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> ssize_t,
    pub writev: unsafe extern "C" fn(
        *mut fid_ep,
        *const fi_ioc,
        *mut *mut c_void,
        size_t,
        u64,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> ssize_t,
    pub writemsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg_atomic, u64) -> ssize_t,
    pub inject:
        unsafe extern "C" fn(*mut fid_ep, *const c_void, size_t, u64, u64, u64, c_int, c_int) -> ssize_t,
    pub readwrite: unsafe extern "C" fn(
        *mut fid_ep,
        *const c_void,
        size_t,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        u64,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> ssize_t,
    pub readwritev: unsafe extern "C" fn(
        *mut fid_ep,
        *const fi_ioc,
        *mut *mut c_void,
        size_t,
        *mut fi_ioc,
        *mut *mut c_void,
        size_t,
        u64,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> ssize_t,
    pub readwritemsg: unsafe extern "C" fn(
        *mut fid_ep,
        *const fi_msg_atomic,
        *mut fi_ioc,
        *mut *mut c_void,
        size_t,
        u64,
    ) -> ssize_t,
    pub compwrite: unsafe extern "C" fn(
        *mut fid_ep,
        *const c_void,
        size_t,
        *mut c_void,
        *const c_void,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        u64,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> ssize_t,
    pub compwritev: unsafe extern "C" fn(
        *mut fid_ep,
        *const fi_ioc,
        *mut *mut c_void,
        size_t,
        *const fi_ioc,
        *mut *mut c_void,
        size_t,
        *mut fi_ioc,
        *mut *mut c_void,
        size_t,
        u64,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> ssize_t,
    pub compwritemsg: unsafe extern "C" fn(
        *mut fid_ep,
        *const fi_msg_atomic,
        *const fi_ioc,
        *mut *mut c_void,
        size_t,
        *mut fi_ioc,
        *mut *mut c_void,
        size_t,
        u64,
    ) -> ssize_t,
    pub writevalid: unsafe extern "C" fn(*mut fid_ep, c_int, c_int, *mut size_t) -> c_int,
    pub readwritevalid: unsafe extern "C" fn(*mut fid_ep, c_int, c_int, *mut size_t) -> c_int,
    pub compwritevalid: unsafe extern "C" fn(*mut fid_ep, c_int, c_int, *mut size_t) -> c_int,
}

/// Nothing of it is offered.
#[repr(C)]
pub struct fi_ops_collective {
    pub size: size_t,
    pub barrier: Slot,
    pub broadcast: Slot,
    pub alltoall: Slot,
    pub allreduce: Slot,
    pub allgather: Slot,
    pub reduce_scatter: Slot,
    pub reduce: Slot,
    pub scatter: Slot,
    pub gather: Slot,
    pub msg: Slot,
    pub barrier2: Slot,
}

#[repr(C)]
pub struct fid_ep {
    pub fid: fid,
    pub ops: *const fi_ops_ep,
    pub cm: *const fi_ops_cm,
    pub msg: *const fi_ops_msg,
    pub rma: *const fi_ops_rma,
    pub tagged: *const fi_ops_tagged,
    pub atomic: *const fi_ops_atomic,
    pub collective: *const fi_ops_collective,
}

#[repr(C)]
pub struct fid_pep {
    pub fid: fid,
    pub ops: *const fi_ops_ep,
    pub cm: *const fi_ops_cm,
}
