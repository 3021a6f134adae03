//! What calls are given: null where there should be memory, and keys of memory regions.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a call of C through a table of an object is to read the table and to call"
)]

mod common;

use std::ffi::{c_int, c_void};
use std::ptr;

use common::side::{at, bind, close, control};
use common::{Received, Side, Wanted, fabric, minus};
use tagmatch::provider::abi::{self, fi_msg, fi_msg_tagged, fid, fid_ep, fid_eq, fid_mr};

/// An event queue that can be written to.
fn event_queue(side: &Side) -> *mut fid_eq {
    // SAFETY: zeros are valid attributes.
    let mut attr: abi::fi_eq_attr = unsafe { std::mem::zeroed() };
    attr.flags = abi::FI_WRITE;
    attr.wait_obj = u32::try_from(abi::FI_WAIT_FD).unwrap();
    let mut eq = ptr::null_mut();
    // SAFETY: an open fabric, and a place for the queue.
    let opened = unsafe { ((*(*side.fabric).ops).eq_open)(side.fabric, &raw mut attr, &raw mut eq, at(0)) };
    assert_eq!(opened, 0, "fi_eq_open");
    eq
}

/// What every call that takes a pointer and a length returns for null of this length, by name.
fn of_null(side: &Side, eq: *mut fid_eq, length: usize) -> Vec<(&'static str, isize)> {
    let (none, to) = (ptr::null_mut(), side.insert(&side.name()));
    let any = abi::FI_ADDR_UNSPEC;
    let part = libc::iovec { iov_base: none, iov_len: length };
    let (part, empty) = (&raw const part, ptr::null::<libc::iovec>());
    let narrow = |value: c_int| isize::try_from(value).unwrap();
    let message = |msg_iov, iov_count| fi_msg {
        msg_iov,
        desc: ptr::null_mut(),
        iov_count,
        addr: to,
        context: at(1),
        data: 0,
    };
    let tagged = |msg_iov, iov_count| fi_msg_tagged {
        msg_iov,
        desc: ptr::null_mut(),
        iov_count,
        addr: to,
        tag: 1,
        ignore: 0,
        context: at(1),
        data: 0,
    };
    let (m_part, m_null, t_part, t_null) =
        (message(part, 1), message(empty, length), tagged(part, 1), tagged(empty, length));
    let (m_part, m_null, t_part, t_null) =
        (&raw const m_part, &raw const m_null, &raw const t_part, &raw const t_null);
    let (d, n) = (ptr::null_mut(), at(1));
    let count = c_int::try_from(length).unwrap();
    let (ep, cq, av) = (side.ep, side.cq, side.av);
    let mut answers = Vec::new();
    // SAFETY: open objects; what is null is what is tried.
    unsafe {
        let (t, m) = (&*(*ep).tagged, &*(*ep).msg);
        let (q, v, e) = (&*(*cq).ops, &*(*av).ops, &*(*eq).ops);
        // Receives after sends, so that the sends find none and nothing is left over.
        answers.extend([
            ("fi_send", (m.send)(ep, none, length, d, to, n)),
            ("fi_sendv", (m.sendv)(ep, part, d.cast(), 1, to, n)),
            ("fi_sendv of no vector", (m.sendv)(ep, empty, d.cast(), length, to, n)),
            ("fi_sendmsg", (m.sendmsg)(ep, m_part, 0)),
            ("fi_sendmsg of no vector", (m.sendmsg)(ep, m_null, 0)),
            ("fi_sendmsg, copied", (m.sendmsg)(ep, m_part, abi::FI_INJECT)),
            ("fi_inject", (m.inject)(ep, none, length, to)),
            ("fi_senddata", (m.senddata)(ep, none, length, d, 1, to, n)),
            ("fi_injectdata", (m.injectdata)(ep, none, length, 1, to)),
            ("fi_tsend", (t.send)(ep, none, length, d, to, 1, n)),
            ("fi_tsendv", (t.sendv)(ep, part, d.cast(), 1, to, 1, n)),
            ("fi_tsendv of no vector", (t.sendv)(ep, empty, d.cast(), length, to, 1, n)),
            ("fi_tsendmsg", (t.sendmsg)(ep, t_part, 0)),
            ("fi_tsendmsg of no vector", (t.sendmsg)(ep, t_null, 0)),
            ("fi_tsendmsg, copied", (t.sendmsg)(ep, t_part, abi::FI_INJECT)),
            ("fi_tinject", (t.inject)(ep, none, length, to, 1)),
            ("fi_tsenddata", (t.senddata)(ep, none, length, d, 1, to, 1, n)),
            ("fi_tinjectdata", (t.injectdata)(ep, none, length, 1, to, 1)),
            ("fi_recv", (m.recv)(ep, none, length, d, any, n)),
            ("fi_recvv", (m.recvv)(ep, part, d.cast(), 1, any, n)),
            ("fi_recvv of no vector", (m.recvv)(ep, empty, d.cast(), length, any, n)),
            ("fi_recvmsg", (m.recvmsg)(ep, m_part, 0)),
            ("fi_recvmsg of no vector", (m.recvmsg)(ep, m_null, 0)),
            ("fi_trecv", (t.recv)(ep, none, length, d, any, 1, 0, n)),
            ("fi_trecvv", (t.recvv)(ep, part, d.cast(), 1, any, 1, 0, n)),
            ("fi_trecvv of no vector", (t.recvv)(ep, empty, d.cast(), length, any, 1, 0, n)),
            ("fi_trecvmsg", (t.recvmsg)(ep, t_part, 0)),
            ("fi_trecvmsg of no vector", (t.recvmsg)(ep, t_null, 0)),
            ("fi_cq_read", (q.read)(cq, none, length)),
            ("fi_cq_readfrom", (q.readfrom)(cq, none, length, ptr::null_mut())),
            ("fi_cq_sread", (q.sread)(cq, none, length, ptr::null(), 0)),
            ("fi_cq_sreadfrom", (q.sreadfrom)(cq, none, length, ptr::null_mut(), ptr::null(), 0)),
            ("fi_eq_read", (e.read)(eq, ptr::null_mut(), none, length, 0)),
            ("fi_eq_sread", (e.sread)(eq, ptr::null_mut(), none, length, 0, 0)),
            ("fi_eq_write", (e.write)(eq, 7, none, length, 0)),
            ("fi_av_insert", narrow((v.insert)(av, none, length, ptr::null_mut(), 0, none))),
            ("fi_av_insertsym", {
                let (node, mut number) = (c"127.0.0.1".as_ptr(), [0; 1]);
                let number = number.as_mut_ptr();
                let inserted = (v.insertsym)(av, ptr::null(), length, node, 1, number, 0, none);
                narrow(inserted)
            }),
            ("fi_av_remove", narrow((v.remove)(av, ptr::null_mut(), length, 0))),
            ("fi_trywait", {
                narrow(((*(*side.fabric).ops).trywait)(side.fabric, ptr::null_mut::<*mut fid>(), count))
            }),
            ("fi_mr_regv", {
                let mut region: *mut fid_mr = ptr::null_mut();
                let ops = &*(*side.domain).mr;
                let domain = side.domain.cast();
                let result = (ops.regv)(domain, empty, length, 0, 0, 1, 0, &raw mut region, none);
                if result == 0 {
                    assert_eq!(close(region), 0);
                }
                narrow(result)
            }),
            ("fi_mr_regattr", {
                let mut region: *mut fid_mr = ptr::null_mut();
                let mut attr: abi::fi_mr_attr = std::mem::zeroed();
                attr.iov_count = length;
                let ops = &*(*side.domain).mr;
                let result = (ops.regattr)(side.domain.cast(), &raw const attr, 0, &raw mut region);
                if result == 0 {
                    assert_eq!(close(region), 0);
                }
                narrow(result)
            }),
            ("fi_setname", {
                // An address without bytes is none either.
                let result = ((*(*ep).cm).setname)(ep.cast(), none, length);
                if length > 0 { narrow(result) } else { 0 }
            }),
        ]);
    }
    answers
}

