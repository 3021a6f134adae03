//! Objects: what can be opened, bound, asked and closed, in which order, and what is refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a call of C through a table of an object is to read the table and to call"
)]

mod common;

use std::ptr;

use common::side::{at, bind, close, control};
use common::{Received, Side, Wanted, fabric, minus};
use tagmatch::provider::abi::{self, fi_cq_err_entry, fi_fabric_attr, fi_info, version};

#[test]
fn libfabric_lists_the_provider_and_names_it() {
    let library = fabric();
    let info = library.info(library.api(), |_| {}).unwrap();
    // SAFETY: an info of this library.
    unsafe {
        let attr = &*(*info).fabric_attr;
        assert_eq!(std::ffi::CStr::from_ptr(attr.prov_name), c"tagmatch");
        assert!(!attr.name.is_null() && !(*(*info).domain_attr).name.is_null());
        assert_eq!((*info).src_addrlen, 16);
        assert_eq!(u64::from((*(*info).ep_attr).r#type), abi::FI_EP_RDM);
        assert_eq!((*info).mode, 0);
        (library.freeinfo)(info);
    }
}

#[test]
fn copies_of_an_info_are_as_good_and_both_are_freed() {
    let library = fabric();
    let info = library.info(library.api(), |_| {}).unwrap();
    // SAFETY: an info of this library.
    let copy = unsafe { (library.dupinfo)(info) };
    // SAFETY: as above, not used any more.
    unsafe { (library.freeinfo)(info) };
    let side = Side::open(library, copy, &Wanted::default());
    assert_eq!(side.name().len(), 16);
}

#[test]
fn other_endpoint_types_and_capabilities_get_nothing() {
    let library = fabric();
    let datagram = u32::try_from(abi::FI_EP_DGRAM).unwrap();
    // SAFETY: hints have all parts.
    let ask = |hints: &mut fi_info| unsafe { (*hints.ep_attr).r#type = datagram };
    assert!(library.info(library.api(), ask).is_err());
    assert!(library.info(library.api(), |hints| hints.caps = abi::FI_COLLECTIVE).is_err());
}

/// An object of a side's, by its table.
fn fid<T>(object: *mut T) -> *mut abi::fid {
    object.cast()
}

#[test]
fn nothing_is_closed_before_what_is_bound_to_it() {
    let side = Side::with(Wanted { counters: true, ..Wanted::default() });
    let (mut eq, mut other_eq, mut region, mut set) =
        (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    let (mut queue, mut counter) = (ptr::null_mut(), ptr::null_mut());
    let none = ptr::null_mut();
    // SAFETY: open objects, and attributes of ours or none.
    unsafe {
        let (of_fabric, of_domain) = (&*(*side.fabric).ops, &*(*side.domain).ops);
        for place in [&raw mut eq, &raw mut other_eq] {
            assert_eq!((of_fabric.eq_open)(side.fabric, ptr::null_mut(), place, none), 0);
        }
        let mr = &*(*side.domain).mr;
        let registered = (mr.reg)(fid(side.domain), ptr::null(), 8, 0, 0, 1, 0, &raw mut region, none);
        assert_eq!(registered, 0);
        assert_eq!((of_domain.poll_open)(side.domain, ptr::null_mut(), &raw mut set), 0);
        assert_eq!((of_domain.cq_open)(side.domain, ptr::null_mut(), &raw mut queue, none), 0);
        assert_eq!((of_domain.cntr_open)(side.domain, ptr::null_mut(), &raw mut counter, none), 0);
        assert_eq!(bind(side.ep, eq, 0), 0);
        assert_eq!(bind(side.domain, other_eq, 0), 0);
        assert_eq!(bind(region, side.ep, 0), 0);
        assert_eq!(bind(region, counter, abi::FI_REMOTE_WRITE), 0);
        assert_eq!(((*(*set).ops).poll_add)(set, fid(queue), 0), 0);
        let table = [
            ("a fabric with a domain and queues", fid(side.fabric)),
            ("a domain with all that is below", fid(side.domain)),
            ("a vector of an endpoint", fid(side.av)),
            ("an event queue of an endpoint", fid(eq)),
            ("an event queue of a domain", fid(other_eq)),
            ("a queue of an endpoint", fid(side.cq)),
            ("a queue in a poll set", fid(queue)),
            ("a counter of an endpoint", fid(side.sent)),
            ("a counter of a region", fid(counter)),
            ("an endpoint of a region", fid(side.ep)),
            ("a poll set with a queue", fid(set)),
        ];
        for (what, object) in table {
            assert_eq!(close(object), -16, "{what}");
        }
        assert_eq!(close(region), 0, "nothing is bound to a region");
        assert_eq!(close(counter), 0);
        assert_eq!(((*(*set).ops).poll_del)(set, fid(queue), 0), 0);
        assert_eq!((close(set), close(queue)), (0, 0));
    }
    // The endpoint and the domain go first, then the queues that they were bound to, the fabric last.
    let side = std::mem::ManuallyDrop::new(side);
    // SAFETY: open objects, each closed once.
    unsafe {
        assert_eq!((close(side.ep), close(eq)), (0, 0));
        for object in [fid(side.sent), fid(side.received), fid(side.cq), fid(side.av)] {
            assert_eq!(close(object), 0);
        }
        assert_eq!(close(other_eq), -16);
        assert_eq!((close(side.domain), close(other_eq), close(side.fabric)), (0, 0, 0));
    }
}

#[test]
fn each_object_of_a_domain_alone_keeps_it_and_an_event_queue_alone_its_fabric() {
    let library = fabric();
    let info = library.info(library.api(), |_| {}).unwrap();
    let (mut opened, mut domain, none) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: an info of this library, and objects that are open until they are closed.
    unsafe {
        assert_eq!((library.fabric)((*info).fabric_attr, &raw mut opened, none), 0);
        let of_fabric = &*(*opened).ops;
        assert_eq!((of_fabric.domain)(opened, info, &raw mut domain, none), 0);
        let (ops, mr) = (&*(*domain).ops, &*(*domain).mr);
        let mut children: [*mut abi::fid; 6] = [none.cast(); 6];
        let mut at = children.iter_mut().map(std::ptr::from_mut);
        let mut place = || at.next().unwrap();
        assert_eq!((ops.endpoint)(domain, info, place().cast(), none), 0);
        assert_eq!((ops.cq_open)(domain, ptr::null_mut(), place().cast(), none), 0);
        assert_eq!((ops.cntr_open)(domain, ptr::null_mut(), place().cast(), none), 0);
        assert_eq!((ops.av_open)(domain, ptr::null_mut(), place().cast(), none), 0);
        assert_eq!((ops.poll_open)(domain, ptr::null_mut(), place().cast()), 0);
        assert_eq!((mr.reg)(fid(domain), ptr::null(), 0, 0, 0, 0, 0, place().cast(), none), 0);
        for child in children {
            assert_eq!(close(domain), -16);
            assert_eq!(close(child), 0);
        }
        assert_eq!(close(opened), -16);
        assert_eq!(close(domain), 0);
        let mut eq = ptr::null_mut();
        assert_eq!((of_fabric.eq_open)(opened, ptr::null_mut(), &raw mut eq, none), 0);
        assert_eq!(close(opened), -16);
        assert_eq!((close(eq), close(opened)), (0, 0));
        (library.freeinfo)(info);
    }
}

#[test]
fn an_endpoint_has_the_event_queue_that_was_bound_last_and_none_of_another_fabric() {
    let (side, other) = (Side::new(), Side::new());
    let (mut first, mut second, mut strange) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: open objects, each closed once.
    unsafe {
        for (of, place) in [(&side, &raw mut first), (&side, &raw mut second), (&other, &raw mut strange)] {
            let ops = &*(*of.fabric).ops;
            assert_eq!((ops.eq_open)(of.fabric, ptr::null_mut(), place, ptr::null_mut()), 0);
        }
        assert_eq!((bind(side.ep, first, 0), bind(side.ep, second, 0)), (0, 0));
        assert_eq!((bind(side.ep, strange, 0), bind(side.domain, strange, 0)), (-22, -22));
        assert_eq!((close(first), close(strange), close(second)), (0, 0, -16));
        let side = std::mem::ManuallyDrop::new(side);
        assert_eq!((close(side.ep), close(second)), (0, 0));
        for object in [fid(side.cq), fid(side.av), fid(side.domain), fid(side.fabric)] {
            assert_eq!(close(object), 0);
        }
    }
}

#[test]
fn an_endpoint_is_enabled_with_a_vector_and_queues_and_once() {
    let side = Side::new();
    let library = fabric();
    let info = library.info(library.api(), |_| {}).unwrap();
    let mut ep = ptr::null_mut();
    // SAFETY: open objects of one domain.
    unsafe {
        let ops = &*(*side.domain).ops;
        assert_eq!((ops.endpoint)(side.domain, info, &raw mut ep, ptr::null_mut()), 0);
        (library.freeinfo)(info);
        let enable = || control(ep, abi::FI_ENABLE, ptr::null_mut());
        let code = |value: u64| -i32::try_from(value).unwrap();
        assert_eq!(enable(), code(abi::FI_EOPBADSTATE));
        assert_eq!(((*(*ep).tagged).inject)(ep, ptr::null(), 0, 0, 0), minus(abi::FI_EOPBADSTATE));
        assert_eq!(bind(ep, side.av, 0), 0);
        assert_eq!(bind(ep, side.av, 0), code(abi::FI_EINVAL));
        assert_eq!(enable(), code(abi::FI_ENOCQ));
        assert_eq!(bind(ep, side.cq, abi::FI_REMOTE_READ), code(abi::FI_EBADFLAGS));
        assert_eq!(bind(ep, side.cq, abi::FI_SEND), 0);
        assert_eq!(bind(ep, side.cq, abi::FI_SEND), code(abi::FI_EINVAL));
        assert_eq!(enable(), code(abi::FI_ENOCQ));
        assert_eq!(bind(ep, side.cq, abi::FI_RECV), 0);
        assert_eq!(enable(), 0);
        assert_eq!(enable(), code(abi::FI_EOPBADSTATE));
        assert_eq!(bind(ep, side.cq, abi::FI_RECV), code(abi::FI_EOPBADSTATE));
        assert_eq!(close(ep), 0);
    }
}

#[test]
fn an_endpoint_for_one_direction_needs_a_queue_for_that_alone_and_refuses_the_other() {
    let side = Side::new();
    let library = fabric();
    let none = ptr::null_mut();
    for (direction, other) in [(abi::FI_SEND, abi::FI_RECV), (abi::FI_RECV, abi::FI_SEND)] {
        let ask = |hints: &mut fi_info| hints.caps = abi::FI_TAGGED | abi::FI_MSG | direction;
        let info = library.info(library.api(), ask).unwrap();
        let mut ep = ptr::null_mut();
        // SAFETY: open objects of one domain, and no memory.
        unsafe {
            assert_eq!((*info).caps & (direction | other), direction);
            let ops = &*(*side.domain).ops;
            assert_eq!((ops.endpoint)(side.domain, info, &raw mut ep, none), 0);
            (library.freeinfo)(info);
            assert_eq!(bind(ep, side.av, 0), 0);
            assert_eq!(control(ep, abi::FI_ENABLE, none), -i32::try_from(abi::FI_ENOCQ).unwrap());
            assert_eq!(bind(ep, side.cq, direction), 0);
            assert_eq!(control(ep, abi::FI_ENABLE, none), 0);
            let to = side.insert(&side.name());
            let tagged = &*(*ep).tagged;
            let sent = (tagged.inject)(ep, ptr::null(), 0, to, 0);
            let received = (tagged.recv)(ep, none, 0, none, abi::FI_ADDR_UNSPEC, 0, 0, none);
            let no = minus(abi::FI_EOPNOTSUPP);
            let is_sender = direction == abi::FI_SEND;
            assert_eq!((sent == no, received == no), (!is_sender, is_sender));
            assert_eq!(close(ep), 0);
        }
    }
}

#[test]
fn what_is_not_offered_answers_no_such_call() {
    let side = Side::new();
    // SAFETY: every slot is filled, with a function that looks at no argument.
    unsafe {
        let ep = &*side.ep;
        assert_eq!(((*ep.cm).shutdown)(side.ep, 0), -38, "it is no connected endpoint");
        for slot in [(*ep.collective).barrier, (*ep.cm).join] {
            assert_eq!(slot.unwrap()(), minus(abi::FI_ENOSYS));
        }
        // Remote memory access was not asked for.
        let none = ptr::null_mut();
        assert_eq!(((*ep.rma).write)(side.ep, none, 0, none, 0, 0, 0, none), minus(abi::FI_ENOSYS));
        assert_eq!(((*ep.rma).readmsg)(side.ep, ptr::null(), 0), minus(abi::FI_ENOSYS));
    }
}

#[test]
fn tables_say_how_large_they_are() {
    let side = Side::new();
    // SAFETY: open objects.
    unsafe {
        assert_eq!((*(*side.ep).tagged).size, 80);
        assert_eq!((*(*side.cq).ops).size, 72);
        assert_eq!((*(*side.av).ops).size, 96);
        assert_eq!((*(*side.domain).ops).size, 104);
        assert_eq!((*(*side.fabric).ops).size, 56);
    }
}

#[test]
fn b39_a_name_in_a_short_buffer_is_cut_and_its_length_told() {
    let side = Side::new();
    let name = side.name();
    for room in [0usize, 1, 4, 15, 16, 28, 64] {
        let mut buffer = [0xee_u8; 80];
        let mut length = room;
        // SAFETY: an open endpoint, and more room than is told.
        let result = unsafe {
            ((*(*side.ep).cm).getname)(side.ep.cast(), buffer.as_mut_ptr().cast(), &raw mut length)
        };
        let too_small = -i32::try_from(abi::FI_ETOOSMALL).unwrap();
        assert_eq!(result, if room < name.len() { too_small } else { 0 });
        assert_eq!(length, name.len());
        let written = room.min(name.len());
        assert_eq!(buffer[..written], name[..written]);
        assert!(buffer[written..].iter().all(|byte| *byte == 0xee));
    }
}

#[test]
fn a_vector_deals_numbers_in_order_and_gives_names_back() {
    let side = Side::new();
    let mut names: Vec<u8> = Vec::new();
    for port in 1..=3u16 {
        let mut name = side.name();
        name[2..4].copy_from_slice(&port.to_be_bytes());
        names.extend(name);
    }
    let strange = [0xff; 16];
    names.extend(strange);
    let mut numbers = [0u64; 4];
    let mut errors = [7i32; 4];
    // SAFETY: an open vector, addresses, and places for results.
    let inserted = unsafe {
        ((*(*side.av).ops).insert)(
            side.av,
            names.as_ptr().cast(),
            4,
            numbers.as_mut_ptr(),
            abi::FI_SYNC_ERR,
            errors.as_mut_ptr().cast(),
        )
    };
    assert_eq!(inserted, 3);
    assert_eq!(numbers, [0, 1, 2, abi::FI_ADDR_NOTAVAIL]);
    assert_eq!(errors, [0, 0, 0, 22]);
    let mut name = [0u8; 28];
    let mut length = name.len();
    // SAFETY: an open vector, and so much room.
    let found = unsafe { ((*(*side.av).ops).lookup)(side.av, 1, name.as_mut_ptr().cast(), &raw mut length) };
    assert_eq!((found, length), (0, 16));
    assert_eq!(name[..16], names[16..32]);
    let mut text = [0u8; 64];
    let mut room = text.len();
    // SAFETY: an address, and so much room.
    unsafe {
        ((*(*side.av).ops).straddr)(side.av, name.as_ptr().cast(), text.as_mut_ptr().cast(), &raw mut room)
    };
    assert!(text.starts_with(b"fi_sockaddr_in://127.0.0.1:2\0"));
}

#[test]
fn a_wait_without_a_message_ends_in_time_and_with_a_signal() {
    let side = Side::with(Wanted { wait_object: abi::FI_WAIT_FD, ..Wanted::default() });
    let side = &side;
    let wait = move |timeout: i32| {
        // The side may be used from any thread; a pointer in it may not.
        let side: &Side = side;
        let mut entry = [0u64; 6];
        // SAFETY: an open queue, and room for one entry.
        unsafe { ((*(*side.cq).ops).sread)(side.cq, entry.as_mut_ptr().cast(), 1, ptr::null(), timeout) }
    };
    assert_eq!(wait(0), minus(abi::FI_EAGAIN));
    assert_eq!(wait(10), minus(abi::FI_EAGAIN));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(-1));
        // SAFETY: an open queue.
        assert_eq!(unsafe { ((*(*side.cq).ops).signal)(side.cq) }, 0);
        assert_eq!(waiting.join().unwrap(), minus(abi::FI_EAGAIN));
    });
}

#[test]
fn whoever_waits_by_descriptor_is_woken_by_a_message() {
    let wanted = Wanted { wait_object: abi::FI_WAIT_FD, ..Wanted::default() };
    let (a, b) = (Side::new(), Side::with(wanted));
    let to_b = a.insert(&b.name());
    let mut buffer = [0; 8];
    assert_eq!(b.receive(abi::FI_ADDR_UNSPEC, 1, 0, &mut buffer, 5), 0);
    let mut descriptor = -1;
    // SAFETY: an open queue, and a place for the descriptor.
    assert_eq!(unsafe { control(b.cq, abi::FI_GETWAIT, (&raw mut descriptor).cast()) }, 0);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let b = &b;
            loop {
                if let Some(entry) = b.poll() {
                    return entry;
                }
                let mut fids = [b.cq.cast::<abi::fid>()];
                // SAFETY: open objects.
                let may = unsafe { ((*(*b.fabric).ops).trywait)(b.fabric, fids.as_mut_ptr(), 1) };
                if may == 0 {
                    let mut poll = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
                    // SAFETY: one descriptor.
                    unsafe { libc::poll(&raw mut poll, 1, -1) };
                }
            }
        });
        a.send_surely(&[], |a| a.inject(to_b, 1, b"wake", None));
        let mut rounds = 0;
        while !waiting.is_finished() && rounds < common::ROUNDS {
            a.progress();
            rounds += 1;
        }
        let Received::Ok { context, length, .. } = waiting.join().unwrap() else { panic!("an error") };
        assert_eq!((context, length), (5, 4));
    });
}

