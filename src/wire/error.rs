//! What can be wrong with bytes from a peer, or with a value that is to become bytes.
//!
//! A decoding error is the peer's fault and ends that connection; nobody else's messages are touched by it.

use std::fmt;

/// A message that does not follow the protocol, or a value that cannot be said in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The peer's fault: the message ends too early.
    #[error("{field} needs a message of at least {needed} bytes, but it has {length}")]
    Short {
        /// What could not be read.
        field: &'static str,
        /// Bytes that the message would need at the least.
        needed: u64,
        /// Bytes that it has.
        length: u64,
    },
    /// The peer's fault: there are bytes behind the end of the message.
    #[error("{field} makes a message of {expected} bytes, but it has {length}")]
    Long {
        /// What the message is.
        field: &'static str,
        /// Bytes that it should have.
        expected: u64,
        /// Bytes that it has.
        length: u64,
    },
    /// The peer's fault when decoding, the caller's when encoding: a field holds what it must not.
    #[error("{field} at offset {offset} is {value:#x}, expected {expected}")]
    Value {
        /// Which field.
        field: &'static str,
        /// What it holds.
        value: u64,
        /// What it may hold.
        expected: Expected,
        /// Where it begins, in bytes from the start of the message.
        offset: u16,
    },
    /// The caller's fault: the place for the encoded message is too small.
    #[error("the message needs {needed} bytes, but there is room for {available}")]
    NoRoom {
        /// Bytes needed.
        needed: u64,
        /// Bytes there are.
        available: u64,
    },
    /// The caller's fault: a message whose payload has not arrived whole cannot be encoded.
    #[error("only {arrived} of {length} bytes of the payload are here")]
    Incomplete {
        /// Bytes of payload at hand.
        arrived: u64,
        /// Bytes of payload in the message.
        length: u64,
    },
}

/// What a field may hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Expected {
    /// Nothing: it is reserved, or another field says that it is not used.
    Zero,
    /// Anything but 0.
    NotZero,
    /// One of these, in words.
    OneOf(&'static str),
    /// Only these bits.
    Bits(u64),
    /// This or less.
    AtMost(u64),
    /// This or more.
    AtLeast(u64),
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => write!(f, "0"),
            Self::NotZero => write!(f, "anything but 0"),
            Self::OneOf(words) => write!(f, "{words}"),
            Self::Bits(bits) => write!(f, "no bits outside {bits:#x}"),
            Self::AtMost(value) => write!(f, "at most {value:#x}"),
            Self::AtLeast(value) => write!(f, "at least {value:#x}"),
        }
    }
}

impl WireError {
    /// `Err` of a [`Self::Value`] unless `good`.
    #[inline]
    pub(super) const fn unless(
        good: bool,
        field: &'static str,
        value: u64,
        expected: Expected,
        offset: u16,
    ) -> Result<(), Self> {
        if good { Ok(()) } else { Err(Self::Value { field, value, expected, offset }) }
    }
}
