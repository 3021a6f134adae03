//! `struct fid_ep`: what an endpoint is bound to, its options and its name: `fi_endpoint(3)`, `fi_cm(3)`.
//!
//! Not here: messages (`tagged`, `message`).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use libc::{c_int, c_void, ssize_t};

use super::domain::{self, Core};
use super::driven::{self, Driven};
use super::object::{self, Hold, head, operations};
use super::unsupported::{COLLECTIVE, NONE};
use super::{counter, event_queue, message, options, queue, rma, tagged, vector};
use crate::endpoint::Address;
use crate::provider::abi::{self, fi_info, fi_ops, fi_ops_ep, fid, fid_domain, fid_ep, version};
use crate::provider::arrays::many;
use crate::provider::clock::now;
use crate::provider::error::{Outcome, code, fail, integer, size};
use crate::provider::info::own_address;
use crate::provider::state::State;
use crate::provider::state::endpoint::{EndpointState, RemoteCounters, Side};
use crate::provider::state::events::{Events, Fid};
use crate::provider::transports;
use crate::provider::wait::WaitSet;

/// An endpoint.
pub(super) type Object = object::Object<fid_ep, Extra>;

/// What an endpoint knows without its domain's state.
pub(super) struct Extra {
    /// Calls that take no flags copy what they send (`FI_INJECT` in the flags of the endpoint).
    is_injecting: AtomicBool,
    /// `FI_RMA` is among its capabilities.
    has_remote_access: bool,
    /// `FI_ATOMIC` is.
    has_atomics: bool,
    /// The event queue that it is bound to.
    events: Mutex<Option<Hold>>,
}

/// `fi_endpoint(3)`.
pub(super) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    info: *mut fi_info,
    ep: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    integer(|| {
        // SAFETY: the application's: an info of `fi_getinfo`, or a copy.
        let Some(info) = (unsafe { info.as_ref() }) else { return fail(abi::FI_EINVAL) };
        // SAFETY: the application's: an open domain.
        let core = unsafe { domain::core(domain) };
        // SAFETY: the application's.
        let mut state = unsafe { state(info, core) }?;
        // SAFETY: the application's.
        if unsafe { domain::is_connected(info) } {
            state.connection = Some(driven::connection(info, core, context)?);
        }
        let is_connected = state.connection.is_some();
        let is_injecting = AtomicBool::new(state.transmit.op_flags & abi::FI_INJECT != 0);
        let has_remote_access = info.caps & abi::FI_RMA != 0;
        let has_atomics = info.caps & abi::FI_ATOMIC != 0;
        let extra = Extra { is_injecting, has_remote_access, has_atomics, events: Mutex::default() };
        let index = core.with(|all| Ok(all.endpoints.insert(state)))?;
        let head = fid_ep {
            fid: head(abi::FI_CLASS_EP, context, &OPS),
            ops: &raw const EP_OPS,
            cm: &raw const super::cm::OPS,
            msg: &raw const message::OPS,
            rma: &raw const rma::OPS,
            tagged: &raw const tagged::OPS,
            atomic: &raw const super::atomic::OPS,
            collective: &raw const COLLECTIVE,
        };
        let opened = object::open(head, Arc::clone(core), index, extra);
        if is_connected {
            core.with(|all| {
                if let Some(connection) = &mut all.endpoint(index)?.connection {
                    connection.of = Fid(opened.cast());
                }
                Ok(())
            })?;
        }
        // SAFETY: the application's: a place for the endpoint.
        unsafe { ep.write(opened) };
        Ok(0)
    })
}

