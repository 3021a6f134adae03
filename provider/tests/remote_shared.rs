//! The tests of `remote.rs` through shared memory.

#[path = "remote.rs"]
mod remote;
