//! `tm_engine`: the engine, its devices, and what it has to say.
//!
//! Not here: receives (`receiving`), what devices tell (`events`) and are told (`commands`).

pub mod commands;
pub mod events;
pub mod receiving;
pub mod types;

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use tagmatch::domain::{Domain as _, Handle, Unsynchronised};
use tagmatch::engine::{Completion, Config, Engine};
use tagmatch::ids::{DeviceId, GroupId, Ignore, PeerId};
use tagmatch::matching::{Config as MatchingConfig, SourceKind};
use tagmatch::offload::{Reason, Statistics, TagLayout};
use tagmatch::seam::Buffer;

use self::commands::tm_command;
use self::types::{TM_SOURCE_ANY, TM_SOURCE_GROUP, TM_SOURCE_PEER, tm_device, tm_engine_completion};
use crate::error::{Error, Outcome};
use crate::ffi::{self, NoWork, call, count};
use crate::memory::tm_buffer;
use crate::tm_counter;

/// An engine: exact MPI matching over any number of devices of the caller's own. It does nothing by itself: what devices
/// tell goes in, commands to devices and completions come out.
///
/// `tagmatch::engine::Engine`, whose page has the owner's loop
#[derive(Debug)]
pub struct tm_engine {
    state: Unsynchronised<State>,
    /// A call of the user's `complete` has not returned.
    telling: Cell<bool>,
    complete: Complete,
    user: *mut c_void,
}

type Complete = Option<unsafe extern "C" fn(user: *mut c_void, completion: *const tm_engine_completion)>;

/// What one call at a time has.
#[derive(Debug)]
pub(crate) struct State {
    engine: Engine,
    devices: Vec<tm_device>,
    commands: Vec<tm_command>,
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

impl State {
    /// One that is there.
    fn device(&self, device: u32) -> Outcome<DeviceId> {
        let id = u8::try_from(device).map(DeviceId);
        id.ok().filter(|id| usize::from(id.0) < self.devices.len()).ok_or_else(|| {
            let there = self.devices.len();
            Error::said(libc::ENODEV, format!("device {device} is not there: {there} were added, from 0 on"))
        })
    }
}

/// How an engine is set up. All zeros but `size` will do.
///
/// `tagmatch::engine::Config`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_engine_config {
    /// `sizeof(tm_engine_config)`
    pub size: usize,
    /// Seeds the hash, so that nobody can choose tags that collide; results never depend on it. 0: drawn anew each time.
    pub hash_seed: u64,
    /// Bits of a tag that name its sender, if the caller promises that some do (`tm_engine_name_peer`); 0: none.
    pub source_bits: u64,
    /// The first argument of `complete`.
    pub user: *mut c_void,
    /// Called by `tm_engine_progress` for each completion. It may call this engine, but not close it. Null: completions are
    /// asked for (`tm_engine_poll`).
    pub complete: Option<unsafe extern "C" fn(user: *mut c_void, completion: *const tm_engine_completion)>,
}

/// An engine without devices. `config` may be null.
///
/// # Errors
/// `-EINVAL`, `-E2BIG`: of `config`. `-EFAULT`: `engine` is null.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_open(
    config: *const tm_engine_config,
    engine: *mut *mut tm_engine,
) -> c_int {
    call(|| {
        let place = ffi::place(engine, "engine")?;
        // SAFETY: the caller's promise, and plain data, for which all zeros are a value.
        let config = unsafe { ffi::read_config(config, "config") }?;
        let hash_seed =
            if config.hash_seed == 0 { RandomState::new().build_hasher().finish() } else { config.hash_seed };
        let layout = (config.source_bits != 0).then_some(TagLayout { source_bits: config.source_bits });
        let matching = MatchingConfig { hash_seed, ..MatchingConfig::default() };
        let made = Engine::new(Config { matching, layout, ..Config::default() });
        let state = State { engine: made, devices: Vec::new(), commands: Vec::new() };
        let made = Box::new(tm_engine {
            state: Unsynchronised::new(state),
            telling: Cell::new(false),
            complete: config.complete,
            user: config.user,
        });
        // SAFETY: the caller's promise; it is not null.
        unsafe { ffi::write(place, Box::into_raw(made)) };
        Ok(0)
    })
}

