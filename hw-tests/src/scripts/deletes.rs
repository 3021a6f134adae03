//! TM-CONTRACT 8.2: DEL, in time and too late.

use crate::script::{Bytes, Expected, Message, Operation, Script, Setup, Step, post, post_as};

pub(super) fn scripts() -> Vec<Script> {
    vec![
        in_time(),
        too_late(),
        twice(),
        twice_too_late(),
        of_a_consumed_entry(),
        unsignalled_too_late(),
        reused(),
    ]
}

fn added(receive: u32, tag: u64) -> [Step; 2] {
    [post([Operation::add(receive, tag)]), Step::Completions(vec![Expected::added(receive)])]
}

fn in_time() -> Script {
    let message = Message::eager(1, 8);
    let mut steps = added(1, 1).to_vec();
    steps.extend([
        post([Operation::del(1)]),
        Step::Completions(vec![Expected::deleted(1).at_phase(0)]),
        Step::Send(message.clone()),
        Step::Completions(vec![Expected::unexpected(&message)]),
        Step::Buffer(1, vec![]),
    ]);
    Script::new("del.of_a_posted_entry_takes_it_back", "8.2", steps)
}

fn too_late() -> Script {
    let message = Message::eager(1, 8);
    let mut steps = added(1, 1).to_vec();
    steps.extend([
        Step::Send(message.clone()),
        Step::Settle,
        post([Operation::del(1)]),
        Step::Completions(vec![Expected::matched(1, &message), Expected::not_deleted(1)]),
    ]);
    Script::new("del.fails_when_the_tag_was_consumed_meanwhile", "8.2", steps)
}

fn twice() -> Script {
    let setup = Setup { tags: 1, ..Setup::default() };
    let mut steps = added(1, 1).to_vec();
    steps.extend([
        post([Operation::del(1), Operation::del(1).named(777)]),
        Step::Completions(vec![Expected::deleted(1), Expected::not_deleted(1).named(777)]),
        post_as([Operation::add(2, 2)], [1]),
    ]);
    Script::new("del.of_a_deleted_entry_fails", "8.2", steps).on(setup)
}

fn twice_too_late() -> Script {
    let message = Message::eager(1, 8);
    let setup = Setup { tags: 1, ..Setup::default() };
    let mut steps = added(1, 1).to_vec();
    steps.extend([
        Step::Send(message.clone()),
        Step::Settle,
        post([Operation::del(1), Operation::del(1)]),
        Step::Completions(vec![
            Expected::matched(1, &message),
            Expected::not_deleted(1),
            Expected::not_deleted(1),
        ]),
        post_as([Operation::add(2, 2)], [1]),
    ]);
    Script::new("del.fails_as_often_as_it_comes_too_late", "8.2", steps).on(setup)
}

fn of_a_consumed_entry() -> Script {
    let message = Message::eager(1, 1000);
    let mut steps = added(1, 1).to_vec();
    steps.extend([
        Step::Send(message.clone()),
        Step::Settle,
        post([Operation::del(1)]),
        Step::Completions(vec![
            Expected::consumed(1, &message),
            Expected::data(1, &message),
            Expected::not_deleted(1),
        ]),
    ]);
    Script::new("del.of_a_consumed_entry_fails", "8.2", steps)
}

/// The data has been written, and nobody is told whose it was.
fn unsignalled_too_late() -> Script {
    let message = Message::eager(1, 8);
    let mut steps = added(1, 1).to_vec();
    steps.extend([
        Step::Send(message.clone()),
        Step::Settle,
        post([Operation::del(1).unsignalled(), Operation::sync(0)]),
        Step::Completions(vec![Expected::lost_match(101, &message), Expected::synced()]),
        Step::Buffer(1, message.payload()),
    ]);
    Script::new("del.unsignalled_and_too_late_loses_the_match", "8.2", steps)
}

/// The entry has got another receive meanwhile: that one is charged.
fn reused() -> Script {
    let message = Message::eager(1, 8);
    let setup = Setup { tags: 1, ..Setup::default() };
    let mut steps = added(1, 1).to_vec();
    steps.extend([
        Step::Send(message.clone()),
        Step::Settle,
        post([Operation::del(1).unsignalled()]),
        post_as([Operation::add(2, 2).unsignalled()], [1]),
        post([Operation::del(2).unsignalled()]),
        post_as([Operation::add(3, 3).unsignalled()], [0]),
        Step::Settle,
        Step::Poll(vec![Expected { bytes: Bytes::Any, ..Expected::matched(3, &message) }]),
        Step::Buffer(1, message.payload()),
        Step::Buffer(3, vec![]),
    ]);
    Script::new("del.unsignalled_and_too_late_charges_whoever_has_the_entry", "8.2", steps).on(setup)
}
