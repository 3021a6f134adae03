//! What two processes synchronise by, in one place: `sim/tests/threads` has others of the same names in their place, and goes
//! through every order of steps.

pub(super) use std::sync::atomic::{AtomicU64, fence};