/// An endpoint that is bound to nothing yet.
///
/// # Safety
/// An info of `fi_getinfo`, or a copy.
unsafe fn state(info: &fi_info, core: &Core) -> Outcome<EndpointState> {
    let mut source = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    if !info.src_addr.is_null() {
        // SAFETY: the caller's.
        let bytes = unsafe { many(info.src_addr.cast::<u8>(), info.src_addrlen) }?;
        source = own_address(bytes, &core.parameters)?;
    }
    // SAFETY: null or attributes, which did not grow.
    let tx = unsafe { info.tx_attr.as_ref() };
    // SAFETY: null or attributes, which did not grow.
    let rx = unsafe { info.rx_attr.as_ref() };
    let caps = info.caps | rx.map_or(0, |rx| rx.caps);
    let tagged = if core.api >= version(2, 0) { abi::FI_TAGGED_DIRECTED_RECV } else { 0 };
    let limit = usize::try_from(core.parameters.inject_size).unwrap_or(usize::MAX);
    // Without a direction both are meant (`fi_getinfo(3)`); without messages neither.
    let directions = info.caps & (abi::FI_SEND | abi::FI_RECV);
    let has_messages =
        info.caps & (abi::FI_RMA | abi::FI_ATOMIC) == 0 || info.caps & (abi::FI_MSG | abi::FI_TAGGED) != 0;
    let side = |direction, op_flags: Option<u64>| Side {
        op_flags: op_flags.unwrap_or_default(),
        is_shut: !has_messages || directions != 0 && directions & direction == 0,
        ..Side::default()
    };
    Ok(EndpointState {
        connection: None,
        endpoint: None,
        vector: None,
        transmit: side(abi::FI_SEND, tx.map(|tx| tx.op_flags)),
        receive: side(abi::FI_RECV, rx.map(|rx| rx.op_flags)),
        remote: RemoteCounters::default(),
        tells_peers: info.caps & abi::FI_RMA_EVENT != 0,
        multi_receive_least: MULTI_RECEIVE_LEAST,
        inject_size: tx.map_or(limit, |tx| tx.inject_size.min(limit)),
        has_cq_data: core.parameters.cq_data,
        is_directed: [caps & (abi::FI_DIRECTED_RECV | tagged) != 0, caps & abi::FI_DIRECTED_RECV != 0],
        source,
        tx_size: tx.map_or(0, |tx| tx.size),
        rx_size: rx.map_or(0, |rx| rx.size),
    })
}

/// `FI_OPT_MIN_MULTI_RECV` where nobody says otherwise.
const MULTI_RECEIVE_LEAST: u64 = 16 << 10;

/// # Safety
/// An endpoint of [`open`] that is not closed while the result is used.
#[inline]
pub(super) unsafe fn of<'a>(ep: *mut fid_ep) -> &'a Object {
    // SAFETY: the caller's.
    unsafe { object::of(ep) }
}

unsafe extern "C" fn bind(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open endpoint.
        let object = unsafe { of(fid.cast()) };
        // SAFETY: the application's: an open object.
        let Some(class) = unsafe { other.as_ref() }.map(|other| other.fclass as u64) else {
            return fail(abi::FI_EINVAL);
        };
        match class {
            abi::FI_CLASS_AV => {
                // SAFETY: an object of the class that it says.
                let vector = unsafe { vector::of(other.cast()) };
                object.same_domain(&vector.domain)?;
                object.bind_vector(vector.index)
            }
            abi::FI_CLASS_CQ => {
                // SAFETY: an object of the class that it says.
                let queue = unsafe { queue::of(other.cast()) };
                object.same_domain(&queue.domain)?;
                object.bind_queue(queue.index, flags)
            }
            abi::FI_CLASS_CNTR => {
                // SAFETY: an object of the class that it says.
                let counter = unsafe { counter::of(other.cast()) };
                object.same_domain(&counter.domain)?;
                object.bind_counter(counter.index, flags)
            }
            // Of connections alone events come there.
            abi::FI_CLASS_EQ => {
                // SAFETY: an object of the class that it says.
                let (hold, events) = unsafe { event_queue::hold(other.cast(), &object.domain.fabric) }?;
                object.bind_events(events)?;
                *object.extra.events.lock().unwrap_or_else(PoisonError::into_inner) = Some(hold);
                Ok(0)
            }
            _ => fail(abi::FI_EINVAL),
        }
    })
}

impl Object {
    /// The body of a call that looks at its arguments before the domain has them: where they are refused, what was sent
    /// with `FI_MORE` goes out.
    #[inline]
    pub(super) fn transfer(&self, body: impl FnOnce() -> Outcome<usize>) -> ssize_t {
        size(|| {
            body().inspect_err(|_| {
                // A domain that is of no more use sends nothing.
                let _ = self.domain.with(|state| {
                    state.flush(self.index);
                    Ok(())
                });
            })
        })
    }

    /// # Errors
    /// `FI_ENOSYS`: the endpoint is not for remote memory access.
    pub(super) fn has_remote_access(&self) -> Outcome<()> {
        if self.extra.has_remote_access { Ok(()) } else { fail(abi::FI_ENOSYS) }
    }

    /// Whether there are calls of `fi_atomic(3)`.
    pub(super) fn has_atomics(&self) -> Outcome<()> {
        if self.extra.has_atomics { Ok(()) } else { fail(abi::FI_ENOSYS) }
    }

    /// Whether calls that take no flags copy what they send.
    #[inline]
    pub(super) fn is_injecting(&self) -> bool {
        self.extra.is_injecting.load(Ordering::Relaxed)
    }

