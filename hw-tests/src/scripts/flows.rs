//! TM-CONTRACT 3, 9 and 10: what becomes of each kind of message.

use crate::script::{Expected, Message, Operation, Script, Setup, Step, post, status};

pub(super) fn scripts() -> Vec<Script> {
    let mut scripts = Vec::new();
    // One packet of 256 bytes holds 240 of payload. Short ones may come inside the completion.
    for length in [0, 1, 16, 32, 33, 48, 64, 65, 240] {
        scripts.push(matched(Message::eager(7, length), "eager_one_packet", length));
    }
    for length in [241, 496, 497, 2048] {
        scripts.push(in_two(Message::eager(7, length), "eager_several_packets", length));
    }
    for length in [1, 256, 257, 2048] {
        scripts.push(in_two(Message::rendezvous(7, length), "rendezvous", length).with_rendezvous());
    }
    for length in [0, 1, 16, 48, 240, 241, 2032] {
        scripts.push(unmatched(Message::eager(9, length), "eager", length));
    }
    for metadata in [0, 1, 32] {
        scripts.push(unmatched(
            Message::rendezvous(9, 100).with_metadata(metadata),
            "rendezvous_metadata",
            metadata,
        ));
        scripts.push(handed_back(metadata));
    }
    for length in [1, 8, 15, 16, 64, 500, 2048] {
        scripts.push(untagged(length));
    }
    scripts.extend([
        rendezvous_with_metadata(),
        fin(),
        immediate(),
        immediate_on_rendezvous(),
        mask(),
        reserved_bytes(),
        order(),
        senders(),
        no_buffer(),
        no_buffer_needed(),
        sent_at_once(),
    ]);
    scripts
}

fn add_and_send(message: &Message) -> Vec<Step> {
    vec![
        post([Operation::add(1, message.tag)]),
        Step::Completions(vec![Expected::added(1)]),
        Step::Send(message.clone()),
    ]
}

fn matched(message: Message, kind: &str, length: u32) -> Script {
    let mut steps = add_and_send(&message);
    steps.push(Step::Completions(vec![Expected::matched(1, &message)]));
    steps.push(Step::Sent(0, vec![status::SUCCESS]));
    Script::new(format!("flow.{kind}_of_{length}_bytes_is_matched_at_once"), "10", steps)
}

fn in_two(message: Message, kind: &str, length: u32) -> Script {
    let mut steps = add_and_send(&message);
    steps.push(Step::Completions(vec![Expected::consumed(1, &message), Expected::data(1, &message)]));
    if message.source_length() > 0 {
        steps.push(Step::Finished(message));
    }
    steps.push(Step::Sent(0, vec![status::SUCCESS]));
    Script::new(format!("flow.{kind}_of_{length}_bytes_is_matched_then_filled"), "10", steps)
}

fn rendezvous_with_metadata() -> Script {
    let message = Message::rendezvous(7, 300).with_metadata(32);
    let mut steps = add_and_send(&message);
    steps.push(Step::Completions(vec![Expected::consumed(1, &message), Expected::data(1, &message)]));
    steps.push(Step::Finished(message));
    Script::new("flow.metadata_of_a_matched_rendezvous_is_dropped", "3", steps).with_rendezvous()
}

/// Counted once, however many packets it has.
fn unmatched(message: Message, kind: &str, length: u32) -> Script {
    let steps = vec![
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::unexpected(&message)]),
        post([Operation::sync(1)]),
        Step::Completions(vec![Expected::synced().at_phase(1)]),
        Step::Sent(0, vec![status::SUCCESS]),
    ];
    Script::new(format!("flow.{kind}_of_{length}_bytes_is_unexpected_and_counted_once"), "10", steps)
}

