//! Each clause of the offload rules is needed: without it some schedule goes wrong, with all of them none does.
//!
//! `cargo test -p tagmatch-sim --features ablation --test ablation`
#![cfg(feature = "ablation")]

use std::sync::Arc;

use tagmatch::device::soft::Step;
use tagmatch::engine::{CancelOutcome, Config, End, Engine, Kind, Posting, Receive};
use tagmatch::ids::{DeviceId, PeerId, Tag};
use tagmatch::offload::{Clause, Rules};
use tagmatch::seam::{
    Buffer, Capabilities, Command, Event, EventSink as _, Match, MatchStage, Operation, OperationDone,
};
use tagmatch_sim::explore::{exhaust, shortest};
use tagmatch_sim::schedules::{SCHEDULES_OF_A_PROGRAM, program, run};
use tagmatch_sim::scopes;
use tagmatch_sim::world::scope::{Message, Path, Scope, any};
use tagmatch_sim::world::{Action, Watch, World, Wrong};

const STATES_MAX: u64 = 2_000_000;

/// Shown by a scope of [`scopes::for_clause`], all schedules of it.
const BY_SCOPE: [Clause; 12] = [
    Clause::BlocksUntilDelPolled,
    Clause::CountDecided,
    Clause::CountBehindDels,
    Clause::TakesDespiteDel,
    Clause::SignalledDel,
    Clause::NeverPassesOver,
    Clause::ClaimantBeforeCancel,
    Clause::LaterOfSourceWait,
    Clause::WaitingNotCounted,
    Clause::PollOn,
    Clause::RecallNewestFirst,
    Clause::NoAddWhileRecalling,
];

/// Shown by one schedule written by hand, below.
const BY_HAND: [Clause; 2] = [Clause::BufferBudget, Clause::FailedDelMeansMatched];

/// Not shown: see docs/ordering.md.
const NOT_SHOWN: [Clause; 1] = [Clause::RecalledBlocks];

#[test]
fn each_clause_is_shown_or_named_as_not_shown() {
    for clause in Clause::ALL {
        let times = [&BY_SCOPE[..], &BY_HAND, &NOT_SHOWN].concat().iter().filter(|it| **it == clause).count();
        assert_eq!(times, 1, "{clause:?}");
    }
}

#[test]
fn without_any_of_these_clauses_some_schedule_goes_wrong_and_with_all_of_them_none() {
    for clause in BY_SCOPE {
        let scope = scopes::for_clause(clause).expect("a scope for it");
        let with = exhaust(&scope, STATES_MAX);
        assert!(with.is_complete && with.wrong.is_none(), "{clause:?}: {with}");
        let dropped = scope.with_rules(Rules::without(clause));
        let without = exhaust(&dropped, STATES_MAX);
        assert!(without.wrong.is_some(), "without {clause:?} nothing goes wrong in {}", dropped.name);
        let Some(counterexample) = shortest(&dropped, 1_000_000) else { panic!("{clause:?}: {without}") };
        println!("without {clause:?}, {}:\n{counterexample}\n", dropped.name);
    }
}

#[test]
fn nothing_explored_needs_the_clause_that_is_not_shown() {
    let mut states = 0;
    for scope in scopes::all() {
        let explored = exhaust(&scope.with_rules(Rules::without(Clause::RecalledBlocks)), STATES_MAX);
        assert!(explored.wrong.is_none() && explored.is_complete, "now it is shown: {explored}");
        states += explored.states;
    }
    let schedules = 20_000;
    for seed in 0..schedules {
        let program =
            program(seed / SCHEDULES_OF_A_PROGRAM).with_rules(Rules::without(Clause::RecalledBlocks));
        if let Err(failed) = run(&Arc::new(program), seed, true) {
            panic!("now it is shown, seed {seed}: {failed}");
        }
    }
    println!("without RecalledBlocks: nothing wrong in {states} states and {schedules} schedules");
}