/// Close an engine. Nothing more is told of its receives, and their memory is the caller's, but for entries of devices
/// that match: that memory is free when the device has let go of it.
///
/// # Errors
/// `-EBUSY`: from within a callback. `-EFAULT`: `engine` is null.
///
/// # Safety
/// As for every call: see the head of this page. The engine is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_close(engine: *mut tm_engine) -> c_int {
    call(|| {
        {
            // SAFETY: the caller's promise.
            let engine = unsafe { ffi::shared(engine, "engine") }?;
            // One that failed may be closed too.
            if engine.telling.get() || engine.state.recover(|_| ()).is_err() {
                return Err(Error::new(libc::EBUSY, "an engine cannot be closed by a callback of its own"));
            }
        }
        // SAFETY: `tm_engine_open` made it so, and nobody is in it.
        drop(unsafe { Box::from_raw(engine) });
        Ok(0)
    })
}

/// The engine for one call.
///
/// # Safety
/// Null, or an engine that is open.
unsafe fn with(engine: *const tm_engine, body: impl FnOnce(&mut State) -> Outcome<c_int>) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let engine = unsafe { ffi::shared(engine, "engine") }?;
        engine.state.with(body)?
    })
}

/// A device of the caller's own joins. Returns its number: 0 for the first, 1 for the next.
///
/// `tagmatch::engine::Engine::add_device`
///
/// # Errors
/// `-EINVAL`, `-E2BIG`: of `device`. `-ENOSPC`: there are 256 already.
///
/// # Safety
/// As for every call: see the head of this page. Its callbacks can be called until the engine is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_add_device(engine: *mut tm_engine, device: *const tm_device) -> c_int {
    let body = |state: &mut State| {
        // SAFETY: the caller's promise.
        let device = unsafe { ffi::read_sized(device, "device") }?;
        types::check_flags(
            device.flags,
            types::TM_DEVICE_REGISTRATION | types::TM_DEVICE_RENDEZVOUS,
            "device.flags",
        )?;
        let joined = state.engine.add_device(device.capabilities());
        let id = joined.map_err(|error| {
            let code =
                if error == tagmatch::engine::JoinError::TooMany { libc::ENOSPC } else { libc::EINVAL };
            Error::said(code, error.to_string())
        })?;
        state.devices.push(device);
        Ok(c_int::from(id.0))
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// Move on: completions go to `complete`, if there is one, and commands to each device that has a `submit`. Returns how many
/// completions were told. For those who use callbacks; others need not call it.
///
/// # Errors
/// `-EBUSY`: from within a callback.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_progress(engine: *mut tm_engine) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let engine = unsafe { ffi::shared(engine, "engine") }?;
        let told = tell(engine)?;
        engine.state.with(submit_all)?;
        Ok(count(told))
    })
}

/// The engine is free while the user is told, so that a receive can be posted from there.
fn tell(engine: &tm_engine) -> Outcome<usize> {
    let Some(complete) = engine.complete else { return Ok(0) };
    if engine.telling.replace(true) {
        return Err(Error::new(libc::EBUSY, "progress cannot be made from within complete"));
    }
    let _end = Telling(&engine.telling);
    let mut told = 0;
    while told < TOLD_MAX
        && let Some(completion) = engine.state.with(|state| state.engine.poll_completion())?
    {
        let completion = tm_engine_completion::from(&completion);
        // SAFETY: the function that was given with the engine, and what it was to be called with.
        unsafe { complete(engine.user, &raw const completion) };
        told += 1;
    }
    Ok(told)
}

/// Ends with the call, whatever becomes of it.
struct Telling<'a>(&'a Cell<bool>);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

fn submit_all(state: &mut State) {
    let State { engine, devices, commands } = state;
    for (number, device) in (0..).zip(&*devices) {
        let Some(submit) = device.submit else { continue };
        let id = DeviceId(number);
        commands.clear();
        commands.extend(engine.poll_commands(id).iter().map(tm_command::from));
        if commands.is_empty() {
            continue;
        }
        // SAFETY: the function that was given with the device, and what it was to be called with.
        let taken = unsafe { submit(device.user, commands.as_ptr(), commands.len()) };
        engine.handle_submitted(id, taken.min(commands.len()));
    }
}

