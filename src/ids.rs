//! Names for things: newtypes without behaviour, so that an index, a count and a tag cannot be mixed up.
//!
//! Not here: anything that knows what a name stands for.

#![forbid(unsafe_code)]

use std::fmt;

/// The 64 bits a message carries to be matched by. All of them are the user's (`fi_tagged(3)`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tag(pub u64);

/// The bits of a tag that a receive does **not** look at, as in `fi_trecv(3)`: 1 = ignored.
///
/// The verbs `mask` is its complement; see [`Ignore::mask`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ignore(pub u64);

impl Ignore {
    /// Every bit of the tag counts.
    pub const NONE: Self = Self(0);
    /// Any tag will do.
    pub const ALL: Self = Self(u64::MAX);

    /// The verbs mask: 1 = the bit must agree (`ibv_post_srq_ops(3)`).
    #[must_use]
    pub const fn mask(self) -> u64 {
        !self.0
    }
}

/// A sender, by the engine's own number. Numbers are dealt by whoever owns the engine, small ones first;
/// they are resolved to users' addresses outside the engine, as late as one likes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

/// A set of peers that a receive may name as its source. A peer is in at most one group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// Whose messages a receive takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// Anybody's.
    Any,
    /// One peer's.
    Peer(PeerId),
    /// Those of every peer in the group at the time of matching.
    Group(GroupId),
}

/// The id of an entry of a list: place and generation, kept as one word so that it is written, read and returned as
/// one.
macro_rules! list_entry {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// A place in its table, and what tells the uses of that place apart: a stale id names nothing.
            #[must_use]
            #[inline]
            pub const fn new(index: u32, generation: u32) -> Self {
                Self(((generation as u64) << 32) | index as u64)
            }

            /// Place in its table.
            #[must_use]
            #[inline]
            #[expect(clippy::cast_possible_truncation, reason = "the lower half of the word is meant")]
            pub const fn index(self) -> u32 {
                self.0 as u32
            }

            /// Tells the uses of that place apart.
            #[must_use]
            #[inline]
            pub const fn generation(self) -> u32 {
                (self.0 >> 32) as u32
            }

            /// Both halves in one word, for user contexts and wire identifiers: generation high, index low.
            #[must_use]
            #[inline]
            pub const fn to_bits(self) -> u64 {
                self.0
            }

            /// The inverse of [`Self::to_bits`]. Any value is accepted; a wrong one names nothing.
            #[must_use]
            #[inline]
            pub const fn from_bits(bits: u64) -> Self {
                Self(bits)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({}.{})"), self.index(), self.generation())
            }
        }
    };
}

list_entry!(
    /// A posted receive, from post until it is matched or cancelled.
    ReceiveId
);
list_entry!(
    /// A message on the unexpected list, from its arrival until it is taken.
    MessageId
);

macro_rules! generational {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            /// Place in its table.
            pub index: u32,
            /// Tells the uses of that place apart: a stale id names nothing.
            pub generation: u32,
        }

        impl $name {
            /// Both halves in one word, for user contexts and wire identifiers: generation high, index low.
            #[must_use]
            pub const fn to_bits(self) -> u64 {
                ((self.generation as u64) << 32) | self.index as u64
            }

            /// The inverse of [`Self::to_bits`]. Any value is accepted; a wrong one names nothing.
            #[must_use]
            #[expect(clippy::cast_possible_truncation, reason = "the two halves of the word are meant")]
            pub const fn from_bits(bits: u64) -> Self {
                Self { index: bits as u32, generation: (bits >> 32) as u32 }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({}.{})"), self.index, self.generation)
            }
        }
    };
}

generational!(
    /// An entry of the offload mirror: what the engine calls a receive that it gave to a device.
    /// Travels as the work-request id of list operations, so that a completion can name it.
    TagHandle
);
generational!(
    /// A matched receive whose data is still under way.
    TransferId
);
generational!(
    /// A buffer that its table owns until it is handed back.
    BufferId
);
generational!(
    /// A connection of a transport, from its making until its end was told.
    LinkId
);

/// A device of one engine: its place in the order they were added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u8);

/// What a device calls a message that it holds for the host. Opaque to the engine; only ever handed back
/// to the device that gave it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageToken(pub u64);

macro_rules! debug_number {
    ($($name:ident: $format:literal),* $(,)?) => {
        $(impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        })*
    };
}

debug_number!(
    Tag: "Tag({:#x})",
    Ignore: "Ignore({:#x})",
    PeerId: "Peer({})",
    GroupId: "Group({})",
    DeviceId: "Device({})",
    MessageToken: "Message({:#x})",
);
