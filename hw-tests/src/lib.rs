//! One suite for any verbs device: a ConnectX card, the simulated HCA, soft-RoCE.
//!
//! A [`script`] says what is done to a TM-SRQ and what must come of it; [`scripts`] holds one for every row of
//! TM-CONTRACT 3 and 5 to 13. [`runner`] runs one through a [`port`]: on the executable description
//! ([`soft_port`]), on that with its senders at the other end of a verbs device (`over`), or on a verbs device
//! (`verbs_port`). What both saw can be compared ([`record`]).

#![deny(unsafe_code)]

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod cli;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod data_path;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod over;
pub mod port;
pub mod probes;
pub mod record;
pub mod refusal;
pub mod runner;
pub mod script;
pub mod scripts;
pub mod soft_port;
pub mod suite;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod verbs;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod verbs_port;
mod wire;
