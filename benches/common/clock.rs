//! The clocks: this thread's processor time where a lap is long enough to pay for it, so that other
//! programs of a busy machine do not count; else the monotonic clock.
//!
//! Not here: what is timed.

use std::ffi::{c_int, c_long};

/// A clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Clock {
    /// Time of day without its jumps; some 20 ns a reading.
    Wall,
    /// Time that this thread has run; a system call.
    Processor,
}

impl Clock {
    /// Nanoseconds since some moment.
    pub(crate) fn now(self) -> u64 {
        let mut time = TimeSpec { seconds: 0, nanoseconds: 0 };
        let id = match self {
            Self::Wall => MONOTONIC,
            Self::Processor => THREAD_PROCESSOR_TIME,
        };
        // SAFETY: room for the answer, which has the layout of `struct timespec` on 64-bit Linux.
        let status = unsafe { clock_gettime(id, &raw mut time) };
        assert_eq!(status, 0, "clock_gettime({id})");
        time.seconds.unsigned_abs() * 1_000_000_000 + time.nanoseconds.unsigned_abs()
    }

    /// What two readings with nothing between them show: the median of many.
    pub(crate) fn cost(self) -> u64 {
        let mut seen: Vec<u64> = (0..2001)
            .map(|_| {
                let start = self.now();
                self.now() - start
            })
            .collect();
        seen.sort_unstable();
        seen[seen.len() / 2]
    }
}

/// `struct timespec` where `time_t` and `long` have 64 bits.
#[repr(C)]
struct TimeSpec {
    seconds: i64,
    nanoseconds: c_long,
}

unsafe extern "C" {
    fn clock_gettime(clock: c_int, time: *mut TimeSpec) -> c_int;
}

/// `CLOCK_MONOTONIC` and `CLOCK_THREAD_CPUTIME_ID` of Linux (clock_gettime(2)).
const MONOTONIC: c_int = 1;
const THREAD_PROCESSOR_TIME: c_int = 3;

const _: () = assert!(size_of::<TimeSpec>() == 16, "the benches are for 64-bit Linux");
