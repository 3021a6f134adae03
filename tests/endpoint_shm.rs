//! Endpoints that share memory: the scenarios that `endpoint` runs over a simulated network and over TCP.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]
#![allow(clippy::duplicate_mod, reason = "the same scenarios, over several paths")]
#![allow(dead_code, reason = "helpers of scenarios that other programs have")]

#[path = "endpoint/listed.rs"]
mod listed;
#[path = "endpoint/mixed.rs"]
mod mixed;
#[path = "endpoint/mixed_listed.rs"]
mod mixed_listed;
#[path = "endpoint/over_shm.rs"]
mod over_shm;
#[path = "endpoint/over_tcp.rs"]
mod over_tcp;
#[path = "endpoint/policy.rs"]
mod policy;
#[path = "endpoint/seldom.rs"]
mod seldom;
#[path = "endpoint/shared.rs"]
mod shared;
#[path = "endpoint/squatter.rs"]
mod squatter;
