//! What `verbs.h` has as inline functions: calls through the operations of a context.
//!
//! A slot of the extended context exists only if the context is extended (`abi_compat` all ones), if what the provider
//! was built with reaches so far back (`sz`), and if the provider filled it. A missing one is `EOPNOTSUPP`, as there.

use std::mem::offset_of;
use std::ptr;

use libc::{EOPNOTSUPP, c_int};

use super::library::Library;
use super::types::{
    ibv_context, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_device_attr_ex, ibv_ops_wr, ibv_port_attr,
    ibv_qp, ibv_recv_wr, ibv_send_wr, ibv_srq, ibv_srq_init_attr_ex, ibv_wc, verbs_context,
};

/// The extended context before a context, if it reaches back to the slot at this offset (`verbs_get_ctx_op`).
///
/// # Safety
/// The context is open.
unsafe fn extended(context: *mut ibv_context, slot: usize) -> Option<*mut verbs_context> {
    // SAFETY: the context is open.
    let compat = unsafe { (*context).abi_compat };
    if compat.addr() != usize::MAX {
        return None;
    }
    let start = context.wrapping_byte_sub(offset_of!(verbs_context, context)).cast::<verbs_context>();
    // SAFETY: an extended context has its size right before the context.
    let size = unsafe { (*start).sz };
    (size >= size_of::<verbs_context>() - slot).then_some(start)
}

/// Reads a slot of the extended context, if it is there.
macro_rules! slot {
    ($context:expr, $slot:ident) => {{
        // SAFETY: the caller's context is open.
        let extended = unsafe { extended($context, offset_of!(verbs_context, $slot)) };
        // SAFETY: the extended context reaches back to this slot.
        extended.and_then(|extended| unsafe { (*extended).$slot })
    }};
}

/// `ibv_query_port`, with the fields that older libraries leave out set to 0 there.
///
/// # Safety
/// The context is open.
pub unsafe fn query_port(
    library: &Library,
    context: *mut ibv_context,
    port: u8,
    attr: &mut ibv_port_attr,
) -> c_int {
    *attr = ibv_port_attr::default();
    match slot!(context, query_port) {
        // SAFETY: the provider's function, with as much room as it is told.
        Some(call) => unsafe { call(context, port, attr, size_of::<ibv_port_attr>()) },
        // SAFETY: it fills less than the structure has.
        None => unsafe { (library.ibv_query_port)(context, port, attr) },
    }
}

/// `ibv_query_device_ex`. `EOPNOTSUPP` means that nothing beyond `ibv_query_device` is known.
///
/// # Safety
/// The context is open.
pub unsafe fn query_device_ex(context: *mut ibv_context, attr: &mut ibv_device_attr_ex) -> c_int {
    match slot!(context, query_device_ex) {
        // SAFETY: the provider's function, with as much room as it is told.
        Some(call) => unsafe { call(context, ptr::null(), attr, size_of::<ibv_device_attr_ex>()) },
        None => EOPNOTSUPP,
    }
}

/// `ibv_create_cq_ex`. NULL: `errno` says why; but where the call itself is missing it is left alone, and the error
/// is `Err(EOPNOTSUPP)`.
///
/// # Errors
/// `EOPNOTSUPP`
///
/// # Safety
/// The context is open, and what the attributes point to exists.
pub unsafe fn create_cq_ex(
    context: *mut ibv_context,
    attr: &mut ibv_cq_init_attr_ex,
) -> Result<*mut ibv_cq_ex, c_int> {
    match slot!(context, create_cq_ex) {
        // SAFETY: the provider's function.
        Some(call) => Ok(unsafe { call(context, attr) }),
        None => Err(EOPNOTSUPP),
    }
}

