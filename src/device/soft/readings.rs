//! The other readings of the doubtful points by name: what `tagmatch hca --switch` and `TAGMATCH_HCA_OPTIONS` take.
//!
//! Not here: what they do ([`super::switches`]), and the points themselves (docs/tm-srq.md).

use super::switches::{
    Activation, AppendActivates, ConsumedLength, CountAt, CountOrder, EmptyRendezvous, ExpectedOrder,
    FewBuffers, FinOrder, HandBack, ImmediateOn, Malformed, NoOffload, OtherPort, OutOfSync, ReadFailure,
    RoCe, SharedBuffer, Switches, TooLong, UnmaskedTag,
};

/// The other reading of a doubtful point.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The point: A1 to A19.
    pub point: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What a device does that reads the point so.
    pub meaning: &'static str,
    /// Have a device read it so.
    pub change: fn(&mut Switches),
}

impl Reading {
    const fn new(
        point: &'static str,
        name: &'static str,
        change: fn(&mut Switches),
        meaning: &'static str,
    ) -> Self {
        Self { point, name, meaning, change }
    }

    /// The one of a `POINT=READING`.
    ///
    /// # Errors
    /// There is none: a text that lists those that there are.
    pub fn find(text: &str) -> Result<&'static Self, String> {
        let (point, name) = text.split_once('=').unwrap_or((text, ""));
        let of_point: Vec<_> = READINGS.iter().filter(|reading| reading.point == point).collect();
        if let Some(reading) = of_point.iter().find(|reading| reading.name == name) {
            return Ok(reading);
        }
        let list = |readings: &[&Self]| {
            let texts: Vec<String> = readings.iter().map(|reading| reading.text()).collect();
            texts.join(", ")
        };
        if of_point.is_empty() {
            let all: Vec<_> = READINGS.iter().collect();
            return Err(format!("{point:?} is no point; there are {}", list(&all)));
        }
        Err(format!("{point} cannot be {name:?}; there is {}", list(&of_point)))
    }

    /// As it is said: `POINT=READING`.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}={}", self.point, self.name)
    }
}

/// All of them, by point.
pub const READINGS: &[Reading] = &[
    Reading::new(
        "A1",
        "only-at-append",
        |to| to.activation = Activation::OnlyAtAppend,
        "an entry added out of sync never becomes active: it must be removed and added again",
    ),
    Reading::new(
        "A2",
        "nothing-matches",
        |to| to.out_of_sync = OutOfSync::NothingMatches,
        "out of sync nothing matches, active entries neither",
    ),
    Reading::new(
        "A3",
        "after-change",
        |to| to.count_order = CountOrder::AfterChange,
        "a command's count takes effect after its change of the list",
    ),
    Reading::new(
        "A3",
        "not-atomic",
        |to| to.count_order = CountOrder::BeforeChangeNotAtomic,
        "a command's count takes effect before its change of the list, and a message may come in between",
    ),
    Reading::new(
        "A4",
        "itself",
        |to| to.append_activates = AppendActivates::Itself,
        "an equal count on an ADD activates the new entry alone",
    ),
    Reading::new(
        "A5",
        "truncate",
        |to| to.too_long = TooLong::Truncate,
        "of a payload longer than the entry's buffer what fits is written",
    ),
    Reading::new(
        "A6",
        "wait-always",
        |to| to.few_buffers = FewBuffers::WaitAlways,
        "no message is accepted whenever fewer than 33 buffers are posted",
    ),
    Reading::new(
        "A6",
        "work",
        |to| to.few_buffers = FewBuffers::Work,
        "the number of buffers does not matter",
    ),
    Reading::new(
        "A7",
        "masked",
        |to| to.unmasked_tag = UnmaskedTag::Masked,
        "the device masks the entry's tag",
    ),
    Reading::new(
        "A8",
        "unexpected",
        |to| to.malformed = Malformed::Unexpected,
        "a malformed message is delivered and counted like an unexpected one",
    ),
    Reading::new(
        "A9",
        "unexpected",
        |to| to.no_offload = NoOffload::Unexpected,
        "a rendezvous is not matched where it is not offloaded, and counts as unexpected",
    ),
    Reading::new(
        "A10",
        "then-expected",
        |to| to.hand_back = HandBack::ThenExpected,
        "a rendezvous is handed back by two completions: CONSUMED_SW_RNDV, then EXPECTED",
    ),
    Reading::new(
        "A10",
        "then-canceled",
        |to| to.hand_back = HandBack::ThenCanceled,
        "by CONSUMED_SW_RNDV, then MSG_COMPLETION_CANCELED",
    ),
    Reading::new(
        "A11",
        "arbitrary",
        |to| to.consumed_length = ConsumedLength::Arbitrary,
        "the length of a match whose data follows is any number",
    ),
    Reading::new(
        "A12",
        "as-matched",
        |to| to.expected_order = ExpectedOrder::AsMatched,
        "data completions come in the order of their matches",
    ),
    Reading::new(
        "A12",
        "fin-after",
        |to| to.fin_order = FinOrder::AfterExpected,
        "the receiver of a rendezvous is told before its sender",
    ),
    Reading::new(
        "A13",
        "device-error",
        |to| to.read_failure = ReadFailure::DeviceError,
        "where the device's own read fails, the whole SRQ fails",
    ),
    Reading::new(
        "A14",
        "refused",
        |to| to.other_port = OtherPort::Refused,
        "data QPs on another port than 1 are refused",
    ),
    Reading::new("A15", "works", |to| to.roce = RoCe::Works, "a TM-SRQ works on RoCE"),
    Reading::new(
        "A16",
        "handed-back",
        |to| to.empty_rendezvous = EmptyRendezvous::HandedBack,
        "a matched rendezvous of 0 bytes is handed back",
    ),
    Reading::new(
        "A17",
        "refused",
        |to| to.shared_buffer = SharedBuffer::Refused,
        "one buffer in two entries makes the device fail",
    ),
    Reading::new(
        "A18",
        "consumed",
        |to| to.immediate_on = ImmediateOn::Consumed,
        "the immediate of a message in several packets comes with its match",
    ),
    Reading::new(
        "A19",
        "last-packet",
        |to| to.count_at = CountAt::LastPacket,
        "a message of several packets is counted at its last one",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_changes_something() {
        for reading in READINGS {
            let mut changed = Switches::default();
            (reading.change)(&mut changed);
            assert_ne!(changed, Switches::default(), "{}", reading.text());
        }
    }

    #[test]
    fn a_point_or_a_reading_that_is_not_there_is_answered_with_those_that_are() {
        assert_eq!(Reading::find("A3=not-atomic").unwrap().name, "not-atomic");
        let wrong = |text| Reading::find(text).unwrap_err();
        assert_eq!(wrong("A3=yes"), "A3 cannot be \"yes\"; there is A3=after-change, A3=not-atomic");
        assert!(wrong("A20=yes").starts_with("\"A20\" is no point; there are A1=only-at-append, A2="));
    }
}
