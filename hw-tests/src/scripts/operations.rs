//! TM-CONTRACT 6: what list operations take, and what they answer.

use crate::script::{
    Count, EINVAL, ENOMEM, Expected, Message, Operation, Script, Setup, Step, post, refused,
};

pub(super) fn scripts() -> Vec<Script> {
    vec![
        unknown_opcode(),
        bad_in_the_middle(),
        no_tag_in_the_middle(),
        no_slot_in_the_middle(),
        signalled_or_not(),
        several_segments(),
        no_segment("operations.add_of_no_segment_is_an_empty_buffer", Operation::add(1, 1).of_segments(0)),
        no_segment(
            "operations.add_of_an_empty_segment_is_an_empty_buffer",
            Operation::add(1, 1).of_length(0),
        ),
        unflagged_count(),
        count_on_any_opcode(),
        many_cancels(),
    ]
}

fn unknown_opcode() -> Script {
    let steps = vec![refused([Operation::unknown(9)], EINVAL, 0), Step::Completions(vec![])];
    Script::new("operations.unknown_opcode_is_refused", "6", steps)
}

fn bad_in_the_middle() -> Script {
    let list = [Operation::add(1, 1), Operation::sync(0), Operation::unknown(9), Operation::add(2, 2)];
    let steps =
        vec![refused(list, EINVAL, 2), Step::Completions(vec![Expected::added(1), Expected::synced()])];
    Script::new("operations.before_a_bad_one_are_posted_and_complete", "6", steps)
}

fn no_tag_in_the_middle() -> Script {
    let list = [Operation::add(0, 1), Operation::add(1, 2), Operation::add(2, 3), Operation::sync(0)];
    let steps =
        vec![refused(list, ENOMEM, 2), Step::Completions(vec![Expected::added(0), Expected::added(1)])];
    let setup = Setup { tags: 2, ..Setup::default() };
    Script::new("operations.without_a_free_tag_are_refused_with_enomem", "6", steps).on(setup)
}

fn no_slot_in_the_middle() -> Script {
    let list = [Operation::sync(0), Operation::add(1, 1), Operation::sync(0)];
    let steps =
        vec![refused(list, ENOMEM, 2), Step::Completions(vec![Expected::synced(), Expected::added(1)])];
    let setup = Setup { operations: 2, ..Setup::default() };
    Script::new("operations.without_a_slot_are_refused_with_enomem_too", "6", steps).on(setup)
}

fn signalled_or_not() -> Script {
    let list = [
        Operation::add(1, 1).unsignalled(),
        Operation::add(2, 2),
        Operation::del(2).unsignalled(),
        Operation::sync(0).unsignalled(),
        Operation::sync(0),
    ];
    let message = Message::eager(1, 8);
    let steps = vec![
        post([list[0], list[1]]),
        post([list[2], list[3], list[4]]),
        Step::Completions(vec![Expected::added(2), Expected::synced()]),
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::matched(1, &message)]),
    ];
    Script::new("operations.only_signalled_ones_complete", "6", steps)
}

/// Only the first segment counts: what fits into both together does not fit.
fn several_segments() -> Script {
    let message = Message::eager(1, 64);
    let longer = Message::rendezvous(2, 96);
    let steps = vec![
        post([Operation::add(1, 1).of_segments(2).of_length(64)]),
        Step::Completions(vec![Expected::added(1)]),
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::matched(1, &message)]),
        Step::Buffer(2, vec![]),
        post([Operation::add(3, 2).of_segments(2).of_length(64)]),
        Step::Completions(vec![Expected::added(3)]),
        Step::Send(longer.clone()),
        Step::Completions(vec![Expected::handed_back(3, &longer)]),
        Step::Buffer(4, vec![]),
    ];
    Script::new("operations.of_an_add_only_the_first_segment_is_used", "6", steps).assuming("A10")
}

fn no_segment(name: &'static str, add: Operation) -> Script {
    let message = Message::eager(1, 0);
    let steps = vec![
        post([add]),
        Step::Completions(vec![Expected::added(1)]),
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::matched(1, &message)]),
        Step::Buffer(1, vec![]),
    ];
    Script::new(name, "6", steps)
}

/// Without the flag, a SYNC is a no-op.
fn unflagged_count() -> Script {
    let (stray, message) = (Message::eager(9, 8), Message::eager(1, 8));
    let steps = vec![
        Step::Send(stray.clone()),
        Step::Completions(vec![Expected::unexpected(&stray)]),
        post([Operation::add(1, 1).counting(0)]),
        post([Operation::sync(0).with(Count::Unflagged(1))]),
        Step::Completions(vec![Expected::added(1).at_phase(1).asking(), Expected::synced().at_phase(1)]),
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::unexpected(&message)]),
    ];
    Script::new("operations.without_the_flag_the_count_is_ignored", "6", steps)
}

/// ADD, DEL and SYNC all carry a count; an entry added with a stale one is woken by each.
fn count_on_any_opcode() -> Script {
    let stray = Message::eager(99, 8);
    let mut steps = Vec::new();
    for (round, waker) in [(1, Operation::sync(0)), (2, Operation::del(9)), (3, Operation::add(8, 80))] {
        let (receive, message) = (round, Message::eager(u64::from(round), 8));
        let woken = match round {
            1 => Expected::synced(),
            2 => Expected::deleted(9).asking(),
            _ => Expected::added(8),
        };
        if round == 2 {
            steps.push(post([Operation::add(9, 90).with(Count::Polled)]));
            steps.push(Step::Completions(vec![Expected::added(9)]));
        }
        steps.extend([
            Step::Send(stray.clone()),
            Step::Completions(vec![Expected::unexpected(&stray)]),
            post([Operation::add(receive, u64::from(round)).counting(round - 1)]),
            Step::Completions(vec![Expected::added(receive).asking()]),
            post([waker.with(Count::Polled)]),
            Step::Completions(vec![woken]),
            Step::Send(message.clone()),
            Step::Completions(vec![Expected::matched(receive, &message)]),
        ]);
    }
    Script::new("operations.of_every_opcode_carry_a_count", "6", steps).assuming("A1")
}

/// 10,000 posts and cancels against a list of 4: all tags and slots return.
fn many_cancels() -> Script {
    let receives = [0, 1, 2, 3];
    let messages = receives.map(|receive| Message::eager(u64::from(receive), 8));
    let steps = vec![
        Step::Repeat(
            2_500,
            vec![
                post(receives.map(|receive| Operation::add(receive, u64::from(receive)))),
                post(receives.map(Operation::del)),
                Step::Completions(
                    receives
                        .iter()
                        .map(|receive| Expected::added(*receive))
                        .chain(receives.iter().map(|receive| Expected::deleted(*receive)))
                        .collect(),
                ),
            ],
        ),
        post(receives.map(|receive| Operation::add(receive, u64::from(receive)))),
        Step::Completions(receives.iter().map(|receive| Expected::added(*receive)).collect()),
        refused([Operation::add(5, 5)], ENOMEM, 0),
        Step::Send(messages[3].clone()),
        Step::Send(messages[0].clone()),
        Step::Completions(vec![Expected::matched(3, &messages[3]), Expected::matched(0, &messages[0])]),
        post([Operation::add(5, 5), Operation::add(6, 6)]),
        Step::Completions(vec![Expected::added(5), Expected::added(6)]),
    ];
    let setup = Setup { tags: 4, operations: 8, ..Setup::default() };
    Script::new("operations.ten_thousand_posts_and_cancels_lose_nothing", "6.1", steps).on(setup)
}
