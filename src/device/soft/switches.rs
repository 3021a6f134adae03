//! The points where TM-CONTRACT 14 is doubtful, each with what we assume and the other reading.
//!
//! [`Switches::default`] is what we assume. A point that is only about creation (A14, A15) refuses there.
//! Not here: what the readings do; that is in the list, the driver and the device, each at its place.

/// A1: do entries appended while out of sync become active on the next equal report?
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Activation {
    /// They do (the documentation's "matching resumes normally").
    #[default]
    OnEqualReport,
    /// Never: they must be removed and added again.
    OnlyAtAppend,
}

/// A2: are active entries still matched while out of sync?
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OutOfSync {
    /// They are: only *new* tags are held back.
    #[default]
    ActiveMatch,
    /// Nothing matches.
    NothingMatches,
}

/// A3: when does the count of an APPEND or a REMOVE take effect?
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CountOrder {
    /// Before the change of the list, in one piece with it.
    #[default]
    BeforeChange,
    /// After the change of the list, in one piece with it.
    AfterChange,
    /// Before the change, and a message may be accepted in between: a REMOVE that carries the count can lose
    /// the entry to that message.
    BeforeChangeNotAtomic,
}

/// A4: does an equal count on an APPEND also activate earlier inactive entries?
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AppendActivates {
    /// All of them, before the new entry.
    #[default]
    All,
    /// Only the new entry; an equal count on a REMOVE or a NOOP activates the others.
    Itself,
}

/// A5: an eager payload longer than the tagged buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum TooLong {
    /// An error completion that names nothing usable, and a dead QP.
    #[default]
    Error,
    /// What fits is written, and the completion tells the message's length.
    Truncate,
}

/// A6: what a TM-SRQ does with fewer than 33 unexpected buffers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum FewBuffers {
    /// It accepts no message until 33 have been posted at once; afterwards it works down to none.
    #[default]
    WaitAtStart,
    /// It accepts no message whenever fewer than 33 are posted.
    WaitAlways,
    /// It does not care.
    Work,
}

/// A7: the entry's tag has bits outside its mask.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum UnmaskedTag {
    /// It never matches.
    #[default]
    NeverMatches,
    /// The device masks it.
    Masked,
}

/// A8: a message too short for its opcode, or of an unknown opcode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Malformed {
    /// Delivered like a message without a tag; not counted.
    #[default]
    NoTag,
    /// Delivered and counted like an unexpected message.
    Unexpected,
}

/// A9: a rendezvous request where the device does not offload rendezvous.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum NoOffload {
    /// It is matched and handed back: `IBV_WC_TM_RNDV_INCOMPLETE`.
    #[default]
    SoftwareRendezvous,
    /// It is not matched, and counts as unexpected.
    Unexpected,
}

/// A10: how a matched rendezvous is handed back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HandBack {
    /// CONSUMED_MSG_SW_RNDV (0xB): one completion.
    #[default]
    One,
    /// CONSUMED_SW_RNDV (0x9), then EXPECTED (0x2).
    ThenExpected,
    /// CONSUMED_SW_RNDV (0x9), then MSG_COMPLETION_CANCELED (0xC).
    ThenCanceled,
}

/// A11: the byte count of CONSUMED.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ConsumedLength {
    /// Zero.
    #[default]
    Zero,
    /// Something that is not the length of the payload.
    Arbitrary,
}

/// A12: in which order EXPECTED completions come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ExpectedOrder {
    /// As the data happens to arrive.
    #[default]
    Any,
    /// In the order in which the messages were matched.
    AsMatched,
}

/// A12: whether the sender is told (FIN) before or after the receiver (EXPECTED).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum FinOrder {
    /// The sender first.
    #[default]
    BeforeExpected,
    /// The receiver first.
    AfterExpected,
}

/// A13: the device's own READ fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ReadFailure {
    /// The QP fails; the entry is completed as after a lost path.
    #[default]
    QpError,
    /// The whole SRQ fails.
    DeviceError,
}

/// A14: data QPs on another port than the command QP (which is always on port 1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OtherPort {
    /// Works.
    #[default]
    Works,
    /// Creation is refused.
    Refused,
}

/// A15: a TM-SRQ on a RoCE port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RoCe {
    /// Creation is refused, since libmlx5 gives its command QP no GRH.
    #[default]
    Refused,
    /// Works.
    Works,
}

/// A16: a matched rendezvous request of zero bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum EmptyRendezvous {
    /// Completes with zero bytes.
    #[default]
    Completes,
    /// Is handed back.
    HandedBack,
}

/// A17: one buffer in two entries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SharedBuffer {
    /// The device does not care.
    #[default]
    Allowed,
    /// The device fails.
    Refused,
}

/// A18: which completion of a matched message of several packets carries the immediate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ImmediateOn {
    /// EXPECTED.
    #[default]
    Expected,
    /// CONSUMED.
    Consumed,
}

/// A19: when the count of unexpected messages rises for a message of several packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CountAt {
    /// At its first packet ("whenever HW deems a message unexpected").
    #[default]
    FirstPacket,
    /// At its last: a newer receive may overtake.
    LastPacket,
}

/// TM-CONTRACT 10: in which order completions of arrivals and list operations reach the queue, while an
/// unexpected message of several packets is under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CompletionOrder {
    /// In the order of arrival: those behind it wait for its last packet.
    #[default]
    Arrival,
    /// As they finish.
    Finish,
}

/// TM-CONTRACT 13: a message of several packets or a rendezvous when its QP fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HalfReceived {
    /// An entry is completed by MSG_COMPLETION_CANCELED (0xC). An unexpected message that was counted is
    /// delivered as it is, its data lost.
    #[default]
    Canceled,
    /// Nothing comes: the entry is never free again, and a message that was counted is never seen, so that
    /// the list stays out of sync.
    Silent,
}

/// All of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Switches {
    /// A1
    pub activation: Activation,
    /// A2
    pub out_of_sync: OutOfSync,
    /// A3
    pub count_order: CountOrder,
    /// A4
    pub append_activates: AppendActivates,
    /// A5
    pub too_long: TooLong,
    /// A6
    pub few_buffers: FewBuffers,
    /// A7
    pub unmasked_tag: UnmaskedTag,
    /// A8
    pub malformed: Malformed,
    /// A9
    pub no_offload: NoOffload,
    /// A10
    pub hand_back: HandBack,
    /// A11
    pub consumed_length: ConsumedLength,
    /// A12, among EXPECTED completions
    pub expected_order: ExpectedOrder,
    /// A12, FIN against EXPECTED
    pub fin_order: FinOrder,
    /// A13
    pub read_failure: ReadFailure,
    /// A14
    pub other_port: OtherPort,
    /// A15
    pub roce: RoCe,
    /// A16
    pub empty_rendezvous: EmptyRendezvous,
    /// A17
    pub shared_buffer: SharedBuffer,
    /// A18
    pub immediate_on: ImmediateOn,
    /// A19
    pub count_at: CountAt,
    /// TM-CONTRACT 10
    pub completion_order: CompletionOrder,
    /// TM-CONTRACT 13
    pub half_received: HalfReceived,
}
