//! `struct fid_pep`: who listens for connected endpoints (`fi_passive_ep(3)`, `fi_listen(3)`), and the requests that came.
//!
//! A request is an object until an endpoint is made for it or it is rejected: the handle in the info of its event.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use libc::{c_int, c_void, size_t, ssize_t};

use super::object::{Hold, head, operations};
use super::unsupported::NONE;
use super::{cm, event_queue, fabric, text};
use crate::endpoint::{ConnectionRequest, PassiveEndpoint};
use crate::provider::abi::{self, fi_info, fi_ops, fi_ops_cm, fi_ops_ep, fid, fid_ep, fid_fabric, fid_pep};
use crate::provider::address::Name;
use crate::provider::arrays::many;
use crate::provider::clock::now;
use crate::provider::error::{Outcome, code, fail, integer, size};
use crate::provider::info::{Template, own_address};
use crate::provider::parameters::Parameters;
use crate::provider::state::events::{Event, Events, Failed, Fid, Source};
use crate::provider::transports;
use crate::wire::ConnectData;

/// A passive endpoint.
#[repr(C)]
struct Object {
    head: fid_pep,
    core: Arc<Core>,
}

/// What it shares with its event queue.
struct Core {
    fabric: Arc<fabric::Core>,
    parameters: Parameters,
    template: Template,
    context: usize,
    state: Mutex<State>,
}

struct State {
    /// As whom the application knows it.
    of: Fid,
    source: SocketAddr,
    backlog: Option<u32>,
    events: Option<(Hold, Arc<Events>)>,
    /// Once it listens.
    endpoint: Option<PassiveEndpoint>,
    has_failed: bool,
}

/// Requests that nobody has answered, by the handles that applications have.
#[derive(Debug, Default)]
pub(super) struct Requests(Mutex<HashMap<usize, (Box<Handle>, ConnectionRequest)>>);

/// `fi_info.handle` of a request: an object without calls.
#[repr(C)]
struct Handle {
    fid: fid,
}

// SAFETY: it is memory for a pointer to be known by, and nothing here looks at what it has.
unsafe impl Send for Handle {}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handle")
    }
}

impl Requests {
    /// The request behind a handle, which names nothing from now on.
    ///
    /// # Errors
    /// `FI_EINVAL`: it names none (any more).
    pub(super) fn take(&self, handle: *mut fid) -> Outcome<ConnectionRequest> {
        let found = self.all().remove(&handle.addr());
        found.map(|(_, request)| request).ok_or(code(abi::FI_EINVAL))
    }

    fn insert(&self, request: ConnectionRequest) -> *mut fid {
        let mut handle = Box::new(Handle { fid: head(abi::FI_CLASS_CONNREQ, std::ptr::null_mut(), &NO_OPS) });
        let pointer = &raw mut handle.fid;
        self.all().insert(pointer.addr(), (handle, request));
        pointer
    }

    fn all(&self) -> MutexGuard<'_, HashMap<usize, (Box<Handle>, ConnectionRequest)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `fi_passive_ep(3)`.
pub(super) unsafe extern "C" fn open(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    pep: *mut *mut fid_pep,
    context: *mut c_void,
) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open fabric.
        let fabric = unsafe { fabric::core(fabric) };
        let Ok(parameters) = Parameters::from_environment() else { return fail(abi::FI_EINVAL) };
        // SAFETY: the application's: null, or an info of `fi_getinfo`, or a copy.
        let template = unsafe { Template::read(fabric.api, info, &parameters) }?;
        let source = template.source;
        fabric.children.add();
        let state = State {
            of: Fid(std::ptr::null_mut()),
            source,
            backlog: None,
            events: None,
            endpoint: None,
            has_failed: false,
        };
        let context_number = context.expose_provenance();
        let core = Arc::new(Core {
            fabric: Arc::clone(fabric),
            parameters,
            template,
            context: context_number,
            state: Mutex::new(state),
        });
        let head = fid_pep {
            fid: head(abi::FI_CLASS_PEP, context, &OPS),
            ops: &raw const PEP_OPS,
            cm: &raw const CM_OPS,
        };
        let opened: *mut fid_pep = Box::into_raw(Box::new(Object { head, core: Arc::clone(&core) })).cast();
        core.state().of = Fid(opened.cast());
        // SAFETY: the application's: a place for the endpoint.
        unsafe { pep.write(opened) };
        Ok(0)
    })
}

/// # Safety
/// A passive endpoint of [`open`] that is not closed while the result is used.
unsafe fn of<'a>(pep: *mut fid_pep) -> &'a Arc<Core> {
    // SAFETY: the caller's.
    unsafe { &(*pep.cast::<Object>()).core }
}

