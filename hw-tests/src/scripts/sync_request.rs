//! TM-CONTRACT 11.5: how libmlx5 computes `IBV_WC_TM_SYNC_REQ`, false positives included.

use crate::script::{Count, Expected, Message, Operation, Script, Step, post};

pub(super) fn scripts() -> Vec<Script> {
    vec![by_the_adds_alone(), full_width(), sixteen_bits(), on_matches()]
}

fn by_the_adds_alone() -> Script {
    let stray = Message::eager(9, 8);
    let unexpected = [Step::Send(stray.clone()), Step::Completions(vec![Expected::unexpected(&stray)])];
    let one = |operation, expected| [post([operation]), Step::Completions(vec![expected])];
    let mut steps = unexpected.to_vec();
    steps.extend(one(Operation::add(1, 1).counting(1), Expected::added(1)));
    steps.extend(unexpected.clone());
    steps.extend(one(Operation::add(2, 2).counting(1), Expected::added(2).asking()));
    // Never on a SYNC; and the driver does not learn from it.
    steps.extend(one(Operation::sync(2), Expected::synced()));
    steps.extend(one(Operation::add(3, 3), Expected::added(3).asking()));
    steps.extend(one(Operation::add(4, 4).counting(2), Expected::added(4)));
    steps.extend(unexpected);
    steps.extend(one(Operation::add(5, 5).counting(3), Expected::added(5)));
    // In sync, but the entry is older than the last unexpected message.
    steps.extend(one(Operation::del(4), Expected::deleted(4).asking()));
    steps.extend(one(Operation::del(5), Expected::deleted(5)));
    Script::new("sync_request.follows_the_counts_on_adds_alone", "11.5", steps)
}

/// An unexpected message, its buffer again, and an ADD that reports it.
fn round(count: Count, asks: Asks) -> Vec<Step> {
    let stray = Message::eager(9, 4);
    let (mut unexpected, mut added) = (Expected::unexpected(&stray), Expected::added(1));
    match asks {
        Asks::Nobody => {}
        Asks::Add => added = added.asking(),
        Asks::Unexpected => unexpected = unexpected.asking(),
    }
    vec![
        Step::Send(stray),
        Step::Completions(vec![unexpected]),
        Step::Receives { calls: 1, taken: 1 },
        post([Operation::add(1, 1).with(count)]),
        Step::Completions(vec![added]),
        post([Operation::del(1).unsignalled()]),
    ]
}

#[derive(Clone, Copy)]
enum Asks {
    Nobody,
    Add,
    Unexpected,
}

/// And after all of it a match.
fn still_matches() -> Vec<Step> {
    let message = Message::eager(7, 8);
    vec![Step::Send(message.clone()), Step::Completions(vec![Expected::matched(7, &message)])]
}

fn full_width() -> Script {
    let mut steps = vec![
        Step::Repeat(65_535, round(Count::Polled, Asks::Nobody)),
        Step::Repeat(4_465, round(Count::Polled, Asks::Add)),
        post([Operation::add(7, 7).with(Count::Polled)]),
        Step::Completions(vec![Expected::added(7).at_phase(4_464).asking()]),
    ];
    steps.extend(still_matches());
    Script::new("sync_request.of_32_bit_counts_is_on_every_add_from_65536_on", "11.5", steps)
}

fn sixteen_bits() -> Script {
    let mut steps = vec![
        Step::Repeat(65_536, round(Count::PolledLow, Asks::Nobody)),
        Step::Repeat(4_464, round(Count::PolledLow, Asks::Unexpected)),
        post([Operation::add(7, 7).with(Count::PolledLow)]),
        Step::Completions(vec![Expected::added(7).at_phase(4_464)]),
    ];
    steps.extend(still_matches());
    Script::new("sync_request.of_16_bit_counts_is_on_every_unexpected_from_65537_on", "11.5", steps)
}

fn on_matches() -> Script {
    let (stray, message, long) = (Message::eager(9, 8), Message::eager(1, 8), Message::eager(2, 500));
    let plain = Message::no_tag(4);
    let steps = vec![
        post([Operation::add(1, 1), Operation::add(2, 2)]),
        Step::Completions(vec![Expected::added(1), Expected::added(2)]),
        Step::Send(stray.clone()),
        Step::Send(message.clone()),
        Step::Send(long.clone()),
        Step::Send(plain.clone()),
        Step::InAnyOrder(vec![
            Expected::unexpected(&stray),
            Expected::matched(1, &message),
            Expected::consumed(2, &long),
            Expected::data(2, &long),
            Expected::untagged(&plain),
        ]),
    ];
    Script::new("sync_request.is_never_on_a_match_or_an_untagged_message", "11.5", steps).assuming("A2")
}