/// Move completions to the caller, oldest first, and return how many. For those who have no `complete`.
///
/// `tagmatch::engine::Engine::poll_completions`
///
/// # Safety
/// As for every call: see the head of this page. There is room for `room` completions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_poll(
    engine: *mut tm_engine,
    completions: *mut tm_engine_completion,
    room: usize,
) -> c_int {
    let body = |state: &mut State| {
        // SAFETY: the caller's promise.
        let completions = unsafe { ffi::slots(completions, room, "completions") }?;
        let mut given = 0;
        for slot in completions {
            let Some(completion) = state.engine.next_completion() else { break };
            let completion: &Completion = completion;
            slot.write(completion.into());
            given += 1;
        }
        Ok(count(given))
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// What a device did that it may not do, oldest first: 1 and a text, cut to `length` bytes with its zero; or 0.
///
/// `tagmatch::engine::Engine::poll_fault`
///
/// # Safety
/// As for every call: see the head of this page. There is room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_poll_fault(
    engine: *mut tm_engine,
    text: *mut c_char,
    length: usize,
) -> c_int {
    let body = |state: &mut State| {
        // SAFETY: the caller's promise.
        let into = unsafe { ffi::slots(text.cast::<u8>(), length, "text") }?;
        let Some(fault) = state.engine.poll_fault() else { return Ok(0) };
        let fault = fault.to_string();
        let room = into.len().saturating_sub(1);
        let ended = fault.bytes().take(room).chain(std::iter::once(0));
        for (to, byte) in into.iter_mut().zip(ended) {
            to.write(byte);
        }
        Ok(1)
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// Receives that are posted, and messages that wait. Either may be null.
///
/// `tagmatch::engine::Engine::depths`
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_depths(
    engine: *mut tm_engine,
    posted: *mut u64,
    unexpected: *mut u64,
) -> c_int {
    let body = |state: &mut State| {
        let depths = state.engine.depths();
        // SAFETY: the caller's promise.
        unsafe { ffi::write(posted, depths.0 as u64) };
        // SAFETY: the caller's promise.
        unsafe { ffi::write(unexpected, depths.1 as u64) };
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// What offload has done. Gives as many counters as there is room for, and returns how many there are.
///
/// `tagmatch::offload::Statistics`
///
/// # Safety
/// As for every call: see the head of this page. There is room for `room` counters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_statistics(
    engine: *mut tm_engine,
    counters: *mut tm_counter,
    room: usize,
) -> c_int {
    let body = |state: &mut State| {
        let rows = rows(state.engine.statistics());
        // SAFETY: the caller's promise.
        unsafe { crate::give(rows, counters, room) }
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// Every counter with its name.
pub(crate) fn rows(statistics: &Statistics) -> impl Iterator<Item = (String, u64)> + use<'_> {
    let numbers = [
        ("tracked", statistics.tracked),
        ("device_adds", statistics.adds),
        ("device_dels", statistics.dels),
        ("device_syncs", statistics.syncs),
        ("device_dels_too_late", statistics.dels_too_late),
        ("device_bounced", statistics.bounced),
        ("device_set_aside", statistics.set_aside),
        ("posted_first", statistics.posted_first()),
        ("posted_first_matched_by_device", statistics.matched_by_device),
        ("posted_first_entering_the_list", statistics.used_by_own_device),
        ("posted_first_taken_back", statistics.taken_back),
    ];
    let named = numbers.into_iter().map(|(name, value)| (name.to_owned(), value));
    let reasons = Reason::ALL.into_iter();
    let first = |reason: Reason| {
        (format!("posted_first_in_software_{}", reason.name()), statistics.first_ended(reason))
    };
    named.chain(reasons.map(first))
}

/// Which bits of a tag name this peer (`source_bits` of the configuration). Afterwards a receive from it may be matched by a
/// device by these bits alone: every tag of its messages must carry them, and no other peer's may.
///
/// `tagmatch::engine::Engine::name_peer`
///
/// # Errors
/// `-EINVAL`: the name does not fit, or is another's.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_name_peer(engine: *mut tm_engine, peer: u32, bits: u64) -> c_int {
    let body = |state: &mut State| {
        let named = state.engine.name_peer(self::peer(peer)?, bits);
        named.map(|()| 0).map_err(|error| Error::argument(error.to_string()))
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// A peer's messages come through this device; until it is said, they may come through any.
///
/// `tagmatch::engine::Engine::set_path`
///
/// # Errors
/// `-EAGAIN`: they come through another, and receives that name the peer are posted or messages of it undecided.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_set_path(engine: *mut tm_engine, peer: u32, device: u32) -> c_int {
    let body = |state: &mut State| {
        let device = state.device(device)?;
        let set = state.engine.set_path(self::peer(peer)?, device);
        set.map(|()| 0).map_err(|error| Error::said(libc::EAGAIN, error.to_string()))
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// A peer joins this group, and leaves the one it is in; `TM_NO_GROUP`: it only leaves.
///
/// `tagmatch::engine::Engine::set_group`
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_set_group(engine: *mut tm_engine, peer: u32, group: u32) -> c_int {
    let body = |state: &mut State| {
        state.engine.set_group(self::peer(peer)?, (group != TM_NO_GROUP).then_some(GroupId(group)));
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// A source is learned late: what is known of `from` is `to`'s, and what devices say of `from` from now on too, until that
/// number is dealt again (`from` and `to` the same).
///
/// `tagmatch::engine::Engine::resolve`
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_resolve(engine: *mut tm_engine, from: u32, to: u32) -> c_int {
    let body = |state: &mut State| {
        state.engine.resolve(self::peer(from)?, self::peer(to)?);
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// Build the index of a class of receives beforehand: those that ignore these bits and have a source of this kind
/// (`TM_SOURCE_…`). Without it the first use of a new `ignore` on a long list of messages reads it once.
///
/// `tagmatch::engine::Engine::declare`
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_declare(engine: *mut tm_engine, ignore: u64, kind: u32) -> c_int {
    let body = |state: &mut State| {
        let kind = match kind {
            TM_SOURCE_ANY => SourceKind::Any,
            TM_SOURCE_PEER => SourceKind::Peer,
            TM_SOURCE_GROUP => SourceKind::Group,
            kind => return Err(Error::argument(format!("kind is {kind}: it is one of TM_SOURCE_…, 0 to 2"))),
        };
        state.engine.declare(Ignore(ignore), kind);
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// Let receives go down to a device that matches, or (`on` 0) bring them back and keep them in software.
///
/// `tagmatch::engine::Engine::set_offload`
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_set_offload(engine: *mut tm_engine, device: u32, on: c_int) -> c_int {
    let body = |state: &mut State| {
        let device = state.device(device)?;
        state.engine.set_offload(device, on != 0);
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// Give a device that matches a buffer for receives shorter than its eager limit.
///
/// `tagmatch::engine::Engine::add_bounce_buffer`
///
/// # Errors
/// `-EINVAL`: it is shorter than the eager limit itself, or in several segments.
///
/// # Safety
/// As for every call: see the head of this page. The memory stays until the engine and the device are closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_add_bounce_buffer(
    engine: *mut tm_engine,
    device: u32,
    buffer: *const tm_buffer,
) -> c_int {
    let body = |state: &mut State| {
        let device = state.device(device)?;
        // SAFETY: the caller's promise.
        let buffer = Buffer::from(unsafe { ffi::read(buffer, "buffer") }?);
        if state.engine.add_bounce_buffer(device, buffer) {
            return Ok(0);
        }
        let length = buffer.length;
        Err(Error::argument(format!(
            "a buffer of {length} bytes cannot be a bounce buffer: it is one segment, and as long as the device's eager limit"
        )))
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// Tables are as long as the largest number.
fn peer(peer: u32) -> Outcome<PeerId> {
    if peer < TM_PEERS_MAX {
        return Ok(PeerId(peer));
    }
    Err(Error::argument(format!(
        "peer {peer} is none: numbers are dealt from small ones on, below {TM_PEERS_MAX}"
    )))
}

/// Of `tm_engine_set_group`.
pub const TM_NO_GROUP: u32 = 0xffff_ffff;
/// Numbers of peers that an engine is told of are below this.
pub const TM_PEERS_MAX: u32 = 0x0100_0000;
/// Completions that are told at a time.
const TOLD_MAX: usize = 256;
