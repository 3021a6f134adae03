//! Messages of scripts, and their bytes (TM-CONTRACT 3).

/// What a sender sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Which sender.
    pub sender: u8,
    /// What it is.
    pub kind: MessageKind,
    /// The tag.
    pub tag: u64,
    /// The sender's word.
    pub app_ctx: u32,
    /// Immediate data.
    pub immediate: Option<u32>,
    /// The three reserved bytes of the TMH: zero, but a device does not look at them.
    pub reserved: [u8; 3],
}

/// By the opcode of its TMH.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessageKind {
    /// TMH and so many bytes.
    Eager(u32),
    /// TMH, RVH and metadata; so many bytes wait at the sender.
    Rendezvous {
        /// Bytes at the sender.
        length: u32,
        /// Bytes behind the headers.
        metadata: u32,
        /// Whether the key is one that the sender does not have.
        broken: bool,
    },
    /// The answer to a rendezvous.
    Fin,
    /// These bytes, whatever they are.
    Raw(Vec<u8>),
}

impl Message {
    /// An eager message of sender 0.
    #[must_use]
    pub const fn eager(tag: u64, length: u32) -> Self {
        let kind = MessageKind::Eager(length);
        Self { sender: 0, kind, tag, app_ctx: 0x5a00_0001, immediate: None, reserved: [0; 3] }
    }

    /// A rendezvous request of sender 0, without metadata.
    #[must_use]
    pub fn rendezvous(tag: u64, length: u32) -> Self {
        let kind = MessageKind::Rendezvous { length, metadata: 0, broken: false };
        Self { kind, ..Self::eager(tag, 0) }
    }

    /// A message without a tag, of so many bytes in all; at least one.
    #[must_use]
    pub fn no_tag(length: u32) -> Self {
        let mut bytes = pattern(0, length);
        if let Some(opcode) = bytes.first_mut() {
            *opcode = 0;
        }
        Self { kind: MessageKind::Raw(bytes), ..Self::eager(0, 0) }
    }

    /// Any bytes.
    #[must_use]
    pub fn raw(bytes: Vec<u8>) -> Self {
        Self { kind: MessageKind::Raw(bytes), ..Self::eager(0, 0) }
    }

    /// A FIN for nothing.
    #[must_use]
    pub fn fin(tag: u64) -> Self {
        Self { kind: MessageKind::Fin, ..Self::eager(tag, 0) }
    }

    /// From another sender.
    #[must_use]
    pub fn from(self, sender: u8) -> Self {
        Self { sender, ..self }
    }

    /// With immediate data.
    #[must_use]
    pub fn with_immediate(self, immediate: u32) -> Self {
        Self { immediate: Some(immediate), ..self }
    }

    /// With another word.
    #[must_use]
    pub fn with_word(self, app_ctx: u32) -> Self {
        Self { app_ctx, ..self }
    }

    /// With reserved bytes that are not zero.
    #[must_use]
    pub fn with_reserved(self, reserved: [u8; 3]) -> Self {
        Self { reserved, ..self }
    }

    /// A rendezvous request with so many bytes behind its headers.
    #[must_use]
    pub fn with_metadata(mut self, bytes: u32) -> Self {
        if let MessageKind::Rendezvous { metadata, .. } = &mut self.kind {
            *metadata = bytes;
        }
        self
    }

    /// A rendezvous request whose key is wrong.
    #[must_use]
    pub fn with_wrong_key(mut self) -> Self {
        if let MessageKind::Rendezvous { broken, .. } = &mut self.kind {
            *broken = true;
        }
        self
    }

    /// What reaches the tagged buffer in the end.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        match &self.kind {
            MessageKind::Eager(length) | MessageKind::Rendezvous { length, .. } => pattern(self.tag, *length),
            MessageKind::Fin | MessageKind::Raw(_) => Vec::new(),
        }
    }

    /// Bytes at the sender that a rendezvous is about: they lie at the start of its source memory.
    #[must_use]
    pub const fn source_length(&self) -> u32 {
        match self.kind {
            MessageKind::Rendezvous { length, .. } => length,
            MessageKind::Eager(_) | MessageKind::Fin | MessageKind::Raw(_) => 0,
        }
    }

    /// The message as sent. Of a rendezvous, the data lies at `address` under `key`.
    #[must_use]
    pub fn encode(&self, address: u64, key: u32) -> Vec<u8> {
        match &self.kind {
            MessageKind::Eager(_) => [self.tmh(EAGER), self.payload()].concat(),
            MessageKind::Rendezvous { length, metadata, broken } => {
                let key = if *broken { !key } else { key };
                [self.tmh(RENDEZVOUS), rvh(address, key, *length), pattern(!self.tag, *metadata)].concat()
            }
            MessageKind::Fin => [self.tmh(FIN), rvh(address, key, 0)].concat(),
            MessageKind::Raw(bytes) => bytes.clone(),
        }
    }

    /// The FIN that answers this request.
    #[must_use]
    pub fn encode_fin(&self, address: u64, key: u32) -> Vec<u8> {
        [self.tmh(FIN), rvh(address, key, self.source_length())].concat()
    }

    fn tmh(&self, opcode: u8) -> Vec<u8> {
        let [a, b, c] = self.reserved;
        let mut bytes = vec![opcode, a, b, c];
        bytes.extend_from_slice(&self.app_ctx.to_be_bytes());
        bytes.extend_from_slice(&self.tag.to_be_bytes());
        bytes
    }
}

fn rvh(address: u64, key: u32, length: u32) -> Vec<u8> {
    let mut bytes = address.to_be_bytes().to_vec();
    bytes.extend_from_slice(&key.to_be_bytes());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes
}

/// Bytes that tell of their tag and their place.
#[must_use]
pub fn pattern(seed: u64, length: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::new();
    for _ in 0..length {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        bytes.push(state.to_be_bytes()[0]);
    }
    bytes
}

const RENDEZVOUS: u8 = 1;
const FIN: u8 = 2;
const EAGER: u8 = 3;
