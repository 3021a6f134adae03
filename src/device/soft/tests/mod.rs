//! Tables of TM-CONTRACT's measured facts, scenarios, switches, and random operation sequences.
#![expect(clippy::wildcard_enum_match_arm, reason = "a test looks for one kind of event")]

mod counts;
mod driver;
mod flows;
mod host_side;
mod list;
mod properties;
mod raw;
mod support;
mod switched;
