//! UCX as a port: `ucp_tag_*` of the installed libucp.
//!
//! A source is a part of the tag there, as Open MPI's UCX component has it. Completions are noted in callbacks; sends that
//! are done at once have none.
#![allow(unsafe_code, reason = "calls of a C library, and memory that it knows")]

mod ffi;
mod library;
mod made;

use super::plan::{Over, Setup};
use super::port::{Done, Port, Sending, Sent, Wanted};
use super::work::contexts;
use library::Library;
use std::env;
use std::ffi::{CStr, c_void};
use std::ptr;
use tagmatch::seam::Buffer;

/// One UCX context, worker and endpoint.
pub(super) struct Ucx {
    library: Library,
    context: ffi::Handle,
    worker: ffi::Handle,
    /// Null until it has met the other half.
    endpoint: ffi::Handle,
    /// What callbacks write to. It is never freed.
    shared: *mut Shared,
    /// What callbacks are given. They are never freed.
    slots: &'static [Slot],
    over: String,
}

/// See [`Ucx::shared`].
struct Shared {
    done: Vec<Done>,
    failed: Option<ffi::Status>,
    free: ffi::Release,
}

/// An operation that may be under way.
struct Slot {
    shared: *mut Shared,
    number: usize,
}

impl std::fmt::Debug for Ucx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ucx").field("over", &self.over).finish_non_exhaustive()
    }
}

impl Ucx {
    /// Over what fits this medium, unless `UCX_TLS` says over what.
    pub(super) fn open(over: Over, setup: &Setup) -> Result<Self, String> {
        let library = Library::open()
            .map_err(|why| format!("UCX is not installed (Debian: apt-get install libucx0): {why}"))?;
        let set = env::var("UCX_TLS").ok();
        let over = match (&set, over) {
            (Some(set), _) => set.clone(),
            (None, Over::Shm) => "posix,cma".to_owned(),
            (None, Over::Tcp) => "tcp".to_owned(),
            (None, Over::Verbs) => "rc".to_owned(),
        };
        let tls = set.is_none().then_some(("TLS", over.as_str()));
        let context = made::context(&library, tls.as_slice())?;
        let worker = made::worker(&library, context)?;
        let done = Vec::with_capacity(1024);
        let shared: *mut Shared =
            Box::leak(Box::new(Shared { done, failed: None, free: library.request_free }));
        let slots = (0..contexts(setup)).map(|number| Slot { shared, number });
        let slots: &'static [Slot] = slots.collect::<Vec<_>>().leak();
        Ok(Self { library, context, worker, endpoint: ptr::null_mut(), shared, slots, over })
    }

    #[inline]
    fn shared(&mut self) -> &mut Shared {
        // SAFETY: leaked for this worker, whose callbacks run within calls of this thread: none runs now.
        unsafe { &mut *self.shared }
    }

    #[inline]
    fn slot(&self, number: usize) -> *mut c_void {
        ptr::from_ref(&self.slots[number]).cast_mut().cast()
    }
}

