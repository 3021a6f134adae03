//! `tm_endpoint`: an endpoint, who its peers are, and how it moves on.
//!
//! Not here: messages (`messages`), and which transports there are (`opening`).

pub mod messages;
mod opening;
pub mod types;

use std::ffi::{c_int, c_void};
use std::time::Duration;

use tagmatch::domain::{Domain as _, Handle, Unsynchronised};
use tagmatch::endpoint::{Address, Endpoint, Space};

use self::types::{tm_completion, tm_endpoint_config};
use crate::clock::now;
use crate::error::{Error, Outcome};
use crate::ffi::{self, NoWork, call, count};
use crate::tm_counter;

/// An endpoint: it sends to peers and receives from them, with tags and without, in exactly MPI's order. Nothing moves
/// but within calls on it: `tm_endpoint_progress` is to be called often while anything is under way.
///
/// `tagmatch::endpoint::Endpoint`
#[derive(Debug)]
pub struct tm_endpoint {
    state: Unsynchronised<State>,
}

/// What one call at a time has.
#[derive(Debug)]
pub(crate) struct State {
    endpoint: Endpoint,
}

impl Handle<NoWork> for State {
    type Done = ();

    fn handle_now(&mut self, work: NoWork) {
        match work {}
    }

    fn handle_queued(&mut self, work: NoWork) {
        match work {}
    }
}

/// An endpoint over the transports that are asked for, and to itself. `config` may be null.
///
/// # Errors
/// `-EINVAL`, `-E2BIG`: of `config`. `-ENODEV`: there is no such verbs device, or it cannot do what is asked for.
/// `-EADDRINUSE`, `-EADDRNOTAVAIL` and other codes of the system's: it cannot listen there.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_open(
    config: *const tm_endpoint_config,
    endpoint: *mut *mut tm_endpoint,
) -> c_int {
    call(|| {
        let place = ffi::place(endpoint, "endpoint")?;
        // SAFETY: the caller's promise, and plain data, for which all zeros are a value.
        let config = unsafe { ffi::read_config(config, "config") }?;
        // SAFETY: the caller's promise.
        let endpoint = unsafe { opening::open(&config) }?;
        let made = Box::new(tm_endpoint { state: Unsynchronised::new(State { endpoint }) });
        // SAFETY: the caller's promise; it is not null.
        unsafe { ffi::write(place, Box::into_raw(made)) };
        Ok(0)
    })
}

/// Close an endpoint. What completions were told of still goes out: this waits until the hosts of all peers have it, but not
/// for one that takes nothing for `close_timeout_ms`, and for 12 times as long at most. Then all memory of messages is the
/// caller's again, whether a completion said so or not. Peers are told.
///
/// An owner of several endpoints that wait for each other shuts all of them down first (`tm_endpoint_shutdown`).
///
/// `tagmatch::endpoint::Endpoint::close`
///
/// # Errors
/// `-EFAULT`: `endpoint` is null.
///
/// # Safety
/// As for every call: see the head of this page. The endpoint is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_close(endpoint: *mut tm_endpoint) -> c_int {
    call(|| {
        {
            // SAFETY: the caller's promise.
            let endpoint = unsafe { ffi::shared(endpoint, "endpoint") }?;
            // What failed within has nothing to say to anybody; its memory is given up.
            let _ = endpoint.state.with(|state| {
                state.endpoint.close(now());
                while !state.endpoint.is_closed() && state.endpoint.progress(now()).is_ok() {
                    while state.endpoint.poll_completion().is_some() {}
                    state.wait(Some(Duration::from_millis(CLOSE_WAIT_MS)));
                }
            });
        }
        // SAFETY: `tm_endpoint_open` made it so, and nobody is in it.
        drop(unsafe { Box::from_raw(endpoint) });
        Ok(0)
    })
}

