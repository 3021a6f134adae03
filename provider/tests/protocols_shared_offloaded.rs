//! The tests of `protocols.rs` through shared memory, with the soft TM-SRQ over it.

#[path = "protocols.rs"]
mod protocols;
