//! Orders of events inside a device, one thing at a time (TM-CONTRACT 8.2, 10, 11).

use crate::script::{Advance, Expected, Message, Operation, Script, Setup, Step, post};

pub(super) fn scripts() -> Vec<Script> {
    let scripts = [
        consumed_before_the_data(),
        data_overtakes(),
        message_before_the_del(),
        del_before_the_message(),
        del_between_two_packets(),
        add_before_the_message(),
        message_before_the_add(),
        rendezvous_between(),
        counted_at_the_first_packet(),
        report_and_message(),
    ];
    scripts.into_iter().map(Script::stepped).collect()
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

const COMMAND: Step = Step::Advance(Advance::Command);
const PACKET: Step = Step::Advance(Advance::Packet(0));
const OTHER_PACKET: Step = Step::Advance(Advance::Packet(1));

fn consumed_before_the_data() -> Script {
    let message = Message::eager(1, 600);
    let mut steps = added(&[Operation::add(1, 1)], &[1]);
    steps.extend([
        Step::Send(message.clone()),
        PACKET,
        Step::Poll(vec![Expected::consumed(1, &message)]),
        PACKET,
        Step::Sent(0, vec![]),
        PACKET,
        Step::Poll(vec![Expected::data(1, &message)]),
        Step::Completions(vec![]),
        Step::Sent(0, vec![0]),
    ]);
    Script::new("race.the_match_is_told_at_the_first_packet", "10", steps)
}

fn data_overtakes() -> Script {
    let (first, second) = (Message::eager(1, 600), Message::eager(2, 300).from(1));
    let mut steps = added(&[Operation::add(1, 1), Operation::add(2, 2)], &[1, 2]);
    steps.extend([Step::Send(first.clone()), Step::Send(second.clone()), PACKET, OTHER_PACKET, OTHER_PACKET]);
    steps.extend([
        Step::Poll(vec![
            Expected::consumed(1, &first),
            Expected::consumed(2, &second),
            Expected::data(2, &second),
        ]),
        Step::Completions(vec![Expected::data(1, &first)]),
    ]);
    Script::new("race.data_of_a_later_match_may_come_first", "10", steps).on(two_senders())
}

fn message_before_the_del() -> Script {
    let message = Message::eager(1, 8);
    let mut steps = added(&[Operation::add(1, 1)], &[1]);
    steps.extend([
        post([Operation::del(1)]),
        Step::Send(message.clone()),
        PACKET,
        COMMAND,
        Step::Completions(vec![Expected::matched(1, &message), Expected::not_deleted(1)]),
    ]);
    Script::new("race.a_message_just_before_a_del_is_matched", "8.2", steps)
}

fn del_before_the_message() -> Script {
    let message = Message::eager(1, 8);
    let mut steps = added(&[Operation::add(1, 1)], &[1]);
    steps.extend([
        Step::Send(message.clone()),
        post([Operation::del(1)]),
        COMMAND,
        PACKET,
        Step::Completions(vec![Expected::deleted(1), Expected::unexpected(&message)]),
    ]);
    Script::new("race.a_message_just_behind_a_del_is_unexpected", "8.2", steps)
}

fn del_between_two_packets() -> Script {
    let message = Message::eager(1, 300);
    let mut steps = added(&[Operation::add(1, 1)], &[1]);
    steps.extend([
        Step::Send(message.clone()),
        post([Operation::del(1)]),
        PACKET,
        COMMAND,
        PACKET,
        Step::Completions(vec![
            Expected::consumed(1, &message),
            Expected::not_deleted(1),
            Expected::data(1, &message),
        ]),
    ]);
    Script::new("race.a_del_between_two_packets_fails", "8.2", steps)
}

fn add_before_the_message() -> Script {
    let message = Message::eager(1, 8);
    let steps = vec![
        Step::Send(message.clone()),
        post([Operation::add(1, 1).counting(0)]),
        COMMAND,
        PACKET,
        Step::Completions(vec![Expected::added(1).at_phase(0), Expected::matched(1, &message)]),
    ];
    Script::new("race.an_add_just_before_a_message_takes_it", "11.4", steps)
}

fn message_before_the_add() -> Script {
    let message = Message::eager(1, 8);
    let steps = vec![
        post([Operation::add(1, 1).counting(0)]),
        Step::Send(message.clone()),
        PACKET,
        COMMAND,
        Step::Completions(vec![Expected::unexpected(&message), Expected::added(1).at_phase(1).asking()]),
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::unexpected(&message)]),
    ];
    Script::new("race.an_add_just_behind_a_message_sleeps", "11.4", steps)
}

fn rendezvous_between() -> Script {
    let message = Message::rendezvous(1, 700);
    let mut steps = added(&[Operation::add(1, 1)], &[1]);
    steps.extend([
        Step::Send(message.clone()),
        post([Operation::del(1)]),
        PACKET,
        Step::Poll(vec![Expected::consumed(1, &message)]),
        Step::Sent(0, vec![0]),
        COMMAND,
        Step::Advance(Advance::Read),
        Step::Completions(vec![Expected::not_deleted(1), Expected::data(1, &message)]),
        Step::Finished(message),
    ]);
    Script::new("race.a_rendezvous_is_consumed_before_it_is_read", "10", steps).with_rendezvous()
}

/// A19: a newer receive must not overtake a message whose rest is still to come.
fn counted_at_the_first_packet() -> Script {
    let (long, short) = (Message::eager(1, 600), Message::eager(1, 8).from(1));
    let steps = vec![
        Step::Send(long.clone()),
        PACKET,
        post([Operation::add(1, 1).counting(0)]),
        COMMAND,
        Step::Send(short.clone()),
        OTHER_PACKET,
        PACKET,
        PACKET,
        Step::Completions(vec![
            Expected::unexpected(&long),
            Expected::added(1).at_phase(1).asking(),
            Expected::unexpected(&short),
        ]),
    ];
    Script::new("race.an_unexpected_message_counts_at_its_first_packet", "11.2 rule 1", steps)
        .on(two_senders())
        .assuming("A19")
}

/// A report that another unexpected message has made stale wakes nobody.
fn report_and_message() -> Script {
    let stray = Message::eager(9, 8);
    let message = Message::eager(1, 8);
    let steps = vec![
        Step::Send(stray.clone()),
        Step::Completions(vec![Expected::unexpected(&stray)]),
        post([Operation::add(1, 1).counting(0), Operation::sync(1)]),
        COMMAND,
        Step::Send(stray.clone()),
        PACKET,
        COMMAND,
        Step::Completions(vec![
            Expected::added(1).at_phase(1).asking(),
            Expected::unexpected(&stray),
            Expected::synced().at_phase(2),
        ]),
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::unexpected(&message)]),
    ];
    Script::new("race.a_report_made_stale_wakes_nobody", "11.2 rule 2", steps)
}
