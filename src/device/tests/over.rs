//! A list over a transport: what it matches, what it counts, and that an engine with it matches as one without.

use super::{
    Heard, Memory, Policy, RECEIVED_FROM, Rig, over_every_listed_transport, pattern,
    where_the_listed_transport_reads,
};
use crate::device::transport::{CloseReason, Kept, Notice, Payload};
use crate::engine::{Config, End, Engine, Kind, Posting, Receive};
use crate::ids::{Ignore, Source, Tag, TagHandle};
use crate::matching::Pattern;
use crate::seam::{Answer, Command, DataTarget, Event, MatchStage, Operation, Remote};
use crate::wire::SegmentFirst;

over_every_listed_transport!(
    what_fits_an_entry_goes_into_its_buffer,
    what_fits_none_is_counted_and_told,
    a_rendezvous_is_read_for_its_entry,
    a_rendezvous_longer_than_its_entry_is_handed_back,
    messages_wait_for_receives_in_their_order,
    a_delete_takes_an_entry_out_or_comes_too_late,
    a_lost_path_is_told_behind_what_was_told_of_it,
    segments_with_a_tag_end_the_link,
    messages_without_a_tag_are_answered_beside_such_with_one,
    a_list_that_failed_says_so_in_every_turn,
    an_engine_with_a_list_matches_as_the_standard_says,
);
where_the_listed_transport_reads!(a_read_that_fails_releases_its_entry);

const TAGS: u32 = 4;

fn handle(index: u32) -> TagHandle {
    TagHandle { index, generation: 0 }
}

fn add(rig: &mut Rig, index: u32, tag: u64, memory: &Memory) {
    let (tag, ignore, buffer) = (Tag(tag), Ignore::NONE, memory.buffer());
    let command =
        Command::Add { handle: handle(index), tag, ignore, buffer, unexpected_count: 0, signalled: true };
    assert_eq!(rig.receiver().submit(&[command]), Ok(1));
}

fn receives(rig: &mut Rig, buffers: u32) {
    assert_eq!(rig.receiver().submit(&[Command::Receive { buffers }]), Ok(1));
}

fn events(rig: &mut Rig) -> Vec<Event> {
    let of = |heard: &Heard| match heard {
        Heard::Event(true, event) => Some(event.clone()),
        _ => None,
    };
    rig.ear().heard.iter().filter_map(of).collect()
}

fn until_released(rig: &mut Rig, index: u32) {
    let says = |event: &Event| match event {
        Event::Released(released) => *released == handle(index),
        Event::Matched(matched) => matched.released && matched.handle == handle(index),
        _ => false,
    };
    rig.until(|rig| events(rig).iter().any(says));
}

fn what_fits_an_entry_goes_into_its_buffer(mut rig: Rig) {
    receives(&mut rig, 40);
    for (index, size) in [(0, 0), (1, 10), (2, 60_000)] {
        let into = Memory::zeros(65_536);
        add(&mut rig, index, 5, &into);
        rig.send_eager(5, &pattern(index as usize, size));
        until_released(&mut rig, index);
        assert_eq!(into.bytes()[..size], pattern(index as usize, size));
        let told = events(&mut rig);
        let done = |event: &Event| matches!(event, Event::Operation(done) if done.operation == Operation::Add(handle(index)));
        let matched =
            |event: &Event| matches!(event, Event::Matched(matched) if matched.handle == handle(index));
        let place = |is_it: &dyn Fn(&Event) -> bool| told.iter().position(is_it).expect("it was told");
        assert!(place(&done) < place(&matched));
        let Event::Matched(matched) = &told[place(&matched)] else { unreachable!() };
        assert_eq!((matched.source, matched.tag), (RECEIVED_FROM, Tag(5)));
        match matched.stage {
            MatchStage::Complete => assert_eq!(matched.length, size as u64),
            MatchStage::DataFollows => {
                let data = rig.ear().data();
                let data = data.last().expect("it follows");
                assert_eq!((data.target, data.length), (DataTarget::Entry(handle(index)), size as u64));
            }
            MatchStage::SoftwareRendezvous(_) => panic!("it is none"),
        }
    }
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), Kept::default());
}

