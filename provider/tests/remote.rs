//! Remote memory access between two endpoints of one process, through libfabric: `fi_rma(3)`, `fi_atomic(3)`, `fi_mr(3)`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a call of C through a table of an object is to read the table and to call"
)]

#[path = "remote/atomics.rs"]
mod atomics;
mod common;

use std::ptr;

use common::pair::{ANY, Pair, pattern};
use common::region::Region;
use common::side::{ask, at, bind, close};
use common::{Received, Side, Wanted, fabric, minus};
use libc::iovec;
use tagmatch::provider::abi::{self, fi_msg_rma, fi_rma_iov, fid_cntr};

const BOTH: u64 = abi::FI_REMOTE_READ | abi::FI_REMOTE_WRITE;

fn wanted() -> Wanted {
    Wanted { caps: abi::FI_MSG | abi::FI_TAGGED | abi::FI_RMA | abi::FI_SOURCE, ..Wanted::default() }
}

/// Whose memory, and which.
#[derive(Clone, Copy)]
struct There {
    peer: u64,
    address: u64,
    key: u64,
}

trait Remote {
    fn write(&self, text: &[u8], there: There, context: u64) -> isize;
    fn write_data(&self, text: &[u8], data: u64, there: There, context: u64) -> isize;
    fn inject_write(&self, text: &[u8], there: There) -> isize;
    fn inject_write_data(&self, text: &[u8], data: u64, there: There) -> isize;
    fn read(&self, into: &mut [u8], there: There, context: u64) -> isize;
    fn vector(&self, is_read: bool, parts: &[iovec], there: There, context: u64) -> isize;
    fn message(&self, is_read: bool, parts: &[iovec], there: (u64, &[fi_rma_iov]), rest: (u64, u64))
    -> isize;
}

// SAFETY (of all calls below): an open endpoint, and memory that its test keeps until the completion.
impl Remote for Side {
    fn write(&self, text: &[u8], there: There, context: u64) -> isize {
        let (pointer, none, There { peer, address, key }) = (text.as_ptr().cast(), ptr::null_mut(), there);
        // SAFETY: see above.
        unsafe {
            ((*(*self.ep).rma).write)(self.ep, pointer, text.len(), none, peer, address, key, at(context))
        }
    }

    fn write_data(&self, text: &[u8], data: u64, there: There, context: u64) -> isize {
        let (pointer, none, There { peer, address, key }) = (text.as_ptr().cast(), ptr::null_mut(), there);
        let write = |ep| {
            // SAFETY: see above.
            unsafe {
                ((*(*self.ep).rma).writedata)(
                    ep,
                    pointer,
                    text.len(),
                    none,
                    data,
                    peer,
                    address,
                    key,
                    at(context),
                )
            }
        };
        write(self.ep)
    }

    fn inject_write(&self, text: &[u8], there: There) -> isize {
        let There { peer, address, key } = there;
        // SAFETY: see above.
        unsafe { ((*(*self.ep).rma).inject)(self.ep, text.as_ptr().cast(), text.len(), peer, address, key) }
    }

    fn inject_write_data(&self, text: &[u8], data: u64, there: There) -> isize {
        let (pointer, There { peer, address, key }) = (text.as_ptr().cast(), there);
        // SAFETY: see above.
        unsafe { ((*(*self.ep).rma).injectdata)(self.ep, pointer, text.len(), data, peer, address, key) }
    }

    fn read(&self, into: &mut [u8], there: There, context: u64) -> isize {
        let (pointer, length) = (into.as_mut_ptr().cast(), into.len());
        let (none, There { peer, address, key }) = (ptr::null_mut(), there);
        // SAFETY: see above.
        unsafe { ((*(*self.ep).rma).read)(self.ep, pointer, length, none, peer, address, key, at(context)) }
    }

    fn vector(&self, is_read: bool, parts: &[iovec], there: There, context: u64) -> isize {
        let (vector, none, There { peer, address, key }) = (parts.as_ptr(), ptr::null_mut(), there);
        // SAFETY: see above.
        unsafe {
            let ops = &*(*self.ep).rma;
            let call = if is_read { ops.readv } else { ops.writev };
            call(self.ep, vector, none, parts.len(), peer, address, key, at(context))
        }
    }

