//! The tests of `credits.rs` with the soft TM-SRQ over the transport.

#[path = "credits.rs"]
mod credits;
