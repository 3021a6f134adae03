//! Calls of the library as C makes them, with what cannot be: each says so by a code, and nothing happens.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]
#![allow(unsafe_code, reason = "calls as C makes them")]

mod common;
#[path = "refusals/endpoint.rs"]
mod endpoint;
#[path = "refusals/engine.rs"]
mod engine;
