//! TM-CONTRACT 6.1 and 6.2: the slots of the command queue, and posting inside a poll.

use crate::script::{ENOMEM, Expected, Message, Operation, Script, Setup, Step, post, refused};

pub(super) fn scripts() -> Vec<Script> {
    let measured = [(1, 1), (2, 2), (4, 4), (8, 8), (10, 16), (16, 16), (17, 32), (100, 128), (256, 256)];
    let mut scripts: Vec<_> = measured.iter().map(|(asked, slots)| as_many(*asked, *slots)).collect();
    scripts.extend([
        never_signalled(),
        polling_frees(),
        a_del_frees(),
        a_match_frees_nothing(),
        inside_a_poll(),
    ]);
    scripts
}

fn with_slots(operations: u32) -> Setup {
    Setup { operations, ..Setup::default() }
}

fn as_many(asked: u32, slots: u32) -> Script {
    let steps = vec![
        Step::Repeat(slots, vec![post([Operation::sync(0)])]),
        refused([Operation::sync(0)], ENOMEM, 0),
        // What the device has executed is not free before it is polled.
        Step::Settle,
        refused([Operation::sync(0)], ENOMEM, 0),
        Step::Completions(vec![Expected::synced(); slots as usize]),
        post(vec![Operation::sync(0); slots as usize]),
        refused([Operation::sync(0)], ENOMEM, 0),
        Step::Completions(vec![Expected::synced(); slots as usize]),
    ];
    Script::new(format!("slots.of_{asked}_operations_are_{slots}"), "6.1", steps).on(with_slots(asked))
}

fn never_signalled() -> Script {
    let steps = vec![
        Step::Repeat(4, vec![post([Operation::sync(0).unsignalled()]), Step::Completions(vec![])]),
        Step::Repeat(3, vec![refused([Operation::sync(0)], ENOMEM, 0), Step::Completions(vec![])]),
    ];
    Script::new("slots.of_unsignalled_operations_never_return", "6.1", steps).on(with_slots(4))
}

fn polling_frees() -> Script {
    let quiet = Operation::sync(0).unsignalled();
    let steps = vec![
        post([quiet, quiet, Operation::sync(0), quiet]),
        Step::Settle,
        refused([quiet], ENOMEM, 0),
        Step::Completions(vec![Expected::synced()]),
        post([quiet, quiet, Operation::sync(0)]),
        refused([quiet], ENOMEM, 0),
        Step::Completions(vec![Expected::synced()]),
        post([quiet, quiet, quiet, quiet]),
        refused([quiet], ENOMEM, 0),
    ];
    Script::new("slots.return_with_the_polling_of_a_signalled_one_behind_them", "6.1", steps)
        .on(with_slots(4))
}

fn a_del_frees() -> Script {
    let steps = vec![
        post([Operation::add(1, 1).unsignalled()]),
        post([Operation::del(1)]),
        refused([Operation::sync(0)], ENOMEM, 0),
        Step::Completions(vec![Expected::deleted(1)]),
        post([Operation::sync(0), Operation::add(2, 2)]),
        Step::Completions(vec![Expected::synced(), Expected::added(2)]),
    ];
    Script::new("slots.return_with_any_opcode", "6.1", steps).on(with_slots(2))
}

fn a_match_frees_nothing() -> Script {
    let message = Message::eager(1, 8);
    let steps = vec![
        post([Operation::add(1, 1).unsignalled()]),
        Step::Settle,
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::matched(1, &message)]),
        refused([Operation::sync(0)], ENOMEM, 0),
    ];
    Script::new("slots.do_not_return_with_a_match", "6.1", steps).on(with_slots(1))
}

/// What must never be done: the driver waits for a lock that its caller holds. It never answers, or aborts where it
/// was told that there is one thread.
pub(super) fn full_inside_a_poll() -> Script {
    let message = Message::eager(9, 8);
    let steps = vec![
        post([Operation::sync(0).unsignalled()]),
        Step::Settle,
        Step::Send(message.clone()),
        Step::Settle,
        Step::InsidePoll(
            vec![Expected::unexpected(&message)],
            vec![refused([Operation::sync(0)], ENOMEM, 0)],
        ),
    ];
    Script::new("slots.none_left_inside_a_poll_hangs", "6.2", steps).on(with_slots(1))
}

/// With slots to spare, both calls are allowed inside a poll.
fn inside_a_poll() -> Script {
    let message = Message::eager(9, 8);
    let steps = vec![
        post([Operation::sync(0)]),
        Step::Settle,
        Step::Send(message.clone()),
        Step::Settle,
        Step::InsidePoll(
            vec![Expected::synced(), Expected::unexpected(&message)],
            vec![post([Operation::add(1, 1).counting(0)]), Step::Receives { calls: 2, taken: 2 }],
        ),
        Step::Completions(vec![Expected::added(1).at_phase(1).asking()]),
    ];
    Script::new("slots.to_spare_allow_posting_inside_a_poll", "6.2", steps)
}