    fn message(
        &self,
        is_read: bool,
        parts: &[iovec],
        (addr, there): (u64, &[fi_rma_iov]),
        (context, flags): (u64, u64),
    ) -> isize {
        let message = fi_msg_rma {
            msg_iov: parts.as_ptr(),
            desc: ptr::null_mut(),
            iov_count: parts.len(),
            addr,
            rma_iov: there.as_ptr(),
            rma_iov_count: there.len(),
            context: at(context),
            data: 0x0102_0304,
        };
        // SAFETY: see above.
        unsafe {
            let ops = &*(*self.ep).rma;
            let call = if is_read { ops.readmsg } else { ops.writemsg };
            call(self.ep, &raw const message, flags)
        }
    }
}

fn part(bytes: &mut [u8]) -> iovec {
    iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
}

/// A's next completion is the success of this access.
fn done(pair: &Pair, context: u64, is_read: bool) {
    let expected = abi::FI_RMA | if is_read { abi::FI_READ } else { abi::FI_WRITE };
    match pair.a.next(&[&pair.b]) {
        Received::Ok { context: c, flags, .. } => assert_eq!((c, flags), (context, expected)),
        other @ Received::Error { .. } => panic!("{other:?}"),
    }
}

/// A's next completion is the failure of this access.
fn failed(pair: &Pair, context: u64) -> u64 {
    match pair.a.next(&[&pair.b]) {
        Received::Error { context: c, error, .. } if c == context => error,
        other @ (Received::Ok { .. } | Received::Error { .. }) => panic!("{other:?}"),
    }
}

fn count(counter: *mut fid_cntr) -> (u64, u64) {
    // SAFETY: an open counter.
    unsafe { (((*(*counter).ops).read)(counter), ((*(*counter).ops).readerr)(counter)) }
}

#[test]
fn writes_and_reads_of_all_lengths_by_offset_and_key_that_the_application_chose() {
    let pair = Pair::with(wanted());
    for length in [0, 1, 64, 65, 4096, 65_536, 1_048_577, 3 << 20] {
        let region = Region::new(&pair.b, 0xfeed_0000_0000_0001, vec![7; length + 20], BOTH);
        assert_eq!(region.key(), 0xfeed_0000_0000_0001);
        let there = There { peer: pair.to_b, address: 10, key: region.key() };
        let text = pattern(length, 3);
        pair.a.send_surely(&[&pair.b], |a| a.write(&text, there, 1));
        done(&pair, 1, false);
        let now = region.now();
        assert!(now[..10] == [7; 10] && now[10..length + 10] == text[..] && now[length + 10..] == [7; 10]);
        let mut back = vec![0; length + 20];
        let mut whole = |a: &Side| a.read(&mut back, There { address: 0, ..there }, 2);
        while whole(&pair.a) != 0 {
            pair.a.progress();
            pair.b.progress();
        }
        done(&pair, 2, true);
        assert!(back == now, "{length}");
    }
}

