//! One descriptor to wait for many things: the descriptors of endpoints, a signal from another thread, and a time.
//!
//! An epoll instance with an eventfd and a timerfd in it. Readable means "look again", never more.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use libc::c_int;

/// See the file.
#[derive(Debug)]
pub(super) struct WaitSet {
    epoll: OwnedFd,
    signal: OwnedFd,
    timer: OwnedFd,
}

impl WaitSet {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: no memory is involved.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: no memory is involved.
        let signal = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: no memory is involved.
        let timer = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        let set = Self { epoll, signal, timer };
        set.add(set.signal.as_raw_fd())?;
        set.add(set.timer.as_raw_fd())?;
        Ok(set)
    }

    /// The one descriptor.
    pub(super) fn descriptor(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    /// Wait for this descriptor too. Its end takes it out again.
    pub(super) fn add(&self, descriptor: RawFd) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN.cast_unsigned(), u64: 0 };
        // SAFETY: the event is ours, and copied.
        let done = unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor, &raw mut event)
        };
        match io::Error::last_os_error() {
            _ if done == 0 => Ok(()),
            error if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            error => Err(error),
        }
    }

    /// Make it readable, from any thread.
    pub(super) fn signal(&self) {
        let one = 1u64;
        // SAFETY: eight bytes of ours. A full counter is readable already.
        unsafe { libc::write(self.signal.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Forget signals, and be readable at this time at the latest, by the clock of `super::clock`.
    pub(super) fn prepare(&self, deadline: Option<Duration>) {
        let mut count = 0u64;
        // SAFETY: eight bytes of ours. Nothing to read is as good.
        unsafe { libc::read(self.signal.as_raw_fd(), (&raw mut count).cast(), 8) };
        // 0 disarms; the clock's own moment 0 is long past.
        let time = deadline.map_or(Duration::ZERO, |time| time.max(Duration::from_nanos(1)));
        let value = libc::timespec {
            tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(time.subsec_nanos().cast_signed()),
        };
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let timer = libc::itimerspec { it_interval: none, it_value: value };
        // SAFETY: the times are ours, and the old ones are not asked for.
        unsafe {
            libc::timerfd_settime(
                self.timer.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &raw const timer,
                std::ptr::null_mut(),
            )
        };
    }

    /// Wait until it is readable. `None`: for as long as it takes.
    pub(super) fn wait(&self, timeout: Option<Duration>) {
        let milliseconds = timeout.map_or(-1, |time| {
            let rounded = time.as_nanos().div_ceil(1_000_000);
            c_int::try_from(rounded).unwrap_or(c_int::MAX)
        });
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: one event of ours. An interruption is as good as an event.
        unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), &raw mut event, 1, milliseconds) };
    }
}

fn owned(descriptor: RawFd) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
