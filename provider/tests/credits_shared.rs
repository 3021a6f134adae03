//! The tests of `credits.rs` through shared memory.

#[path = "credits.rs"]
mod credits;