#[test]
fn vectors_messages_and_injected_writes_with_and_without_remote_completion_data() {
    let pair = Pair::with(wanted());
    let region = Region::new(&pair.b, 5, vec![0; 100_000], BOTH);
    let there = There { peer: pair.to_b, address: 100, key: 5 };
    let text = pattern(50_000, 9);
    let (mut first, mut second) = (text[..20_000].to_vec(), text[20_000..].to_vec());
    let parts = [part(&mut first), part(&mut second)];
    pair.a.send_surely(&[&pair.b], |a| a.vector(false, &parts, there, 1));
    done(&pair, 1, false);
    assert!(region.now()[100..50_100] == text);
    // Two stretches there, three here; with data, which tells of itself at the target.
    let stretch = |addr, len| fi_rma_iov { addr, len, key: 5 };
    let stretches = [stretch(60_000, 30_000), stretch(0, 20_000)];
    let flags = abi::FI_REMOTE_CQ_DATA | abi::FI_DELIVERY_COMPLETE;
    let to = (pair.to_b, &stretches[..]);
    pair.a.send_surely(&[&pair.b], |a| a.message(false, &parts, to, (2, flags)));
    done(&pair, 2, false);
    let now = region.now();
    assert!(now[60_000..90_000] == text[..30_000] && now[..20_000] == text[30_000..]);
    let written = abi::FI_RMA | abi::FI_REMOTE_WRITE | abi::FI_REMOTE_CQ_DATA;
    let told = |length: usize, data: u64| match pair.b.next(&[&pair.a]) {
        Received::Ok { flags, length: l, data: d, source, .. } => {
            assert_eq!((flags, l, d, source), (written, length, data, pair.to_a));
        }
        other @ Received::Error { .. } => panic!("{other:?}"),
    };
    told(20_000, 0x0102_0304);
    let (mut one, mut two) = (vec![0; 10_000], vec![0; 40_000]);
    let back = [part(&mut one), part(&mut two)];
    pair.a.send_surely(&[&pair.b], |a| a.message(true, &back, to, (3, abi::FI_COMPLETION)));
    done(&pair, 3, true);
    assert!([one, two].concat() == text);
    let mut whole = vec![0; 50_000];
    let back = [part(&mut whole)];
    pair.a.send_surely(&[&pair.b], |a| a.vector(true, &back, There { address: 50_000, ..there }, 4));
    done(&pair, 4, true);
    assert!(whole == now[50_000..]);
    for (data, flags) in [(7, 0), (8, abi::FI_INJECT)] {
        let mut text = pattern(3000, 77);
        pair.a.send_surely(&[&pair.b], |a| a.inject_write(&text, there));
        pair.a
            .send_surely(&[&pair.b], |a| a.inject_write_data(&text, data, There { address: 5000, ..there }));
        let mut copy = text.clone();
        let parts = [part(&mut copy)];
        let to = [fi_rma_iov { addr: 9000, len: 3000, key: 5 }];
        let message = (5, flags | abi::FI_REMOTE_CQ_DATA);
        pair.a.send_surely(&[&pair.b], |a| a.message(false, &parts, (pair.to_b, &to), message));
        if flags != 0 {
            copy.fill(0);
        }
        let sent = text.clone();
        text.fill(0);
        told(3000, data);
        told(3000, 0x0102_0304);
        // What was injected is not reported.
        done(&pair, 5, false);
        let now = region.now();
        for from in [100, 5000, 9000] {
            assert!(now[from..from + 3000] == sent, "{from}");
        }
    }
    assert_eq!(pair.a.write_data(b"x", 1 << 32, there, 1), minus(abi::FI_EINVAL));
    pair.a.send_surely(&[&pair.b], |a| a.write_data(b"", 9, there, 6));
    told(0, 9);
    done(&pair, 6, false);
    let bad = [fi_rma_iov { addr: 0, len: 2, key: 5 }];
    assert_eq!(pair.a.message(false, &parts, (pair.to_b, &bad), (1, 0)), minus(abi::FI_EINVAL), "uneven");
    assert_eq!(pair.a.message(false, &[], (pair.to_b, &[]), (1, 0)), minus(abi::FI_EINVAL), "nowhere");
    assert_eq!(pair.a.inject_write(&[0; 16_385], there), minus(abi::FI_EMSGSIZE));
}

