//! The tests of `messages.rs` through shared memory.

#[path = "messages.rs"]
mod messages;
