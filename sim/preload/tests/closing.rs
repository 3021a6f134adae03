//! An endpoint is closed and its process ends, over verbs on a simulated card.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

mod card;
mod common;

#[path = "../../../tests/closing/scenarios.rs"]
mod scenarios;

use card as over;
use card::inside;

/// Senders to one, and receivers of one.
const MANY: usize = 8;