/// `ibv_create_srq_ex` for types beyond the basic one, for which there is `ibv_create_srq`. Results as
/// [`create_cq_ex`].
///
/// # Errors
/// `EOPNOTSUPP`
///
/// # Safety
/// The context is open, and what the attributes point to exists.
pub unsafe fn create_srq_ex(
    context: *mut ibv_context,
    attr: &mut ibv_srq_init_attr_ex,
) -> Result<*mut ibv_srq, c_int> {
    match slot!(context, create_srq_ex) {
        // SAFETY: the provider's function.
        Some(call) => Ok(unsafe { call(context, attr) }),
        None => Err(EOPNOTSUPP),
    }
}

/// `ibv_get_srq_num`
///
/// # Safety
/// The SRQ exists.
pub unsafe fn get_srq_num(srq: *mut ibv_srq, number: &mut u32) -> c_int {
    // SAFETY: the SRQ exists.
    let context = unsafe { (*srq).context };
    match slot!(context, get_srq_num) {
        // SAFETY: the provider's function.
        Some(call) => unsafe { call(srq, number) },
        None => EOPNOTSUPP,
    }
}

/// `ibv_post_srq_ops`, to be called as often as needed: it stays the same while the context is open. For each call the
/// SRQ exists; the list is linked to its end and its scatter lists exist; each handle of a DEL is in use; nobody polls
/// the SRQ's completion queue meanwhile (TM-CONTRACT 6.2). `None`: the provider has none.
///
/// # Safety
/// The SRQ exists.
pub unsafe fn find_post_srq_ops(
    srq: *mut ibv_srq,
) -> Option<unsafe extern "C" fn(*mut ibv_srq, *mut ibv_ops_wr, *mut *mut ibv_ops_wr) -> c_int> {
    // SAFETY: the SRQ exists.
    let context = unsafe { (*srq).context };
    slot!(context, post_srq_ops)
}

/// `ibv_post_srq_ops`, once
///
/// # Safety
/// As at [`find_post_srq_ops`], and what it says of each call.
pub unsafe fn post_srq_ops(srq: *mut ibv_srq, list: *mut ibv_ops_wr, bad: &mut *mut ibv_ops_wr) -> c_int {
    // SAFETY: the SRQ exists.
    match unsafe { find_post_srq_ops(srq) } {
        // SAFETY: the provider's function.
        Some(call) => unsafe { call(srq, list, bad) },
        None => {
            *bad = list;
            EOPNOTSUPP
        }
    }
}

/// `ibv_post_srq_recv`
///
/// # Safety
/// The SRQ exists; the list is linked to its end, its scatter lists exist, and their memory stays until a completion.
pub unsafe fn post_srq_recv(srq: *mut ibv_srq, list: *mut ibv_recv_wr, bad: &mut *mut ibv_recv_wr) -> c_int {
    // SAFETY: the SRQ exists.
    let context = unsafe { (*srq).context };
    // SAFETY: it has its context.
    let call = unsafe { (*context).ops.post_srq_recv };
    match call {
        // SAFETY: the provider's function.
        Some(call) => unsafe { call(srq, list, bad) },
        None => EOPNOTSUPP,
    }
}

/// `ibv_post_send`
///
/// # Safety
/// The QP exists; the list is linked to its end, its scatter lists exist, and their memory stays until a completion.
pub unsafe fn post_send(qp: *mut ibv_qp, list: *mut ibv_send_wr, bad: &mut *mut ibv_send_wr) -> c_int {
    // SAFETY: the QP exists.
    let context = unsafe { (*qp).context };
    // SAFETY: it has its context.
    let call = unsafe { (*context).ops.post_send };
    match call {
        // SAFETY: the provider's function.
        Some(call) => unsafe { call(qp, list, bad) },
        None => EOPNOTSUPP,
    }
}

/// `ibv_post_recv`
///
/// # Safety
/// The QP exists; the list is linked to its end, its scatter lists exist, and their memory stays until a completion.
pub unsafe fn post_recv(qp: *mut ibv_qp, list: *mut ibv_recv_wr, bad: &mut *mut ibv_recv_wr) -> c_int {
    // SAFETY: the QP exists.
    let context = unsafe { (*qp).context };
    // SAFETY: it has its context.
    let call = unsafe { (*context).ops.post_recv };
    match call {
        // SAFETY: the provider's function.
        Some(call) => unsafe { call(qp, list, bad) },
        None => EOPNOTSUPP,
    }
}