fn handed_back(metadata: u32) -> Script {
    let message = Message::rendezvous(7, 2049).with_metadata(metadata);
    let mut steps = add_and_send(&message);
    steps.push(Step::Completions(vec![Expected::handed_back(1, &message)]));
    let name = format!("flow.rendezvous_longer_than_the_buffer_with_{metadata}_more_is_handed_back");
    Script::new(name, "10", steps).assuming("A10")
}

fn untagged(length: u32) -> Script {
    let message = Message::no_tag(length);
    let steps = vec![
        post([Operation::add(1, 0).masked(0)]),
        Step::Completions(vec![Expected::added(1)]),
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::untagged(&message)]),
        post([Operation::sync(0)]),
        Step::Completions(vec![Expected::synced().at_phase(0)]),
    ];
    Script::new(format!("flow.no_tag_of_{length}_bytes_matches_nothing_and_is_not_counted"), "10", steps)
}

fn fin() -> Script {
    let message = Message::fin(7);
    let mut steps = add_and_send(&message);
    steps.extend([
        Step::Completions(vec![Expected::untagged(&message)]),
        post([Operation::sync(0)]),
        Step::Completions(vec![Expected::synced().at_phase(0)]),
    ]);
    Script::new("flow.fin_matches_nothing_and_is_not_counted", "9", steps)
}

fn immediate() -> Script {
    let one = Message::eager(1, 32).with_immediate(0xdead_beef);
    let stray = Message::eager(9, 32).with_immediate(0x0102_0304);
    let plain = Message::no_tag(24).with_immediate(0);
    let steps = vec![
        post([Operation::add(1, 1)]),
        Step::Completions(vec![Expected::added(1)]),
        Step::Send(one.clone()),
        Step::Send(stray.clone()),
        Step::Send(plain.clone()),
        Step::Completions(vec![
            Expected::matched(1, &one),
            Expected::unexpected(&stray),
            Expected::untagged(&plain),
        ]),
    ];
    Script::new("flow.immediate_comes_with_one_packet_unexpected_and_no_tag", "3", steps)
}

fn immediate_on_rendezvous() -> Script {
    let back = Message::rendezvous(1, 3000).with_immediate(0x55aa_0011);
    let mut steps = add_and_send(&back);
    steps.push(Step::Completions(vec![Expected::handed_back(1, &back)]));
    Script::new("flow.immediate_comes_with_a_handed_back_rendezvous", "9", steps).assuming("A10")
}

/// `(TMH.tag & entry.mask) == entry.tag`
fn mask() -> Script {
    let hit = Message::eager(0xaaaa_0000_1234_5678, 8);
    let miss = Message::eager(0xaaaa_0000_1234_5679, 8);
    let any = Message::eager(0xffff_ffff_ffff_ffff, 8);
    let steps = vec![
        post([
            Operation::add(1, 0x5678).masked(0xffff),
            Operation::add(2, 0xffff_0000_0000_0000).masked(0xffff_0000_0000_0000),
            Operation::add(3, 0).masked(0),
        ]),
        Step::Completions(vec![Expected::added(1), Expected::added(2), Expected::added(3)]),
        Step::Send(miss.clone()),
        Step::Send(hit.clone()),
        Step::Send(any.clone()),
        Step::Completions(vec![
            Expected::matched(3, &miss),
            Expected::matched(1, &hit),
            Expected::matched(2, &any),
        ]),
    ];
    Script::new("flow.masked_bits_are_not_compared", "3", steps)
}

fn reserved_bytes() -> Script {
    let message = Message::eager(7, 24).with_reserved([8, 0xab, 0xcd]);
    let stray = Message::eager(9, 24).with_reserved([8, 0xab, 0xcd]);
    let mut steps = add_and_send(&message);
    steps.push(Step::Send(stray.clone()));
    steps.push(Step::Completions(vec![Expected::matched(1, &message), Expected::unexpected(&stray)]));
    Script::new("flow.reserved_bytes_of_the_header_are_not_looked_at", "3", steps)
}

