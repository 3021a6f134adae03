//! Remote memory access over real transports: what is written and read, in which order, who may what, and who is lost.

use super::*;
use tagmatch::atomics::{AtomicOp, AtomicType};
use tagmatch::endpoint::{Access, AtomicAccess, Local, Region, RegionTaken, RemoteAccess};
use tagmatch::seam::Segment;
use tagmatch::wire::RemoteStretch;

const BOTH: Access = Access { reads: true, writes: true };
/// How peers call the first byte of the regions of these tests.
const BASE: u64 = 0x1000;

fn segment(buffer: Buffer) -> Segment {
    Segment { address: buffer.address, length: buffer.length, key: 0 }
}

/// Bytes of the region of this key, counted from its first.
fn stretch(key: u64, from: u64, length: u64) -> RemoteStretch {
    RemoteStretch { key, address: BASE + from, length }
}

/// One segment and one stretch.
struct Simple {
    segments: [Segment; 1],
    stretches: [RemoteStretch; 1],
}

impl Simple {
    fn new(buffer: Buffer, key: u64, from: u64) -> Self {
        Self { segments: [segment(buffer)], stretches: [stretch(key, from, buffer.length)] }
    }

    fn access(&self, to: usize, context: u64) -> RemoteAccess<'_> {
        access(to, Local::Memory(&self.segments), &self.stretches, context)
    }
}

fn access<'a>(to: usize, local: Local<'a>, remote: &'a [RemoteStretch], context: u64) -> RemoteAccess<'a> {
    RemoteAccess { to: Address(to as u64), local, remote, cq_data: None, more: false, context, flags: 0 }
}

impl Net {
    /// Memory of this endpoint's that peers may access.
    fn region(&mut self, at: usize, key: u64, text: &[u8], access: Access) -> Buffer {
        let buffer = memory(text);
        self.at(at).register(&Region { key, address: BASE, buffer, access }).unwrap();
        buffer
    }

    fn ask(&mut self, from: usize, is_read: bool, access: &RemoteAccess<'_>) {
        self.until("an access is taken", |net| {
            let endpoint = net.at(from);
            match if is_read { endpoint.read(access) } else { endpoint.write(access) } {
                Ok(()) => true,
                Err(SendRefused::Again) => false,
                Err(other) => panic!("{other}"),
            }
        });
    }

    fn events(&self, at: usize) -> Vec<Completed> {
        let is_event =
            |what: &Completed| matches!(what, Completed::WrittenByPeer { .. } | Completed::ReadByPeer { .. });
        self.said[at].iter().map(|said| said.what).filter(is_event).collect()
    }
}

fn all(buffer: Buffer) -> Vec<u8> {
    read(buffer.address, buffer.length)
}

#[test]
fn writes_and_reads_of_all_lengths_hit_their_stretch_and_nothing_beside_it() {
    let mut net = Net::new(2, Config { remote_events: true, ..Config::default() });
    let mut context = 0;
    for to in [1, 0] {
        for length in LENGTHS {
            let (key, ours) = (100 + context, bytes(context, length));
            let theirs = bytes(7, length + 200);
            let region = net.region(to, key, &theirs, BOTH);
            let write = Simple::new(memory(&ours), key, 100);
            let data = (length % 2 == 0).then_some(77);
            net.ask(0, false, &RemoteAccess { cq_data: data, ..write.access(to, context) });
            assert_eq!(net.ended(0, context), Completed::Written);
            let now = all(region);
            assert!(now[..100] == theirs[..100] && now[100 + length..] == theirs[100 + length..]);
            assert!(now[100..100 + length] == ours, "{length} to {to}");
            let back = memory(&vec![0xEE; length]);
            net.ask(0, true, &Simple::new(back, key, 50).access(to, context + 1));
            assert_eq!(net.ended(0, context + 1), Completed::Read);
            assert!(all(back) == now[50..50 + length], "{length} from {to}");
            let (length, source) = (length as u64, Some(Address(0)));
            net.until("the target is told", |net| net.events(to).len() == 2);
            let written = Completed::WrittenByPeer { key, length, cq_data: data, source };
            assert_eq!(net.events(to), [written, Completed::ReadByPeer { key, length, source }]);
            net.said[to].clear();
            context += 2;
        }
    }
    assert_eq!(net.at(0).sends_in_progress(), 0);
    assert_eq!(net.at(1).sends_in_progress(), 0);
}

