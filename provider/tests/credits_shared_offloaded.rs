//! The tests of `credits.rs` through shared memory, with the soft TM-SRQ over it.

#[path = "credits.rs"]
mod credits;
