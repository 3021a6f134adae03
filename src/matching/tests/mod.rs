//! Tests of the matcher: its tables, the scenarios that apply to lists, and random operations against the oracle.
#![allow(clippy::cast_possible_truncation, reason = "test data is small")]

mod classes;
mod parts;
mod random;
mod scenarios;
mod world;

use super::{Arrived, Config, Envelope, Matcher, Pattern, Posted, Resolved, Stay};
use crate::ids::{Ignore, PeerId, Source, Tag};

fn matcher() -> Matcher<u64, u64> {
    Matcher::new(Config::default())
}

fn message(tag: u64, source: u32) -> Envelope {
    Envelope { tag: Tag(tag), source: PeerId(source) }
}

fn receive(tag: u64, ignore: u64, source: Source) -> Pattern {
    Pattern { tag: Tag(tag), ignore: Ignore(ignore), source }
}

/// What a message took.
fn taken<R: Copy>(arrived: Arrived<R>) -> Option<R> {
    match arrived {
        Arrived::Matched { value, .. } => Some(value),
        Arrived::Unexpected(_) => None,
    }
}

/// What a receive took.
fn found<M: Copy>(posted: Posted<M>) -> Option<M> {
    match posted {
        Posted::Matched { value, .. } => Some(value),
        Posted::Queued(_) => None,
    }
}
