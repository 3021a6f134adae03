//! TM-CONTRACT 8 and 8.1: the numbers of entries, and when one is free again.

use crate::script::{ENOMEM, Expected, Message, Operation, Script, Setup, Step, post, post_as, refused};

pub(super) fn scripts() -> Vec<Script> {
    vec![
        in_order(),
        around(),
        polled_not_executed(),
        add_unsignalled(),
        add_signalled(),
        several_packets(),
        rendezvous(),
        handed_back(),
        failed_del(),
        unsignalled_del(),
        unsignalled_del_before_the_add_is_polled(),
    ]
}

fn with_tags(tags: u32) -> Setup {
    Setup { tags, ..Setup::default() }
}

fn in_order() -> Script {
    let messages: Vec<_> = (0..8).map(|tag| Message::eager(tag, 8)).collect();
    let add = |receive: u32| Operation::add(receive, u64::from(receive));
    let steps = vec![
        post_as([add(0), add(1)], [0, 1]),
        post_as([add(2), add(3)], [2, 3]),
        refused([add(4)], ENOMEM, 0),
        Step::Completions((0..4).map(Expected::added).collect()),
        Step::Send(messages[2].clone()),
        Step::Send(messages[0].clone()),
        Step::Completions(vec![Expected::matched(2, &messages[2]), Expected::matched(0, &messages[0])]),
        post_as([add(4), add(5)], [4, 2]),
        Step::Completions(vec![Expected::added(4), Expected::added(5)]),
        // Device and driver mean the same entries.
        Step::Send(messages[5].clone()),
        Step::Send(messages[4].clone()),
        Step::Completions(vec![Expected::matched(5, &messages[5]), Expected::matched(4, &messages[4])]),
        post_as([add(6), add(7)], [0, 2]),
        Step::Completions(vec![Expected::added(6), Expected::added(7)]),
    ];
    Script::new("handles.run_to_max_num_tags_inclusive_and_return_in_order", "8", steps).on(with_tags(4))
}

/// A list that is not a power of two less one, around many times.
fn around() -> Script {
    let message = |tag| Message::eager(tag, 24);
    let add = |receive: u32| Operation::add(receive, u64::from(receive));
    let steps = vec![Step::Repeat(
        50,
        vec![
            post((0..5).map(add).collect::<Vec<_>>()),
            refused([add(5)], ENOMEM, 0),
            Step::Completions((0..5).map(Expected::added).collect()),
            Step::Send(message(3)),
            Step::Settle,
            post([Operation::del(1), Operation::del(4)]),
            Step::Completions(vec![
                Expected::matched(3, &message(3)),
                Expected::deleted(1),
                Expected::deleted(4),
            ]),
            Step::Send(message(2)),
            Step::Send(message(0)),
            Step::Completions(vec![Expected::matched(2, &message(2)), Expected::matched(0, &message(0))]),
        ],
    )];
    Script::new("handles.stay_in_step_with_the_device_around_an_odd_list", "8", steps).on(with_tags(5))
}

fn polled_not_executed() -> Script {
    let steps = vec![
        post_as([Operation::add(1, 1)], [0]),
        Step::Completions(vec![Expected::added(1)]),
        post([Operation::del(1)]),
        Step::Settle,
        refused([Operation::add(2, 2)], ENOMEM, 0),
        Step::Completions(vec![Expected::deleted(1)]),
        post_as([Operation::add(2, 2)], [1]),
    ];
    Script::new("handles.are_freed_by_polling_alone", "8.1", steps).on(with_tags(1))
}

fn add_unsignalled() -> Script {
    let message = Message::eager(1, 8);
    let steps = vec![
        post_as([Operation::add(1, 1).unsignalled()], [0]),
        Step::Settle,
        Step::Send(message.clone()),
        Step::Settle,
        refused([Operation::add(2, 2)], ENOMEM, 0),
        Step::Completions(vec![Expected::matched(1, &message)]),
        post_as([Operation::add(2, 2)], [1]),
    ];
    Script::new("handles.of_unsignalled_adds_wait_for_the_match", "8.1", steps).on(with_tags(1))
}

