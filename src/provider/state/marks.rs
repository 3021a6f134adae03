//! What the provider remembers of an operation while the endpoint has it: 32 bits that come back with the completion.

use crate::provider::abi;

/// Bits of an operation, and the place of its io vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::provider) struct Marks(pub(in crate::provider) u32);

impl Marks {
    /// Success is to be reported too.
    const REPORT: u32 = 1;
    /// It is a receive, a peek, a claim or a discard.
    const RECEIVE: u32 = 2;
    /// It writes a peer's memory.
    const WRITE: u32 = 4;
    /// It reads a peer's memory.
    const READ: u32 = 8;
    /// It does so by an operation on values.
    const ATOMIC: u32 = 16;
    const VECTOR_SHIFT: u32 = 8;
    /// So many io vectors can be remembered at once.
    pub(in crate::provider) const VECTORS_MAX: usize = (1 << (32 - Self::VECTOR_SHIFT)) - 1;

    pub(in crate::provider) const fn new(is_receive: bool, is_reported: bool) -> Self {
        let receive = if is_receive { Self::RECEIVE } else { 0 };
        Self(receive | if is_reported { Self::REPORT } else { 0 })
    }

    /// Of remote memory access.
    pub(in crate::provider) const fn remote(is_read: bool, is_reported: bool) -> Self {
        let Self(marks) = Self::new(false, is_reported);
        Self(marks | if is_read { Self::READ } else { Self::WRITE })
    }

    /// The same, by an operation on values.
    pub(in crate::provider) const fn atomic(is_read: bool, is_reported: bool) -> Self {
        Self(Self::remote(is_read, is_reported).0 | Self::ATOMIC)
    }

    /// Which kind of access to a peer's memory it is.
    pub(in crate::provider) const fn kind(self) -> u64 {
        if self.0 & Self::ATOMIC == 0 { abi::FI_RMA } else { abi::FI_ATOMIC }
    }

    /// Whether it is one of memory: a read, or a write.
    pub(in crate::provider) const fn is_read(self) -> Option<bool> {
        match (self.0 & Self::READ != 0, self.0 & Self::WRITE != 0) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }

    /// With the place of an io vector, below [`Self::VECTORS_MAX`].
    #[expect(clippy::cast_possible_truncation, reason = "places are below VECTORS_MAX")]
    pub(in crate::provider) const fn with_vector(self, place: usize) -> Self {
        Self(self.0 | (place as u32 + 1) << Self::VECTOR_SHIFT)
    }

    pub(in crate::provider) const fn is_reported(self) -> bool {
        self.0 & Self::REPORT != 0
    }

    pub(in crate::provider) const fn is_receive(self) -> bool {
        self.0 & Self::RECEIVE != 0
    }

    pub(in crate::provider) const fn vector(self) -> Option<usize> {
        match (self.0 >> Self::VECTOR_SHIFT) as usize {
            0 => None,
            place => Some(place - 1),
        }
    }
}