/// Matches, unexpected and untagged messages of one sender complete in the order in which they were sent.
fn order() -> Script {
    let (one, stray) = (Message::eager(1, 8), Message::eager(9, 700).with_word(3));
    let (plain, two) = (Message::no_tag(3), Message::eager(2, 100).with_word(4));
    let steps = vec![
        post([Operation::add(1, 1), Operation::add(2, 2)]),
        Step::Completions(vec![Expected::added(1), Expected::added(2)]),
        Step::Send(one.clone()),
        Step::Send(stray.clone()),
        Step::Send(plain.clone()),
        Step::Send(two.clone()),
        Step::Completions(vec![
            Expected::matched(1, &one),
            Expected::unexpected(&stray),
            Expected::untagged(&plain),
            Expected::matched(2, &two),
        ]),
        Step::Sent(0, vec![status::SUCCESS; 4]),
    ];
    Script::new("flow.messages_complete_in_the_order_of_arrival", "10", steps).assuming("A2")
}

fn senders() -> Script {
    let messages = [0, 1, 2].map(|sender| Message::eager(sender.into(), 300).from(sender));
    let receives = [0, 1, 2];
    let both = |(receive, message): (&u32, &Message)| {
        [Expected::consumed(*receive, message), Expected::data(*receive, message)]
    };
    let mut steps = vec![
        post(receives.map(|receive| Operation::add(receive, receive.into()))),
        Step::Completions(receives.iter().map(|receive| Expected::added(*receive)).collect()),
    ];
    steps.extend(messages.iter().cloned().map(Step::Send));
    steps.push(Step::InAnyOrder(receives.iter().zip(&messages).flat_map(both).collect()));
    Script::new("flow.the_sender_is_known_by_its_qp", "9", steps).on(Setup { senders: 3, ..Setup::default() })
}

/// RNR: it waits at the sender until a receive is posted.
fn no_buffer() -> Script {
    let message = Message::eager(9, 8);
    let setup = Setup { posted: 34, ..Setup::default() };
    let steps = vec![
        Step::Repeat(34, vec![Step::Send(message.clone())]),
        Step::Completions(vec![Expected::unexpected(&message); 34]),
        Step::Sent(0, vec![status::SUCCESS; 34]),
        Step::Send(message.clone()),
        Step::Completions(vec![]),
        Step::Sent(0, vec![]),
        Step::Receives { calls: 1, taken: 1 },
        Step::Completions(vec![Expected::unexpected(&message)]),
        Step::Sent(0, vec![status::SUCCESS]),
    ];
    Script::new("flow.without_a_buffer_an_unmatched_message_waits", "10", steps).on(setup).assuming("A6")
}

fn no_buffer_needed() -> Script {
    let stray = Message::eager(9, 8);
    let message = Message::eager(1, 500).from(1);
    let setup = Setup { posted: 33, senders: 2, ..Setup::default() };
    let steps = vec![
        post([Operation::add(1, 1)]),
        Step::Completions(vec![Expected::added(1)]),
        Step::Repeat(33, vec![Step::Send(stray.clone())]),
        Step::Completions(vec![Expected::unexpected(&stray); 33]),
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::consumed(1, &message), Expected::data(1, &message)]),
        Step::Sent(1, vec![status::SUCCESS]),
    ];
    Script::new("flow.a_matched_message_needs_no_buffer", "10", steps).on(setup).assuming("A6")
}

/// A rendezvous that software must fetch is as good as sent.
fn sent_at_once() -> Script {
    let (back, stray) = (Message::rendezvous(7, 2049), Message::rendezvous(9, 10));
    let mut steps = add_and_send(&back);
    steps.extend([
        Step::Send(stray.clone()),
        Step::Completions(vec![Expected::handed_back(1, &back), Expected::unexpected(&stray)]),
        Step::Sent(0, vec![status::SUCCESS; 2]),
    ]);
    Script::new("flow.the_request_of_a_rendezvous_is_sent_at_once", "10", steps).assuming("A10")
}
