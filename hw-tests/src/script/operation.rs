//! List operations of scripts.

/// One `ibv_ops_wr`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Comes back with its completion.
    pub wr_id: u64,
    /// What to do.
    pub kind: OperationKind,
    /// `IBV_OPS_SIGNALED`
    pub signalled: bool,
    /// `tm.unexpected_cnt` and `IBV_OPS_TM_SYNC`.
    pub count: Count,
}

impl Operation {
    /// A signalled ADD of a receive into the tagged buffer of the same number, of [`Self::BUFFER`] bytes.
    #[must_use]
    pub const fn add(receive: u32, tag: u64) -> Self {
        let (length, segments, mask) = (Self::BUFFER, 1, u64::MAX);
        let kind = OperationKind::Add { receive, buffer: receive, length, segments, tag, mask };
        Self { wr_id: 100 + receive as u64, kind, signalled: true, count: Count::None }
    }

    /// A signalled DEL of the entry that this receive was last put into.
    #[must_use]
    pub const fn del(receive: u32) -> Self {
        let kind = OperationKind::Del(Target::Receive(receive));
        Self { wr_id: 200 + receive as u64, kind, signalled: true, count: Count::None }
    }

    /// A signalled SYNC that reports this count.
    #[must_use]
    pub const fn sync(count: u32) -> Self {
        Self { wr_id: 300, kind: OperationKind::Sync, signalled: true, count: Count::Exactly(count) }
    }

    /// An operation that does not exist.
    #[must_use]
    pub const fn unknown(opcode: u32) -> Self {
        Self { wr_id: 400, kind: OperationKind::Unknown(opcode), signalled: true, count: Count::None }
    }

    /// Without a completion.
    #[must_use]
    pub const fn unsignalled(self) -> Self {
        Self { signalled: false, ..self }
    }

    /// With this count reported.
    #[must_use]
    pub const fn counting(self, count: u32) -> Self {
        Self { count: Count::Exactly(count), ..self }
    }

    /// With this kind of count reported.
    #[must_use]
    pub const fn with(self, count: Count) -> Self {
        Self { count, ..self }
    }

    /// With this wr_id.
    #[must_use]
    pub const fn named(self, wr_id: u64) -> Self {
        Self { wr_id, ..self }
    }

    /// An ADD with this mask: a bit that is 1 is compared.
    #[must_use]
    pub const fn masked(mut self, bits: u64) -> Self {
        if let OperationKind::Add { mask, .. } = &mut self.kind {
            *mask = bits;
        }
        self
    }

    /// An ADD of a buffer of so many bytes.
    #[must_use]
    pub const fn of_length(mut self, bytes: u32) -> Self {
        if let OperationKind::Add { length, .. } = &mut self.kind {
            *length = bytes;
        }
        self
    }

    /// An ADD of so many segments: the first is the buffer, the others are the buffers of the next numbers.
    #[must_use]
    pub const fn of_segments(mut self, number: u32) -> Self {
        if let OperationKind::Add { segments, .. } = &mut self.kind {
            *segments = number;
        }
        self
    }

    /// An ADD into another buffer than its own.
    #[must_use]
    pub const fn into_buffer(mut self, number: u32) -> Self {
        if let OperationKind::Add { buffer, .. } = &mut self.kind {
            *buffer = number;
        }
        self
    }

    /// The length of a tagged buffer unless said otherwise.
    pub const BUFFER: u32 = 2048;
}

/// `ibv_ops_wr.opcode`, and what belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperationKind {
    /// `IBV_WR_TAG_ADD`
    Add {
        /// `recv_wr_id`
        receive: u32,
        /// The number of the tagged buffer.
        buffer: u32,
        /// Bytes of it.
        length: u32,
        /// `num_sge`
        segments: u32,
        /// What to compare with.
        tag: u64,
        /// Which bits.
        mask: u64,
    },
    /// `IBV_WR_TAG_DEL`
    Del(Target),
    /// `IBV_WR_TAG_SYNC`
    Sync,
    /// Any other.
    Unknown(u32),
}

/// What a DEL is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// The entry that this receive was last put into.
    Receive(u32),
    /// This handle, whatever is there.
    Handle(u32),
}

/// Which count an operation reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// None: `IBV_OPS_TM_SYNC` is not set.
    None,
    /// This one, but the flag is not set.
    Unflagged(u32),
    /// This one.
    Exactly(u32),
    /// The unexpected messages polled so far.
    Polled,
    /// The same, modulo 2^16.
    PolledLow,
}
