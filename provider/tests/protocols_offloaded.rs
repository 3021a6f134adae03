//! The tests of `protocols.rs` with the soft TM-SRQ over the transport.

#[path = "protocols.rs"]
mod protocols;
