//! Tables of TM-CONTRACT's measured facts, scenarios, switches, and random operation sequences.

mod counts;
mod list;
mod support;
