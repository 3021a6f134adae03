//! UCX as a peer: the same loops through `ucp_tag_*` to a worker's own endpoint (`TLS=self`), where a send
//! is matched, copied (8 bytes) and completed before it returns.
//!
//! A receive's completion is read in its callback, which notes the request; requests are given back when
//! the loop settles. Nothing asks for more than that: no status, no length, the cheapest way there is.
//! Sources travel in the tag, as Open MPI's UCX component does.
//!
//! The only unsafe code of the benches but the counting allocator. Not here: loops and clocks.

#[path = "../../src/bin/tagmatch/pair/ucx/ffi.rs"]
mod ffi;
#[path = "../../src/bin/tagmatch/pair/ucx/library.rs"]
mod library;
#[path = "../../src/bin/tagmatch/pair/ucx/made.rs"]
mod made;

use std::ffi::{CStr, c_void};
use std::ptr;

use crate::common::subject::Subject;
use library::Library;
use tagmatch::ids::Source;
use tagmatch::matching::{Envelope, Pattern};

/// One UCX context, worker and endpoint to itself.
pub(crate) struct Ucx {
    library: Library,
    context: ffi::Handle,
    worker: ffi::Handle,
    endpoint: ffi::Handle,
    /// Boxed, since requests and callbacks point into it.
    shared: Box<Shared>,
    send: ffi::RequestParam,
    receive: ffi::RequestParam,
}

/// What UCX is given pointers to.
struct Shared {
    /// Requests whose callback has run, to be given back.
    completed: Vec<*mut c_void>,
    cancelled: usize,
    source: [u8; MESSAGE_BYTES],
    target: [u8; MESSAGE_BYTES],
}

impl std::fmt::Debug for Ucx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ucx").finish_non_exhaustive()
    }
}

impl Ucx {
    /// Opens the library and an endpoint to itself, or says why that cannot be.
    pub(crate) fn open() -> Result<Self, String> {
        if std::env::var_os("UCX_LOG_LEVEL").is_none() {
            // A list that is still full when its worker goes is worth a line for each entry to UCX.
            // SAFETY: the benches have one thread.
            unsafe { std::env::set_var("UCX_LOG_LEVEL", "error") };
        }
        let library = Library::open()?;
        let context = made::context(&library, &[("TLS", "self")])?;
        let worker = made::worker(&library, context)?;
        let (mut address, mut length) = (ptr::null_mut(), 0);
        // SAFETY: a live worker, room for the answers.
        let status = unsafe { (library.worker_address)(worker, &mut address, &mut length) };
        made::check("ucp_worker_get_address", status)?;
        let endpoint = made::endpoint(&library, worker, address);
        // SAFETY: the address obtained above, not used again.
        unsafe { (library.release_address)(worker, address) };
        let endpoint = endpoint?;
        let mut shared = Box::new(Shared {
            completed: Vec::with_capacity(1 << 16),
            cancelled: 0,
            source: [0x5a; MESSAGE_BYTES],
            target: [0; MESSAGE_BYTES],
        });
        let receive = ffi::RequestParam {
            op_attr_mask: ffi::OP_CALLBACK | ffi::OP_USER_DATA | ffi::OP_DATATYPE | ffi::OP_MEMORY_TYPE,
            callback: ffi::Callback { receive: Some(received) },
            user_data: ptr::from_mut(shared.as_mut()).cast(),
            ..made::no_param()
        };
        let send =
            ffi::RequestParam { op_attr_mask: ffi::OP_DATATYPE | ffi::OP_MEMORY_TYPE, ..made::no_param() };
        Ok(Self { library, context, worker, endpoint, shared, send, receive })
    }

    /// As the library names itself.
    pub(crate) fn version() -> Result<String, String> {
        let library = Library::open()?;
        // SAFETY: no argument.
        let text = unsafe { (library.version_string)() };
        // SAFETY: a static nul-terminated string (ucp.h, `ucp_get_version_string`).
        let text = unsafe { CStr::from_ptr(text) };
        Ok(text.to_string_lossy().into_owned())
    }
}

impl Subject for Ucx {
    /// Tag and mask.
    type Pattern = (u64, u64);
    type Envelope = u64;
    type Receive = *mut c_void;

