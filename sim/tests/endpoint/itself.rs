//! An endpoint that has nothing but the card to reach itself: both ends of a connection are on one device.

use std::time::Instant;

use super::card::alone;
use tagmatch::device::transport::Payload;
use tagmatch::device::verbs::TagMatching;
use tagmatch::endpoint::{Address, Completed, Config, Endpoint, Level, Post, Send, SendRefused, Space};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, Tag};
use tagmatch::seam::Buffer;

fn memory(byte: u8, length: usize) -> Buffer {
    let memory: &'static mut [u8] = vec![byte; length].leak();
    Buffer::new(memory.as_mut_ptr().expose_provenance() as u64, length as u64)
}

fn until(own: &mut Endpoint, began: Instant, mut is_so: impl FnMut(&mut Endpoint) -> bool) {
    for _ in 0..2_000_000 {
        if is_so(own) {
            return;
        }
        own.progress(began.elapsed()).unwrap();
        std::thread::yield_now();
    }
    panic!("it never comes about");
}

#[test]
fn messages_to_oneself_by_the_card_arrive_eagerly_and_by_rendezvous() {
    for tag_matching in [TagMatching::Off, TagMatching::Required] {
        let (mut own, began) = (alone(Config::default(), tag_matching), Instant::now());
        let name = own.name().to_vec();
        own.set_address(Address(0), &name).unwrap();
        let lengths = [5, 100_000, 0, 9000, 1_000_000];
        for (context, length) in (0..).zip(lengths) {
            let (buffer, tag) = (memory(0, length), Tag(context));
            let (space, ignore, kind) = (Space::Tagged, Ignore::NONE, Kind::Once);
            let source = Some(Address(0)).filter(|_| context % 2 == 0);
            own.post(&Post { space, source, tag, ignore, buffer, kind, context, flags: 0 }).unwrap();
        }
        for (context, length) in (0..).zip(lengths) {
            let payload = Payload::Memory(memory(7, length));
            let (space, to, tag, level) = (Space::Tagged, Address(0), Tag(context), Level::Transmit);
            let (cq_data, more, context) = (None, false, 100 + context);
            let send = Send { space, to, tag, payload, cq_data, level, more, context, flags: 0 };
            until(&mut own, began, |own| match own.send(&send) {
                Ok(()) => true,
                Err(SendRefused::Again) => false,
                Err(other) => panic!("{other}"),
            });
        }
        let (mut received, mut sent) = (Vec::new(), Vec::new());
        until(&mut own, began, |own| {
            while let Some(done) = own.poll_completion() {
                match done.what {
                    Completed::Received { placed, .. } => received.push((done.context, placed)),
                    Completed::Sent => sent.push(done.context),
                    other => panic!("{other:?}"),
                }
            }
            received.len() == lengths.len() && sent.len() == lengths.len()
        });
        received.sort_unstable();
        sent.sort_unstable();
        assert_eq!(received, [(0, 5), (1, 100_000), (2, 0), (3, 9000), (4, 1_000_000)]);
        assert_eq!(sent, [100, 101, 102, 103, 104]);
        own.close(began.elapsed());
        until(&mut own, began, |own| own.is_closed());
    }
}