fn what_fits_none_is_counted_and_told(mut rig: Rig) {
    receives(&mut rig, 40);
    let (entry, accepted, held) = (Memory::zeros(65_536), Memory::zeros(10), Memory::zeros(10));
    add(&mut rig, 0, 5, &entry);
    rig.ear().policy = Policy::Accept([accepted.buffer()].into());
    rig.send_eager(6, b"at once");
    rig.send_eager(7, b"later");
    let arrivals = rig.until_arrived(2);
    assert!(arrivals.iter().all(|arrival| arrival.counted));
    rig.until(|_| accepted.bytes().starts_with(b"at once"));
    let transfer = rig.accept(arrivals[1].message, &held);
    assert_eq!(rig.until_transferred(transfer).error, None);
    assert!(held.bytes().starts_with(b"later"));
    // The count goes with the next operation.
    let into = Memory::zeros(65_536);
    add(&mut rig, 1, 8, &into);
    rig.until(|rig| {
        let added = Operation::Add(handle(1));
        events(rig).iter().any(
            |event| matches!(event, Event::Operation(done) if done.operation == added && done.phase == 2),
        )
    });
    // Out of phase it is not active.
    rig.send_eager(8, b"unexpected");
    let message = rig.until_arrived(3)[2].message;
    let into = Memory::zeros(10);
    assert_eq!(rig.receiver().place_held(message, &into.buffer()), rig.ear().arrivals()[2].in_hand);
    assert!(!rig.receiver().place_held(message, &into.buffer()));
}

fn a_rendezvous_is_read_for_its_entry(mut rig: Rig) {
    receives(&mut rig, 40);
    let (from, into) = (Memory::new(pattern(1, 500_000)), Memory::zeros(500_000));
    add(&mut rig, 0, 5, &into);
    let request = rig.send_rendezvous(5, from.buffer());
    until_released(&mut rig, 0);
    assert_eq!(into.bytes(), pattern(1, 500_000));
    let fin = request.fin().to_bytes().to_vec();
    rig.until(|rig| rig.sender_ear().controls().contains(&fin));
    let stages: Vec<_> = events(&mut rig)
        .iter()
        .filter_map(|event| match event {
            Event::Matched(matched) => Some(matched.stage),
            _ => None,
        })
        .collect();
    assert_eq!(stages, [MatchStage::DataFollows]);
}

fn a_rendezvous_longer_than_its_entry_is_handed_back(mut rig: Rig) {
    receives(&mut rig, 40);
    let (from, entry, into) =
        (Memory::new(pattern(1, 100_000)), Memory::zeros(65_536), Memory::zeros(100_000));
    add(&mut rig, 0, 5, &entry);
    let request = rig.send_rendezvous(5, from.buffer());
    until_released(&mut rig, 0);
    let crate::wire::RemoteMemory { address, key, length } = request.memory;
    let remote = Remote { address, key, length };
    assert!(events(&mut rig).iter().any(|event| {
        matches!(event, Event::Matched(matched) if matched.stage == MatchStage::SoftwareRendezvous(remote))
    }));
    let transfer = rig.ear().transfer();
    let (tag, app_ctx, buffer) = (Tag(5), request.context.to_bits(), into.buffer());
    let command = Command::Read { transfer, peer: RECEIVED_FROM, tag, app_ctx, remote, buffer };
    assert_eq!(rig.receiver().submit(&[command]), Ok(1));
    assert_eq!(rig.until_transferred(transfer).error, None);
    assert_eq!(into.bytes(), pattern(1, 100_000));
    let fin = request.fin().to_bytes().to_vec();
    rig.until(|rig| rig.sender_ear().controls().contains(&fin));
    // There is nothing to read twice.
    let transfer = rig.ear().transfer();
    let command = Command::Read { transfer, peer: RECEIVED_FROM, tag, app_ctx, remote, buffer };
    assert_eq!(rig.receiver().submit(&[command]), Ok(1));
    assert!(rig.until_transferred(transfer).error.is_some());
}