#[test]
fn automatic_progress_receives_while_the_application_does_nothing() {
    let wanted = Wanted { progress: abi::FI_PROGRESS_AUTO, counters: true, ..Wanted::default() };
    let (a, b) = (Side::with(wanted), Side::with(wanted));
    let to_b = a.insert(&b.name());
    let payload = vec![7u8; 2 << 20];
    let mut buffer = vec![0u8; payload.len()];
    assert_eq!(b.receive(abi::FI_ADDR_UNSPEC, 1, 0, &mut buffer, 5), 0);
    while a.send(to_b, 1, &payload, 6) != 0 {
        std::thread::yield_now();
    }
    // A reads its own queue alone: a rendezvous needs B too.
    let Received::Ok { context: 6, .. } = a.next(&[]) else { panic!("an error") };
    let Received::Ok { context: 5, .. } = b.next(&[]) else { panic!("an error") };
    assert_eq!(buffer, payload);
}

#[test]
fn threads_send_and_receive_at_once_on_one_endpoint() {
    const THREADS: u64 = 4;
    const EACH: u64 = 500;
    let (a, b) = (Side::new(), Side::new());
    let to_b = a.insert(&b.name());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (a, b) = (&a, &b);
            scope.spawn(move || {
                for step in 0..EACH {
                    let word = (thread << 32 | step).to_le_bytes();
                    a.send_surely(&[b], |a| a.inject(to_b, thread, &word, None));
                }
            });
        }
    });
    for thread in 0..THREADS {
        for step in 0..EACH {
            let mut word = [0u8; 8];
            assert_eq!(b.receive(abi::FI_ADDR_UNSPEC, thread, 0, &mut word, 9), 0);
            let Received::Ok { tag, .. } = b.next(&[&a]) else { panic!("an error") };
            assert_eq!((tag, u64::from_le_bytes(word)), (thread, thread << 32 | step));
        }
    }
}