#[test]
fn null_of_some_length_is_refused_by_every_call_and_of_none_is_taken() {
    let wanted = Wanted { wait_object: abi::FI_WAIT_FD, ..Wanted::default() };
    let side = Side::with(wanted);
    let eq = event_queue(&side);
    let to = side.insert(&side.name());
    // The connection to itself comes about first: no call is refused for want of it.
    side.send_surely(&[], |side| side.inject(to, 9, b"", None));
    let (invalid, again) = (minus(abi::FI_EINVAL), minus(abi::FI_EAGAIN));
    for (call, answer) in of_null(&side, eq, 1) {
        assert_eq!(answer, invalid, "{call}");
    }
    assert_eq!(side.poll(), None, "nothing was begun");
    for (call, answer) in of_null(&side, eq, 0) {
        assert!(answer == 0 || answer == again, "{call}: {answer}");
    }
    // SAFETY: an open queue, closed once.
    assert_eq!(unsafe { close(eq) }, 0);
}

/// What `fi_endpoint` returns for an info whose address is said to be so long.
fn endpoint_of_an_address(side: &Side, length: usize) -> isize {
    let library = fabric();
    let info = library.info(library.api(), |_| {}).unwrap();
    let mut ep: *mut fid_ep = ptr::null_mut();
    // SAFETY: an open domain, an info of this library, which gets its own length back, and a place for the endpoint.
    unsafe {
        let own = std::mem::replace(&mut (*info).src_addrlen, length);
        let opened = ((*(*side.domain).ops).endpoint)(side.domain, info, &raw mut ep, at(0));
        (*info).src_addrlen = own;
        (library.freeinfo)(info);
        opened.try_into().unwrap()
    }
}

