//! TM-CONTRACT 11.2 to 11.4 and 11.6: who may match, and when.

use crate::script::{Count, Expected, Message, Operation, Script, Setup, Step, post};

pub(super) fn scripts() -> Vec<Script> {
    vec![
        earliest_first(),
        leaves_the_list(),
        stale_add(),
        report_wakes(),
        wakes_in_order(),
        remove_of_both(),
        active_stays(),
        every_operation_tells(),
        untagged_does_not_count(),
        three_then_a_report(),
        three_and_a_wrong_report(),
        several_packets_count_once(),
        race(),
        race_with_a_count_on_the_del(),
        reported_by_sync_only(),
        wrap(),
        a_whole_turn_behind(),
    ]
}

fn added(operations: &[Operation], receives: &[u32]) -> [Step; 2] {
    [post(operations.to_vec()), Step::Completions(receives.iter().map(|it| Expected::added(*it)).collect())]
}

fn unexpected(messages: &[&Message]) -> Vec<Step> {
    let sent = messages.iter().map(|message| Step::Send((*message).clone()));
    let polled = messages.iter().map(|message| Expected::unexpected(message)).collect();
    sent.chain([Step::Completions(polled)]).collect()
}

fn matched(receive: u32, message: &Message) -> [Step; 2] {
    [Step::Send(message.clone()), Step::Completions(vec![Expected::matched(receive, message)])]
}

fn earliest_first() -> Script {
    let message = Message::eager(0x17, 8);
    let operations = [
        Operation::add(1, 0x10).masked(0xf0),
        Operation::add(2, 0x17),
        Operation::add(3, 0x07).masked(0x0f),
        Operation::add(4, 0x17),
    ];
    let mut steps = added(&operations, &[1, 2, 3, 4]).to_vec();
    for receive in [1, 2, 3, 4] {
        steps.extend(matched(receive, &message));
    }
    Script::new("phase.the_earliest_entry_that_fits_is_matched", "11.2 rule 1", steps)
}

fn leaves_the_list() -> Script {
    let message = Message::eager(1, 8);
    let mut steps = added(&[Operation::add(1, 1)], &[1]).to_vec();
    steps.extend(matched(1, &message));
    steps.extend(unexpected(&[&message]));
    steps.extend([post([Operation::sync(1)]), Step::Completions(vec![Expected::synced().at_phase(1)])]);
    Script::new("phase.a_matched_entry_leaves_the_list", "11.2 rule 1", steps)
}

fn stale_add() -> Script {
    let (stray, message) = (Message::eager(9, 8), Message::eager(1, 8));
    let mut steps = unexpected(&[&stray]);
    steps.extend([
        post([Operation::add(1, 1).counting(0)]),
        Step::Completions(vec![Expected::added(1).at_phase(1).asking()]),
    ]);
    steps.extend(unexpected(&[&message]));
    steps.push(Step::Buffer(1, vec![]));
    Script::new("phase.an_entry_added_out_of_sync_does_not_match", "11.2 rule 3", steps)
}

fn report_wakes() -> Script {
    let (stray, message) = (Message::eager(9, 8), Message::eager(1, 8));
    let mut steps = unexpected(&[&stray]);
    steps.extend([
        post([Operation::add(1, 1).counting(0)]),
        Step::Completions(vec![Expected::added(1).at_phase(1).asking()]),
    ]);
    steps.extend(unexpected(&[&message]));
    steps.extend([post([Operation::sync(2)]), Step::Completions(vec![Expected::synced().at_phase(2)])]);
    steps.extend(matched(1, &message));
    Script::new("phase.an_equal_report_wakes_entries", "11.2 rule 2", steps).assuming("A1")
}

/// An ADD whose count is equal wakes those before it, and they come first.
fn wakes_in_order() -> Script {
    let (stray, message) = (Message::eager(9, 8), Message::eager(1, 8));
    let mut steps = unexpected(&[&stray]);
    steps.extend([
        post([Operation::add(1, 1).counting(0), Operation::add(2, 1).counting(0)]),
        Step::Completions(vec![Expected::added(1).asking(), Expected::added(2).asking()]),
        post([Operation::add(3, 1).counting(1)]),
        Step::Completions(vec![Expected::added(3).at_phase(1)]),
    ]);
    for receive in [1, 2, 3] {
        steps.extend(matched(receive, &message));
    }
    Script::new("phase.an_add_with_an_equal_count_wakes_those_before_it", "11.2 rule 2", steps).assuming("A4")
}

