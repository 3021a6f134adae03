//! Which receive takes which message: fields of tags (B04), protocols and connections (B06), and receives for anybody
//! and for one sender mixed, which an oracle decides.

use std::collections::HashMap;

use super::LONG;
use super::common::pair::{ANY, Pair, pattern};
use super::common::{ROUNDS, Received, Side, Wanted, fabric, minus};
use tagmatch::ids::{Ignore, PeerId, Source, Tag};
use tagmatch::matching::{Arrived, Envelope, Naive, Pattern, Posted, Stay};
use tagmatch::provider::abi;

/// Where the fields of tags lie that MPIs lay out: the first bit, and how many.
const FIELDS: [(u32, u32); 10] = [
    // Context, protocol, tag; context, source, protocol, tag.
    (34, 30),
    (32, 2),
    (0, 32),
    (52, 12),
    (34, 18),
    // Protocol, context, tag; context, source, tag.
    (51, 5),
    (31, 20),
    (0, 31),
    (42, 16),
    (19, 23),
];

#[test]
fn b04_messages_that_differ_in_one_bit_of_a_field_are_never_taken_for_each_other() {
    let library = fabric();
    let info = library.info(library.api(), |_| {}).unwrap();
    // SAFETY: an info of this library.
    unsafe {
        assert_eq!((*(*info).ep_attr).mem_tag_format & !(u64::MAX >> 1), 1 << 63, "all bits are offered");
        (library.freeinfo)(info);
    }
    let pair = Pair::new();
    let wanted = 0x5555_aaaa_3333_cccc;
    for (start, width) in FIELDS {
        for bit in [start, start + width - 1] {
            let other = wanted ^ (1 << bit);
            let (mut first, mut second) = ([0; 4], [0; 4]);
            assert_eq!(pair.b.receive(ANY, wanted, 0, &mut first, 1), 0);
            pair.send(other, b"no");
            pair.send(wanted, b"yes");
            assert_eq!(pair.received(), (1, wanted, 3), "bit {bit}");
            assert_eq!(pair.b.receive(ANY, other, 0, &mut second, 2), 0);
            assert_eq!(pair.received(), (2, other, 2), "bit {bit}");
            assert_eq!((&first[..3], &second[..2]), (b"yes".as_slice(), b"no".as_slice()));
        }
    }
}

/// Eager and by rendezvous, long after short and short after long.
const LENGTHS: [usize; 8] = [1, LONG, 0, 16_384, 65, LONG, 64, 16_385];

#[test]
fn b06_messages_of_one_sender_do_not_overtake_each_other_whichever_way_they_go() {
    let library = fabric();
    let info = library.info(library.api(), |_| {}).unwrap();
    // SAFETY: an info of this library.
    unsafe {
        assert_eq!((*(*info).tx_attr).msg_order & abi::FI_ORDER_SAS, abi::FI_ORDER_SAS);
        (library.freeinfo)(info);
    }
    // So many of the receives are posted before anything is sent.
    for posted in [0, 3, LENGTHS.len()] {
        let pair = Pair::new();
        let payloads: Vec<Vec<u8>> = (0..).zip(LENGTHS).map(|(seed, length)| pattern(length, seed)).collect();
        let mut buffers = LENGTHS.map(|_| vec![0; LONG]);
        let mut waiting = (0..).zip(&mut buffers);
        let mut post = |count| {
            for (context, buffer) in waiting.by_ref().take(count) {
                assert_eq!(pair.b.receive(pair.to_a, 0, 0, buffer, context), 0);
            }
        };
        post(posted);
        for (data, payload) in (0..).zip(&payloads) {
            pair.a.send_surely(&[&pair.b], |a| a.send_data(pair.to_b, 0, payload, data, 100 + data));
        }
        post(LENGTHS.len());
        let mut ends = LENGTHS.map(|_| pair.b.next(&[&pair.a]));
        // Short ones may be done first.
        ends.sort_unstable_by_key(Received::context);
        for (number, end) in (0..).zip(ends) {
            let Received::Ok { context, data, length, .. } = end else { panic!("{end:?}") };
            assert_eq!((context, data), (number, number), "{posted} posted before");
            let number = usize::try_from(number).unwrap();
            assert_eq!(buffers[number][..length], payloads[number], "{posted} posted before");
        }
        let sent = LENGTHS.map(|_| pair.a.next(&[&pair.b]));
        assert!(sent.iter().all(|end| matches!(end, Received::Ok { .. })), "{sent:?}");
    }
}