#[test]
fn a_length_that_no_memory_has_is_refused_by_every_call_that_would_read_it() {
    let side = Side::with(Wanted { wait_object: abi::FI_WAIT_FD, ..Wanted::default() });
    let (eq, to) = (event_queue(&side), side.insert(&side.name()));
    let mut byte = [0_u64; 1];
    let (there, ep) = (byte.as_mut_ptr().cast::<c_void>(), side.ep);
    for length in [usize::MAX, isize::MAX.unsigned_abs() + 1] {
        // SAFETY: open objects, and memory of which nothing is read where so much is said to be there.
        let answers = unsafe {
            let (t, m, v, e) = (&*(*ep).tagged, &*(*ep).msg, &*(*side.av).ops, &*(*eq).ops);
            [
                ("fi_inject", (m.inject)(ep, there, length, to)),
                ("fi_injectdata", (m.injectdata)(ep, there, length, 1, to)),
                ("fi_tinject", (t.inject)(ep, there, length, to, 1)),
                ("fi_tinjectdata", (t.injectdata)(ep, there, length, 1, to, 1)),
                ("fi_eq_write", (e.write)(eq, 7, there, length, 0)),
                ("fi_av_remove", (v.remove)(side.av, there.cast(), length, 0).try_into().unwrap()),
                ("fi_setname", ((*(*ep).cm).setname)(ep.cast(), there, length).try_into().unwrap()),
                ("fi_endpoint", endpoint_of_an_address(&side, length)),
            ]
        };
        for (call, answer) in answers {
            assert_eq!(answer, minus(abi::FI_EINVAL), "{call} of {length}");
        }
    }
    assert_eq!(side.poll(), None, "nothing was begun");
    // SAFETY: an open queue, closed once.
    assert_eq!(unsafe { close(eq) }, 0);
}

#[test]
fn a_peek_and_an_error_entry_need_no_memory_of_a_length_that_is_told() {
    let side = Side::new();
    // A peek is told of a vector of no memory, at which it does not look.
    let message = fi_msg_tagged {
        msg_iov: ptr::null(),
        desc: ptr::null_mut(),
        iov_count: 1,
        addr: abi::FI_ADDR_UNSPEC,
        tag: 1,
        ignore: 0,
        context: at(3),
        data: 0,
    };
    // SAFETY: an open endpoint, a message of ours.
    let peeked = unsafe { ((*(*side.ep).tagged).recvmsg)(side.ep, &raw const message, abi::FI_PEEK) };
    assert_eq!(peeked, 0);
    let Some(Received::Error { error, .. }) = side.poll() else { panic!("a message") };
    assert_eq!(error, abi::FI_ENOMSG);
    // SAFETY: an open queue and an open endpoint; null is what is tried.
    unsafe {
        assert_eq!(((*(*side.cq).ops).readerr)(side.cq, ptr::null_mut(), 0), minus(abi::FI_EINVAL));
        let invalid = c_int::try_from(minus(abi::FI_EINVAL)).unwrap();
        let sent = ((*(*side.ep).tagged).sendmsg)(side.ep, ptr::null(), 0);
        assert_eq!(sent, minus(abi::FI_EINVAL));
        assert_eq!(control(side.ep, abi::FI_GETOPSFLAG, ptr::null_mut()), invalid);
        let endpoint = c_int::try_from(abi::FI_OPT_ENDPOINT).unwrap();
        let least = c_int::try_from(abi::FI_OPT_MIN_MULTI_RECV).unwrap();
        let ops = &*(*side.ep).ops;
        assert_eq!((ops.setopt)(side.ep.cast(), endpoint, least, ptr::null(), 8), invalid);
        let mut length = 8;
        let none = ptr::null_mut();
        assert_eq!((ops.getopt)(side.ep.cast(), endpoint, least, none, &raw mut length), invalid);
        // Whoever asks how long a name is gives no room, whatever stands where the length goes.
        let too_small = c_int::try_from(minus(abi::FI_ETOOSMALL)).unwrap();
        for mut length in [0, 99] {
            assert_eq!(((*(*side.ep).cm).getname)(side.ep.cast(), none, &raw mut length), too_small);
            assert_eq!(length, 16);
        }
    }
}

