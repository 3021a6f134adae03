//! The library as it is installed: its symbols, the file for pkg-config, and programs in C that are compiled with both, also
//! under valgrind and with gcc's address sanitizer.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

#[path = "installed/programs.rs"]
mod programs;
#[path = "installed/stage.rs"]
mod stage;
#[path = "installed/symbols.rs"]
mod symbols;