fn a_read_that_fails_releases_its_entry(mut rig: Rig) {
    receives(&mut rig, 40);
    let (from, into) = (Memory::new(pattern(1, 1000)), Memory::zeros(65_536));
    add(&mut rig, 0, 5, &into);
    let mut request = rig.send_rendezvous(6, from.buffer());
    request.memory.key = request.memory.key.wrapping_add(1);
    request.tag = Tag(5);
    let mut bytes = [0; 32];
    request.encode(&mut bytes).expect("it is good");
    rig.send(&super::rig::outgoing(&bytes, crate::device::transport::Payload::Copied(&[])));
    until_released(&mut rig, 0);
    let data = rig.ear().data();
    assert_eq!(data.len(), 1);
    assert_eq!(data[0].target, DataTarget::Entry(handle(0)));
    assert!(data[0].error.is_some());
    rig.until(|rig| rig.sender_ear().controls().contains(&vec![0, 0x2A, 2, 0, 0, 0, 0, 5]));
    // Nothing else has changed.
    rig.send_eager(9, b"next");
    rig.until_arrived(2);
}

fn messages_wait_for_receives_in_their_order(mut rig: Rig) {
    for seed in 0..50 {
        rig.send_eager(seed as u64, &pattern(seed, 100));
    }
    rig.until(|rig| rig.receiver().kept(RECEIVED_FROM).messages == 50);
    assert_eq!(rig.ear().arrivals(), []);
    receives(&mut rig, 33);
    rig.until_arrived(33);
    receives(&mut rig, 33);
    let arrivals = rig.until_arrived(50);
    for (tag, arrival) in arrivals.iter().enumerate() {
        assert_eq!((arrival.header.tag, arrival.in_hand), (Tag(tag as u64), false));
        let into = Memory::zeros(100);
        let transfer = rig.accept(arrival.message, &into);
        assert_eq!(rig.until_transferred(transfer).error, None);
        assert_eq!(into.bytes(), pattern(tag, 100));
    }
}

fn a_delete_takes_an_entry_out_or_comes_too_late(mut rig: Rig) {
    receives(&mut rig, 40);
    let into = Memory::zeros(65_536);
    add(&mut rig, 0, 5, &into);
    add(&mut rig, 1, 6, &into);
    rig.send_eager(5, b"matched");
    rig.until(|rig| events(rig).iter().any(|event| matches!(event, Event::Matched(_))));
    let del = |index| Command::Del { handle: handle(index), signalled: true };
    assert_eq!(rig.receiver().submit(&[del(1)]), Ok(1));
    until_released(&mut rig, 1);
    rig.send_eager(6, b"unexpected");
    let message = rig.until_arrived(1)[0].message;
    rig.answer(message, Answer::Discard);
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), Kept::default());
}

fn a_lost_path_is_told_behind_what_was_told_of_it(mut rig: Rig) {
    receives(&mut rig, 40);
    let from = Memory::new(pattern(1, 1000));
    rig.send_eager(5, b"whole");
    rig.send_rendezvous(6, from.buffer());
    let arrivals = rig.until_arrived(2);
    let link = rig.sender_link();
    rig.sender().close(link, false);
    let lost = Event::PathLost { peer: RECEIVED_FROM };
    rig.until(|rig| events(rig).contains(&lost));
    let data = rig.ear().data();
    assert_eq!(data.len(), 1, "{data:?}");
    assert_eq!(data[0].target, DataTarget::Message(arrivals[1].message));
    assert!(rig.ear().heard.contains(&Heard::Event(false, lost)));
    let into = Memory::zeros(5);
    let transfer = rig.accept(arrivals[0].message, &into);
    assert_eq!(rig.until_transferred(transfer).error, None);
    assert_eq!(into.bytes(), b"whole");
}