#[test]
fn io_vectors_here_and_there_are_cut_differently_and_injected_bytes_are_free_at_once() {
    let mut net = Net::new(2, Config::default());
    let region = net.region(1, 1, &[0; 50_000], BOTH);
    let text = bytes(3, 40_000);
    let parts: Vec<Segment> = [10, 0, 20_000, 1, 19_989]
        .into_iter()
        .scan(0, |from, length| {
            *from += length;
            Some(segment(memory(&text[*from - length..*from])))
        })
        .collect();
    let there = [stretch(1, 0, 5), stretch(1, 100, 30_000), stretch(1, 40_000, 0), stretch(1, 40_001, 9_995)];
    net.ask(0, false, &access(1, Local::Memory(&parts), &there, 1));
    assert_eq!(net.ended(0, 1), Completed::Written);
    let now = all(region);
    assert!(now[..5] == text[..5] && now[5..100] == [0; 95] && now[100..30_100] == text[5..30_005]);
    assert!(now[30_100..40_001].iter().all(|byte| *byte == 0) && now[40_001..49_996] == text[30_005..]);
    let back: Vec<Buffer> = [1, 39_998, 0, 1].into_iter().map(|length| memory(&vec![0; length])).collect();
    let segments: Vec<Segment> = back.iter().map(|buffer| segment(*buffer)).collect();
    net.ask(0, true, &access(1, Local::Memory(&segments), &there, 2));
    assert_eq!(net.ended(0, 2), Completed::Read);
    assert!(back.into_iter().flat_map(all).collect::<Vec<u8>>() == text);
    for (context, length) in (10..).zip([0, 1, 100, 5000, 16 << 10]) {
        let mut text = bytes(context, length);
        let there = [stretch(1, 7, length as u64)];
        net.ask(0, false, &access(1, Local::Copied(&text), &there, context));
        text.fill(0);
        assert_eq!(net.ended(0, context), Completed::Written);
        assert!(all(region)[7..7 + length] == bytes(context, length));
    }
    let (long, there) = (vec![0; (16 << 10) + 1], [stretch(1, 0, (16 << 10) + 1)]);
    let refused = net.at(0).write(&access(1, Local::Copied(&long), &there, 3));
    assert_eq!(refused, Err(SendRefused::TooLong { length: (16 << 10) + 1, limit: 16 << 10 }));
    for is_read in [false, true] {
        let uneven = access(1, Local::Memory(&parts[..1]), &there, 4);
        let net = net.at(0);
        let refused = if is_read { net.read(&uneven) } else { net.write(&uneven) };
        assert_eq!(refused, Err(SendRefused::Uneven { here: 10, there: (16 << 10) + 1 }));
    }
}

#[test]
fn what_is_asked_for_takes_effect_in_order_also_with_messages_between() {
    let mut net = Net::new(2, Config::default());
    let region = net.region(1, 1, &[0; 300_000], BOTH);
    for round in 0..40_u64 {
        let length = [8, 300_000, 20_000][usize::try_from(round % 3).unwrap()];
        // Write after write, a message after writes, and a read after writes.
        let (first, second) = (bytes(round, length), bytes(round + 100, length / 2));
        net.ask(0, false, &Simple::new(memory(&first), 1, 0).access(1, 1));
        net.ask(0, false, &Simple::new(memory(&second), 1, 0).access(1, 2));
        net.send(0, &message(1, round, memory(b"there"), 3));
        let back = memory(&vec![0; length]);
        net.ask(0, true, &Simple::new(back, 1, 0).access(1, 4));
        net.post(1, Space::Tagged, None, round, 8, 5);
        assert_eq!(net.received(1, 5).0, b"there");
        let expected = [&second[..], &first[length / 2..]].concat();
        assert!(all(region)[..length] == expected, "a message came before what was written before it");
        assert_eq!(net.ended(0, 4), Completed::Read);
        assert!(all(back) == expected, "a read has not seen what was written before it");
        net.until("all are told", |net| net.said[0].len() == 4);
        net.said.iter_mut().for_each(Vec::clear);
    }
}

