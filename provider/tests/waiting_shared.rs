//! The tests of `waiting.rs` through shared memory.

#[path = "waiting.rs"]
mod waiting;
