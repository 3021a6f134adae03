//! The scenarios of `scenarios.rs` between peers of which some talk through shared memory and others over the network.

#[path = "scenarios.rs"]
mod scenarios;
