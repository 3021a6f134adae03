//! Links that close with something on its way: they end when the other side's host has it.

use std::io::Read as _;

use super::raw::Raw;
use crate::device::tests::{framed, pattern};
use crate::device::transport::{CloseReason, Notice, Outgoing, Payload, Sending, Transport};

/// Send until nothing more finds room, and say how many bytes were given.
fn fill(raw: &mut Raw) -> usize {
    let (header, payload) = (crate::device::tests::untagged(1), pattern(1, 50_000));
    let message = Outgoing {
        header: &header,
        payload: Payload::Copied(&payload),
        immediate: None,
        more: false,
        context: None,
    };
    let mut given = 0;
    while raw.transport.send(raw.link, &message).expect("there is a link") != Sending::Full {
        given += 8 + header.len() + payload.len();
    }
    given
}

/// Read what there is, and say how much that was and whether it was the end.
fn read(raw: &mut Raw) -> (usize, bool) {
    let (mut all, mut bytes) = (0, vec![0; 1 << 20]);
    raw.stream.set_nonblocking(true).expect("it is a stream");
    loop {
        match raw.stream.read(&mut bytes) {
            Ok(0) => return (all, true),
            Ok(count) => all += count,
            Err(_) => return (all, false),
        }
    }
}

#[test]
fn a_link_that_closes_has_ended_when_the_other_side_has_all_that_was_sent() {
    let mut raw = Raw::bound();
    let given = fill(&mut raw);
    raw.transport.close(raw.link, true);
    for turn in 0..1000 {
        // What comes meanwhile is dropped, and drops nothing.
        if turn % 100 == 0 {
            raw.write(&framed(&super::raw::eager(1, b"unread")));
        }
        raw.step();
    }
    assert_eq!(raw.closed(), None, "the other side has not taken it");
    assert!(raw.transport.untaken(raw.link) > 0);
    let (mut taken, mut is_over) = (0, false);
    while !is_over {
        let (count, is_end) = read(&mut raw);
        (taken, is_over) = (taken + count, is_end);
        raw.step();
    }
    assert_eq!(taken, given);
    assert_eq!(raw.until_closed(), CloseReason::Here);
    assert!(!raw.transport.is_unseen() && raw.transport.link_count() == 0);
}

#[test]
fn a_link_that_closes_ends_without_waiting_where_that_is_wanted() {
    let mut raw = Raw::bound();
    fill(&mut raw);
    raw.transport.close(raw.link, true);
    raw.step();
    assert_eq!(raw.closed(), None);
    raw.transport.close(raw.link, true);
    raw.step();
    assert_eq!(raw.closed(), None, "it was closed so already");
    raw.transport.close(raw.link, false);
    assert_eq!(raw.until_closed(), CloseReason::Here);
}

#[test]
fn it_is_told_when_the_other_side_has_what_was_sent() {
    let mut raw = Raw::bound();
    assert!(!raw.transport.tell_taken(raw.link, 1), "nothing was sent");
    fill(&mut raw);
    assert!(raw.transport.tell_taken(raw.link, 2));
    for _ in 0..1000 {
        raw.step();
    }
    let is_told = |raw: &Raw| raw.ear.notices().contains(&Notice::Sent { context: 2, result: Ok(()) });
    assert!(!is_told(&raw) && raw.transport.is_unseen());
    raw.until(|raw| {
        read(raw);
        is_told(raw)
    });
    fill(&mut raw);
    assert!(raw.transport.tell_taken(raw.link, 3));
    raw.transport.close(raw.link, false);
    let failed = Notice::Sent { context: 3, result: Err(CloseReason::Here) };
    raw.until(|raw| raw.ear.notices().contains(&failed));
    assert!(!raw.transport.tell_taken(raw.link, 4), "there is no link");
}