#[test]
fn both_sides_count_what_is_accessed_and_what_fails() {
    let pair = Pair::with(Wanted { counters: true, selective: true, ..wanted() });
    let region = Region::new(&pair.b, 1, vec![0; 100], BOTH);
    let there = There { peer: pair.to_b, address: 0, key: 1 };
    let mut back = [0; 8];
    pair.a.send_surely(&[&pair.b], |a| a.write(b"12345678", there, 1));
    pair.a.send_surely(&[&pair.b], |a| a.inject_write(b"1234", there));
    let pointer = back.as_mut_ptr();
    pair.a.send_surely(&[&pair.b], |a| {
        // SAFETY: the array stays, and nobody looks at it before the read is over.
        a.read(unsafe { std::slice::from_raw_parts_mut(pointer, 8) }, there, 2)
    });
    pair.a.send_surely(&[&pair.b], |a| a.write(b"1", There { key: 9, ..there }, 3));
    assert_eq!(
        failed(&pair, 3),
        abi::FI_EACCES,
        "a failure is reported although nobody asked for completions"
    );
    assert_eq!(count(pair.a.sent), (3, 1));
    assert_eq!(count(pair.b.received), (3, 0));
    assert_eq!(&back, b"12345678");
    drop(region);
}

#[test]
fn who_may_not_gets_one_error_and_nothing_is_touched() {
    let pair = Pair::with(wanted());
    let text = pattern(100, 1);
    let regions = [(1, abi::FI_REMOTE_READ), (2, abi::FI_REMOTE_WRITE), (3, abi::FI_READ | abi::FI_WRITE)]
        .map(|(key, access)| Region::new(&pair.b, key, text.clone(), access));
    let there = |key, address| There { peer: pair.to_b, address, key };
    let mut context = 0;
    let mut is_refused = |is_read: bool, there: There, error: u64| {
        context += 1;
        let mut mine = [0; 10];
        let parts = [part(&mut mine)];
        pair.a.send_surely(&[&pair.b], |a| a.vector(is_read, &parts, there, context));
        assert_eq!(failed(&pair, context), error, "{is_read} {}", there.key);
        assert_eq!(mine, [0; 10]);
    };
    is_refused(false, there(1, 0), abi::FI_EACCES);
    is_refused(true, there(2, 0), abi::FI_EACCES);
    is_refused(false, there(3, 0), abi::FI_EACCES);
    is_refused(true, there(3, 0), abi::FI_EACCES);
    is_refused(true, there(4, 0), abi::FI_EACCES);
    is_refused(true, there(1, 91), abi::FI_EINVAL);
    is_refused(false, there(2, u64::MAX), abi::FI_EINVAL);
    is_refused(false, there(2, u64::MAX - 5), abi::FI_EINVAL);
    pair.a.send_surely(&[&pair.b], |a| a.inject_write(b"no", there(1, 0)));
    assert_eq!(failed(&pair, 0), abi::FI_EACCES, "failures of what is injected are reported");
    assert!(regions.iter().all(|region| region.now() == text));
    let mut taken = Region { memory: vec![0; 1], handle: ptr::null_mut() };
    assert_eq!(taken.register(&pair.b, 1, BOTH), -i32::try_from(abi::FI_ENOKEY).unwrap());
    assert_eq!(taken.register(&pair.b, 9, abi::FI_TAGGED), -i32::try_from(abi::FI_EINVAL).unwrap());
    let [first, ..] = regions;
    drop(first);
    let is_refused = |there: There| {
        pair.a.send_surely(&[&pair.b], |a| a.write(b"late", there, 99));
        assert_eq!(failed(&pair, 99), abi::FI_EACCES);
    };
    is_refused(there(1, 0));
    assert_eq!(taken.register(&pair.b, 1, BOTH), 0, "the key is free again");
}

#[test]
fn domains_deal_keys_and_take_addresses_where_their_attributes_say_so() {
    for mode in [abi::FI_MR_BASIC, abi::FI_MR_VIRT_ADDR | abi::FI_MR_PROV_KEY | abi::FI_MR_ALLOCATED] {
        let side = || {
            let library = fabric();
            let info = library.info(library.api(), |hints| ask(hints, &wanted())).unwrap();
            // SAFETY: an info of libfabric, which has all parts.
            unsafe { (*(*info).domain_attr).mr_mode = i32::try_from(mode).unwrap() };
            Side::open(library, info, &wanted())
        };
        let (a, b) = (side(), side());
        let (to_b, to_a) = (a.insert(&b.name()), b.insert(&a.name()));
        let pair = Pair { a, b, to_b, to_a };
        let regions = [0, 1].map(|_| Region::new(&pair.b, 0, vec![0; 1000], BOTH));
        assert_ne!(regions[0].key(), regions[1].key());
        for (region, text) in regions.iter().zip([b"first", b"other"]) {
            let address = region.memory.as_ptr().addr() as u64 + 500;
            let there = There { peer: pair.to_b, address, key: region.key() };
            pair.a.send_surely(&[&pair.b], |a| a.write(text, there, 1));
            done(&pair, 1, false);
            assert_eq!(&region.now()[500..505], text);
            pair.a.send_surely(&[&pair.b], |a| a.write(text, There { address: 0, ..there }, 2));
            assert_eq!(failed(&pair, 2), abi::FI_EINVAL);
        }
    }
}