/// `fi_mr_reg` of anything: the region, or what it returns.
fn register(side: &Side, key: u64) -> Result<*mut fid_mr, isize> {
    let mut region = ptr::null_mut();
    let memory = [0u8; 8];
    let memory: *const c_void = memory.as_ptr().cast();
    // SAFETY: an open domain, and a place for the region.
    let result = unsafe {
        let ops = &*(*side.domain).mr;
        (ops.reg)(side.domain.cast(), memory, 8, abi::FI_SEND, 0, key, 0, &raw mut region, at(0))
    };
    if result == 0 { Ok(region) } else { Err(isize::try_from(result).unwrap()) }
}

#[test]
fn a_region_has_the_key_that_is_asked_for_and_no_other_has_it_meanwhile() {
    let side = Side::new();
    let first = register(&side, 77).unwrap();
    let second = register(&side, 0).unwrap();
    assert_eq!(register(&side, 77), Err(minus(abi::FI_ENOKEY)));
    // SAFETY: open regions, each closed once.
    unsafe {
        assert_eq!(((*first).key, (*second).key), (77, 0));
        assert_eq!(close(first), 0);
        let again = register(&side, 77).unwrap();
        assert_eq!((*again).key, 77);
        assert_eq!((close(again), close(second)), (0, 0));
    }
    // Other domains have keys of their own.
    let other = Side::new();
    let (one, another) = (register(&side, 5).unwrap(), register(&other, 5).unwrap());
    // SAFETY: open regions, each closed once.
    unsafe { assert_eq!((close(one), close(another)), (0, 0)) };
}

#[test]
fn a_domain_that_deals_keys_gives_each_region_another_whatever_is_asked_for() {
    let library = fabric();
    for mode in [abi::FI_MR_BASIC, abi::FI_MR_PROV_KEY] {
        let info = library.info(library.api(), |_| {}).unwrap();
        // SAFETY: an info has all parts.
        unsafe { (*(*info).domain_attr).mr_mode = c_int::try_from(mode).unwrap() };
        let side = Side::open(library, info, &Wanted::default());
        let (one, other) = (register(&side, 7).unwrap(), register(&side, 7).unwrap());
        // SAFETY: open regions, each closed once.
        unsafe {
            assert_ne!((*one).key, (*other).key);
            assert_eq!((close(one), close(other)), (0, 0));
        }
    }
}

#[test]
fn a_region_is_bound_to_counters_and_endpoints_of_its_domain_alone() {
    let (side, other) = (Side::with(Wanted { counters: true, ..Wanted::default() }), Side::new());
    let region = register(&side, 1).unwrap();
    let code = |value: u64| c_int::try_from(minus(value)).unwrap();
    // SAFETY: open objects, or null.
    unsafe {
        assert_eq!(bind(region, side.sent, abi::FI_REMOTE_WRITE), 0);
        assert_eq!(bind(region, side.ep, 0), 0);
        assert_eq!(bind(region, other.ep, 0), code(abi::FI_EDOMAIN));
        assert_eq!(bind(region, side.cq, 0), code(abi::FI_EINVAL));
        assert_eq!(bind(region, ptr::null_mut::<fid>(), 0), code(abi::FI_EINVAL));
        assert_eq!(close(region), 0);
    }
}

#[test]
fn a_region_may_begin_at_any_address_and_ends_with_the_last() {
    let side = Side::new();
    let register = |from: usize, length: usize| {
        let mut region: *mut fid_mr = ptr::null_mut();
        let memory = ptr::without_provenance(from);
        let access = abi::FI_REMOTE_READ;
        // SAFETY: an open domain, and a place for the region; nobody accesses it.
        unsafe {
            let ops = &*(*side.domain).mr;
            let result =
                (ops.reg)(side.domain.cast(), memory, length, access, 0, 1, 0, &raw mut region, at(0));
            if result == 0 {
                assert_eq!(close(region), 0);
            }
            isize::try_from(result).unwrap()
        }
    };
    assert_eq!((register(0, usize::MAX), register(usize::MAX - 9, 9)), (0, 0));
    for (from, length) in [(1, usize::MAX), (usize::MAX - 9, 11), (usize::MAX, usize::MAX)] {
        assert_eq!(register(from, length), minus(abi::FI_EINVAL), "{length} bytes from {from:#x}");
    }
}

