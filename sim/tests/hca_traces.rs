//! Every bundled trace through engine, libibverbs, libmlx5 and a simulated card: no disagreement with what the run
//! itself did, and every payload where it belongs.
//!
//! Needs libibverbs and libmlx5 (Debian: ibverbs-providers). The card is a model.

use std::sync::{Arc, Mutex};

use tagmatch::replay::verbs::{Drive as Driven, Outline, Verbs, VerbsSettings};
use tagmatch::replay::{self, Schedule};
use tagmatch::traces::layout::{self, Layout};
use tagmatch::traces::{Event, Outcome, Trace, bundled};
use tagmatch_sim::hca::HcaConfig;
use tagmatch_sim::hca_abi::{Drive, HcaControl};

tagmatch_sim::hca_hooks!();

/// The card of a test, moved on by the replay.
#[derive(Clone, Debug)]
struct Card(Arc<HcaControl>);

impl Card {
    fn new(tags: u32) -> Self {
        let log_tag_list = u8::try_from(u32::BITS - tags.leading_zeros()).expect("a logarithm");
        let mut config = HcaConfig { log_tag_list, ..HcaConfig::default() };
        // The driver cannot make a command queue pair of 16,384 requests, which is what a long list asks for.
        config.limits.tag_operations = 8192;
        Self(Arc::new(HcaControl::new(config, Drive::Steps).expect("a directory for sysfs can be written")))
    }

    /// A replay target over this card.
    fn target(&self, trace: &Trace, tags: u32, schedule: Schedule, contexts: u32) -> Verbs {
        let device = Some(self.0.name().to_owned());
        let settings = VerbsSettings { device, tags, contexts, schedule, seed: 1 };
        let target = Verbs::new(settings, Outline::of(trace), Box::new(self.clone()));
        target.expect("the card can be used")
    }
}

impl Driven for Card {
    fn is_driving(&self) -> bool {
        true
    }

    fn run(&mut self) -> bool {
        self.0.run(usize::MAX) > 0
    }

    fn step(&mut self, choice: u64) -> bool {
        let steps = self.0.steps();
        let place = choice.checked_rem(steps.len() as u64).unwrap_or(0);
        let step = usize::try_from(place).ok().and_then(|place| steps.get(place));
        step.is_some_and(|&step| self.0.step(step))
    }
}

/// What a replay showed.
struct Shown {
    in_hardware: u64,
    posted_before: u64,
    /// Receives that the list had no place for, or whose source the tag does not name.
    out_of_reach: u64,
}

fn replay(card: &Card, trace: &Trace, tags: u32, schedule: Schedule) -> Shown {
    let mut target = card.target(trace, tags, schedule, 3);
    if tags > 0 {
        assert_eq!(target.device().refusal(), None);
    }
    let report = replay::run(trace, &mut target);
    assert!(report.is_exact(), "{} {tags} tags {schedule:?}: {report:#?}", trace.short_name());
    assert_eq!(report.checked, trace.steps.len() as u64);
    let statistics = target.statistics();
    Shown {
        in_hardware: statistics.matched_by_device,
        posted_before: posted_before(trace),
        out_of_reach: statistics.ended(tagmatch::offload::Reason::DeviceFull)
            + statistics.ended(tagmatch::offload::Reason::Directed),
    }
}

/// Receives that were posted when their message arrived.
fn posted_before(trace: &Trace) -> u64 {
    let is_it = |step: &&tagmatch::traces::Step| {
        matches!((step.event, step.expected), (Event::Arrive { .. }, Outcome::Matched(..)))
    };
    trace.steps.iter().filter(is_it).count() as u64
}

fn by_tag(trace: Trace) -> Trace {
    layout::apply(Layout::SourceInTag, trace).expect("the bundled traces can be rewritten")
}

