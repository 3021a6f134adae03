//! The tests of `protocols.rs` through shared memory.

#[path = "protocols.rs"]
mod protocols;