#[test]
fn who_may_not_is_told_once_nothing_is_touched_and_the_connection_stays() {
    let mut net = Net::new(2, Config { remote_events: true, ..Config::default() });
    let theirs = bytes(9, 100_000);
    let [open, shut] =
        [(1, Access::default()), (2, BOTH)].map(|(key, access)| (net.region(1, key, &theirs, access), key));
    let cases = [
        (RemoteStretch { key: 3, address: BASE, length: 100_000 }, Failure::NoRegion),
        (stretch(1, 0, 100_000), Failure::NotAllowed),
        (stretch(2, 1, 100_000), Failure::OutOfBounds),
        (RemoteStretch { key: 2, address: BASE - 1, length: 100_000 }, Failure::OutOfBounds),
        (RemoteStretch { key: 2, address: u64::MAX, length: 100_000 }, Failure::OutOfBounds),
        (RemoteStretch { key: 2, address: u64::MAX - 100_000, length: 100_000 }, Failure::OutOfBounds),
        (RemoteStretch { key: 2, address: 0, length: 100_000 }, Failure::OutOfBounds),
    ];
    let mine = memory(&bytes(1, 100_000));
    let mut context = 0;
    for is_read in [false, true] {
        for (there, failure) in cases {
            context += 1;
            let segments = [segment(mine)];
            net.ask(0, is_read, &access(1, Local::Memory(&segments), &[there], context));
            assert_eq!(net.ended(0, context), Completed::Failed(failure), "{there:?}");
        }
    }
    assert!(all(open.0) == theirs && all(shut.0) == theirs && all(mine) == bytes(1, 100_000));
    // One bad stretch of several: the operation fails once.
    let segments = [segment(Buffer { length: 30, ..mine })];
    for is_read in [false, true] {
        context += 1;
        let there = [stretch(2, 0, 10), stretch(3, 0, 10), stretch(2, 50, 10)];
        net.ask(0, is_read, &access(1, Local::Memory(&segments), &there, context));
        assert_eq!(net.ended(0, context), Completed::Failed(Failure::NoRegion));
    }
    let taken = net.at(1).register(&Region { key: 2, address: 0, buffer: mine, access: BOTH });
    assert_eq!(taken, Err(RegionTaken { key: 2 }));
    assert_eq!(net.at(1).withdraw_region(2), None);
    net.ask(0, true, &Simple::new(mine, 2, 0).access(1, 100));
    assert_eq!(net.ended(0, 100), Completed::Failed(Failure::NoRegion));
    assert_eq!((net.at(0).statistics().lost, net.at(1).statistics().protocol_errors), (0, 0));
}

#[test]
fn thousands_at_a_time_are_all_served() {
    let mut net = Net::new(2, Config::default());
    let count = 5000_u64;
    let region = net.region(1, 1, &[0; 5000 * 8], BOTH);
    let (ours, back) = (memory(&bytes(5, 5000 * 8)), memory(&[0; 5000 * 8]));
    for is_read in [false, true] {
        for number in 0..count {
            let local = if is_read { back } else { ours };
            let buffer = Buffer { address: local.address + 8 * number, length: 8, ..local };
            net.ask(0, is_read, &Simple::new(buffer, 1, 8 * number).access(1, number));
        }
        net.until("all are told", |net| net.said[0].len() as u64 == count);
        let what = if is_read { Completed::Read } else { Completed::Written };
        assert!(net.said[0].iter().all(|said| said.what == what));
        net.said[0].clear();
    }
    assert!(all(region) == all(ours) && all(back) == all(ours));
}

#[test]
fn a_region_is_free_when_it_says_so_whatever_is_under_way() {
    let mut net = Net::new(2, Config::default());
    for round in 0..20 {
        let theirs = bytes(1, 4 << 20);
        let region = net.region(1, 5, &theirs, BOTH);
        let mine = memory(&bytes(2, 4 << 20));
        net.ask(0, round % 2 == 0, &Simple::new(mine, 5, 0).access(1, 1));
        for _ in 0..round {
            net.step();
        }
        if let Some(withdrawn) = net.at(1).withdraw_region(5) {
            // One that is patient, and one that is not.
            if round % 4 < 2 {
                net.at(1).break_off_users(withdrawn);
            }
            net.until("nobody is at it", |net| !net.at(1).is_in_use(withdrawn));
        }
        let now = all(region);
        let said = net.ended(0, 1);
        let is_over = matches!(
            said,
            Completed::Written | Completed::Read | Completed::Failed(Failure::NoRegion | Failure::Lost)
        );
        assert!(is_over, "{said:?}");
        assert!(all(region) == now, "it was written after it was free");
        net.said[0].clear();
        net.ask(0, false, &Simple::new(Buffer { length: 1, ..mine }, 5, 0).access(1, 2));
        assert_eq!(net.ended(0, 2), Completed::Failed(Failure::NoRegion));
        net.said[0].clear();
    }
}