    /// The longest message that is copied.
    pub(super) fn inject_size(&self) -> Outcome<usize> {
        self.domain.with(|state| Ok(state.endpoint(self.index)?.inject_size))
    }

    /// Have its state, before it is enabled.
    pub(super) fn before_enable<R>(&self, call: impl FnOnce(&mut EndpointState) -> Outcome<R>) -> Outcome<R> {
        self.domain.with(|state| call(not_enabled(state, self.index)?))
    }

    /// Where the events of a connected endpoint go, once.
    fn bind_events(&self, events: Arc<Events>) -> Outcome<()> {
        self.domain.with(|state| match &mut state.endpoint(self.index)?.connection {
            Some(connection) if connection.events.is_some() => fail(abi::FI_EINVAL),
            Some(connection) => {
                connection.events = Some(events);
                Ok(())
            }
            None => Ok(()),
        })
    }

    fn bind_vector(&self, vector: usize) -> Outcome<c_int> {
        self.domain.with(|state| {
            state.vector(vector)?;
            let endpoint = not_enabled(state, self.index)?;
            // A connected endpoint knows one peer, and that by its connection.
            if endpoint.vector.is_some() || endpoint.connection.is_some() {
                return fail(abi::FI_EINVAL);
            }
            endpoint.vector = Some(vector);
            state.vector(vector)?.endpoints.push(self.index);
            Ok(0)
        })
    }

    fn bind_queue(&self, queue: usize, flags: u64) -> Outcome<c_int> {
        if flags & !(abi::FI_SEND | abi::FI_RECV | abi::FI_SELECTIVE_COMPLETION) != 0
            || flags & (abi::FI_SEND | abi::FI_RECV) == 0
        {
            return fail(abi::FI_EBADFLAGS);
        }
        let is_selective = flags & abi::FI_SELECTIVE_COMPLETION != 0;
        self.domain.with(|state| {
            state.queue(queue)?;
            let endpoint = not_enabled(state, self.index)?;
            let sides = sides_of(endpoint, flags);
            if sides.iter().flatten().any(|side| side.queue.is_some()) {
                return fail(abi::FI_EINVAL);
            }
            for side in sides.into_iter().flatten() {
                (side.queue, side.is_selective) = (Some(queue), is_selective);
            }
            push_once(&mut state.queue(queue)?.endpoints, self.index);
            Ok(0)
        })
    }

    fn bind_counter(&self, counter: usize, flags: u64) -> Outcome<c_int> {
        const REMOTE: u64 = abi::FI_REMOTE_READ | abi::FI_REMOTE_WRITE;
        if flags & !(abi::FI_SEND | abi::FI_RECV | abi::FI_READ | abi::FI_WRITE | REMOTE) != 0 {
            return fail(abi::FI_EBADFLAGS);
        }
        self.domain.with(|state| {
            state.counter(counter)?;
            let mut places = counters_of(not_enabled(state, self.index)?, flags);
            if places.iter().flatten().any(|place| place.is_some()) {
                return fail(abi::FI_EINVAL);
            }
            for place in places.iter_mut().flatten() {
                **place = Some(counter);
            }
            push_once(&mut state.counter(counter)?.endpoints, self.index);
            Ok(0)
        })
    }

    /// `fi_enable(3)`, if nobody has done it.
    pub(super) fn enable_if_not(&self) -> Outcome<()> {
        let is_enabled = self.domain.with(|state| Ok(state.endpoint(self.index)?.endpoint.is_some()))?;
        if is_enabled { Ok(()) } else { self.enable().map(drop) }
    }