impl Core {
    fn state(&self) -> MutexGuard<'_, State> {
        // No call leaves it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `fi_listen(3)`.
    fn listen(self: &Arc<Self>) -> Outcome<c_int> {
        let mut state = self.state();
        let Some((_, events)) = &state.events else { return fail(abi::FI_ENOEQ) };
        let events = Arc::clone(events);
        if state.endpoint.is_some() {
            return fail(abi::FI_EOPBADSTATE);
        }
        let mut endpoint = transports::listening(state.source, &self.parameters)?;
        if let Some(backlog) = state.backlog {
            endpoint.set_backlog(backlog).map_err(|_| code(abi::FI_EINVAL))?;
        }
        if let (Some(set), Some(descriptor)) = (&events.wait, endpoint.wait_descriptor()) {
            set.add(descriptor).map_err(|_| code(abi::FI_ENOMEM))?;
        }
        state.endpoint = Some(endpoint);
        drop(state);
        let source = Arc::new(Listening { core: Arc::downgrade(self), of: self.state().of });
        events.add(source);
        Ok(0)
    }

    /// Hear who calls, and tell of each.
    fn progress(&self) {
        let mut state = self.state();
        let State { of, events, endpoint, has_failed, .. } = &mut *state;
        let (Some((_, events)), Some(endpoint)) = (&*events, endpoint) else { return };
        if endpoint.progress(now()).is_err() && !std::mem::replace(has_failed, true) {
            let error = code(abi::FI_EIO).0;
            events.fail(Failed { of: *of, context: self.context, error, data: Vec::new() });
        }
        while let Some(request) = endpoint.poll_request() {
            // Addresses of sockets, as the system says them.
            let (Some(here), Some(there)) = (Name::decode(request.name()), Name::decode(request.peer_name()))
            else {
                continue;
            };
            let data = request.data().to_vec();
            let requests = &self.fabric.requests;
            let handle = requests.insert(request);
            match self.template.of_request(here.address(), there.address(), handle) {
                Ok(info) => {
                    let kind = u32::try_from(abi::FI_CONNREQ).unwrap_or_default();
                    events.push(Event::Connection { kind, of: *of, info: Some(info), data });
                }
                // Without memory it is as if nobody had called.
                Err(_) => drop(requests.take(handle)),
            }
        }
    }
}

/// A passive endpoint, for the event queue that it is bound to.
struct Listening {
    core: Weak<Core>,
    of: Fid,
}

impl Source for Listening {
    fn fid(&self) -> Fid {
        self.of
    }

    fn progress(&self) {
        if let Some(core) = self.core.upgrade() {
            core.progress();
        }
    }

    fn may_wait(&self) -> Option<Option<Duration>> {
        let Some(core) = self.core.upgrade() else { return Some(None) };
        let mut state = core.state();
        let has_failed = state.has_failed;
        let Some(endpoint) = state.endpoint.as_mut().filter(|_| !has_failed) else { return Some(None) };
        endpoint.may_wait().then(|| endpoint.next_deadline())
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open passive endpoint, closed once.
        let object = unsafe { Box::from_raw(fid.cast::<Object>()) };
        let (bound, endpoint) = {
            let mut state = object.core.state();
            (state.events.take(), state.endpoint.take())
        };
        // Of requests whose events nobody has read nobody has the handles.
        let unread = bound.as_ref().map(|(_, events)| events.forget(Fid(fid)));
        for event in unread.into_iter().flatten() {
            if let Event::Connection { info: Some(info), .. } = event {
                drop(object.core.fabric.requests.take(info.handle));
            }
        }
        drop(endpoint);
        object.core.fabric.children.remove();
        Ok(0)
    })
}

unsafe extern "C" fn bind(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    integer(|| {
        // SAFETY: the application's: null or an open object.
        let class = unsafe { other.as_ref() }.map(|other| other.fclass as u64);
        if class != Some(abi::FI_CLASS_EQ) {
            return fail(abi::FI_EINVAL);
        }
        if flags != 0 {
            return fail(abi::FI_EBADFLAGS);
        }
        // SAFETY: the application's: an open passive endpoint.
        let core = unsafe { of(fid.cast()) };
        // SAFETY: an object of the class that it says.
        let bound = unsafe { event_queue::hold(other.cast(), &core.fabric) }?;
        let mut state = core.state();
        if state.events.is_some() {
            return fail(abi::FI_EINVAL);
        }
        state.events = Some(bound);
        Ok(0)
    })
}

/// `FI_BACKLOG`: how many requests may wait.
unsafe extern "C" fn control(fid: *mut fid, command: c_int, argument: *mut c_void) -> c_int {
    integer(|| {
        if u64::try_from(command) != Ok(abi::FI_BACKLOG) {
            return fail(abi::FI_ENOSYS);
        }
        if argument.is_null() {
            return fail(abi::FI_EINVAL);
        }
        // SAFETY: the application's: an integer.
        let backlog = unsafe { argument.cast::<c_int>().read_unaligned() };
        let backlog = u32::try_from(backlog).map_err(|_| code(abi::FI_EINVAL))?;
        // SAFETY: the application's: an open passive endpoint.
        let mut state = unsafe { of(fid.cast()) }.state();
        state.backlog = Some(backlog);
        if let Some(endpoint) = &mut state.endpoint {
            endpoint.set_backlog(backlog).map_err(|_| code(abi::FI_EINVAL))?;
        }
        Ok(0)
    })
}

