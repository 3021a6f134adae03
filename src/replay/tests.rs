//! Replays of the recorded traces.

use super::*;
use crate::matching::{Config, Matcher, Naive};
use crate::traces::layout::{self, Layout};
use crate::traces::{Bundled, Counts, bundled};

fn read(bundle: &Bundled) -> Trace {
    bundle.read().unwrap_or_else(|error| panic!("{error}"))
}

fn over_naive(trace: &Trace) -> Report {
    run(trace, &mut Software::new(Naive::new(), trace.counts()))
}

#[test]
fn every_recorded_trace_replays_over_the_naive_matcher_as_expected() {
    for bundle in bundled() {
        let trace = read(bundle);
        let report = over_naive(&trace);
        assert!(report.is_exact(), "{}: {report:?}", trace.name);
        assert_eq!(report.checked, trace.steps.len() as u64);
    }
}

#[test]
fn every_recorded_trace_replays_over_the_matcher_as_expected_with_any_seed_and_layout() {
    for bundle in bundled() {
        let recorded = read(bundle);
        let in_tag =
            layout::apply(Layout::SourceInTag, recorded.clone()).unwrap_or_else(|error| panic!("{error}"));
        for trace in [recorded, in_tag] {
            for (hash_seed, dense_limit) in [(0, 16), (1, 0), (u64::MAX, 5)] {
                let matcher = Matcher::new(Config { hash_seed, dense_limit });
                let report = run(&trace, &mut Software::new(matcher, trace.counts()));
                assert!(report.is_exact(), "{}: {report:?}", trace.name);
            }
        }
    }
}

#[test]
fn the_source_in_the_tag_changes_no_result_of_any_recorded_trace() {
    for bundle in bundled() {
        let recorded = read(bundle);
        let trace =
            layout::apply(Layout::SourceInTag, recorded.clone()).unwrap_or_else(|error| panic!("{error}"));
        let report = over_naive(&trace);
        assert!(report.is_exact(), "{}: {report:?}", trace.name);
        let in_tag_already = recorded.header.value("mpi").is_some_and(|mpi| mpi.contains("ofi_tag_1"));
        assert_eq!(trace == recorded, in_tag_already, "{}", trace.name);
    }
}

