//! The clauses of the offload rules that the exhaustive model takes away one at a time, to show that each is needed.
//!
//! In every build that users get, all clauses hold and the questions cost nothing. With feature `ablation` one of
//! them can be dropped. docs/ordering.md tells what goes wrong then.

/// One clause of the offload rules (docs/ordering.md numbers them).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Clause {
    /// 1: a receive in another device's list blocks until the completion of its DEL was polled.
    BlocksUntilDelPolled,
    /// 1: a receive that is being recalled blocks newer overlapping ones.
    RecalledBlocks,
    /// 3: the count reported is of messages decided, not of messages polled.
    CountDecided,
    /// 3: a count takes its place behind the DELs of all messages it counts.
    CountBehindDels,
    /// 3: buffers are not reposted where the counters could come to look equal by a whole turn.
    BufferBudget,
    /// 4: an unexpected message takes a receive of the NIC that reported it even with a DEL outstanding.
    TakesDespiteDel,
    /// 5: a message of another path asks with a signalled DEL.
    SignalledDel,
    /// 5: a message of another path never passes over a receive in a NIC.
    NeverPassesOver,
    /// 5: the message that queued the DEL gets the receive, even if it was cancelled since.
    ClaimantBeforeCancel,
    /// 5: later messages of a source wait behind its waiting message.
    LaterOfSourceWait,
    /// 5: a waiting message, and those behind it, are not counted.
    WaitingNotCounted,
    /// 5: every device's completions are polled on while its messages wait.
    PollOn,
    /// 6: a DEL that fails means "already matched".
    FailedDelMeansMatched,
    /// 9: recalling goes newest first.
    RecallNewestFirst,
    /// 9: no newer overlapping receive is added while older ones are recalled.
    NoAddWhileRecalling,
}

impl Clause {
    /// All of them, in the order of the rules.
    pub const ALL: [Self; 15] = [
        Self::BlocksUntilDelPolled,
        Self::RecalledBlocks,
        Self::CountDecided,
        Self::CountBehindDels,
        Self::BufferBudget,
        Self::TakesDespiteDel,
        Self::SignalledDel,
        Self::NeverPassesOver,
        Self::ClaimantBeforeCancel,
        Self::LaterOfSourceWait,
        Self::WaitingNotCounted,
        Self::PollOn,
        Self::FailedDelMeansMatched,
        Self::RecallNewestFirst,
        Self::NoAddWhileRecalling,
    ];
}

/// The rules in force.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Rules {
    #[cfg(feature = "ablation")]
    dropped: Option<Clause>,
}

impl Rules {
    /// All but one.
    #[cfg(feature = "ablation")]
    #[must_use]
    pub const fn without(clause: Clause) -> Self {
        Self { dropped: Some(clause) }
    }

    /// Whether a clause holds.
    #[inline]
    #[must_use]
    #[cfg_attr(
        not(feature = "ablation"),
        expect(clippy::unused_self, reason = "true of every build but the model's")
    )]
    pub(crate) fn hold(self, clause: Clause) -> bool {
        #[cfg(feature = "ablation")]
        {
            self.dropped != Some(clause)
        }
        #[cfg(not(feature = "ablation"))]
        {
            let _ = clause;
            true
        }
    }
}
