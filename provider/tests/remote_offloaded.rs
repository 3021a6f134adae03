//! The tests of `remote.rs` with the soft TM-SRQ.

#[path = "remote.rs"]
mod remote;
