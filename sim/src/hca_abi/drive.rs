//! The device's thread: as long as the device is open it looks at doorbell records, moves the model on, and carries
//! packets to and from other processes.
//!
//! A program rings the device by a store to memory, which wakes nobody. The thread therefore looks again and again:
//! at once while there is work, soon after there was, more and more seldom in quiet times. On a machine with fewer
//! cores than threads a thread that sleeps shortly is run sooner than one that spins or yields.

use super::device::{Device, Drive};
use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The thread of one device, started and stopped with the device's contexts.
#[derive(Debug)]
pub(crate) struct Thread {
    drive: Drive,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    stop: Arc<AtomicBool>,
    handle: JoinHandle<()>,
}

impl Thread {
    /// Not started.
    pub(crate) const fn new(drive: Drive) -> Self {
        Self { drive, running: Mutex::new(None) }
    }

    /// Start, unless the test drives or it runs already.
    ///
    /// # Errors
    /// EAGAIN: there can be no thread.
    pub(crate) fn start(&self, device: &Arc<Device>) -> Result<(), c_int> {
        if self.drive == Drive::Steps {
            return Ok(());
        }
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_some() {
            return Ok(());
        }
        shorten_slice();
        let stop = Arc::new(AtomicBool::new(false));
        let (device, stopped) = (Arc::downgrade(device), Arc::clone(&stop));
        // Signals are the program's: its handlers must not run on a thread that it does not know.
        let before = block_signals();
        let thread = std::thread::Builder::new().name("tagmatch-hca".into());
        let handle = thread.spawn(move || drive(&device, &stopped));
        restore_signals(&before);
        *running = Some(Running { stop, handle: handle.map_err(|_| libc::EAGAIN)? });
        Ok(())
    }

    /// Stop if nobody has the device open, and wait until it has: afterwards the program's memory is left alone.
    pub(crate) fn stop_unless(&self, is_open: impl FnOnce() -> bool) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: whoever opens meanwhile waits in `start`, or has been seen.
        if is_open() {
            return;
        }
        if let Some(running) = running.take() {
            running.stop.store(true, Ordering::Release);
            // A thread that panicked has stopped as well.
            let _ = running.handle.join();
        }
    }
}

/// A device that panicked would let the program wait for ever.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

fn drive(device: &Weak<Device>, stop: &AtomicBool) {
    let _abort = AbortOnPanic;
    let begin = Instant::now();
    let mut last_work = begin;
    set_timer_slack();
    shorten_slice();
    while !stop.load(Ordering::Acquire) {
        let Some(device) = device.upgrade() else {
            return;
        };
        let now = Instant::now();
        let Some(mut state) = device.lock_if_free() else {
            std::thread::yield_now();
            continue;
        };
        let received = state.receive();
        let elapsed = u64::try_from(now.duration_since(begin).as_nanos()).unwrap_or(u64::MAX);
        state.hca.advance_clock(elapsed);
        let done = state.hca.run(BATCH);
        state.pump();
        let fd = state.fabric.as_ref().map(super::fabric::Fabric::descriptor);
        drop(state);
        drop(device);
        if received || done > 0 {
            last_work = now;
        }
        pause(fd, now.duration_since(last_work));
    }
}

/// Wait before the next look, the longer the longer nothing has happened.
fn pause(fd: Option<RawFd>, quiet: Duration) {
    if quiet.is_zero() {
        return;
    }
    if quiet < SPIN {
        core::hint::spin_loop();
        return;
    }
    // Each waking costs tens of microseconds where the machine is a virtual one.
    let wait = WAITS.iter().find(|(until, _)| quiet < *until).map_or(WAIT_LONGEST, |(_, wait)| *wait);
    let wait = libc::timespec { tv_sec: 0, tv_nsec: wait * 1_000 };
    let mut poll = libc::pollfd { fd: fd.unwrap_or(-1), events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure each; a negative descriptor is passed over.
    unsafe { libc::ppoll(&raw mut poll, 1, &raw const wait, core::ptr::null()) };
}

/// Let short waits be short.
fn set_timer_slack() {
    // SAFETY: numbers alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Ask the scheduler for short turns, for this thread: where it takes the wish (Linux 6.12), a thread that wakes up
/// need not wait for the end of a long turn of another one. Many programs spin on a completion queue, and with fewer
/// cores than threads each message would otherwise take several turns.
fn shorten_slice() {
    let mut attributes = SchedulerAttributes { size: 48, runtime: SLICE, ..SchedulerAttributes::default() };
    // SAFETY: numbers alone.
    attributes.nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let (this_thread, flags): (c_long, c_long) = (0, 0);
    // SAFETY: a structure of the size that it says. A scheduler that refuses changes nothing.
    unsafe { libc::syscall(libc::SYS_sched_setattr, this_thread, &raw const attributes, flags) };
}

/// The first version of `struct sched_attr` (linux/sched/types.h).
#[derive(Default)]
#[repr(C)]
struct SchedulerAttributes {
    size: u32,
    /// 0: `SCHED_OTHER`
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Of `SCHED_OTHER`: the length of a turn, in nanoseconds.
    runtime: u64,
    deadline: u64,
    period: u64,
}

fn block_signals() -> libc::sigset_t {
    // SAFETY: a set of signals is plain bits.
    let mut all: libc::sigset_t = unsafe { core::mem::zeroed() };
    let mut before = all;
    // SAFETY: a set of ours.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: sets of ours.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    before
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: a set of ours.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, core::ptr::null_mut()) };
}

/// At the end of the process no thread may touch memory that is being given back.
pub(crate) extern "C" fn stop_all_at_exit() {
    for device in super::registry::devices() {
        device.drive().stop_unless(|| false);
    }
}

/// For how long after work to wait how many microseconds.
const WAITS: &[(Duration, i64)] =
    &[(Duration::from_micros(300), 50), (Duration::from_millis(20), 150), (Duration::from_millis(500), 500)];
const WAIT_LONGEST: i64 = 2_000;
/// Steps in one go: short enough that a command does not wait long.
const BATCH: usize = 256;
/// The shortest turn that Linux gives, in nanoseconds.
const SLICE: u64 = 100_000;
/// How long to spin after work.
const SPIN: Duration = Duration::from_micros(20);