fn remove_of_both() -> Script {
    let stray = Message::eager(9, 8);
    let mut steps = added(&[Operation::add(1, 1).counting(0)], &[1]).to_vec();
    steps.extend(unexpected(&[&stray]));
    steps.extend([
        post([Operation::add(2, 2).counting(0)]),
        Step::Completions(vec![Expected::added(2).asking()]),
        post([Operation::del(1), Operation::del(2)]),
        Step::Completions(vec![
            Expected::deleted(1).at_phase(1).asking(),
            Expected::deleted(2).at_phase(1).asking(),
        ]),
    ]);
    Script::new("phase.active_and_waiting_entries_can_be_removed", "11.2 rule 4", steps)
}

fn active_stays() -> Script {
    let (stray, message) = (Message::eager(9, 8), Message::eager(1, 8));
    let mut steps = added(&[Operation::add(1, 1), Operation::add(2, 1)], &[1, 2]).to_vec();
    steps.extend(unexpected(&[&stray, &stray]));
    steps.extend(matched(1, &message));
    steps.extend([post([Operation::sync(1)]), Step::Completions(vec![Expected::synced().at_phase(2)])]);
    steps.extend(matched(2, &message));
    Script::new("phase.active_entries_match_while_out_of_sync", "11.2 rule 5", steps).assuming("A2")
}

fn every_operation_tells() -> Script {
    let stray = Message::eager(9, 8);
    let mut steps = Vec::new();
    for phase in 1..=3 {
        steps.extend(unexpected(&[&stray]));
        steps.extend([
            post([Operation::add(1, 1).with(Count::Polled), Operation::sync(0).with(Count::Polled)]),
            post([Operation::del(1)]),
            Step::Completions(vec![
                Expected::added(1).at_phase(phase),
                Expected::synced().at_phase(phase),
                Expected::deleted(1).at_phase(phase),
            ]),
        ]);
    }
    Script::new("phase.every_operation_tells_the_devices_count", "11.2 rule 6", steps)
}

fn untagged_does_not_count() -> Script {
    let (plain, fin, message) = (Message::no_tag(20), Message::fin(1), Message::eager(1, 8));
    let mut steps = vec![
        Step::Send(plain.clone()),
        Step::Send(fin.clone()),
        Step::Completions(vec![Expected::untagged(&plain), Expected::untagged(&fin)]),
        post([Operation::add(1, 1).counting(0)]),
        Step::Completions(vec![Expected::added(1).at_phase(0)]),
    ];
    steps.extend(matched(1, &message));
    Script::new("phase.untagged_messages_are_not_counted", "11.2 rule 7", steps)
}

fn strays() -> [Message; 3] {
    [1, 2, 3].map(|tag| Message::eager(tag, 8))
}

fn three_then_a_report() -> Script {
    let ([one, two, three], message) = (strays(), Message::eager(7, 8));
    let mut steps = unexpected(&[&one, &two, &three]);
    steps.extend([
        post([Operation::add(7, 7).counting(3)]),
        Step::Completions(vec![Expected::added(7).at_phase(3)]),
    ]);
    steps.extend(matched(7, &message));
    Script::new("phase.after_three_unexpected_a_report_of_three_resumes", "11.3", steps)
}

fn three_and_a_wrong_report() -> Script {
    let ([one, two, three], message) = (strays(), Message::eager(7, 8));
    let mut steps = unexpected(&[&one, &two, &three]);
    steps.extend([
        post([Operation::add(7, 7).counting(2)]),
        Step::Completions(vec![Expected::added(7).at_phase(3).asking()]),
    ]);
    steps.extend(unexpected(&[&message]));
    Script::new("phase.after_three_unexpected_a_report_of_two_does_not_resume", "11.3", steps)
}

fn several_packets_count_once() -> Script {
    let (long, message) = (Message::eager(8, 600), Message::eager(7, 8));
    let mut steps = unexpected(&[&long]);
    steps.extend([
        post([Operation::add(7, 7).counting(1)]),
        Step::Completions(vec![Expected::added(7).at_phase(1)]),
    ]);
    steps.extend(matched(7, &message));
    Script::new("phase.a_message_of_three_packets_counts_once", "10", steps)
}

/// The message came before the ADD: the entry sleeps, and an unsignalled DEL is safe.
fn race() -> Script {
    let message = Message::eager(1, 8);
    let mut steps = vec![
        Step::Send(message.clone()),
        Step::Settle,
        post([Operation::add(1, 1).counting(0)]),
        Step::Completions(vec![Expected::unexpected(&message), Expected::added(1).at_phase(1).asking()]),
        post([Operation::del(1).unsignalled(), Operation::sync(0).with(Count::Polled)]),
        Step::Completions(vec![Expected::synced().at_phase(1)]),
    ];
    steps.extend(unexpected(&[&message]));
    Script::new("phase.a_message_that_came_before_its_add_leaves_the_entry_asleep", "11.4", steps)
}

