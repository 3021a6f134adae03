//! The library's rings and slips, over memory of loom.

#[path = "region.rs"]
mod region;
#[allow(dead_code, unreachable_pub, reason = "it is the library's")]
#[path = "../../../src/device/shm/ring/mod.rs"]
mod ring;
#[path = "rings.rs"]
mod rings;
#[allow(dead_code, unreachable_pub, reason = "it is the library's")]
#[path = "../../../src/device/shm/slip.rs"]
mod slip;

mod stream {
    /// As there: so that a slip is known to be taken before its place comes again.
    pub(super) const RING_BYTES: std::ops::RangeInclusive<usize> = 8..=64 << 20;
}

mod sync {
    pub(super) use super::region::AtomicU64;
    pub(super) use crate::fences::fence;
}