#[test]
fn a_counter_of_a_region_counts_what_is_done_to_that_region_alone() {
    let pair = Pair::with(Wanted { caps: wanted().caps | abi::FI_RMA_EVENT, ..wanted() });
    let regions = [1, 2].map(|key| Region::new(&pair.b, key, vec![0; 100], BOTH));
    let mut counter: *mut fid_cntr = ptr::null_mut();
    // SAFETY: an open domain; zeros are attributes.
    unsafe {
        let mut attr = std::mem::zeroed();
        let ops = &*(*pair.b.domain).ops;
        assert_eq!((ops.cntr_open)(pair.b.domain, &raw mut attr, &raw mut counter, ptr::null_mut()), 0);
        assert_eq!(bind(regions[0].handle, counter, abi::FI_REMOTE_WRITE), 0);
        assert_eq!(close(counter), -i32::try_from(abi::FI_EBUSY).unwrap());
    }
    let mut back = [0; 4];
    let parts = [part(&mut back)];
    for key in [1, 2, 1] {
        let there = There { peer: pair.to_b, address: 4, key };
        pair.a.send_surely(&[&pair.b], |a| a.write(b"text", there, key));
        done(&pair, key, false);
        pair.a.send_surely(&[&pair.b], |a| a.vector(true, &parts, there, 9));
        done(&pair, 9, true);
    }
    assert_eq!(count(counter), (2, 0));
    // Who looks at it alone is told as well: it moves the endpoint on.
    let there = There { peer: pair.to_b, address: 4, key: 1 };
    pair.a.send_surely(&[], |a| a.write(b"more", there, 5));
    for round in 0.. {
        pair.a.progress();
        if count(counter) == (3, 0) {
            break;
        }
        assert!(round < common::ROUNDS, "it is never counted");
    }
    drop(regions);
    // SAFETY: an open counter, to which nothing is bound any more.
    assert_eq!(unsafe { close(counter) }, 0);
}

#[test]
fn an_endpoint_reaches_its_own_memory_and_messages_come_behind_writes() {
    let pair = Pair::with(wanted());
    let to_itself = pair.a.insert(&pair.a.name());
    let region = Region::new(&pair.a, 1, vec![0; 1 << 20], BOTH);
    let text = pattern(1 << 20, 5);
    let there = There { peer: to_itself, address: 0, key: 1 };
    pair.a.send_surely(&[], |a| a.write(&text, there, 1));
    done(&pair, 1, false);
    assert!(region.now() == text);
    let theirs = Region::new(&pair.b, 1, vec![0; 1 << 20], BOTH);
    let mut buffer = [0; 8];
    for round in 0..10_u8 {
        let text = pattern(1 << 20, round);
        assert_eq!(pair.b.receive(ANY, 1, 0, &mut buffer, 2), 0);
        pair.a.send_surely(&[&pair.b], |a| a.write(&text, There { peer: pair.to_b, ..there }, 3));
        pair.a.send_surely(&[&pair.b], |a| a.send(pair.to_b, 1, b"look", 4));
        assert_eq!(pair.received().0, 2);
        assert!(theirs.now() == text);
        let ended: Vec<u64> = (0..2).map(|_| pair.a.next(&[&pair.b]).context()).collect();
        assert!(ended.contains(&3) && ended.contains(&4));
    }
}