    /// `fi_enable(3)`.
    fn enable(&self) -> Outcome<c_int> {
        let (source, vector, tells_peers, connection) = self.before_enable(|state| {
            match &state.connection {
                None if state.vector.is_none() => return fail(abi::FI_EOPBADSTATE),
                Some(connection) if connection.events.is_none() => return fail(abi::FI_ENOEQ),
                Some(_) | None => {}
            }
            for side in [&state.transmit, &state.receive] {
                if !side.is_bound() {
                    return fail(abi::FI_ENOCQ);
                }
            }
            let tells_peers = state.tells_peers || state.remote.counts_peers();
            let connection =
                state.connection.as_mut().map(|own| (own.request.take(), own.events.clone(), own.of));
            Ok((state.source, state.vector, tells_peers, connection))
        })?;
        let parameters = &self.domain.parameters;
        let (mut endpoint, events) = match connection {
            None => (transports::open(source, parameters, tells_peers)?, None),
            Some((request, events, of)) => {
                let endpoint = transports::connected(source, request, parameters, tells_peers)?;
                (endpoint, events.map(|events| (events, of)))
            }
        };
        self.domain.with(|state| {
            // Another call may have been faster.
            not_enabled(state, self.index)?;
            if let Some(vector) = vector {
                for (number, name) in state.vector(vector)?.iter() {
                    endpoint.set_address(Address(number), name.bytes())?;
                }
            }
            for region in state.regions.iter() {
                // The keys of a domain are unique.
                let _ = endpoint.register(region);
            }
            let this = state.endpoint(self.index)?;
            let (queues, counters): (Vec<_>, Vec<_>) = (this.queues().collect(), this.counters().collect());
            let mut sets: Vec<_> =
                queues.iter().filter_map(|queue| state.queues.get(*queue)?.waiting.set.clone()).collect();
            sets.extend(
                counters.iter().filter_map(|counter| state.counters.get(*counter)?.waiting.set.clone()),
            );
            sets.extend(events.iter().filter_map(|(events, _)| events.wait.clone()));
            for descriptor in endpoint.wait_descriptors() {
                for set in &sets {
                    set.add(descriptor).map_err(|_| code(abi::FI_ENOMEM))?;
                }
                self.domain.watch(descriptor);
            }
            state.endpoint(self.index)?.endpoint = Some(endpoint);
            state.attach_regions(self.index)?;
            state.tell_waiting(self.index);
            Ok(())
        })?;
        if let Some((events, of)) = events {
            events.add(Arc::new(Driven::new(&self.domain, self.index, of)));
        }
        Ok(0)
    }

    /// No event of it comes any more, and none waits to be read.
    fn forget_events(&self) -> Outcome<()> {
        let bound = self.domain.with(|state| {
            let connection = state.endpoint(self.index)?.connection.as_ref();
            Ok(connection.and_then(|connection| Some((connection.events.clone()?, connection.of))))
        })?;
        if let Some((events, of)) = bound {
            drop(events.forget(of));
        }
        Ok(())
    }

    /// Close it in order: what was taken goes out, for as long as others take it.
    fn finish(&self) -> Outcome<()> {
        let waiting = self.domain.with(|state| {
            let Some(endpoint) = &mut state.endpoint(self.index)?.endpoint else { return Ok(None) };
            endpoint.close(now());
            // Without descriptors to spare it is done without waiting.
            let waiting = WaitSet::new().ok();
            if let Some(set) = &waiting {
                let _ = endpoint.wait_descriptors().try_for_each(|descriptor| set.add(descriptor));
            }
            Ok(waiting)
        })?;
        // The endpoint ends in a time of its own; this is for a clock that stands still.
        let end = Instant::now() + CLOSE_MAX;
        let mut idle = 0_u32;
        loop {
            let (is_over, moved) = self.domain.with(|state| {
                let moved = state.progress(self.index, now());
                let endpoint = &mut state.endpoint(self.index)?.endpoint;
                Ok((endpoint.as_ref().is_none_or(|endpoint| endpoint.is_closed()), moved))
            })?;
            if is_over || Instant::now() > end {
                return Ok(());
            }
            idle = if moved == 0 { idle.saturating_add(1) } else { 0 };
            match &waiting {
                // Others are slow, and may need the processor for what is waited for; not all of it shows.
                Some(set) if idle >= IDLE_TURNS => set.wait(Some(CLOSE_PAUSE)),
                _ if idle > 0 => std::thread::yield_now(),
                _ => {}
            }
        }
    }
}

/// Longer than any endpoint takes to close.
const CLOSE_MAX: Duration = Duration::from_secs(120);
/// So often the processor is offered to others before it is left to them for a while.
const IDLE_TURNS: u32 = 200;
const CLOSE_PAUSE: Duration = Duration::from_millis(1);

/// An endpoint that is not enabled.
///
/// # Errors
/// `FI_EOPBADSTATE`: it is.
fn not_enabled(state: &mut State, index: usize) -> Outcome<&mut EndpointState> {
    let endpoint = state.endpoint(index)?;
    if endpoint.endpoint.is_some() { fail(abi::FI_EOPBADSTATE) } else { Ok(endpoint) }
}

/// The directions that flags name.
fn sides_of(endpoint: &mut EndpointState, flags: u64) -> [Option<&mut Side>; 2] {
    let has = |flag: u64| flags & flag != 0;
    [
        Some(&mut endpoint.transmit).filter(|_| has(abi::FI_SEND)),
        Some(&mut endpoint.receive).filter(|_| has(abi::FI_RECV)),
    ]
}

