//! The life of a tracked receive, from post until neither the user nor a device knows it any more.
//!
//! ```text
//!            Add               MatchWhole ─────────────┐
//!  Software ────► Listed ──────────────────────────────┤
//!      ▲            │  │ MatchBegun                     ▼
//!      │     Recall │  ├──────────► Matched ── Data ─► Gone   (left to come: completions, Released)
//!      │            ▼  │                 ▲             ▲
//!      └───────── Recalling ─ MatchBegun ┘             │
//!     GivenBack     │  │ MatchWhole, TakenBack ────────┤
//!                   │  └ Use                           │
//!                   ▼                                  │
//!      Listed ──► Used ── DelDone ─────────────────────┘
//! ```
//!
//! Not here: what is done on a transition (that is `offload` and `engine`).

/// Where a tracked receive is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// Posted, and in no NIC.
    Software,
    /// Posted, and in a NIC's list: its ADD is queued, under way or done.
    Listed,
    /// Posted, and its DEL is queued or under way; the NIC may have matched it before that.
    Recalling,
    /// No longer posted: software used it for a message that the same NIC called unexpected. Its DEL must succeed.
    Used,
    /// No longer posted: the NIC matched it and its data is to come.
    Matched,
    /// No longer posted, and nothing left to decide.
    Gone,
}

/// What happens to a tracked receive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// An ADD is queued.
    Add,
    /// A DEL is queued because the receive is wanted back: a cancel, a message of another path, giving up.
    Recall,
    /// A message that the same NIC called unexpected takes it; its DEL is queued, or was.
    Use,
    /// The NIC matched it, all data placed.
    MatchWhole,
    /// The NIC matched it, data to come.
    MatchBegun,
    /// Its data is complete, or will never be.
    Data,
    /// Its DEL succeeded, and a message or a cancel takes it.
    TakenBack,
    /// Its DEL succeeded, and nobody takes it: it stays posted.
    GivenBack,
    /// The DEL of a used one succeeded.
    DelDone,
    /// Matched or cancelled in software.
    Leave,
    /// The device failed: it holds nothing any more.
    Fail,
}

impl Place {
    /// All places.
    pub const ALL: [Self; 6] =
        [Self::Software, Self::Listed, Self::Recalling, Self::Used, Self::Matched, Self::Gone];

    /// The place after a step; `None` where the step is not expected there.
    #[must_use]
    #[inline(always)]
    pub const fn after(self, step: Step) -> Option<Self> {
        Some(match (self, step) {
            (Self::Software, Step::Add) => Self::Listed,
            (Self::Listed | Self::Recalling, Step::Recall) => Self::Recalling,
            (Self::Listed | Self::Recalling, Step::Use) => Self::Used,
            (Self::Listed | Self::Recalling, Step::MatchBegun) => Self::Matched,
            (Self::Listed | Self::Recalling, Step::MatchWhole)
            | (Self::Matched, Step::Data | Step::Fail)
            | (Self::Recalling, Step::TakenBack)
            | (Self::Used, Step::DelDone | Step::Fail)
            | (Self::Software, Step::Leave)
            | (Self::Gone, Step::Fail) => Self::Gone,
            (Self::Recalling, Step::GivenBack) | (Self::Listed, Step::Fail) => Self::Software,
            _ => return None,
        })
    }

    /// Whether the receive is still on the posted list.
    #[must_use]
    #[inline]
    pub const fn is_posted(self) -> bool {
        matches!(self, Self::Software | Self::Listed | Self::Recalling)
    }

    /// Whether it is posted and a NIC has it, so that software may not simply take it.
    #[must_use]
    #[inline]
    pub const fn is_in_nic(self) -> bool {
        matches!(self, Self::Listed | Self::Recalling)
    }
}

impl Step {
    /// All steps.
    pub const ALL: [Self; 11] = [
        Self::Add,
        Self::Recall,
        Self::Use,
        Self::MatchWhole,
        Self::MatchBegun,
        Self::Data,
        Self::TakenBack,
        Self::GivenBack,
        Self::DelDone,
        Self::Leave,
        Self::Fail,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The complete table. A change of behaviour shows here.
    const TABLE: &str = "\
Software:  Add>Listed Leave>Gone
Listed:    Recall>Recalling Use>Used MatchWhole>Gone MatchBegun>Matched Fail>Software
Recalling: Recall>Recalling Use>Used MatchWhole>Gone MatchBegun>Matched TakenBack>Gone GivenBack>Software
Used:      DelDone>Gone Fail>Gone
Matched:   Data>Gone Fail>Gone
Gone:      Fail>Gone
";

    #[test]
    fn every_place_and_step_is_as_the_table_says() {
        let mut table = String::new();
        for place in Place::ALL {
            table += &format!("{:<10}", format!("{place:?}:"));
            for step in Step::ALL {
                if let Some(after) = place.after(step) {
                    table += &format!(" {step:?}>{after:?}");
                }
            }
            table += "\n";
        }
        assert_eq!(table, TABLE);
    }
}
