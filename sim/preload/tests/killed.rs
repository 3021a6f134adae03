//! A peer is killed (SIGKILL) at a moment left to chance, 100 times: a process of its own over verbs, on a simulated card
//! that says nothing of it.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

mod card;
mod common;

#[path = "../../../tests/common/counting.rs"]
mod counting;
#[path = "../../../tests/killed/rounds.rs"]
mod rounds;

use card::inside;
use tagmatch::endpoint::{Config, Endpoint};

/// Whether the card matches is said by what is run inside.
fn open(_over: &str) -> Endpoint {
    card::open(Config::default(), 0)
}

const ROUNDS: u64 = 100;
/// Bytes that half of the kills may add: tables that grow once, those of the simulated card among them.
const MORE_MAX: isize = 32 << 10;