/// The places of counters that flags name.
fn counters_of(endpoint: &mut EndpointState, flags: u64) -> [Option<&mut Option<usize>>; 6] {
    let EndpointState { transmit, receive, remote, .. } = endpoint;
    let RemoteCounters { read, write, remote_read, remote_write } = remote;
    [
        (abi::FI_SEND, &mut transmit.counter),
        (abi::FI_RECV, &mut receive.counter),
        (abi::FI_READ, read),
        (abi::FI_WRITE, write),
        (abi::FI_REMOTE_READ, remote_read),
        (abi::FI_REMOTE_WRITE, remote_write),
    ]
    .map(|(flag, place)| Some(place).filter(|_| flags & flag != 0))
}

fn push_once(list: &mut Vec<usize>, index: usize) {
    if !list.contains(&index) {
        list.push(index);
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open endpoint.
        let object = unsafe { of(fid.cast()) };
        object.domain.with(|state| state.may_close(object.index))?;
        object.finish()?;
        object.forget_events()?;
        object.domain.with(|state| state.remove_endpoint(object.index))?;
        // SAFETY: it is closed once.
        unsafe { object::close::<fid_ep, Extra>(fid.cast()) };
        Ok(0)
    })
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, argument: *mut c_void) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open endpoint.
        let object = unsafe { of(fid.cast()) };
        match u64::try_from(command).unwrap_or(u64::MAX) {
            abi::FI_ENABLE => object.enable(),
            abi::FI_GETOPSFLAG | abi::FI_SETOPSFLAG if argument.is_null() => fail(abi::FI_EINVAL),
            abi::FI_GETOPSFLAG => {
                // SAFETY: the application's: flags, which say which direction is meant.
                let flags = unsafe { &mut *argument.cast::<u64>() };
                object.domain.with(|state| {
                    let state = state.endpoint(object.index)?;
                    *flags = side_of(state, *flags)?.op_flags;
                    Ok(0)
                })
            }
            abi::FI_SETOPSFLAG => {
                // SAFETY: the application's: flags, which say which direction is meant.
                let flags = unsafe { *argument.cast::<u64>() };
                object.domain.with(|state| {
                    let side = side_of(state.endpoint(object.index)?, flags)?;
                    side.op_flags = flags & !(abi::FI_SEND | abi::FI_RECV);
                    if flags & abi::FI_SEND != 0 {
                        object.extra.is_injecting.store(flags & abi::FI_INJECT != 0, Ordering::Relaxed);
                    }
                    Ok(0)
                })
            }
            _ => fail(abi::FI_ENOSYS),
        }
    })
}

/// Exactly one of `FI_TRANSMIT` and `FI_RECV` is set (`fi_endpoint(3)`, `fi_control`).
fn side_of(state: &mut EndpointState, flags: u64) -> Outcome<&mut Side> {
    match (flags & abi::FI_SEND != 0, flags & abi::FI_RECV != 0) {
        (true, false) => Ok(&mut state.transmit),
        (false, true) => Ok(&mut state.receive),
        _ => fail(abi::FI_EINVAL),
    }
}

unsafe extern "C" fn cancel(fid: *mut fid, context: *mut c_void) -> ssize_t {
    size(|| {
        // SAFETY: the application's: an open endpoint.
        let object = unsafe { of(fid.cast()) };
        object.domain.with(|state| {
            let endpoint = state.endpoint(object.index)?.enabled()?;
            // Whether there was one, its completion says.
            endpoint.cancel(context.expose_provenance() as u64);
            state.tell_waiting(object.index);
            Ok(0)
        })
    })
}

/// No limit follows from the sizes that are shown.
unsafe extern "C" fn receive_room(ep: *mut fid_ep) -> ssize_t {
    // SAFETY: the application's: an open endpoint.
    let object = unsafe { of(ep) };
    size(|| object.domain.with(|state| Ok(state.endpoint(object.index)?.rx_size)))
}

/// As [`receive_room`].
unsafe extern "C" fn transmit_room(ep: *mut fid_ep) -> ssize_t {
    // SAFETY: the application's: an open endpoint.
    let object = unsafe { of(ep) };
    size(|| object.domain.with(|state| Ok(state.endpoint(object.index)?.tx_size)))
}

static OPS: fi_ops = operations(close, bind, control);

static EP_OPS: fi_ops_ep = fi_ops_ep {
    size: size_of::<fi_ops_ep>(),
    cancel,
    getopt: options::get,
    setopt: options::set,
    tx_ctx: NONE,
    rx_ctx: NONE,
    rx_size_left: receive_room,
    tx_size_left: transmit_room,
    export_xpu: NONE,
};