/// `ibv_poll_cq`: how many completions were written, or a negative number.
///
/// # Safety
/// The completion queue exists.
#[inline(always)]
pub unsafe fn poll_cq(cq: *mut ibv_cq, into: &mut [ibv_wc]) -> c_int {
    // SAFETY: the completion queue exists.
    let context = unsafe { (*cq).context };
    // SAFETY: it has its context.
    let call = unsafe { (*context).ops.poll_cq };
    let room = c_int::try_from(into.len()).unwrap_or(c_int::MAX);
    match call {
        // SAFETY: the provider's function, with as much room as it is told.
        Some(call) => unsafe { call(cq, room, into.as_mut_ptr()) },
        None => -EOPNOTSUPP,
    }
}

/// `ibv_req_notify_cq`
///
/// # Safety
/// The completion queue exists.
pub unsafe fn req_notify_cq(cq: *mut ibv_cq, solicited_only: bool) -> c_int {
    // SAFETY: the completion queue exists.
    let context = unsafe { (*cq).context };
    // SAFETY: it has its context.
    let call = unsafe { (*context).ops.req_notify_cq };
    match call {
        // SAFETY: the provider's function.
        Some(call) => unsafe { call(cq, c_int::from(solicited_only)) },
        None => EOPNOTSUPP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An open context as a provider would make it, built against a library that had so much of the extension.
    fn context(size: usize, is_extended: bool) -> Box<verbs_context> {
        // SAFETY: all fields are integers, pointers or optional functions, for which zero is a value.
        let mut context: Box<verbs_context> = unsafe { Box::new(std::mem::zeroed()) };
        context.sz = size;
        context.context.abi_compat =
            if is_extended { ptr::without_provenance_mut(usize::MAX) } else { ptr::null_mut() };
        context
    }

    unsafe extern "C" fn number(_srq: *mut ibv_srq, number: *mut u32) -> c_int {
        // SAFETY: the test's pointer.
        unsafe { *number = 7 };
        0
    }

    fn srq_number(context: &mut verbs_context) -> Result<u32, c_int> {
        // SAFETY: zero is a value of all fields.
        let mut srq: ibv_srq = unsafe { std::mem::zeroed() };
        srq.context = &raw mut context.context;
        let mut result = 0;
        // SAFETY: as much of an SRQ as the call looks at.
        let errno = unsafe { get_srq_num(&raw mut srq, &mut result) };
        if errno == 0 { Ok(result) } else { Err(errno) }
    }

    #[test]
    fn a_slot_is_called_if_the_context_is_extended_reaches_it_and_has_it() {
        let mut full = context(size_of::<verbs_context>(), true);
        full.get_srq_num = Some(number);
        assert_eq!(srq_number(&mut full), Ok(7));
    }

    #[test]
    fn a_slot_that_is_empty_or_before_the_provider_s_time_is_not_supported() {
        let mut empty = context(size_of::<verbs_context>(), true);
        assert_eq!(srq_number(&mut empty), Err(EOPNOTSUPP));
        let reach = size_of::<verbs_context>() - offset_of!(verbs_context, get_srq_num);
        for (size, expected) in [(reach, Ok(7)), (reach - 1, Err(EOPNOTSUPP)), (0, Err(EOPNOTSUPP))] {
            let mut short = context(size, true);
            short.get_srq_num = Some(number);
            assert_eq!(srq_number(&mut short), expected, "{size}");
        }
        let mut old = context(size_of::<verbs_context>(), false);
        old.get_srq_num = Some(number);
        assert_eq!(srq_number(&mut old), Err(EOPNOTSUPP));
    }
}