    fn name(&self) -> &'static str {
        "ucx"
    }

    fn prepare_pattern(pattern: &Pattern) -> (u64, u64) {
        debug_assert_eq!(
            pattern.source,
            Source::Any,
            "sources belong into the tag: Script::with_sources_in_tags"
        );
        (pattern.tag.0, pattern.ignore.mask())
    }

    fn prepare_envelope(envelope: &Envelope) -> u64 {
        envelope.tag.0
    }

    fn post(&mut self, &(tag, mask): &(u64, u64)) -> Option<*mut c_void> {
        let target = self.shared.target.as_mut_ptr().cast();
        // SAFETY: a live worker, a buffer of that length which outlives the request, and parameters whose
        // mask names only fields that are set. Every receive may write the buffer: nobody reads it.
        let request = unsafe {
            (self.library.tag_receive)(self.worker, target, MESSAGE_BYTES, tag, mask, &self.receive)
        };
        assert!((request as usize) < ffi::ERROR_POINTER_MIN, "ucp_tag_recv_nbx failed");
        (!request.is_null()).then_some(request)
    }

    fn arrive(&mut self, &tag: &u64) -> bool {
        let before = self.shared.completed.len();
        let source = self.shared.source.as_ptr().cast();
        // SAFETY: a live endpoint and a buffer of that length which outlives the send, as it ends here.
        let request =
            unsafe { (self.library.tag_send)(self.endpoint, source, MESSAGE_BYTES, tag, &self.send) };
        assert!(request.is_null(), "a send of 8 bytes to itself did not end at once");
        self.shared.completed.len() > before
    }

    fn probe(&mut self, &(tag, mask): &(u64, u64)) -> bool {
        let mut info = ffi::ReceiveInfo::default();
        // SAFETY: a live worker and room for the answer; 0 leaves the message where it is.
        !unsafe { (self.library.tag_probe)(self.worker, tag, mask, 0, &mut info) }.is_null()
    }

    fn claim(&mut self, &(tag, mask): &(u64, u64)) -> bool {
        let mut info = ffi::ReceiveInfo::default();
        // SAFETY: a live worker and room for the answer; 1 takes the message, which is received below.
        let message = unsafe { (self.library.tag_probe)(self.worker, tag, mask, 1, &mut info) };
        if message.is_null() {
            return false;
        }
        let target = self.shared.target.as_mut_ptr().cast();
        // SAFETY: the message just taken, a buffer as long as every message, parameters as for a receive.
        let request = unsafe {
            (self.library.tag_message_receive)(self.worker, target, MESSAGE_BYTES, message, &self.receive)
        };
        assert!((request as usize) < ffi::ERROR_POINTER_MIN, "ucp_tag_msg_recv_nbx failed");
        true
    }

    fn cancel(&mut self, request: *mut c_void) -> bool {
        let before = self.shared.cancelled;
        // SAFETY: the workloads cancel only what is still posted, so the request is live.
        unsafe { (self.library.request_cancel)(self.worker, request) };
        self.shared.cancelled > before
    }

    fn settle(&mut self) {
        for request in self.shared.completed.drain(..) {
            // SAFETY: completed, noted once by its callback, and not given back before.
            unsafe { (self.library.request_free)(request) };
        }
    }
}

impl Drop for Ucx {
    fn drop(&mut self) {
        self.settle();
        // SAFETY: all three are live, and not used again.
        unsafe { made::end(&self.library, self.context, self.worker, self.endpoint) };
    }
}

/// Notes a request that is done. UCX calls it within a send, a cancel or a progress call of this thread.
extern "C" fn received(
    request: *mut c_void,
    status: ffi::Status,
    _: *const ffi::ReceiveInfo,
    shared: *mut c_void,
) {
    let shared: *mut Shared = shared.cast();
    // SAFETY: the box that `Ucx` keeps for as long as requests live; the caller above holds no reference
    // into it while UCX runs.
    let shared = unsafe { &mut *shared };
    shared.completed.push(request);
    shared.cancelled += usize::from(status == ffi::CANCELLED);
}

/// As in the measurements that the budgets come from.
const MESSAGE_BYTES: usize = 8;