fn add_signalled() -> Script {
    let message = Message::eager(1, 8);
    let steps = vec![
        post([Operation::add(1, 1)]),
        Step::Settle,
        Step::Send(message.clone()),
        Step::Settle,
        Step::Poll(vec![Expected::added(1)]),
        refused([Operation::add(2, 2)], ENOMEM, 0),
        Step::Poll(vec![Expected::matched(1, &message)]),
        post_as([Operation::add(2, 2)], [1]),
    ];
    Script::new("handles.of_signalled_adds_wait_for_both_completions", "8.1", steps).on(with_tags(1))
}

fn several_packets() -> Script {
    let message = Message::eager(1, 1000);
    let steps = vec![
        post([Operation::add(1, 1)]),
        Step::Completions(vec![Expected::added(1)]),
        Step::Send(message.clone()),
        Step::Settle,
        Step::Poll(vec![Expected::consumed(1, &message)]),
        refused([Operation::add(2, 2)], ENOMEM, 0),
        Step::Poll(vec![Expected::data(1, &message)]),
        post_as([Operation::add(2, 2)], [1]),
    ];
    Script::new("handles.of_consumed_entries_wait_for_their_data", "8.1", steps).on(with_tags(1))
}

fn rendezvous() -> Script {
    let message = Message::rendezvous(1, 1000);
    let steps = vec![
        post([Operation::add(1, 1)]),
        Step::Completions(vec![Expected::added(1)]),
        Step::Send(message.clone()),
        Step::Settle,
        Step::Poll(vec![Expected::consumed(1, &message)]),
        refused([Operation::add(2, 2)], ENOMEM, 0),
        Step::Poll(vec![Expected::data(1, &message)]),
        post_as([Operation::add(2, 2)], [1]),
        Step::Finished(message),
    ];
    let script = Script::new("handles.of_rendezvous_wait_for_their_data", "8.1", steps);
    script.on(with_tags(1)).with_rendezvous()
}

fn handed_back() -> Script {
    let message = Message::rendezvous(1, 5000);
    let steps = vec![
        post([Operation::add(1, 1)]),
        Step::Completions(vec![Expected::added(1)]),
        Step::Send(message.clone()),
        Step::Settle,
        refused([Operation::add(2, 2)], ENOMEM, 0),
        Step::Poll(vec![Expected::handed_back(1, &message)]),
        post_as([Operation::add(2, 2)], [1]),
    ];
    Script::new("handles.of_handed_back_rendezvous_are_free", "8.1", steps).on(with_tags(1)).assuming("A10")
}

/// Released by the match's completion, but not before the DEL's own has been polled.
fn failed_del() -> Script {
    let message = Message::eager(1, 8);
    let steps = vec![
        post([Operation::add(1, 1)]),
        Step::Completions(vec![Expected::added(1)]),
        Step::Send(message.clone()),
        Step::Settle,
        post([Operation::del(1)]),
        Step::Settle,
        Step::Poll(vec![Expected::matched(1, &message)]),
        refused([Operation::add(2, 2)], ENOMEM, 0),
        Step::Poll(vec![Expected::not_deleted(1)]),
        post_as([Operation::add(2, 2)], [1]),
    ];
    Script::new("handles.with_a_failed_del_wait_for_it", "8.1", steps).on(with_tags(1))
}

fn unsignalled_del() -> Script {
    let steps = vec![
        post([Operation::add(1, 1)]),
        Step::Completions(vec![Expected::added(1)]),
        post([Operation::del(1).unsignalled()]),
        post_as([Operation::add(2, 2)], [1]),
        Step::Completions(vec![Expected::added(2)]),
        post([Operation::del(2).unsignalled()]),
        post_as([Operation::add(3, 3)], [0]),
        Step::Completions(vec![Expected::added(3)]),
    ];
    Script::new("handles.are_freed_by_an_unsignalled_del_at_once", "8.1", steps).on(with_tags(1))
}

fn unsignalled_del_before_the_add_is_polled() -> Script {
    let steps = vec![
        post([Operation::add(1, 1)]),
        post([Operation::del(1).unsignalled()]),
        refused([Operation::add(2, 2)], ENOMEM, 0),
        Step::Completions(vec![Expected::added(1)]),
        post_as([Operation::add(2, 2)], [1]),
        Step::Completions(vec![Expected::added(2)]),
    ];
    Script::new("handles.wait_for_the_add_even_after_an_unsignalled_del", "8.1", steps).on(with_tags(1))
}