/// A list has no room for the length of the whole message, and would fail.
fn segments_with_a_tag_end_the_link(mut rig: Rig) {
    receives(&mut rig, 40);
    let into = Memory::zeros(65_536);
    add(&mut rig, 0, 5, &into);
    let first = |tag: Option<Tag>| SegmentFirst {
        context: super::rig::context(if tag.is_some() { 2 } else { 1 }),
        tag,
        total_length: 300_000,
        cq_data: None,
        payload: crate::wire::Payload::new(&[7; 100]),
    };
    // Without a tag they are nothing to the list.
    let header = first(None).header().expect("it is good");
    rig.send(&super::rig::outgoing(&header, Payload::Copied(&[7; 100])));
    rig.until(|rig| rig.ear().arrivals().len() == 1);
    assert!(rig.ear().notices().is_empty());
    let header = first(Some(Tag(5))).header().expect("it is good");
    rig.send(&super::rig::outgoing(&header, Payload::Copied(&[7; 100])));
    rig.until(|rig| !rig.ear().notices().is_empty());
    let notices = rig.ear().notices();
    let [Notice::Closed { reason: CloseReason::Protocol(_), .. }] = notices.as_slice() else {
        panic!("{notices:?}")
    };
    let told = events(&mut rig);
    assert!(
        !told.iter().any(|event| matches!(event, Event::Matched(_) | Event::DeviceFailed(_))),
        "{told:?}"
    );
    assert_eq!(into.bytes(), [0; 65_536]);
    // The list goes on.
    let del = Command::Del { handle: handle(0), signalled: true };
    assert_eq!(rig.receiver().submit(&[del]), Ok(1));
    until_released(&mut rig, 0);
}

fn messages_without_a_tag_are_answered_beside_such_with_one(mut rig: Rig) {
    receives(&mut rig, 40);
    for round in 0..3 {
        rig.send_untagged(1, b"without");
        rig.send_eager(5, b"with");
        rig.send_untagged(2, b"dropped");
        let arrivals = rig.until_arrived(3 * (round + 1));
        let [without, with, dropped] = arrivals[3 * round..] else { panic!("{arrivals:?}") };
        assert_eq!((without.counted, with.counted), (false, true));
        let (first, second) = (Memory::zeros(7), Memory::zeros(7));
        let transfer = rig.accept(without.message, &first);
        assert_eq!(rig.until_transferred(transfer).error, None);
        if round == 1 {
            assert_eq!(rig.receiver().place_held(with.message, &second.buffer()), with.in_hand);
        } else {
            let transfer = rig.accept(with.message, &second);
            assert_eq!(rig.until_transferred(transfer).error, None);
        }
        rig.answer(dropped.message, Answer::Discard);
        assert_eq!(first.bytes(), b"without");
        assert!(!rig.ear().arrivals()[3 * round + 1].in_hand || second.bytes().starts_with(b"with"));
        rig.until(|rig| rig.receiver().kept(RECEIVED_FROM) == Kept::default());
    }
    let told = |heard: &Heard| match heard {
        Heard::Event(tagged, Event::Data(data)) => Some((*tagged, data.length)),
        _ => None,
    };
    let data: Vec<_> = rig.ear().heard.iter().filter_map(told).collect();
    assert_eq!(data.iter().filter(|of| **of == (false, 7)).count(), 3, "{data:?}");
}

fn a_list_that_failed_says_so_in_every_turn(mut rig: Rig) {
    receives(&mut rig, 40);
    let del = Command::Del { handle: handle(9), signalled: true };
    assert!(rig.receiver().submit(&[del]).is_err());
    let mut ear = super::rig::Recorder::default();
    let mut failures = 0;
    for _ in 0..5 {
        failures += usize::from(rig.receiver().progress(50, &mut ear).is_err());
    }
    assert!(failures >= 4, "{failures}");
    assert!(rig.receiver().submit(&[Command::Receive { buffers: 1 }]).is_err());
}

/// A receive that was posted, as the oracle sees it.
struct Posted {
    tag: Tag,
    ignore: Ignore,
    memory: Memory,
}

