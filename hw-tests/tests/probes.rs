//! Each probe finds what the model's switch is set to: on the description and through libmlx5 on the simulated HCA.
#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]

mod common;

use std::collections::BTreeSet;

use tagmatch::device::soft::Switches;
use tagmatch::device::soft::switches::{
    Activation, AppendActivates, ConsumedLength, CountAt, CountOrder, EmptyRendezvous, ExpectedOrder,
    FewBuffers, FinOrder, HandBack, ImmediateOn, Malformed, NoOffload, OtherPort, OutOfSync, ReadFailure,
    RoCe, SharedBuffer, TooLong, UnmaskedTag,
};
use tagmatch_hw_tests::port::TmDevice;
use tagmatch_hw_tests::probes::{self, Probe};
use tagmatch_hw_tests::soft_port::SoftTm;
use tagmatch_sim::hca::HcaConfig;

tagmatch_sim::hca_hooks!();

/// A point, what to change, and what the probe then says.
type Row = (&'static str, fn(&mut Switches), &'static str);

const ROWS: &[Row] = &[
    ("A1", |_| {}, "on-equal-report"),
    ("A1", |to| to.activation = Activation::OnlyAtAppend, "only-at-append"),
    ("A2", |_| {}, "active-match"),
    ("A2", |to| to.out_of_sync = OutOfSync::NothingMatches, "nothing-matches"),
    ("A3", |_| {}, "in-one-piece"),
    // Nobody can see whether the count comes before or after a change that is one piece with it.
    ("A3", |to| to.count_order = CountOrder::AfterChange, "in-one-piece"),
    ("A3", |to| to.count_order = CountOrder::BeforeChangeNotAtomic, "not-atomic"),
    ("A4", |_| {}, "all"),
    ("A4", |to| to.append_activates = AppendActivates::Itself, "itself"),
    ("A5", |_| {}, "error"),
    ("A5", |to| to.too_long = TooLong::Truncate, "truncate"),
    ("A6", |_| {}, "wait-at-start"),
    ("A6", |to| to.few_buffers = FewBuffers::WaitAlways, "wait-always"),
    ("A6", |to| to.few_buffers = FewBuffers::Work, "work"),
    ("A7", |_| {}, "never-matches"),
    ("A7", |to| to.unmasked_tag = UnmaskedTag::Masked, "masked"),
    ("A8", |_| {}, "no-tag"),
    ("A8", |to| to.malformed = Malformed::Unexpected, "unexpected"),
    ("A10", |_| {}, "one"),
    ("A10", |to| to.hand_back = HandBack::ThenExpected, "then-expected"),
    ("A10", |to| to.hand_back = HandBack::ThenCanceled, "then-canceled"),
    ("A11", |_| {}, "zero"),
    ("A11", |to| to.consumed_length = ConsumedLength::Arbitrary, "arbitrary"),
    ("A12", |_| {}, "any"),
    ("A12", |to| to.expected_order = ExpectedOrder::AsMatched, "as-matched"),
    ("A13", |_| {}, "qp-error"),
    ("A13", |to| to.read_failure = ReadFailure::DeviceError, "device-error"),
    ("A16", |_| {}, "completes"),
    ("A16", |to| to.empty_rendezvous = EmptyRendezvous::HandedBack, "handed-back"),
    ("A17", |_| {}, "allowed"),
    ("A17", |to| to.shared_buffer = SharedBuffer::Refused, "refused"),
    ("A18", |_| {}, "expected"),
    ("A19", |_| {}, "first-packet"),
    ("A19", |to| to.count_at = CountAt::LastPacket, "last-packet"),
];

/// What the driver hides: CONSUMED comes as a NO_PACKET, of which libmlx5 shows no immediate data.
const ROWS_OF_THE_DESCRIPTION: &[Row] = &[("A18", |to| to.immediate_on = ImmediateOn::Consumed, "consumed")];