/// Begin to close, and return: nothing more is sent, peers are told, and progress does the rest. Sends of memory that peers
/// still have to read fail. 1: it is done, and closing will not wait. 0: not yet.
///
/// `tagmatch::endpoint::Endpoint::close`, `tagmatch::endpoint::Endpoint::is_closed`
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_shutdown(endpoint: *mut tm_endpoint) -> c_int {
    let body = |state: &mut State| {
        state.endpoint.close(now());
        Ok(c_int::from(state.endpoint.is_closed()))
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// The endpoint for one call.
///
/// # Safety
/// Null, or an endpoint that is open.
pub(crate) unsafe fn with(
    endpoint: *const tm_endpoint,
    body: impl FnOnce(&mut State) -> Outcome<c_int>,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let endpoint = unsafe { ffi::shared(endpoint, "endpoint") }?;
        endpoint.state.with(body)?
    })
}

/// The name under which others reach this endpoint: bytes of a `sockaddr`, which are handed to peers by other means.
/// `length` is how many there is room for, and becomes how many there are; `TM_NAME_MAX` will do.
///
/// `tagmatch::endpoint::Endpoint::name`
///
/// # Errors
/// `-EMSGSIZE`: there is too little room; `length` says how much it takes.
///
/// # Safety
/// As for every call: see the head of this page. There is room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_name(
    endpoint: *mut tm_endpoint,
    name: *mut c_void,
    length: *mut usize,
) -> c_int {
    let body = |state: &mut State| {
        // SAFETY: the caller's promise.
        let room = unsafe { ffi::read(length.cast_const(), "length") }?;
        // SAFETY: the caller's promise.
        let into = unsafe { ffi::slots(name.cast::<u8>(), room, "name") }?;
        let own = state.endpoint.name();
        // SAFETY: the caller's promise; it is not null.
        unsafe { ffi::write(length, own.len()) };
        if own.len() > into.len() {
            let (needed, room) = (own.len(), into.len());
            return Err(Error::said(
                libc::EMSGSIZE,
                format!("a name of {needed} bytes does not go into {room}"),
            ));
        }
        for (to, from) in into.iter_mut().zip(own) {
            to.write(*from);
        }
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// This number stands for the peer of this name from now on. Numbers are dealt by the caller, from small ones on. Messages
/// that came from it already are that number's from now on.
///
/// `tagmatch::endpoint::Endpoint::set_address`
///
/// # Errors
/// `-EINVAL`: the number stands for another name, or the name has not 1 to 64 bytes. `-ENOSPC`: the number is too large.
///
/// # Safety
/// As for every call: see the head of this page. The name has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_set_peer(
    endpoint: *mut tm_endpoint,
    peer: u64,
    name: *const c_void,
    length: usize,
) -> c_int {
    let body = |state: &mut State| {
        // SAFETY: the caller's promise.
        let name = unsafe { ffi::several(name.cast::<u8>(), length, "name") }?;
        state.endpoint.set_address(Address(peer), name)?;
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// The number stands for nobody any more. Receives that name it stay posted, and sends in progress go on.
///
/// `tagmatch::endpoint::Endpoint::remove_address`
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_remove_peer(endpoint: *mut tm_endpoint, peer: u64) -> c_int {
    let body = |state: &mut State| {
        state.endpoint.remove_address(Address(peer));
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// Move on. Returns how many things happened.
///
/// `tagmatch::endpoint::Endpoint::progress`
///
/// # Errors
/// `-EIO`: a transport failed, now or before. Whatever was in progress has ended, and completions say so.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_progress(endpoint: *mut tm_endpoint) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, |state| Ok(count(state.endpoint.progress(now())?))) }
}

/// Move completions to the caller, oldest first, and return how many. It makes no progress.
///
/// `tagmatch::endpoint::Endpoint::poll_completion`
///
/// # Safety
/// As for every call: see the head of this page. There is room for `room` completions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_poll(
    endpoint: *mut tm_endpoint,
    completions: *mut tm_completion,
    room: usize,
) -> c_int {
    let body = |state: &mut State| {
        // SAFETY: the caller's promise.
        let completions = unsafe { ffi::slots(completions, room, "completions") }?;
        let mut given = 0;
        for slot in completions {
            let Some(completion) = state.endpoint.poll_completion() else { break };
            slot.write((&completion).into());
            given += 1;
        }
        Ok(count(given))
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// Sleep until there is something to do, `timeout_ms` at most; -1: for as long as it takes. It may return early, so go on
/// with progress in any case.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_wait(endpoint: *mut tm_endpoint, timeout_ms: c_int) -> c_int {
    let body = |state: &mut State| {
        state.wait(u64::try_from(timeout_ms).ok().map(Duration::from_millis));
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// For those who wait themselves: whether they may, for the descriptors of `tm_endpoint_descriptors` to be readable, and for
/// how long at most in milliseconds (-1: for as long as it takes). 0: there is something to do already. `timeout_ms` may be
/// null.
///
/// `tagmatch::endpoint::Endpoint::may_wait`, `tagmatch::endpoint::Endpoint::next_deadline`
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_may_wait(endpoint: *mut tm_endpoint, timeout_ms: *mut c_int) -> c_int {
    let body = |state: &mut State| {
        let may = state.endpoint.may_wait();
        let timeout = if may { milliseconds(state.left()) } else { 0 };
        // SAFETY: the caller's promise.
        unsafe { ffi::write(timeout_ms, timeout) };
        Ok(c_int::from(may))
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// File descriptors one of which is readable when progress would find something: as many as there is room for; returns how
/// many there are. They are the endpoint's, and stay the same.
///
/// `tagmatch::endpoint::Endpoint::wait_descriptors`
///
/// # Safety
/// As for every call: see the head of this page. There is room for `room` descriptors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_descriptors(
    endpoint: *mut tm_endpoint,
    descriptors: *mut c_int,
    room: usize,
) -> c_int {
    let body = |state: &mut State| {
        // SAFETY: the caller's promise.
        let into = unsafe { ffi::slots(descriptors, room, "descriptors") }?;
        let mut there = 0;
        for descriptor in state.endpoint.wait_descriptors() {
            if let Some(slot) = into.get_mut(there) {
                slot.write(descriptor);
            }
            there += 1;
        }
        Ok(count(there))
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// What happened so far, and what there is now: as many counters as there is room for; returns how many there are.
///
/// `tagmatch::endpoint::Statistics`, `tagmatch::offload::Statistics`
///
/// # Safety
/// As for every call: see the head of this page. There is room for `room` counters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_statistics(
    endpoint: *mut tm_endpoint,
    counters: *mut tm_counter,
    room: usize,
) -> c_int {
    let body = |state: &mut State| {
        let endpoint = &state.endpoint;
        let (tagged, untagged) = (endpoint.depths(Space::Tagged), endpoint.depths(Space::Untagged));
        let now = [
            ("posted_tagged_now", tagged.0),
            ("unexpected_tagged_now", tagged.1),
            ("posted_untagged_now", untagged.0),
            ("unexpected_untagged_now", untagged.1),
            ("sends_now", endpoint.sends_in_progress()),
        ];
        let now = now.into_iter().map(|(name, value)| (name, value as u64));
        let counted = now.chain(endpoint.statistics().rows());
        let named = counted.map(|(name, value)| (name.to_owned(), value));
        let rows = named.chain(crate::engine::rows(endpoint.offload_statistics()));
        // SAFETY: the caller's promise.
        unsafe { crate::give(rows, counters, room) }
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

impl State {
    /// Time until progress is to be made at the latest.
    fn left(&self) -> Option<Duration> {
        self.endpoint.next_deadline().map(|deadline| deadline.saturating_sub(now()))
    }

    /// Sleep until there is something to do. `None`: for as long as it takes.
    fn wait(&mut self, timeout: Option<Duration>) {
        if !self.endpoint.may_wait() {
            return;
        }
        let readable = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut descriptors: Vec<libc::pollfd> = self.endpoint.wait_descriptors().map(readable).collect();
        let left = [timeout, self.left()].into_iter().flatten().min();
        let length = libc::nfds_t::try_from(descriptors.len()).unwrap_or_default();
        // SAFETY: an array of ours of this length. An interruption is as good as an event.
        unsafe { libc::poll(descriptors.as_mut_ptr(), length, milliseconds(left)) };
    }
}

/// As `poll(2)` wants it, rounded up.
fn milliseconds(time: Option<Duration>) -> c_int {
    time.map_or(-1, |time| c_int::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(c_int::MAX))
}

/// Bytes of the longest name.
pub const TM_NAME_MAX: usize = 64;
/// How long to sleep at most while closing.
const CLOSE_WAIT_MS: u64 = 20;