fn race_with_a_count_on_the_del() -> Script {
    let message = Message::eager(1, 8);
    let other = Message::eager(2, 8);
    let mut steps = vec![
        Step::Send(message.clone()),
        Step::Settle,
        post([Operation::add(1, 1).counting(0)]),
        post([Operation::add(2, 2).counting(0)]),
        Step::Completions(vec![
            Expected::unexpected(&message),
            Expected::added(1).at_phase(1).asking(),
            Expected::added(2).at_phase(1).asking(),
        ]),
        post([Operation::del(1).with(Count::Polled)]),
        Step::Completions(vec![Expected::deleted(1).at_phase(1).asking()]),
    ];
    steps.extend(matched(2, &other));
    Script::new("phase.a_del_may_carry_the_count_of_its_own_message", "11.4", steps).assuming("A1")
}

/// On libmlx5 the flag is then wrong, and the match works all the same.
fn reported_by_sync_only() -> Script {
    let (stray, message) = (Message::eager(9, 8), Message::eager(1, 8));
    let mut steps = unexpected(&[&stray]);
    steps.extend([
        post([Operation::sync(1)]),
        Step::Completions(vec![Expected::synced()]),
        post([Operation::add(1, 1)]),
        Step::Completions(vec![Expected::added(1).at_phase(1).asking()]),
    ]);
    steps.extend(matched(1, &message));
    Script::new("phase.an_add_without_a_count_after_a_sync_is_active", "11.5", steps)
}

/// So many unexpected messages, polled and their buffers posted again.
fn burst(number: u32, asking: bool) -> Step {
    let stray = Message::eager(9, 4);
    let polled = Expected::unexpected(&stray);
    let polled = if asking { polled.asking() } else { polled };
    Step::Repeat(
        number / BURST,
        vec![
            Step::Repeat(BURST, vec![Step::Send(stray)]),
            Step::Completions(vec![polled; BURST as usize]),
            Step::Receives { calls: BURST, taken: BURST },
        ],
    )
}

/// 65,550 unexpected messages with a report after each fifty: offload goes on.
fn wrap() -> Script {
    let message = Message::eager(7, 8);
    let quiet = Operation::add(3, 3).with(Count::Polled);
    let report =
        [post([quiet]), Step::Completions(vec![Expected::added(3)]), post([Operation::del(3).unsignalled()])];
    let report_after = [
        post([quiet]),
        Step::Completions(vec![Expected::added(3).asking()]),
        post([Operation::del(3).unsignalled()]),
    ];
    let round = |report: [Step; 3]| [vec![burst(BURST, false)], report.to_vec()].concat();
    let mut steps = vec![
        Step::Repeat(1310, round(report)),
        // The driver compares 16 bits of the device's with 32 of ours: from 65,536 on it always asks.
        Step::Repeat(1, round(report_after)),
        post([Operation::add(7, 7).with(Count::Polled)]),
        Step::Completions(vec![Expected::added(7).at_phase(14).asking()]),
    ];
    steps.extend(matched(7, &message));
    Script::new("phase.counts_wrap_and_offload_goes_on", "11.6", steps).on(big())
}

/// A lag of 65,536 looks like none.
fn a_whole_turn_behind() -> Script {
    let message = Message::eager(7, 8);
    let stray = Message::eager(9, 4);
    let one = |asking: bool| {
        let polled = Expected::unexpected(&stray);
        let polled = if asking { polled.asking() } else { polled };
        [Step::Send(stray.clone()), Step::Completions(vec![polled]), Step::Receives { calls: 1, taken: 1 }]
    };
    let mut steps = vec![burst(16_350, false)];
    steps.push(Step::Repeat(0x3fff - 16_350, one(false).to_vec()));
    steps.push(burst(49_150, true));
    steps.push(Step::Repeat(65_536 - 0x3fff - 49_150, one(true).to_vec()));
    steps.extend([
        post([Operation::add(7, 7).counting(0)]),
        Step::Completions(vec![Expected::added(7).at_phase(0)]),
    ]);
    steps.extend(matched(7, &message));
    Script::new("phase.a_whole_turn_behind_looks_like_in_sync", "11.3", steps).on(big())
}

fn big() -> Setup {
    Setup { receives: 120, posted: 110, ..Setup::default() }
}

const BURST: u32 = 50;