/// The provider asked directly, as a libfabric of this API asks it.
fn direct(api: u32) -> Side {
    let provider = tagmatch_fi::fi_prov_ini();
    let mut info: *mut fi_info = ptr::null_mut();
    let library = fabric();
    // SAFETY: the provider's functions, called as libfabric calls them. Attributes are copied.
    unsafe {
        let node = c"127.0.0.1".as_ptr();
        let found = ((*provider).getinfo)(api, node, ptr::null(), abi::FI_SOURCE, ptr::null(), &raw mut info);
        assert_eq!(found, 0);
        (*(*info).fabric_attr).api_version = api;
        let open = common::library::Fabric {
            library: library.library,
            getinfo: library.getinfo,
            freeinfo: library.freeinfo,
            dupinfo: library.dupinfo,
            fabric: (*provider).fabric,
            version: library.version,
        };
        Side::open(&open, info, &Wanted::default())
    }
}

#[test]
fn an_error_entry_is_written_as_far_as_the_api_goes_and_no_further() {
    for (api, bytes) in [(version(1, 4), 72), (version(1, 5), 80), (version(1, 17), 80), (version(2, 6), 88)]
    {
        let side = direct(api);
        assert_eq!(side.receive_message(1, 0, None, 3, abi::FI_PEEK), 0);
        let mut entry = [0xee_u8; size_of::<fi_cq_err_entry>() + 8];
        let mut aligned = Box::new([0u64; 12]);
        // SAFETY: as many bytes in the one as in the other.
        unsafe { ptr::copy_nonoverlapping(entry.as_ptr(), aligned.as_mut_ptr().cast(), entry.len()) };
        // SAFETY: an open queue, and room for the largest entry.
        let read = unsafe { ((*(*side.cq).ops).readerr)(side.cq, aligned.as_mut_ptr().cast(), 0) };
        assert_eq!(read, 1);
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(aligned.as_ptr().cast(), entry.as_mut_ptr(), entry.len()) };
        assert!(entry[bytes..].iter().all(|byte| *byte == 0xee), "API {api:#x}");
        assert_eq!(entry[..8], 3u64.to_ne_bytes());
    }
}

