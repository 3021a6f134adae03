//! `struct fid_domain`: what endpoints, queues, counters and address vectors share, and the thread of automatic progress.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use libc::{c_int, c_void, ssize_t};

use super::object::{Children, Hold, head, no_control, operations};
use super::unsupported::NONE;
use super::{counter, endpoint, event_queue, fabric, poll, queue, region, vector};
use crate::provider::abi::{self, fi_info, fi_ops, fi_ops_domain, fid, fid_domain, fid_ep};
use crate::provider::error::{Outcome, code, fail, integer, signed};
use crate::provider::parameters::Parameters;
use crate::provider::state::State;
use crate::provider::state::queue::Waiting;
use crate::provider::statistics::Publisher;
use crate::provider::turn::Turn;
use crate::provider::wait::WaitSet;

/// What a domain's objects share.
pub(super) struct Core {
    pub(super) turn: Turn<State>,
    pub(super) api: u32,
    pub(super) children: Children,
    pub(super) parameters: Parameters,
    /// Keys of memory regions are dealt (`FI_MR_PROV_KEY`), not asked for.
    pub(super) deals_keys: bool,
    /// Peers name memory by its own addresses (`FI_MR_VIRT_ADDR`), not by offsets.
    pub(super) has_virtual_addresses: bool,
    /// It was opened for connected endpoints, of which others may be in it too.
    pub(super) is_for_connected: bool,
    pub(super) fabric: Arc<fabric::Core>,
    /// With automatic progress: what its thread waits with, and whether it shall end.
    automatic: Option<Arc<WaitSet>>,
    is_closing: AtomicBool,
}

#[repr(C)]
struct Object {
    head: fid_domain,
    core: Arc<Core>,
    thread: Option<JoinHandle<()>>,
    /// The event queue that it is bound to.
    events: Mutex<Option<Hold>>,
}

/// # Safety
/// An info of `fi_getinfo`, or a copy of one.
pub(super) unsafe fn open(
    fabric: &Arc<fabric::Core>,
    info: *mut fi_info,
    context: *mut c_void,
) -> Outcome<*mut fid_domain> {
    // SAFETY: the caller's.
    let Some(info) = (unsafe { info.as_ref() }) else { return fail(abi::FI_EINVAL) };
    if info.domain_attr.is_null() {
        return fail(abi::FI_EINVAL);
    }
    // SAFETY: the caller's: attributes of API 1.17 at least, of which this is a part.
    let threading = u64::from(unsafe { (*info.domain_attr).threading });
    // SAFETY: as before.
    let progress = u64::from(unsafe { (*info.domain_attr).data_progress });
    // SAFETY: as before.
    let mr_mode = u64::from(unsafe { (*info.domain_attr).mr_mode }.cast_unsigned());
    let Ok(parameters) = Parameters::from_environment() else { return fail(abi::FI_EINVAL) };
    // SAFETY: as before, and null or attributes of which this is a part.
    let is_connected = unsafe { is_connected(info) };
    // SAFETY: as before.
    let control = u64::from(unsafe { (*info.domain_attr).control_progress });
    let is_automatic = progress == abi::FI_PROGRESS_AUTO || is_connected && control == abi::FI_PROGRESS_AUTO;
    let automatic =
        is_automatic.then(WaitSet::new).transpose().map_err(|_| code(abi::FI_ENOMEM))?.map(Arc::new);
    let mut state = State::default();
    state.automatic = Waiting::new(automatic.clone());
    state.publisher = Some(Publisher::new(parameters.stats.as_deref()));
    // Event queues, which move connected endpoints on, are no objects of the domain's: their calls come when they like.
    let is_promised = threading == abi::FI_THREAD_DOMAIN && !is_automatic && !is_connected;
    let core = Arc::new(Core {
        turn: Turn::new(state, is_promised),
        api: fabric.api,
        children: Children::default(),
        parameters,
        is_for_connected: is_connected,
        deals_keys: mr_mode == abi::FI_MR_BASIC || mr_mode & abi::FI_MR_PROV_KEY != 0,
        has_virtual_addresses: mr_mode == abi::FI_MR_BASIC || mr_mode & abi::FI_MR_VIRT_ADDR != 0,
        fabric: Arc::clone(fabric),
        automatic,
        is_closing: AtomicBool::new(false),
    });
    let thread = core.automatic.as_ref().map(|set| {
        let (core, set) = (Arc::clone(&core), Arc::clone(set));
        std::thread::Builder::new().name("tagmatch".into()).spawn(move || drive(&core, &set))
    });
    let thread = thread.transpose().map_err(|_| code(abi::FI_ENOMEM))?;
    fabric.children.add();
    let head = fid_domain {
        fid: head(abi::FI_CLASS_DOMAIN, context, &OPS),
        ops: &raw const DOMAIN_OPS,
        mr: &raw const region::OPS,
    };
    Ok(Box::into_raw(Box::new(Object { head, core, thread, events: Mutex::default() })).cast())
}

