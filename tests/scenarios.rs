//! Faults that users of other systems met, each as a scenario here with its right outcome: engine and soft devices
//! over real bytes. [README](scenarios/README.md) says which scenario stands where, and which ones need more than
//! an engine.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test names the one variant that it expects")]

#[path = "scenarios/cancel.rs"]
mod cancel;
#[path = "scenarios/claim.rs"]
mod claim;
#[path = "scenarios/matching.rs"]
mod matching;
#[path = "scenarios/offload.rs"]
mod offload;
#[path = "scenarios/orders.rs"]
mod orders;
#[path = "scenarios/paths.rs"]
mod paths;
#[path = "scenarios/phase.rs"]
mod phase;
#[path = "scenarios/truncation.rs"]
mod truncation;
#[path = "scenarios/world.rs"]
mod world;
