//! The seeded hash of a key: masked tag and source.
//!
//! Not here: tables. A fragment of 32 bits is all that a table keeps of a hash.

/// The two secrets of one matcher.
#[derive(Clone, Copy)]
pub(super) struct Hasher {
    tag: u64,
    source: u64,
}

impl Hasher {
    pub(super) const fn new(seed: u64) -> Self {
        let tag = mix(seed.wrapping_add(STEP));
        let source = mix(seed.wrapping_add(STEP.wrapping_mul(2)));
        // An odd number below 2^63 with bit 62 set: never zero, whatever 33-bit source is put on top.
        Self { tag, source: (source & (u64::MAX >> 1)) | (1 << 62) | 1 }
    }

    /// A folded multiply, so that every bit counts, and one more multiply, without which tags in arithmetic
    /// progression are spread unevenly for some seeds. Budget: 7 instructions.
    #[inline]
    pub(super) fn fragment(self, tag: u64, source: u64) -> u32 {
        let product = u128::from(tag ^ self.tag) * u128::from(source ^ self.source);
        let folded = low_word(product) ^ low_word(product >> 64);
        low(folded.wrapping_mul(STEP) >> 32)
    }
}

/// The low half of a word.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
pub(super) const fn low(word: u64) -> u32 {
    word as u32
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
const fn low_word(product: u128) -> u64 {
    product as u64
}

/// SplitMix64's finaliser.
const fn mix(seed: u64) -> u64 {
    let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 2^64 divided by the golden ratio, odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