/// Whether an info is of connected endpoints.
///
/// # Safety
/// An info of `fi_getinfo`, or a copy of one.
pub(super) unsafe fn is_connected(info: &fi_info) -> bool {
    // SAFETY: null or attributes, of which the type is the first.
    unsafe { info.ep_attr.as_ref() }.is_some_and(|ep| u64::from(ep.r#type) == abi::FI_EP_MSG)
}

/// Automatic progress.
fn drive(core: &Core, set: &WaitSet) {
    while !core.is_closing.load(Ordering::Acquire) {
        let wait = core.turn.with(|state| {
            state.progress_all();
            state.may_wait_for_all()
        });
        match wait {
            // Closing signals; a signal that `prepare` forgot is seen here.
            Ok(true) if !core.is_closing.load(Ordering::Acquire) => set.wait(Some(LOOK_AGAIN)),
            Ok(_) => {}
            // A call panicked: nobody can go on with the domain.
            Err(_) => break,
        }
    }
}

/// The thread looks at what it waits for so often without being told.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// # Safety
/// A domain of [`open`] that is not closed while the result is used.
pub(super) unsafe fn core<'a>(domain: *mut fid_domain) -> &'a Arc<Core> {
    // SAFETY: the caller's.
    unsafe { &(*domain.cast::<Object>()).core }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open domain.
        let core = unsafe { core(fid.cast()) };
        core.children.none()?;
        core.is_closing.store(true, Ordering::Release);
        if let Some(set) = &core.automatic {
            set.signal();
        }
        // SAFETY: it is closed once, and has no children.
        let object = unsafe { Box::from_raw(fid.cast::<Object>()) };
        object.core.fabric.children.remove();
        if let Some(thread) = object.thread {
            // A panic there has been answered by every call since.
            let _ = thread.join();
        }
        Ok(0)
    })
}

/// An event queue may be bound, a later one instead of the earlier: nothing comes there.
unsafe extern "C" fn bind(fid: *mut fid, other: *mut fid, _: u64) -> c_int {
    integer(|| {
        // SAFETY: the application's: null or an open object.
        let class = unsafe { other.as_ref() }.map(|other| other.fclass as u64);
        if class != Some(abi::FI_CLASS_EQ) {
            return fail(abi::FI_EINVAL);
        }
        // SAFETY: the application's: an open domain.
        let object = unsafe { &*fid.cast::<Object>() };
        // SAFETY: an object of the class that it says.
        let (hold, _) = unsafe { event_queue::hold(other.cast(), &object.core.fabric) }?;
        *object.events.lock().unwrap_or_else(PoisonError::into_inner) = Some(hold);
        Ok(0)
    })
}

unsafe extern "C" fn open_endpoint2(
    domain: *mut fid_domain,
    info: *mut fi_info,
    ep: *mut *mut fid_ep,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return integer(|| fail(abi::FI_ENOSYS));
    }
    // SAFETY: the caller's, and the same.
    unsafe { endpoint::open(domain, info, ep, context) }
}

impl Core {
    /// Add a descriptor to what the thread of automatic progress waits for.
    pub(super) fn watch(&self, descriptor: c_int) {
        if let Some(set) = &self.automatic {
            // Without it the thread looks every now and then.
            let _ = set.add(descriptor);
            set.signal();
        }
    }

    /// Have the state for as long as the call takes.
    #[inline]
    pub(super) fn with<R>(&self, call: impl FnOnce(&mut State) -> Outcome<R>) -> Outcome<R> {
        self.turn.with(call)?
    }

    /// The same for what is called for every message, with its outcome in one word ([`sized`](crate::provider::error::sized)).
    #[inline]
    pub(super) fn size(&self, call: impl FnOnce(&mut State) -> Outcome<usize>) -> ssize_t {
        match self.turn.with(|state| signed(call(state))) {
            Ok(size) => size,
            Err(refusal) => signed(Err(refusal.into())),
        }
    }
}

/// The parameters of a domain.
///
/// # Safety
/// An open domain.
pub(super) unsafe fn parameters<'a>(domain: *mut fid_domain) -> &'a Parameters {
    // SAFETY: the caller's.
    &unsafe { &*domain.cast::<Object>() }.core.parameters
}

static OPS: fi_ops = operations(close, bind, no_control);

static DOMAIN_OPS: fi_ops_domain = fi_ops_domain {
    size: size_of::<fi_ops_domain>(),
    av_open: vector::open,
    cq_open: queue::open,
    endpoint: endpoint::open,
    scalable_ep: NONE,
    cntr_open: counter::open,
    poll_open: poll::open,
    stx_ctx: NONE,
    srx_ctx: NONE,
    query_atomic: super::atomic::query,
    query_collective: NONE,
    endpoint2: open_endpoint2,
    xpu_ctx: NONE,
};
