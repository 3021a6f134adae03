//! What the benches share: who is measured ([`subject`]), with what ([`workload`], [`script`]), in which
//! loops ([`cycle`]), and on which machine ([`record`]).
//!
//! Not here: clocks' statistics beyond a median, and any peer that needs unsafe code (`peer_ucx`).
#![allow(dead_code, unreachable_pub, reason = "every bench target uses its own part of this module")]

pub(crate) mod arguments;
#[allow(unsafe_code, reason = "a clock of the C library")]
pub(crate) mod clock;
pub(crate) mod cycle;
#[allow(unsafe_code, reason = "transports follow the address of a buffer")]
pub(crate) mod endpoints;
pub(crate) mod engine;
pub(crate) mod record;
pub(crate) mod runner;
pub(crate) mod script;
pub(crate) mod subject;
pub(crate) mod traces;
pub(crate) mod workload;

/// A small seeded generator (SplitMix64), so that every run and every peer sees the same numbers.
#[derive(Debug)]
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..bound`; the bias of the remainder does not matter here.
    #[expect(clippy::cast_possible_truncation, reason = "below a bound that is a usize")]
    pub(crate) const fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// The middle of the values (the upper one of two). NaN for none.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
