//! `app_ctx`: the 32 bits of the TMH that survive a match in hardware (`ibv_wc_tm_info.priv`).
//!
//! Not here: who deals operation ids, and what is done by the flags.

use super::{Expected, WireError};
use std::fmt;

/// The sender's name for an operation that somebody will answer: 24 bits, unique among the sender's operations
/// on one connection until the answer has come. FIN, acknowledgements and later segments name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct OperationId(u32);

impl OperationId {
    /// The largest.
    pub const MAX: Self = Self(0x00FF_FFFF);

    /// `None` where the number has more than 24 bits.
    #[must_use]
    pub const fn new(id: u32) -> Option<Self> {
        if id <= Self::MAX.0 { Some(Self(id)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.0
    }

    /// From a field of 32 bits, of which the first eight must be 0.
    pub(super) const fn decode(bits: u32, offset: u16) -> Result<Self, WireError> {
        match Self::new(bits) {
            Some(id) => Ok(id),
            None => Err(WireError::Value {
                field: "operation id",
                value: bits as u64,
                expected: Expected::AtMost(Self::MAX.0 as u64),
                offset,
            }),
        }
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operation({:#x})", self.0)
    }
}

/// What the sender wants, or says, beside the payload: 8 bits, of which those that no version has given a
/// meaning must be 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SendFlags(u8);

impl SendFlags {
    /// None.
    pub const NONE: Self = Self(0);
    /// Tell the sender when the message has been matched: a synchronous send (`FI_MATCH_COMPLETE`, `MPI_Ssend`).
    pub const ACKNOWLEDGE_MATCH: Self = Self(0x01);
    /// Tell the sender when the payload is in the receiver's buffer (`FI_DELIVERY_COMPLETE`).
    pub const ACKNOWLEDGE_DELIVERY: Self = Self(0x02);
    /// Remote CQ data comes with the message (`FI_REMOTE_CQ_DATA`): as the immediate of a message with a tag, in
    /// the header of one without.
    pub const CQ_DATA: Self = Self(0x04);
    /// The payload is to be read: in RNDV, and in its FIN. Where a device matches a message in steps nothing else says so
    /// (decision 0022).
    pub const TO_BE_READ: Self = Self(0x08);
    /// All that have a meaning.
    pub const ALL: Self = Self(0x0F);

    /// The eight bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl fmt::Debug for SendFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendFlags({:#04x})", self.0)
    }
}

/// Operation id and flags: the id in the upper 24 bits, the flags in the lower eight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AppContext {
    /// The sender's name for the operation.
    pub operation: OperationId,
    /// What it wants.
    pub flags: SendFlags,
}

impl AppContext {
    /// The word on the wire, and in a work completion.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        (self.operation.0 << 8) | self.flags.0 as u32
    }

    /// The inverse, for a word that a device reports (`priv`) or that stands at offset 4 of a message.
    ///
    /// # Errors
    /// A flag without a meaning is set.
    #[expect(clippy::cast_possible_truncation, reason = "the lower eight bits are meant")]
    pub const fn from_bits(bits: u32) -> Result<Self, WireError> {
        let flags = SendFlags(bits as u8);
        if !SendFlags::ALL.contains(flags) {
            return Err(WireError::Value {
                field: "send flags",
                value: flags.0 as u64,
                expected: Expected::Bits(SendFlags::ALL.0 as u64),
                offset: FLAGS_OFFSET,
            });
        }
        Ok(Self { operation: OperationId(bits >> 8), flags })
    }
}

/// Every header that has an `app_ctx` has it at offset 4.
const FLAGS_OFFSET: u16 = 7;