unsafe extern "C" fn set_name(fid: *mut fid, address: *mut c_void, length: size_t) -> c_int {
    integer(|| {
        if address.is_null() {
            return fail(abi::FI_EINVAL);
        }
        // SAFETY: the application's: so many bytes.
        let bytes = unsafe { many(address.cast::<u8>(), length) }?;
        // SAFETY: the application's: an open passive endpoint.
        let core = unsafe { of(fid.cast()) };
        let source = own_address(bytes, &core.parameters)?;
        let mut state = core.state();
        if state.endpoint.is_some() {
            return fail(abi::FI_EOPBADSTATE);
        }
        state.source = source;
        Ok(0)
    })
}

unsafe extern "C" fn get_name(fid: *mut fid, address: *mut c_void, length: *mut size_t) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open passive endpoint.
        let state = unsafe { of(fid.cast()) }.state();
        let name = Name::new(state.source);
        let bytes = state.endpoint.as_ref().map_or(name.bytes(), PassiveEndpoint::name);
        // SAFETY: the application's: room of the length that it says.
        unsafe { text::write_name(bytes, address.cast(), length) }?;
        Ok(0)
    })
}

unsafe extern "C" fn listen(pep: *mut fid_pep) -> c_int {
    // SAFETY: the application's: an open passive endpoint.
    integer(|| unsafe { of(pep) }.listen())
}

unsafe extern "C" fn reject(
    pep: *mut fid_pep,
    handle: *mut fid,
    data: *const c_void,
    length: size_t,
) -> c_int {
    integer(|| {
        // SAFETY: the application's: so many bytes, or null.
        let data = unsafe { many(data.cast::<u8>(), length) }?;
        // SAFETY: the application's: an open passive endpoint.
        let request = unsafe { of(pep) }.fabric.requests.take(handle)?;
        // Whoever is gone needs no answer.
        let _ = request.reject(data);
        Ok(0)
    })
}

/// `FI_OPT_CM_DATA_SIZE`: how much data goes with requests and answers.
///
/// # Safety
/// A place for the length with the room that it says, and so much room.
pub(super) unsafe fn write_data_size(value: *mut c_void, length: *mut size_t) -> Outcome<c_int> {
    if value.is_null() || length.is_null() {
        return fail(abi::FI_EINVAL);
    }
    // SAFETY: the caller's.
    let room = unsafe { length.replace(size_of::<usize>()) };
    if room < size_of::<usize>() {
        return fail(abi::FI_ETOOSMALL);
    }
    // SAFETY: the caller's: room for a size.
    unsafe { value.cast::<usize>().write_unaligned(ConnectData::LENGTH_MAX) };
    Ok(0)
}

unsafe extern "C" fn get_option(
    _: *mut fid,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut size_t,
) -> c_int {
    integer(|| {
        let is_it = u64::try_from(level) == Ok(abi::FI_OPT_ENDPOINT)
            && u64::try_from(option) == Ok(abi::FI_OPT_CM_DATA_SIZE);
        if !is_it {
            return fail(abi::FI_ENOPROTOOPT);
        }
        // SAFETY: the application's: a length and so much room.
        unsafe { write_data_size(value, length) }
    })
}

unsafe extern "C" fn set_option(_: *mut fid, _: c_int, _: c_int, _: *const c_void, _: size_t) -> c_int {
    integer(|| fail(abi::FI_ENOPROTOOPT))
}

unsafe extern "C" fn no_cancel(_: *mut fid, _: *mut c_void) -> ssize_t {
    size(|| fail(abi::FI_ENOSYS))
}

unsafe extern "C" fn no_room(_: *mut fid_ep) -> ssize_t {
    size(|| fail(abi::FI_ENOSYS))
}

unsafe extern "C" fn no_close(_: *mut fid) -> c_int {
    integer(|| fail(abi::FI_ENOSYS))
}

static OPS: fi_ops = operations(close, bind, control);

/// Of a request, which is answered and never closed.
static NO_OPS: fi_ops = operations(no_close, super::object::no_bind, super::object::no_control);

static PEP_OPS: fi_ops_ep = fi_ops_ep {
    size: size_of::<fi_ops_ep>(),
    cancel: no_cancel,
    getopt: get_option,
    setopt: set_option,
    tx_ctx: NONE,
    rx_ctx: NONE,
    rx_size_left: no_room,
    tx_size_left: no_room,
    export_xpu: NONE,
};

static CM_OPS: fi_ops_cm = fi_ops_cm {
    size: size_of::<fi_ops_cm>(),
    setname: set_name,
    getname: get_name,
    getpeer: cm::no_peer,
    connect: cm::no_connect,
    listen,
    accept: cm::no_accept,
    reject,
    shutdown: cm::no_shutdown,
    join: NONE,
};