#[test]
fn b06_messages_that_begin_two_connections_at_once_arrive_in_their_order() {
    for first in [0, 1] {
        let pair = Pair::new();
        let sides = [(&pair.a, pair.to_b), (&pair.b, pair.to_a)];
        let mut next = [0u64; 2];
        for _ in 0..ROUNDS {
            for which in [first, 1 - first] {
                let (side, to) = sides[which];
                if next[which] < 50 {
                    let result = side.inject(to, 0, &next[which].to_be_bytes(), None);
                    assert!(result == 0 || result == minus(abi::FI_EAGAIN), "{result}");
                    next[which] += u64::from(result == 0);
                }
            }
            if next == [50; 2] {
                break;
            }
        }
        for (which, (side, _)) in sides.into_iter().enumerate() {
            for number in 0..50u64 {
                let mut buffer = [0; 8];
                assert_eq!(side.receive(ANY, 0, 0, &mut buffer, number), 0);
                assert_eq!(side.next(&[sides[1 - which].0]).context(), number);
                assert_eq!(u64::from_be_bytes(buffer), number);
            }
        }
    }
}

/// Numbers by seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // Of Knuth's, and its upper half.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// One receiver, three senders and itself, and the oracle.
struct Run {
    receiver: Side,
    senders: Vec<Side>,
    /// What each sender calls the receiver; the last is the receiver itself.
    to: Vec<u64>,
    /// What the receiver calls each.
    from: Vec<u64>,
    oracle: Naive<u64, u64>,
    expected: HashMap<u64, Option<u64>>,
    ends: HashMap<u64, Option<u64>>,
    buffers: Vec<Vec<u8>>,
    /// Receives whose message was there before them.
    waited: usize,
}

const SENDERS: usize = 4;
const MARK: u64 = 0xffff;
const ROOM: usize = 20_000;

impl Run {
    fn new() -> Self {
        let receiver = Side::new();
        let senders: Vec<Side> = (1..SENDERS).map(|_| Side::new()).collect();
        let mut to: Vec<u64> = senders.iter().map(|sender| sender.insert(&receiver.name())).collect();
        let mut from: Vec<u64> = senders.iter().map(|sender| receiver.insert(&sender.name())).collect();
        let own = receiver.insert(&receiver.name());
        to.push(own);
        from.push(own);
        Self {
            receiver,
            senders,
            to,
            from,
            oracle: Naive::new(),
            expected: HashMap::new(),
            ends: HashMap::new(),
            buffers: Vec::new(),
            waited: 0,
        }
    }

    fn hear(&mut self) {
        for sender in &self.senders {
            sender.progress();
        }
        match self.receiver.poll() {
            Some(Received::Ok { context, data, .. }) => {
                assert_eq!(self.ends.insert(context, Some(data)), None, "{context} ended twice");
            }
            Some(Received::Error { context, error, .. }) => {
                assert!([abi::FI_ECANCELED, abi::FI_ENOMSG].contains(&error));
                assert_eq!(self.ends.insert(context, None), None, "{context} ended twice");
            }
            None => {}
        }
    }

    fn until_ended(&mut self, context: u64) {
        for _ in 0..ROUNDS {
            if self.ends.contains_key(&context) {
                return;
            }
            self.hear();
        }
        panic!("{context} never ended");
    }

    fn inject(&mut self, which: usize, tag: u64, length: usize, data: u64) {
        let payload = vec![7; length];
        for _ in 0..ROUNDS {
            let side = self.senders.get(which).unwrap_or(&self.receiver);
            match side.inject(self.to[which], tag, &payload, Some(data)) {
                0 => return,
                again => assert_eq!(again, minus(abi::FI_EAGAIN)),
            }
            self.hear();
        }
        panic!("never taken");
    }

    /// A message, and what shows that it is there.
    fn send(&mut self, which: usize, tag: u64, length: usize, number: u64) {
        let mark = number | 1 << 40;
        assert_eq!(self.receiver.receive(self.from[which], MARK, 0, &mut [], mark), 0);
        self.inject(which, tag, length, number);
        self.inject(which, MARK, 0, 0);
        self.until_ended(mark);
        let source = PeerId(u32::try_from(which).unwrap());
        if let Arrived::Matched { value, .. } = self.oracle.arrive(Envelope { tag: Tag(tag), source }, number)
        {
            self.expected.insert(value, Some(number));
        }
    }

