//! `tagmatch rxe`: commands in emulated machines with soft-RoCE devices, and what is left when one is killed.
//!
//! Few machines are started, each with many things to look at: one takes some seconds. What needs none runs with programs
//! that only look like QEMU.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are outside test functions")]

#[path = "rxe/bench.rs"]
mod bench;
#[path = "rxe/benched.rs"]
mod benched;
#[path = "rxe/doing.rs"]
mod doing;
#[path = "rxe/killed.rs"]
mod killed;
#[path = "rxe/machines.rs"]
mod machines;
#[path = "rxe/messages.rs"]
mod messages;
