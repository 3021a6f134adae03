//! Who computes for long and makes progress between, one call at a time.

use std::time::Duration;

use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{Address, Config, Level, Send, Space};
use tagmatch::ids::Tag;

use crate::over_shm;

#[test]
fn who_makes_progress_once_in_a_while_is_reached_within_a_few_calls() {
    let open = [over_shm::shared, over_shm::listed];
    for open in open {
        let (mut own, mut peer) = (open(Config::default(), 0), open(Config::default(), 0));
        peer.set_address(Address(0), own.name()).unwrap();
        let hello = Send {
            space: Space::Untagged,
            to: Address(0),
            tag: Tag(0),
            payload: Payload::Copied(b"hello"),
            cq_data: None,
            level: Level::Inject,
            more: false,
            context: 0,
            flags: 0,
        };
        let (mut now, mut is_sent, mut calls) = (Duration::ZERO, false, 0);
        while own.depths(Space::Untagged).1 == 0 {
            for _ in 0..100 {
                is_sent = is_sent || peer.send(&hello).is_ok();
                peer.progress(now).unwrap();
            }
            now += Duration::from_millis(500);
            own.progress(now).unwrap();
            calls += 1;
            assert!(calls <= 16, "it has looked {calls} times, and nobody has reached it");
        }
    }
}