/// Those that the description cannot tell: its reads are one step, and its QPs have no send queues.
const ROWS_OF_THE_DRIVER: &[Row] = &[
    ("A9", |_| {}, "software-rendezvous"),
    ("A9", |to| to.no_offload = NoOffload::Unexpected, "unexpected"),
    ("A18", |to| to.immediate_on = ImmediateOn::Consumed, "neither"),
    ("A12-FIN", |_| {}, "fin-before"),
    ("A12-FIN", |to| to.fin_order = FinOrder::AfterExpected, "fin-after"),
];

fn probe(point: &str) -> Probe {
    let found = probes::all().into_iter().find(|probe| probe.point == point);
    found.unwrap_or_else(|| panic!("there is no probe {point}"))
}

fn check(point: &str, device: &mut dyn TmDevice, expected: &str, wrong: &mut Vec<String>) {
    match probe(point).ask(device) {
        Ok(answer) if answer.reading == Ok(word(expected)) => {}
        Ok(answer) => {
            wrong.push(format!("{point}: {:?} and not {expected}: {:#?}", answer.reading, answer.seen))
        }
        Err(what) => wrong.push(format!("{point} and not {expected}: {what}")),
    }
}

/// The word, if a probe answers it at all.
fn word(word: &str) -> &'static str {
    probes::all()
        .iter()
        .flat_map(|probe| probe.readings.iter())
        .map(|(known, _)| *known)
        .find(|known| *known == word)
        .unwrap_or_else(|| panic!("no probe answers {word}"))
}

fn switches(change: fn(&mut Switches)) -> Switches {
    let mut switches = Switches::default();
    change(&mut switches);
    switches
}

#[test]
fn on_the_description_each_probe_finds_its_switch() {
    let mut wrong = Vec::new();
    for (point, change, expected) in ROWS.iter().chain(ROWS_OF_THE_DESCRIPTION) {
        let mut device = SoftTm { switches: switches(*change), ..SoftTm::default() };
        check(point, &mut device, expected, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn through_the_driver_each_probe_finds_its_switch() {
    let mut wrong = Vec::new();
    for (point, change, expected) in ROWS.iter().chain(ROWS_OF_THE_DRIVER) {
        let config = HcaConfig { switches: switches(*change), ..HcaConfig::default() };
        let (_control, mut device) = common::stepped(config);
        check(point, &mut device, expected, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn on_roce_creation_is_refused_unless_the_switch_says_that_it_works() {
    let mut wrong = Vec::new();
    for (roce, expected) in [(RoCe::Refused, "refused"), (RoCe::Works, "works")] {
        let switches = Switches { roce, ..Switches::default() };
        let config = HcaConfig { switches, ..HcaConfig::default() }.on_ethernet();
        let (_control, mut device) = common::stepped(config);
        check("A15", &mut device, expected, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn on_the_second_port_qps_work_unless_the_switch_says_that_they_do_not() {
    let mut wrong = Vec::new();
    for (other_port, expected) in [(OtherPort::Works, "works"), (OtherPort::Refused, "refused")] {
        let switches = Switches { other_port, ..Switches::default() };
        let config = HcaConfig { switches, ports: 2, ..HcaConfig::default() };
        let (_control, mut device) = common::stepped_on_port(config, 2);
        check("A14", &mut device, expected, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn there_is_a_probe_for_every_point_and_its_first_word_is_what_is_assumed() {
    let points: BTreeSet<_> = probes::all().iter().map(|probe| probe.point).collect();
    for number in 1..=19 {
        assert!(points.contains(format!("A{number}").as_str()), "there is no probe A{number}");
    }
    for (point, change, expected) in ROWS.iter().chain(ROWS_OF_THE_DRIVER) {
        let assumed = switches(*change) == Switches::default();
        let first = probe(point).readings.first().map(|(word, _)| *word);
        assert!(
            !assumed || first == Some(expected),
            "{point}: {expected} is assumed, but {first:?} comes first"
        );
    }
}