    fn post(&mut self, which: Option<usize>, tag: u64, ignore: u64, context: u64) {
        let source = which.map_or(Source::Any, |which| Source::Peer(PeerId(u32::try_from(which).unwrap())));
        let pattern = Pattern { tag: Tag(tag), ignore: Ignore(ignore), source };
        let mut buffer = vec![0; ROOM];
        let from = which.map_or(ANY, |which| self.from[which]);
        assert_eq!(self.receiver.receive(from, tag, ignore, &mut buffer, context), 0);
        self.buffers.push(buffer);
        if let Posted::Matched { value, .. } = self.oracle.post(pattern, Stay::Once, context) {
            self.expected.insert(context, Some(value));
            self.waited += 1;
        }
    }

    /// The receive of this context, if it is still posted.
    fn cancel(&mut self, context: u64) {
        assert_eq!(self.receiver.cancel(context), 0);
        let is_it = |id: &tagmatch::ids::ReceiveId| {
            self.oracle.posted(*id).is_some_and(|(_, posted)| *posted == context)
        };
        if let Some(id) = self.oracle.posted_ids().into_iter().find(is_it) {
            self.oracle.take_posted(id);
            self.expected.insert(context, None);
        }
    }

    fn peek(&mut self, tag: u64, ignore: u64, context: u64) {
        assert_eq!(self.receiver.receive_message(tag, ignore, None, context, abi::FI_PEEK), 0);
        let pattern = Pattern { tag: Tag(tag), ignore: Ignore(ignore), source: Source::Any };
        let found = self.oracle.first_unexpected(&pattern);
        let found = found.and_then(|id| self.oracle.unexpected(id)).map(|(_, number)| *number);
        self.expected.insert(context, found);
        self.until_ended(context);
    }
}

#[test]
fn receives_for_anybody_and_for_one_take_messages_in_post_order_however_they_are_mixed() {
    let mut counts = [0; 3];
    for seed in 0..8 {
        let (mut run, mut random) = (Run::new(), Random(seed));
        let any_percent = [10, 50, 90][random.below(3)];
        for number in 1..=400u64 {
            let tag = random.below(3) as u64;
            let ignore = [0, 0, 3, 1][random.below(4)];
            match random.below(20) {
                0..8 => {
                    let length = [0, 8, 900, ROOM.min(16_384)][random.below(4)];
                    run.send(random.below(SENDERS), tag, length, number);
                }
                8..17 => {
                    let which = (random.below(100) >= any_percent).then(|| random.below(SENDERS));
                    run.post(which, tag, ignore, number);
                }
                17 => run.cancel(1 + random.below(400) as u64 % number),
                _ => run.peek(tag, ignore, number),
            }
        }
        // Whatever is left of receives is cancelled.
        for id in run.oracle.posted_ids() {
            let context = *run.oracle.posted(id).unwrap().1;
            run.cancel(context);
        }
        let contexts: Vec<u64> = run.expected.keys().copied().collect();
        for context in contexts {
            run.until_ended(context);
        }
        run.ends.retain(|context, _| context & 1 << 40 == 0);
        assert_eq!(run.ends, run.expected, "seed {seed}");
        let matched = run.ends.values().flatten().count();
        counts[0] += matched;
        counts[1] += run.ends.len() - matched;
        counts[2] += run.waited;
    }
    println!("{} found a message, {} none; {} messages waited for theirs", counts[0], counts[1], counts[2]);
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}

#[test]
fn tags_of_any_width_reach_receives_of_sides_that_ask_for_less() {
    let pair = Pair::with(Wanted { caps: abi::FI_TAGGED, ..Wanted::default() });
    let mut buffer = [0; 4];
    // Without FI_DIRECTED_RECV a source that is given says nothing.
    assert_eq!(pair.b.receive(12_345, u64::MAX, 0, &mut buffer, 1), 0);
    pair.send(u64::MAX, b"m");
    assert_eq!(pair.received(), (1, u64::MAX, 1));
}