/// A device takes an ADD from its queue only after a whole turn of its counter: the ADD's count looks equal.
fn whole_turn(rules: Rules) -> Result<bool, Wrong> {
    const TURN: u32 = 1 << 16;
    let mut scope = Scope::new("a whole turn").path(Path::matching(2)).post(any(0xa, 0)).with_rules(rules);
    scope.counters_start = 0;
    scope.messages.push(Message::eager(0, 0xa, 0));
    scope.messages.extend((1..TURN).map(|_| Message::eager(1, 0xb, 0)));
    scope.messages.push(Message::eager(0, 0xa, 0));
    let mut world = World::new(&Arc::new(scope), Watch { unmonitored: true, ..Watch::default() })?;
    let step = |step| Action::Step(0, step);
    world.apply(step(Step::Accept(PeerId(0))))?;
    world.apply(Action::User(0))?;
    world.apply(Action::Poll(0))?;
    let (mut actions, mut is_starved) = (Vec::new(), false);
    for _ in 1..TURN {
        world.actions(&mut actions);
        let accept = step(Step::Accept(PeerId(1)));
        if !actions.contains(&accept) {
            is_starved = true;
            break;
        }
        world.apply(accept)?;
        world.apply(Action::Poll(0))?;
    }
    // Now the ADD, and a message that it fits; then everything else.
    world.apply(step(Step::Command))?;
    world.apply(step(Step::Accept(PeerId(0))))?;
    loop {
        world.actions(&mut actions);
        let Some(&action) = actions.first() else { break };
        world.apply(action)?;
    }
    world.check_quiet()?;
    Ok(is_starved)
}

#[test]
fn a_device_that_sleeps_for_a_whole_turn_of_its_counter_runs_out_of_buffers_first() {
    assert_eq!(whole_turn(Rules::default()), Ok(true));
    let wrong = whole_turn(Rules::without(Clause::BufferBudget)).expect_err("its count must look equal");
    println!("without BufferBudget: {wrong}");
    assert!(matches!(wrong, Wrong::Fault(_) | Wrong::Completion(_)), "{wrong}");
}

/// A device that tells the failure of a DEL before the match which was the reason.
fn failed_del_first(rules: Rules) -> (Vec<End>, bool) {
    const NIC: DeviceId = DeviceId(0);
    let mut engine = Engine::new(Config { rules, silent_adds_max: 0, ..Config::default() });
    let capabilities = Capabilities {
        tags: 1,
        command_slots: 8,
        completions: 256,
        unexpected_buffers: 33,
        eager_limit: 64,
        buffer_length_max: 1 << 20,
        ..Capabilities::default()
    };
    engine.add_device(capabilities).expect("a sane device");
    let receive = Receive { pattern: any(0xa, 0), buffer: Buffer::new(0, 64), context: 0, kind: Kind::Once };
    let id = match engine.post(&receive) {
        Posting::Queued(id) => Some(id),
        Posting::Matched(_) | Posting::Placed(_) => None,
    };
    let id = id.expect("nothing is unexpected");
    let commands = engine.poll_commands(NIC).to_vec();
    engine.handle_submitted(NIC, commands.len());
    let added = commands.iter().find_map(|command| {
        let Command::Add { handle, .. } = *command else { return None };
        Some(handle)
    });
    let handle = added.expect("it goes down");
    assert_eq!(engine.cancel(id), CancelOutcome::Pending);
    let commands = engine.poll_commands(NIC).len();
    engine.handle_submitted(NIC, commands);
    let done = |operation, success| {
        Event::Operation(OperationDone { operation, success, phase: 0, sync_requested: false })
    };
    engine.handle_event(NIC, &done(Operation::Add(handle), true));
    engine.handle_event(NIC, &done(Operation::Del(handle), false));
    engine.handle_event(
        NIC,
        &Event::Matched(Match {
            handle,
            source: PeerId(0),
            tag: Tag(0xa),
            app_ctx: 0,
            length: 8,
            immediate: None,
            stage: MatchStage::Complete,
            released: true,
        }),
    );
    let ends = std::iter::from_fn(|| engine.poll_completion()).map(|completion| completion.end).collect();
    (ends, engine.poll_fault().is_some())
}

#[test]
fn a_del_that_fails_before_its_match_is_told_is_no_cancel() {
    let (ends, is_fault) = failed_del_first(Rules::default());
    assert!(matches!(ends[..], [End::Received(_)]) && !is_fault, "{ends:?}");
    let (ends, is_fault) = failed_del_first(Rules::without(Clause::FailedDelMeansMatched));
    assert!(matches!(ends[..], [End::Cancelled]) && is_fault, "the message is lost: {ends:?}");
}
