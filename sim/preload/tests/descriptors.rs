//! A process that has no descriptors left for a while, over verbs on a simulated card.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

mod card;
mod common;

#[path = "../../../tests/descriptors/scenario.rs"]
mod scenario;

use card as over;
use card::inside;
