//! Frames: what stands between the messages on a stream. docs/wire.md specifies them.
//!
//! Not here: what a message says, and what becomes of it.

/// The head of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::device) struct Head {
    pub(in crate::device) kind: Kind,
    /// Bytes behind the head, and behind the immediate if there is one.
    pub(in crate::device) length: u32,
}

/// What a frame holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(in crate::device) enum Kind {
    /// A message.
    Message = 1,
    /// The immediate of a message, and the message.
    MessageWithImmediate = 2,
    /// A request to send what is in memory: [`ReadRequest`].
    Read = 3,
    /// The number of such a request, and the bytes that come next.
    ReadData = 4,
    /// The number of such a request, of which nothing more will come: the memory cannot be read, or ends before.
    ReadRefused = 5,
    /// The number of such a request, of which nothing more will come: the key stands for nothing here, or not any more.
    ReadWithdrawn = 6,
}

/// What a peer asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::device) struct ReadRequest {
    /// The asker's number for it.
    pub(in crate::device) number: u64,
    pub(in crate::device) address: u64,
    /// At least 1.
    pub(in crate::device) length: u64,
    pub(in crate::device) key: u32,
}

impl Head {
    pub(in crate::device) const LENGTH: usize = 8;

    pub(in crate::device) const fn to_bytes(self) -> [u8; Self::LENGTH] {
        let [a, b, c, d] = self.length.to_be_bytes();
        [a, b, c, d, self.kind as u8, 0, 0, 0]
    }

    /// How long the message of a frame is that begins so, and whether an immediate is before it. `None`: it is another
    /// frame, or none.
    #[inline]
    pub(in crate::device) fn of_message(head: &[u8; Self::LENGTH]) -> Option<(u32, bool)> {
        let [a, b, c, d, kind, zeros @ ..] = *head;
        let has_immediate = kind == Kind::MessageWithImmediate as u8;
        let is_one = (has_immediate || kind == Kind::Message as u8) && zeros == [0; 3];
        is_one.then_some((u32::from_be_bytes([a, b, c, d]), has_immediate))
    }

    /// The head at the beginning of these bytes; `None`: it is not all there.
    pub(in crate::device) fn decode(bytes: &[u8]) -> Result<Option<Self>, String> {
        let Some((head, _)) = bytes.split_first_chunk::<{ Self::LENGTH }>() else { return Ok(None) };
        let [a, b, c, d, kind, reserved @ ..] = *head;
        let kind = match kind {
            1 => Kind::Message,
            2 => Kind::MessageWithImmediate,
            3 => Kind::Read,
            4 => Kind::ReadData,
            5 => Kind::ReadRefused,
            6 => Kind::ReadWithdrawn,
            kind => return Err(format!("a frame of kind {kind}; there are 1 to 6")),
        };
        if reserved != [0; 3] {
            return Err(format!("the reserved bytes of a frame are {reserved:?}"));
        }
        Ok(Some(Self { kind, length: u32::from_be_bytes([a, b, c, d]) }))
    }
}

impl ReadRequest {
    pub(in crate::device) const LENGTH: usize = 32;

    /// The whole frame.
    pub(in crate::device) fn to_bytes(self) -> [u8; Head::LENGTH + Self::LENGTH] {
        let mut bytes = [0; Head::LENGTH + Self::LENGTH];
        let head = Head { kind: Kind::Read, length: 32 };
        bytes[..8].copy_from_slice(&head.to_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.address.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.length.to_be_bytes());
        bytes[32..36].copy_from_slice(&self.key.to_be_bytes());
        bytes
    }

    /// What stands behind the head.
    pub(in crate::device) fn decode(bytes: &[u8; Self::LENGTH]) -> Result<Self, String> {
        let number = |at: usize| {
            bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_be_bytes(*bytes))
        };
        let last = number(24);
        let key = u32::try_from(last >> 32).unwrap_or(0);
        let request = Self { number: number(0), address: number(8), length: number(16), key };
        if last & u64::from(u32::MAX) != 0 {
            return Err("the reserved bytes of a read are not 0".into());
        }
        if request.length == 0 || request.address > u64::MAX - request.length {
            return Err(format!("a read of {} bytes at {:#x}", request.length, request.address));
        }
        Ok(request)
    }
}

/// The beginning of a frame of data that was asked for, or of one that refuses: head and number.
pub(in crate::device) fn numbered(kind: Kind, number: u64, bytes: u32) -> [u8; Head::LENGTH + NUMBER_LENGTH] {
    let mut out = [0; Head::LENGTH + NUMBER_LENGTH];
    let head = Head { kind, length: bytes + 8 };
    out[..8].copy_from_slice(&head.to_bytes());
    out[8..].copy_from_slice(&number.to_be_bytes());
    out
}

/// Bytes of an immediate.
pub(in crate::device) const IMMEDIATE_LENGTH: usize = 4;
/// Bytes of the number of a read.
pub(in crate::device) const NUMBER_LENGTH: usize = 8;
/// Reads that one side may have asked for and not got, on one link.
pub(in crate::device) const READS_MAX: usize = 256;