#[test]
fn an_endpoint_that_is_to_be_everywhere_has_a_name_that_peers_can_call() {
    let side = Side::new();
    let library = fabric();
    let set = |address: [u8; 4], port: u16| {
        let info = library.info(library.api(), |_| {}).unwrap();
        let (family, port) = (2_u16.to_ne_bytes(), port.to_be_bytes());
        let name: Vec<u8> = [&family[..], &port, &address, &[0; 8]].concat();
        let mut ep: *mut fid_ep = ptr::null_mut();
        let (mut own, mut length) = ([0_u8; 28], 28);
        // SAFETY: open objects, an address of so many bytes, and so much room; the endpoint is closed once.
        unsafe {
            assert_eq!(((*(*side.domain).ops).endpoint)(side.domain, info, &raw mut ep, at(0)), 0);
            (library.freeinfo)(info);
            let calls = &*(*ep).cm;
            let result = (calls.setname)(ep.cast(), name.as_ptr().cast_mut().cast(), name.len());
            if result == 0 {
                assert_eq!((calls.getname)(ep.cast(), own.as_mut_ptr().cast(), &raw mut length), 0);
            }
            assert_eq!(close(ep), 0);
            (isize::try_from(result).unwrap(), own[..length].to_vec())
        }
    };
    let (result, own) = set([0; 4], 7000);
    assert_eq!((result, &own[..4]), (0, &[2, 0, 0x1b, 0x58][..]));
    assert_ne!(own[4..8], [0; 4]);
    assert_eq!(set([127, 0, 0, 9], 7000).1[4..8], [127, 0, 0, 9]);
    for nobody in [[224, 0, 0, 1], [255; 4]] {
        assert_eq!(set(nobody, 7000).0, minus(abi::FI_EADDRNOTAVAIL), "{nobody:?}");
    }
}

#[test]
fn whoever_asks_for_a_capability_has_it_or_nothing() {
    let library = fabric();
    let offered: u32 = (0..u64::BITS)
        .map(|bit| {
            let capability = 1 << bit;
            let Ok(info) = library.info(library.api(), |hints| hints.caps |= capability) else { return 0 };
            // SAFETY: an info of this library.
            let caps = unsafe { (*info).caps };
            // SAFETY: as above, not used any more.
            unsafe { (library.freeinfo)(info) };
            assert_ne!(caps & capability, 0, "{capability:#x} is not in {caps:#x}");
            1
        })
        .sum();
    assert!((10..40).contains(&offered), "{offered}");
}

#[test]
fn a_flag_that_means_nothing_here_is_refused_and_nothing_is_done() {
    let side = Side::new();
    let to = side.insert(&side.name());
    let sends = abi::FI_REMOTE_CQ_DATA
        | abi::FI_COMPLETION
        | abi::FI_MORE
        | abi::FI_INJECT
        | abi::FI_INJECT_COMPLETE
        | abi::FI_TRANSMIT_COMPLETE
        | abi::FI_DELIVERY_COMPLETE
        | abi::FI_MATCH_COMPLETE;
    let looks = abi::FI_PEEK | abi::FI_CLAIM | abi::FI_DISCARD | abi::FI_COMPLETION | abi::FI_MORE;
    let receives = looks | abi::FI_MULTI_RECV;
    let mut buffer = [0_u8; 8];
    for flag in (0..u64::BITS).map(|bit| 1 << bit) {
        if flag & sends == 0 {
            assert_eq!(
                side.send_message(to, 1, &[b"hello"], 0, 1, flag),
                minus(abi::FI_EBADFLAGS),
                "{flag:#x}"
            );
        }
        if flag & receives == 0 {
            let result = side.receive_message(1, 0, Some(&mut buffer), 2, flag);
            assert_eq!(result, minus(abi::FI_EBADFLAGS), "{flag:#x}");
        }
        if flag & looks == 0 {
            let result = side.receive_message(1, 0, Some(&mut buffer), 2, flag | abi::FI_PEEK);
            assert_eq!(result, minus(abi::FI_EBADFLAGS), "{flag:#x}");
        }
    }
    side.progress();
    assert!(side.poll().is_none());
}