/// Everything is done one after the other, so that there is one right outcome: each message goes to the receive that
/// was posted first of those that fit.
fn an_engine_with_a_list_matches_as_the_standard_says(mut rig: Rig) {
    let mut engine = Engine::new(Config::default());
    let device = engine.add_device(rig.receiver().capabilities()).expect("it is the first");
    for _ in 0..TAGS {
        assert!(engine.add_bounce_buffer(device, Memory::zeros(65_536).buffer()));
    }
    rig.ear().engine = Some(engine);
    let mut random = super::Random(7);
    let mut posted: Vec<Option<Posted>> = Vec::new();
    let mut unexpected: Vec<(Tag, usize, usize)> = Vec::new();
    let mut expected: Vec<(u64, usize, usize)> = Vec::new();
    let mut ended: Vec<(u64, End)> = Vec::new();
    let mut sent = 0;
    let fits = |posted: &Posted, tag: Tag| (posted.tag.0 ^ tag.0) & !posted.ignore.0 == 0;
    for turn in 0..1500 {
        let tag = Tag(random.below(4) as u64);
        if random.below(2) == 0 {
            let ignore = if random.below(5) == 0 { Ignore::ALL } else { Ignore::NONE };
            let memory = Memory::zeros([100, 65_536, 200_000][random.below(3)]);
            let pattern = Pattern { source: Source::Any, tag, ignore };
            let buffer = memory.buffer();
            let context = posted.len() as u64;
            let receive = Receive { pattern, buffer, context, kind: Kind::Once };
            let posting = rig.ear().engine.as_mut().expect("it is there").post(&receive);
            let this = Posted { tag, ignore, memory };
            let found = unexpected.iter().position(|(tag, ..)| fits(&this, *tag));
            assert_eq!(matches!(posting, Posting::Queued(_)), found.is_none());
            if let Some(found) = found {
                let (_, seed, length) = unexpected.remove(found);
                expected.push((context, seed, length));
            }
            posted.push(Some(this));
        } else {
            let length = [0, 50, 3000, 60_000, 150_000][random.below(5)] + turn;
            let bytes = pattern(turn, length);
            if length > 65_536 || random.below(4) == 0 {
                rig.send_rendezvous(tag.0, Memory::new(bytes).buffer());
            } else {
                rig.send_eager(tag.0, &bytes);
            }
            sent += 1;
            let is_open = |context: &usize| !expected.iter().any(|(other, ..)| *other == *context as u64);
            let taker = (0..posted.len())
                .filter(is_open)
                .find(|context| posted[*context].as_ref().is_some_and(|posted| fits(posted, tag)));
            match taker {
                Some(context) => expected.push((context as u64, turn, length)),
                None => unexpected.push((tag, turn, length)),
            }
        }
        for _ in 0..random.below(3) {
            rig.step();
        }
        let kept = unexpected.len();
        let count = sent - kept;
        rig.until(|rig| {
            let ear = rig.ear();
            let engine = ear.engine.as_mut().expect("it is there");
            let completed = std::iter::from_fn(|| engine.poll_completion());
            let new: Vec<_> = completed.map(|completion| (completion.context, completion.end)).collect();
            let depths = engine.depths();
            let fault = engine.poll_fault();
            assert!(fault.is_none(), "{fault:?}");
            ear.ended.extend(new);
            ear.ended.len() == count && depths.1 == kept
        });
    }
    ended.append(&mut rig.ear().ended);
    let mut matched_by_list = 0;
    for (context, end) in ended {
        let End::Received(message) = end else { panic!("{end:?}") };
        let place = expected.iter().position(|(other, ..)| *other == context).expect("it was to take one");
        let (_, seed, length) = expected.swap_remove(place);
        assert_eq!(message.length, length as u64, "{message:?}");
        let memory = &posted[usize::try_from(context).expect("small")].as_ref().expect("it is kept").memory;
        let placed = usize::try_from(message.placed).expect("small");
        assert_eq!(memory.bytes()[..placed], pattern(seed, length)[..placed]);
        matched_by_list += usize::from(message.matched_by.is_some());
    }
    assert_eq!(expected, []);
    assert!(matched_by_list > 100, "the list took {matched_by_list} only");
}