fn small(events: &str) -> Trace {
    Trace::from_bytes("small", format!("# format: fi-tagged-trace 1\n{events}"))
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_wrong_expectation_is_counted_and_described() {
    let trace = small(
        "post 0 tag=1 ignore=0 src=any len=8\npost 1 tag=1 ignore=0 src=any len=8\n\
         arrive 0 tag=1 src=0 len=8\nmatch 1 0\n",
    );
    let report = over_naive(&trace);
    assert_eq!((report.events, report.checked, report.disagreements), (3, 3, 1));
    assert_eq!(
        report.first[0].to_string(),
        "line 4: arrive 0: expected receive 1 takes message 0, got receive 0 takes message 0"
    );
    assert!(!report.is_exact());
}

#[test]
fn a_match_that_was_not_expected_is_a_disagreement() {
    let trace = small("post 0 tag=1 ignore=0 src=any len=8\narrive 0 tag=1 src=0 len=8\n");
    let report = over_naive(&trace);
    assert_eq!(
        report.first[0].to_string(),
        "line 3: arrive 0: expected no match, got receive 0 takes message 0"
    );
}

#[test]
fn only_the_first_disagreements_are_kept_but_all_are_counted() {
    let mut events = String::new();
    for number in 0..20 {
        events += &format!("post {number} tag={number:x} ignore=0 src=any len=8\n");
    }
    for number in 0..20 {
        events += &format!("arrive {number} tag={number:x} src=0 len=8\n");
    }
    let report = over_naive(&small(&events));
    assert_eq!(report.disagreements, 20);
    assert_eq!(report.first.len(), Report::FIRST_MAX);
}

#[test]
fn peek_claim_cancel_and_late_are_replayed() {
    let trace = small(
        "arrive 0 tag=1 src=0 len=8\npeek 0 tag=1 ignore=0 src=any claim\nfound 0 0\n\
         peek 1 tag=1 ignore=0 src=any\nnone 1\nclaim 0 0 len=8\nmatch 0 0\n\
         post 1 tag=2 ignore=0 src=0 len=8\ncancel 1\ncancelled 1\n\
         post 2 tag=2 ignore=0 src=0 len=8\narrive 1 tag=2 src=0 len=0\nmatch 2 1\ncancel 2\nlate 2\n",
    );
    assert_eq!(over_naive(&trace), Report { events: 9, checked: 9, ..Report::default() });
}

/// Answers rightly until it breaks.
struct Breaks;

impl Target for Breaks {
    fn post(&mut self, _: ReceiveNumber, _: &Pattern, _: u64) -> Result<Option<MessageNumber>, Fault> {
        Ok(None)
    }
    fn arrive(&mut self, _: MessageNumber, _: &Envelope, _: u64) -> Result<Option<ReceiveNumber>, Fault> {
        Err(Fault::new("the device failed"))
    }
    fn peek(&mut self, _: PeekNumber, _: &Pattern, _: bool) -> Result<Option<MessageNumber>, Fault> {
        Ok(None)
    }
    fn claim(&mut self, _: ReceiveNumber, _: PeekNumber, _: u64) -> Result<Option<MessageNumber>, Fault> {
        Ok(None)
    }
    fn cancel(&mut self, _: ReceiveNumber) -> Result<bool, Fault> {
        Ok(true)
    }
    fn reset(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

#[test]
fn a_broken_target_ends_the_replay_and_is_named_with_its_line() {
    let trace = small(
        "post 0 tag=1 ignore=0 src=any len=8\narrive 0 tag=2 src=0 len=8\npost 1 tag=7 ignore=0 src=any len=8\n",
    );
    let report = run(&trace, &mut Breaks);
    assert_eq!(report.fault, Some((3, Fault::new("the device failed"))));
    assert_eq!((report.events, report.checked), (2, 1));
    assert!(!report.is_exact());
}

#[test]
fn an_unchecked_replay_gives_the_same_sum_over_equal_targets() {
    let trace = read(&bundled()[0]);
    let sums: Vec<_> =
        (0..2).map(|_| run_unchecked(&trace, &mut Software::new(Naive::new(), trace.counts()))).collect();
    assert_eq!(sums[0], sums[1]);
    assert!(sums[0].as_ref().is_ok_and(|&sum| sum > 0));
}

#[test]
fn made_up_traces_match_everything_and_depend_on_the_seed_alone() {
    use synthetic::{List, Masks, Mix, Order};

    for list in [List::Posted, List::Unexpected] {
        for order in [Order::Forward, Order::Reverse, Order::Random] {
            for masks in [Masks::Full, Masks::Partial, Masks::Four] {
                let mix = Mix { list, depth: 64, order, masks };
                let mut trace = mix.trace(1000, 7);
                assert_eq!(trace, mix.trace(1000, 7));
                let mut oracle = Software::new(Naive::new(), trace.counts());
                assert_eq!(record(&mut trace, &mut oracle), Ok(()));
                assert!(trace.steps.len() >= 1000);
                let matched = trace.steps.iter().filter(|step| matches!(step.expected, Outcome::Matched(..)));
                assert_eq!(matched.count() * 2, trace.steps.len(), "{}", trace.name);
                let deepest = trace.depths();
                assert_eq!(deepest.posted_max.max(deepest.unexpected_max), 64, "{}", trace.name);
                assert!(over_naive(&trace).is_exact());
            }
        }
    }
    let mix = Mix { list: List::Posted, depth: 64, order: Order::Random, masks: Masks::Full };
    assert_ne!(mix.trace(1000, 7), mix.trace(1000, 8));
}

#[test]
fn a_target_that_was_reset_replays_as_a_fresh_one() {
    let named = |name: &str| bundled().iter().find(|bundle| bundle.name.starts_with(name)).map(read);
    // The first of them ends with open receives, and has claims.
    let traces: Vec<_> =
        ["masterworker", "deepposted", "masterworker"].into_iter().filter_map(named).collect();
    assert_eq!(traces.len(), 3);
    let mut matcher = Software::new(Matcher::new(Config::default()), Counts::default());
    let mut naive = Software::new(Naive::new(), Counts::default());
    for trace in &traces {
        for target in [&mut matcher as &mut dyn Target, &mut naive] {
            assert!(run(trace, target).is_exact(), "{}", trace.name);
            assert_eq!(target.reset(), Ok(()));
        }
    }
}
