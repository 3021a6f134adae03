//! TM-CONTRACT 14: rows that are only assumed. On a card, a probe asks instead.

use crate::script::{Bytes, Expected, Message, Operation, Script, Setup, Step, post, status};

pub(super) fn scripts() -> Vec<Script> {
    vec![
        too_long(),
        unmasked_tag(),
        short_for_its_opcode(),
        unknown_opcodes(),
        empty_rendezvous(),
        one_buffer_twice(),
        immediate_on_the_last(),
        immediate_on_rendezvous(),
        broken_rendezvous(),
    ]
}

fn added(operations: &[Operation], receives: &[u32]) -> Vec<Step> {
    vec![
        post(operations.to_vec()),
        Step::Completions(receives.iter().map(|receive| Expected::added(*receive)).collect()),
    ]
}

/// An error that names nothing usable, and a dead QP; other senders go on.
fn too_long() -> Script {
    let (long, other) = (Message::eager(1, 128), Message::eager(2, 16).from(1));
    let mut steps = added(&[Operation::add(1, 1).of_length(64), Operation::add(2, 2)], &[1, 2]);
    steps.extend([
        Step::Send(long),
        Step::Completions(vec![Expected::error(status::LOCAL_LENGTH_ERROR)]),
        Step::Buffer(1, vec![]),
        Step::Send(other.clone()),
        Step::Completions(vec![Expected::matched(2, &other)]),
    ]);
    Script::new("assumed.eager_too_long_is_an_error_on_its_qp", "14 A5", steps)
        .on(Setup { senders: 2, ..Setup::default() })
        .assuming("A5")
}

fn unmasked_tag() -> Script {
    let message = Message::eager(0x10, 8);
    let mut steps = added(&[Operation::add(1, 0x11).masked(0xf0)], &[1]);
    steps.extend([
        Step::Send(message.clone()),
        Step::Send(Message::eager(0x11, 8)),
        Step::Completions(vec![
            Expected::unexpected(&message),
            Expected::unexpected(&Message::eager(0x11, 8)),
        ]),
    ]);
    Script::new("assumed.a_tag_outside_its_mask_never_matches", "14 A7", steps).assuming("A7")
}

fn short_for_its_opcode() -> Script {
    let messages = [vec![3], vec![3; 15], vec![1; 16], vec![1; 31]].map(Message::raw);
    let mut steps = added(&[Operation::add(1, 0).masked(0)], &[1]);
    steps.extend(messages.iter().cloned().map(Step::Send));
    steps.push(Step::Completions(messages.iter().map(Expected::untagged).collect()));
    steps.extend([post([Operation::sync(0)]), Step::Completions(vec![Expected::synced().at_phase(0)])]);
    Script::new("assumed.messages_too_short_for_their_opcode_have_no_tag", "14 A8", steps).assuming("A8")
}

fn unknown_opcodes() -> Script {
    let messages = [4_u8, 128, 255].map(|opcode| Message::raw([vec![opcode], vec![0; 39]].concat()));
    let mut steps = added(&[Operation::add(1, 0).masked(0)], &[1]);
    steps.extend(messages.iter().cloned().map(Step::Send));
    steps.push(Step::Completions(messages.iter().map(Expected::untagged).collect()));
    steps.extend([post([Operation::sync(0)]), Step::Completions(vec![Expected::synced().at_phase(0)])]);
    Script::new("assumed.messages_of_unknown_opcode_have_no_tag", "14 A8", steps).assuming("A8")
}

fn empty_rendezvous() -> Script {
    let message = Message::rendezvous(1, 0);
    let mut steps = added(&[Operation::add(1, 1)], &[1]);
    steps.extend([
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::consumed(1, &message), Expected::data(1, &message)]),
        Step::Finished(message),
    ]);
    Script::new("assumed.a_rendezvous_of_nothing_completes", "14 A16", steps)
        .with_rendezvous()
        .assuming("A16")
}

fn one_buffer_twice() -> Script {
    let (one, two) = (Message::eager(1, 8), Message::eager(2, 8));
    let mut steps = added(&[Operation::add(1, 1), Operation::add(2, 2).into_buffer(1)], &[1, 2]);
    steps.extend([
        Step::Send(one.clone()),
        Step::Completions(vec![Expected::matched(1, &one)]),
        Step::Send(two.clone()),
        Step::Completions(vec![Expected::matched(2, &two)]),
    ]);
    Script::new("assumed.two_entries_may_share_a_buffer", "14 A17", steps).assuming("A17")
}

fn immediate_on_the_last() -> Script {
    let message = Message::eager(1, 600).with_immediate(0x1234_5678);
    let mut steps = added(&[Operation::add(1, 1)], &[1]);
    steps.extend([
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::consumed(1, &message), Expected::data(1, &message)]),
    ]);
    Script::new("assumed.immediate_of_several_packets_comes_with_the_data", "14 A18", steps).assuming("A18")
}

fn immediate_on_rendezvous() -> Script {
    let message = Message::rendezvous(1, 600).with_immediate(0x1234_5678);
    let mut steps = added(&[Operation::add(1, 1)], &[1]);
    steps.extend([
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::consumed(1, &message), Expected::data(1, &message)]),
        Step::Finished(message),
    ]);
    let script = Script::new("assumed.immediate_of_a_rendezvous_comes_with_the_data", "14 A18", steps);
    script.with_rendezvous().assuming("A18")
}

/// A13 and 13: the QP fails, and the entry is completed as cancelled.
fn broken_rendezvous() -> Script {
    let message = Message::rendezvous(1, 600).with_wrong_key();
    let other = Message::eager(2, 16).from(1);
    let mut steps = added(&[Operation::add(1, 1), Operation::add(2, 2)], &[1, 2]);
    let cancelled = Expected {
        opcode: None,
        bytes: Bytes::Any,
        tm_info: None,
        byte_len: None,
        ..Expected::handed_back(1, &message)
    };
    steps.extend([
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::consumed(1, &message), cancelled]),
        Step::Buffer(1, vec![]),
        Step::Send(other.clone()),
        Step::Completions(vec![Expected::matched(2, &other)]),
    ]);
    Script::new("assumed.a_rendezvous_that_cannot_be_read_is_cancelled", "14 A13", steps)
        .on(Setup { senders: 2, ..Setup::default() })
        .with_rendezvous()
        .assuming("A13")
}
