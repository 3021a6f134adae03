//! A transport that fails takes its endpoint with it: everything ends once, nothing is written any more, and every call
//! says so.

use super::super::{
    Completed, Config, EndpointError, Failure, Level, PeekAction, Post, PostError, Send, SendRefused, Space,
};
use super::sim::{Receive, Sim, bytes, message, receive};
use super::world::{Fault, Weather};
use crate::engine::Kind;
use crate::ids::{Ignore, MessageToken, Tag, TagHandle, TransferId};
use crate::seam::{Buffer, Data, DataError, DataTarget, DeviceError, Event};

#[test]
fn everything_ends_once_and_every_later_call_says_so() {
    for (fault, tags) in [(Fault::Error, 0), (Fault::Event, 0), (Fault::Error, 8), (Fault::Event, 8)] {
        let config = Config { eager_limit: 1000, segmented_limit: 100_000, ..Config::default() };
        let mut sim = Sim::listed(3, 1, Weather { delay: 3, ..Weather::default() }, config, tags);
        for other in [1, 2] {
            sim.send_bytes(other, 0, 9, b"unexpected", 1);
            sim.send_bytes(0, other, 9, b"", 1);
        }
        sim.until("they are there", |sim| sim.at(0).depths(Space::Tagged).1 == 2);
        assert!(matches!(sim.peek(0, 9, PeekAction::Claim, 2), Completed::Peeked(_)));
        // Sends by each protocol that wait for an answer, and receives of each kind, some with data on its way.
        for (context, length) in [(10, 10), (11, 5000), (12, 300_000)] {
            let buffer = sim.world.allocate(&bytes(context, length));
            sim.send(0, &Send { level: Level::Match, ..message(1, 3, buffer, context) });
        }
        sim.post(0, &receive(4, 300_000, 20));
        sim.post(0, &receive(5, 2000, 21));
        sim.post(0, &Receive { source: Some(2), ..receive(6, 2000, 22) });
        let kind = Kind::Multi { least: 10 };
        sim.post(0, &Receive { space: Space::Untagged, kind, ..receive(0, 2000, 23) });
        sim.send_bytes(1, 0, 4, &bytes(4, 300_000), 1);
        sim.steps(2);
        let node = sim.nodes[0];
        sim.world.lock().faults.insert(node, fault);
        let now = sim.now();
        let failed = EndpointError::Device(DeviceError::Removed);
        assert_eq!(sim.at(0).progress(now), Err(failed.clone()));
        sim.collect(0);
        for context in [10, 11, 12, 20, 21, 22] {
            assert_eq!(sim.of(0, context), [Completed::Failed(Failure::Device)], "{context}");
        }
        assert_eq!(sim.of(0, 23), [Completed::Failed(Failure::Device), Completed::Released]);
        assert_eq!(sim.at(0).sends_in_progress(), 0);
        // The memory is the user's again: nothing writes there.
        let before = sim.world.lock().memory.clone();
        for _ in 0..200 {
            sim.world.lock().now += 1;
            assert_eq!(sim.at(0).progress(now), Err(failed.clone()));
            sim.progress(1);
            sim.progress(2);
        }
        sim.collect(0);
        assert_eq!(sim.world.lock().memory, before);
        assert_eq!(sim.of(0, 20).len(), 1);
        let refused = sim.at(0).send(&message(1, 3, Buffer::default(), 30));
        assert_eq!(refused, Err(SendRefused::Endpoint(failed.clone())));
        let post = Post {
            space: Space::Tagged,
            source: None,
            tag: Tag(1),
            ignore: Ignore::NONE,
            buffer: Buffer::default(),
            kind: Kind::Once,
            context: 31,
            flags: 0,
        };
        assert_eq!(sim.at(0).post(&post), Err(PostError::Endpoint(failed.clone())));
        assert_eq!(sim.peek(0, 9, PeekAction::Look, 32), Completed::Failed(Failure::Device));
        sim.at(0).receive_claimed(2, Buffer::default(), 7).unwrap();
        sim.collect(0);
        assert_eq!(sim.of(0, 2).last(), Some(&Completed::Failed(Failure::Device)));
        assert!(!sim.at(0).cancel(20));
        assert!(!sim.at(0).may_wait(), "whoever waits is told");
        sim.at(0).close(now);
        assert!(sim.at(0).is_closed());
        // Its peers hear of its end.
        sim.until("they know", |sim| (1..3).all(|at| sim.at(at).statistics().lost == 1));
    }
}

/// Data that nobody waits for.
fn data(target: DataTarget, error: Option<DataError>) -> Event {
    Event::Data(Data { target, length: 8, immediate: None, error })
}

#[test]
fn what_a_device_may_not_say_is_counted_and_the_endpoint_goes_on_where_nothing_is_lost() {
    let transfer = TransferId { index: 77, generation: 1 };
    let message = MessageToken(u64::MAX);
    for event in [
        data(DataTarget::Transfer(transfer), None),
        data(DataTarget::Message(message), Some(DataError::PathLost)),
    ] {
        for tagged in [true, false] {
            let mut sim = Sim::pair();
            let node = sim.nodes[0];
            sim.world.lock().faults.insert(node, Fault::Says(tagged, event.clone()));
            sim.steps(2);
            assert_eq!(sim.at(0).statistics().device_faults, 1, "{event:?}");
            assert_eq!(sim.at(0).failure(), None);
            sim.post(0, &receive(4, 8, 20));
            sim.send_bytes(1, 0, 4, b"it works", 1);
            assert_eq!(sim.received(0, 20).0, b"it works");
        }
    }
}

#[test]
fn an_endpoint_whose_device_means_another_list_fails_and_everything_ends_once() {
    for tagged in [true, false] {
        let mut sim = Sim::pair();
        sim.post(0, &receive(4, 8, 20));
        let node = sim.nodes[0];
        let event = Event::Released(TagHandle { index: 5, generation: 3 });
        sim.world.lock().faults.insert(node, Fault::Says(tagged, event));
        let now = sim.now();
        let failed = sim.at(0).progress(now).unwrap_err();
        assert!(matches!(failed, EndpointError::Device(DeviceError::Contract(_))), "{failed:?}");
        assert_eq!(sim.at(0).statistics().device_faults, 1);
        sim.collect(0);
        assert_eq!(sim.of(0, 20), [Completed::Failed(Failure::Device)]);
        assert_eq!(sim.at(0).progress(now), Err(failed));
    }
}