/// Every trace, on as many threads as the machine can take. Each has a card of its own.
fn for_every_trace(check: impl Fn(&Trace) + Sync) {
    let next = Mutex::new(bundled().iter());
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                loop {
                    let bundle = next.lock().expect("no thread failed").next();
                    let Some(bundle) = bundle else { break };
                    check(&bundle.read().expect("the bundled traces are good"));
                }
            });
        }
    });
}

fn at_random_over_a_list_of(tags: u32) {
    for_every_trace(|trace| {
        let shown = replay(&Card::new(tags), &by_tag(trace.clone()), tags, Schedule::Random(tags.into()));
        // Where every message came first there was nothing to match.
        let nothing = shown.in_hardware == 0 && shown.posted_before > 10;
        assert!(!nothing, "{}: the card matched nothing", trace.short_name());
    });
}

#[test]
fn every_trace_gives_its_results_through_a_list_of_2() {
    at_random_over_a_list_of(2);
}

#[test]
fn every_trace_gives_its_results_through_a_list_of_127() {
    at_random_over_a_list_of(127);
}

#[test]
fn every_trace_gives_its_results_through_a_list_of_1024_and_nine_of_ten_posted_receives_match_in_hardware() {
    let sums = Mutex::new((0, 0));
    for_every_trace(|trace| {
        let depths = trace.depths();
        let shown = replay(&Card::new(TAGS), &by_tag(trace.clone()), TAGS, Schedule::Prompt);
        let Shown { in_hardware, posted_before, out_of_reach } = shown;
        let within_reach = posted_before.saturating_sub(out_of_reach);
        assert!(
            in_hardware * 10 >= within_reach * 9,
            "{}: {in_hardware} of {within_reach}",
            trace.short_name()
        );
        // A list of 10,003 receives does not fit into 1,024 entries.
        if depths.posted_max <= TAGS as usize {
            let mut sums = sums.lock().expect("no thread failed");
            *sums = (sums.0 + in_hardware, sums.1 + posted_before);
        }
    });
    let (in_hardware, posted_before) = sums.into_inner().expect("no thread failed");
    assert!(posted_before > 50_000, "{posted_before} receives");
    assert!(in_hardware * 10 >= posted_before * 9, "{in_hardware} of {posted_before}");
}

#[test]
fn a_long_list_takes_nine_of_ten_receives_of_the_trace_that_posts_10_003() {
    let longest = bundled().iter().find(|bundled| bundled.name.starts_with("deepposted4"));
    let trace = by_tag(longest.expect("it is there").read().expect("the bundled traces are good"));
    // The rest waits for command slots: an entry keeps one for its DEL, and the driver has 8,192.
    let shown = replay(&Card::new(12_000), &trace, 12_000, Schedule::Prompt);
    assert!(shown.in_hardware * 10 >= shown.posted_before * 9, "{} in hardware", shown.in_hardware);
}

#[test]
fn every_trace_as_recorded_gives_its_results() {
    for_every_trace(|trace| {
        replay(&Card::new(TAGS), trace, TAGS, Schedule::Prompt);
    });
}

#[test]
fn every_trace_gives_its_results_without_tag_matching() {
    for_every_trace(|trace| {
        let shown = replay(&Card::new(0), trace, 0, Schedule::Prompt);
        assert_eq!(shown.in_hardware, 0);
    });
}

#[test]
fn long_messages_that_nobody_receives_are_waited_for_by_nobody() {
    let text = "# format: fi-tagged-trace 1\n\
        arrive 0 tag=1 src=0 len=100000\n\
        arrive 1 tag=2 src=1 len=100000\n\
        post 0 tag=2 ignore=0 src=any len=100000\nmatch 0 1\n\
        peek 0 tag=1 ignore=0 src=any claim\nfound 0 0\n\
        arrive 2 tag=3 src=1 len=9000\n";
    let trace = Trace::from_bytes("left", text.as_bytes()).expect("it is well-formed");
    for schedule in [Schedule::Prompt, Schedule::Random(1)] {
        replay(&Card::new(2), &trace, 2, schedule);
    }
}

/// Entries of the list in question.
const TAGS: u32 = 1024;