#[test]
fn a_peer_that_dies_ends_each_access_once_and_another_goes_on() {
    let mut net = Net::new(3, Config::default());
    for round in 0..8_u64 {
        let contexts = 1000 * (round + 1);
        for at in [1, 2] {
            let _ = net.at(at).withdraw_region(1);
            net.region(at, 1, &bytes(1, 2 << 20), BOTH);
        }
        let (mine, other) = (memory(&bytes(2, 2 << 20)), memory(&bytes(3, 2 << 20)));
        for number in 0..6 {
            let buffer = if number % 2 == 0 { mine } else { other };
            net.ask(0, number % 2 == 0, &Simple::new(buffer, 1, 0).access(1, contexts + number));
        }
        for _ in 0..3 * round {
            net.step();
        }
        net.restart(1);
        for number in 0..6 {
            let said = net.ended(0, contexts + number);
            let is_over = matches!(said, Completed::Failed(_) | Completed::Written | Completed::Read);
            assert!(is_over, "{said:?}");
        }
        let back = memory(&vec![0; 2 << 20]);
        net.ask(0, true, &Simple::new(back, 1, 0).access(2, contexts + 10));
        assert_eq!(net.ended(0, contexts + 10), Completed::Read);
        assert!(all(back) == bytes(1, 2 << 20));
        // The new one has no such memory.
        net.ask(0, true, &Simple::new(back, 1, 0).access(1, contexts + 11));
        assert_eq!(net.ended(0, contexts + 11), Completed::Failed(Failure::NoRegion));
        assert_eq!(net.at(0).sends_in_progress(), 0);
    }
}

#[test]
fn an_operation_on_values_is_done_behind_writes_and_before_reads_and_what_was_there_comes_back() {
    let mut net = Net::new(2, Config::default());
    let region = net.region(1, 1, &[0; 64], BOTH);
    let own = net.region(0, 1, &[0; 64], BOTH);
    for (to, region) in [(1, region), (0, own)] {
        let context = 100 * to as u64;
        let text = [7_u64, 8].map(u64::to_ne_bytes).concat();
        let write = Simple::new(memory(&text), 1, 8);
        net.ask(0, false, &write.access(to, context));
        let fetched = memory(&[0; 16]);
        let (segments, stretches) = ([segment(fetched)], [stretch(1, 8, 16)]);
        let one = [1_u64; 2].map(u64::to_ne_bytes).concat();
        let operate = |net: &mut Net, fetched, context| {
            let access = AtomicAccess {
                to: Address(to as u64),
                op: AtomicOp::Sum,
                of: AtomicType::U64,
                operands: &one,
                compares: &[],
                fetched,
                remote: &stretches,
                more: false,
                context,
                flags: 0,
            };
            net.until("an operation is taken", |net| match net.at(0).operate(&access) {
                Ok(()) => true,
                Err(SendRefused::Again) => false,
                Err(other) => panic!("{other}"),
            });
        };
        operate(&mut net, None, context + 1);
        operate(&mut net, Some(&segments[..]), context + 2);
        let back = memory(&[0; 16]);
        net.ask(0, true, &Simple::new(back, 1, 8).access(to, context + 3));
        let ends = [Completed::Written, Completed::Written, Completed::Read, Completed::Read];
        for (context, end) in (context..).zip(ends) {
            assert_eq!(net.ended(0, context), end);
        }
        assert_eq!(all(fetched), [8_u64, 9].map(u64::to_ne_bytes).concat());
        assert_eq!(all(back), [9_u64, 10].map(u64::to_ne_bytes).concat());
        let now = all(region);
        assert!(now[..8] == [0; 8] && now[8..24] == all(back) && now[24..] == [0; 40]);
    }
}