impl Port for Ucx {
    fn name(&self) -> Vec<u8> {
        let (mut address, mut length) = (ptr::null_mut(), 0);
        // SAFETY: a live worker, room for the answers.
        let status = unsafe { (self.library.worker_address)(self.worker, &mut address, &mut length) };
        if status < 0 || address.is_null() {
            return Vec::new();
        }
        // SAFETY: so many bytes, which stay until they are released.
        let name = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), length) }.to_vec();
        // SAFETY: the address obtained above, not used again.
        unsafe { (self.library.release_address)(self.worker, address) };
        name
    }

    fn what(&self) -> String {
        // SAFETY: no argument.
        let text = unsafe { (self.library.version_string)() };
        // SAFETY: a static string (ucp.h, `ucp_get_version_string`).
        let version = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        format!("UCX {version}, {}", self.over)
    }

    fn meet(&mut self, name: &[u8]) -> Result<(), String> {
        // An address says its own length; it ends in zeros here, whatever it says.
        let mut name = name.to_vec();
        name.resize(name.len() + 64, 0);
        self.endpoint = made::endpoint(&self.library, self.worker, name.as_ptr().cast())?;
        Ok(())
    }

    #[inline]
    fn post(&mut self, wanted: Wanted, buffer: &Buffer, context: usize) -> Result<bool, String> {
        let param = ffi::RequestParam {
            op_attr_mask: RECEIVE,
            callback: ffi::Callback { receive: Some(received) },
            user_data: self.slot(context),
            ..made::no_param()
        };
        let mask = !wanted.ignore & if wanted.any_source { !SOURCE_MASK } else { u64::MAX };
        let (address, length) = place(buffer.address, buffer.length)?;
        // SAFETY: a live worker, memory that stays to the end of the process, parameters whose mask names only fields
        // that are set.
        let request = unsafe {
            (self.library.tag_receive)(self.worker, address, length, wanted.tag | SOURCE, mask, &param)
        };
        check_pointer("ucp_tag_recv_nbx", request).map(|()| true)
    }

    #[inline]
    fn send(&mut self, tag: u64, memory: &Sent, length: usize, context: usize) -> Result<Sending, String> {
        let param = ffi::RequestParam {
            op_attr_mask: SEND,
            callback: ffi::Callback { send: Some(sent) },
            user_data: self.slot(context),
            ..made::no_param()
        };
        let (address, length) = place(memory.memory.address, length as u64)?;
        // SAFETY: a live endpoint, memory that stays to the end of the process, parameters whose mask names only fields
        // that are set.
        let request =
            unsafe { (self.library.tag_send)(self.endpoint, address, length, tag | SOURCE, &param) };
        if request.is_null() {
            return Ok(Sending::Over);
        }
        check_pointer("ucp_tag_send_nbx", request).map(|()| Sending::Underway)
    }

    #[inline]
    fn poll(&mut self) -> Result<Option<Done>, String> {
        if self.shared().done.is_empty() {
            // SAFETY: a live worker, used by this thread alone.
            unsafe { (self.library.progress)(self.worker) };
        }
        let shared = self.shared();
        match shared.failed {
            Some(status) => Err(format!("an operation ended with the status {status}")),
            None => Ok(shared.done.pop()),
        }
    }
}

impl Drop for Ucx {
    fn drop(&mut self) {
        // SAFETY: what is not null is live, and not used again.
        unsafe { made::end(&self.library, self.context, self.worker, self.endpoint) };
    }
}

/// UCX calls it within a call of the thread that owns the worker.
extern "C" fn received(
    request: *mut c_void,
    status: ffi::Status,
    info: *const ffi::ReceiveInfo,
    slot: *mut c_void,
) {
    let (tag, length) = if info.is_null() {
        (0, 0)
    } else {
        // SAFETY: valid within the callback.
        let info = unsafe { *info };
        (info.sender_tag & !SOURCE_MASK, info.length)
    };
    note(request, status, slot, |context| Done::Received { context, tag, length });
}

/// The same of a send.
extern "C" fn sent(request: *mut c_void, status: ffi::Status, slot: *mut c_void) {
    note(request, status, slot, |context| Done::Sent { context });
}

fn note(request: *mut c_void, status: ffi::Status, slot: *mut c_void, done: impl FnOnce(usize) -> Done) {
    // SAFETY: a slot that was given with the request, and is never freed.
    let slot = unsafe { &*slot.cast::<Slot>() };
    // SAFETY: whoever called into UCX holds no reference to it meanwhile.
    let shared = unsafe { &mut *slot.shared };
    if status == 0 {
        shared.done.push(done(slot.number));
    } else {
        shared.failed = Some(status);
    }
    // SAFETY: a request that is done, given back once; that is allowed in its callback.
    unsafe { (shared.free)(request) };
}

/// A request that is none says why not.
#[inline]
fn check_pointer(call: &str, request: *mut c_void) -> Result<(), String> {
    if request.addr() < ffi::ERROR_POINTER_MIN {
        Ok(())
    } else {
        Err(format!("{call}: status -{}", request.addr().wrapping_neg()))
    }
}

fn place(address: u64, length: u64) -> Result<(*mut c_void, usize), String> {
    let number = |value: u64| usize::try_from(value).map_err(|error| error.to_string());
    Ok((ptr::with_exposed_provenance_mut(number(address)?), number(length)?))
}

/// Fields that are set in the parameters of a receive, and of a send. Memory is the host's. A receive that is done at once
/// calls back too, since 1.13 says of no other what it took.
const RECEIVE: u32 = SEND | ffi::OP_NO_IMMEDIATE;
const SEND: u32 = ffi::OP_CALLBACK | ffi::OP_USER_DATA | ffi::OP_DATATYPE | ffi::OP_MEMORY_TYPE;
/// Where a tag names its sender, and the other half as it stands there.
const SOURCE_MASK: u64 = 0xffff << 32;
const SOURCE: u64 = 1 << 32;
