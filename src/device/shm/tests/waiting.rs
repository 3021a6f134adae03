//! Whoever waits for the descriptor is woken, however the two sides interleave.

use std::thread;

use super::raw::{header, keepalive, message};
use crate::device::tests::{RECEIVED_FROM, Recorder, shared_memory};
use crate::device::transport::{Notice, Sending, Transport};

/// Wait as an owner does, with no other means than the descriptor.
fn wait(transport: &mut impl Transport) {
    let fd = transport.wait_descriptor().expect("it has one");
    if !transport.may_wait() {
        return;
    }
    let mut asked = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let patience = if transport.is_unseen() { 2 } else { 60_000 };
    // SAFETY: the place is ours.
    let count = unsafe { libc::poll(&raw mut asked, 1, patience) };
    assert!(count > 0 || patience == 2, "nobody has woken it");
}

#[test]
fn a_message_wakes_whoever_waits() {
    const MESSAGES: usize = 20_000;
    let mut receiver = shared_memory();
    let name = receiver.name().to_vec();
    let sender = thread::spawn(move || {
        let mut sender = shared_memory();
        let mut ear = Recorder::default();
        let link = sender.open(&name).expect("it listens");
        while !ear.notices().contains(&Notice::Open { link }) {
            sender.progress(100, &mut ear).expect("it works");
        }
        sender.bind(link, RECEIVED_FROM).expect("it is not bound");
        while ear.controls().is_empty() {
            sender.progress(100, &mut ear).expect("it works");
        }
        for number in 0..MESSAGES {
            while sender.send(link, &message(&header(1), b"hello")).expect("it is there") == Sending::Full {
                sender.progress(100, &mut ear).expect("it works");
            }
            // So that the other side comes to wait.
            if number % 7 == 0 {
                thread::yield_now();
            }
        }
        sender.close(link, true);
        while !ear.notices().iter().any(|notice| matches!(notice, Notice::Closed { .. })) {
            sender.progress(100, &mut ear).expect("it works");
        }
    });
    let mut ear = Recorder::default();
    let mut arrived = 0;
    while arrived < MESSAGES {
        let told = receiver.progress(100, &mut ear).expect("it works");
        let incoming = ear.notices().iter().find_map(|notice| match notice {
            Notice::Incoming { link } => Some(*link),
            _ => None,
        });
        if let Some(link) = incoming {
            receiver.bind(link, RECEIVED_FROM).expect("it is not bound");
            receiver.send(link, &message(&keepalive(), &[])).expect("it is there");
        }
        arrived += ear.arrivals().len();
        ear.heard.clear();
        if told == 0 {
            wait(&mut receiver);
        }
    }
    sender.join().expect("it ends");
}