#[test]
fn an_application_of_api_1_17_gets_no_tails() {
    for (api, tail) in [(version(1, 17), 0), (version(2, 5), u64::MAX)] {
        let provider = tagmatch_fi::fi_prov_ini();
        let mut info: *mut fi_info = ptr::null_mut();
        // SAFETY: called as libfabric calls it.
        unsafe {
            let found = ((*provider).getinfo)(api, ptr::null(), ptr::null(), 0, ptr::null(), &raw mut info);
            assert_eq!(found, 0);
            assert_eq!((*(*info).domain_attr).max_cntr_value, tail);
            (fabric().freeinfo)(info);
        }
    }
}

#[test]
fn a_fabric_is_opened_without_an_info_as_far_as_its_name_says() {
    let provider = tagmatch_fi::fi_prov_ini();
    // SAFETY: zeros are valid attributes.
    let mut attr: fi_fabric_attr = unsafe { std::mem::zeroed() };
    let mut opened = ptr::null_mut();
    // SAFETY: attributes, and a place for the fabric.
    let result = unsafe { ((*provider).fabric)(&raw mut attr, &raw mut opened, at(9)) };
    assert_eq!(result, 0);
    // SAFETY: an open fabric, closed once.
    unsafe {
        assert_eq!((*opened).fid.context, at(9));
        assert_eq!(close(opened), 0);
    }
}
