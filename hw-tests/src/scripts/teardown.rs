//! TM-CONTRACT 13: QPs that fail, and taking everything down.

use crate::script::{
    Advance, Bytes, EBUSY, EINVAL, Expected, Message, Operation, Script, Setup, Step, post, refused,
};

pub(super) fn scripts() -> Vec<Script> {
    vec![in_order(), with_entries(), busy(), tags_outlive_a_qp(), a_new_qp(), half_received(), taken_back()]
}

fn two_senders() -> Setup {
    Setup { senders: 2, ..Setup::default() }
}

fn added(operations: &[Operation], receives: &[u32]) -> Vec<Step> {
    vec![
        post(operations.to_vec()),
        Step::Completions(receives.iter().map(|receive| Expected::added(*receive)).collect()),
    ]
}

fn in_order() -> Script {
    let steps = vec![Step::DestroyQp(0), Step::DestroySrq(0)];
    Script::new("teardown.qps_then_the_srq_succeeds", "13", steps)
}

fn with_entries() -> Script {
    let mut steps = added(&[Operation::add(1, 1), Operation::add(2, 2)], &[1, 2]);
    steps.extend([post([Operation::del(1)]), Step::Settle, Step::DestroyQp(0), Step::DestroySrq(0)]);
    Script::new("teardown.with_entries_and_unpolled_completions_succeeds", "13", steps)
}

/// Refused, but the command QP is gone: the SRQ lives on without list operations.
fn busy() -> Script {
    let (message, stray) = (Message::eager(1, 8), Message::eager(9, 8));
    let mut steps = added(&[Operation::add(1, 1)], &[1]);
    steps.extend([
        Step::DestroySrq(EBUSY),
        refused([Operation::sync(0), Operation::sync(0)], EINVAL, 0),
        refused([Operation::add(2, 2)], EINVAL, 0),
        Step::Send(message.clone()),
        Step::Send(stray.clone()),
        Step::Completions(vec![Expected::matched(1, &message), Expected::unexpected(&stray)]),
        Step::DestroySrq(EBUSY),
        Step::DestroyQp(0),
        Step::DestroySrq(0),
    ]);
    Script::new("teardown.of_a_busy_srq_fails_and_takes_its_command_queue", "13", steps)
}

fn tags_outlive_a_qp() -> Script {
    let message = Message::eager(1, 8).from(1);
    let mut steps = added(&[Operation::add(1, 1), Operation::add(2, 2)], &[1, 2]);
    steps.extend([
        Step::FailQp(0),
        Step::Completions(vec![]),
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::matched(1, &message)]),
        post([Operation::del(2)]),
        Step::Completions(vec![Expected::deleted(2)]),
    ]);
    Script::new("teardown.entries_outlive_a_failed_qp", "13", steps).on(two_senders())
}

fn a_new_qp() -> Script {
    let message = Message::eager(1, 300).from(1);
    let mut steps = added(&[Operation::add(1, 1)], &[1]);
    steps.extend([
        Step::DestroyQp(0),
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::consumed(1, &message), Expected::data(1, &message)]),
    ]);
    Script::new("teardown.other_qps_go_on_when_one_is_destroyed", "13", steps).on(two_senders())
}

/// The rest of a message will not come: its entry is completed as cancelled.
fn half_received() -> Script {
    let message = Message::eager(1, 600);
    let mut steps = added(&[Operation::add(1, 1)], &[1]);
    let cancelled = Expected {
        opcode: None,
        bytes: Bytes::Any,
        tm_info: None,
        byte_len: None,
        ..Expected::handed_back(1, &message)
    };
    steps.extend([
        Step::Send(message.clone()),
        Step::Advance(Advance::Packet(0)),
        Step::Advance(Advance::Packet(0)),
        Step::FailQp(0),
        Step::Completions(vec![Expected::consumed(1, &message), cancelled]),
    ]);
    Script::new("teardown.a_half_received_message_is_cancelled", "13", steps).stepped().assuming("A10")
}

/// What was taken back is not written to.
fn taken_back() -> Script {
    let message = Message::eager(1, 600);
    let mut steps = added(&[Operation::add(1, 1)], &[1]);
    steps.extend([
        post([Operation::del(1)]),
        Step::Completions(vec![Expected::deleted(1)]),
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::unexpected(&message)]),
        Step::Buffer(1, vec![]),
    ]);
    Script::new("teardown.a_buffer_taken_back_is_not_written", "13", steps)
}
