//! When what was sent is out: the peer's card has it (docs/decisions/0023).

use super::alone::{closed, fill, pair_with};
use super::{Policy, Rig};
use crate::device::transport::{CloseReason, Notice};
use crate::device::verbs::VerbsConfig;

/// As many messages as are not acknowledged before the receiver goes on, and one of them to be told of.
fn unacknowledged(rig: &mut Rig) {
    for _ in 0..10 {
        rig.step();
    }
    assert!(fill(rig) > 12, "more than there are receives");
    let link = rig.sender_link();
    assert!(rig.sender().tell_taken(link, 77));
    assert!(rig.sender().untaken(link) > 3000);
    for _ in 0..2000 {
        rig.step_sender();
    }
    assert_eq!(rig.sender_ear().notices(), []);
}

fn few_receives() -> Rig {
    pair_with(&VerbsConfig { unexpected_buffers: 8, spare_buffers: 4, ..VerbsConfig::default() })
}

#[test]
fn a_send_is_told_to_be_out_when_the_peers_card_has_it() {
    let mut rig = few_receives();
    unacknowledged(&mut rig);
    rig.ear().policy = Policy::Discard;
    rig.until(|rig| !rig.sender_ear().notices().is_empty());
    assert_eq!(rig.sender_ear().notices(), [Notice::Sent { context: 77, result: Ok(()) }]);
    // Credits that are returned are messages as well.
    let link = rig.sender_link();
    rig.until(|rig| rig.sender().untaken(link) == 0);
    assert!(!rig.sender().tell_taken(link, 78), "it has all");
}

#[test]
fn a_send_that_is_not_out_fails_with_its_link_and_once() {
    let mut rig = few_receives();
    unacknowledged(&mut rig);
    let link = rig.receiver_link();
    rig.receiver().close(link, false);
    rig.until(|rig| closed(rig.sender_ear()).is_some());
    for _ in 0..100 {
        rig.step();
    }
    let [Notice::Sent { context: 77, result: Err(_) }, Notice::Closed { .. }] =
        rig.sender_ear().notices()[..]
    else {
        panic!("{:?}", rig.sender_ear().notices())
    };
}

#[test]
fn a_link_closes_when_the_other_side_has_what_was_sent_and_not_before() {
    let mut rig = few_receives();
    unacknowledged(&mut rig);
    let link = rig.sender_link();
    rig.sender().close(link, true);
    rig.sender().close(link, true);
    for _ in 0..2000 {
        rig.step_sender();
    }
    let before = rig.sender().untaken(link);
    assert_eq!(rig.sender_ear().notices(), []);
    rig.ear().policy = Policy::Discard;
    rig.until(|rig| rig.sender().untaken(link) < before);
    rig.until(|rig| closed(rig.sender_ear()).is_some() && closed(rig.ear()).is_some());
    let told = rig.sender_ear().notices();
    let sent = Notice::Sent { context: 77, result: Ok(()) };
    assert_eq!(told, [sent, Notice::Closed { link, reason: CloseReason::Here }]);
    assert_eq!(closed(rig.ear()), Some(CloseReason::Peer));
}
