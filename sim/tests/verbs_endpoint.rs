//! Endpoints over verbs, on a simulated HCA under the real libibverbs and libmlx5: the scenarios that endpoints pass over
//! TCP (`tests/endpoint`), with a card that carries messages, with the model of one that matches, and with one that does.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test names the one variant that it expects")]
#![allow(clippy::duplicate_mod, reason = "the same scenarios, over three transports")]

#[path = "endpoint/card.rs"]
mod card;

tagmatch_sim::hca_hooks!();

#[path = "endpoint/in_software.rs"]
mod in_software;
#[path = "endpoint/itself.rs"]
mod itself;
#[path = "endpoint/lost_device.rs"]
mod lost_device;
#[path = "endpoint/matched_by_the_card.rs"]
mod matched_by_the_card;
#[path = "endpoint/unregistered.rs"]
mod unregistered;
#[path = "endpoint/with_the_model_over_it.rs"]
mod with_the_model_over_it;
