//! Waiting for queues, counters and sets of them: who is woken, and what may be closed meanwhile.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a call of C through a table of an object is to read the table and to call"
)]

mod common;

use std::ffi::c_int;
use std::ptr;

use common::side::{at, bind, close, control};
use common::{Received, Side, Wanted, fabric, minus};
use tagmatch::provider::abi::{
    self, fi_cntr_attr, fi_cq_attr, fi_poll_attr, fid, fid_cntr, fid_cq, fid_ep, fid_poll,
};

/// As calls that return an `int` say it.
fn int(code: u64) -> c_int {
    -c_int::try_from(code).unwrap()
}

fn waiting_side() -> Side {
    Side::with(Wanted { wait_object: abi::FI_WAIT_FD, ..Wanted::default() })
}

/// One more queue of a side's domain.
fn queue(side: &Side, wait_object: u64, context: u64) -> *mut fid_cq {
    // SAFETY: zeros are valid attributes.
    let mut attr: fi_cq_attr = unsafe { std::mem::zeroed() };
    attr.format = u32::try_from(abi::FI_CQ_FORMAT_TAGGED).unwrap();
    attr.wait_obj = u32::try_from(wait_object).unwrap();
    let mut opened = ptr::null_mut();
    // SAFETY: an open domain.
    let result =
        unsafe { ((*(*side.domain).ops).cq_open)(side.domain, &raw mut attr, &raw mut opened, at(context)) };
    assert_eq!(result, 0, "fi_cq_open");
    opened
}

/// One more counter of a side's domain.
fn counter(side: &Side, context: u64) -> *mut fid_cntr {
    // SAFETY: zeros are valid attributes.
    let mut attr: fi_cntr_attr = unsafe { std::mem::zeroed() };
    let mut opened = ptr::null_mut();
    // SAFETY: an open domain.
    let result = unsafe {
        ((*(*side.domain).ops).cntr_open)(side.domain, &raw mut attr, &raw mut opened, at(context))
    };
    assert_eq!(result, 0, "fi_cntr_open");
    opened
}

/// One more endpoint of a side's domain, bound to its vector, and for these capabilities.
fn endpoint(side: &Side, caps: u64) -> *mut fid_ep {
    let library = fabric();
    let info = library.info_at(0, library.api(), |hints| hints.caps = caps).unwrap();
    let mut opened = ptr::null_mut();
    // SAFETY: an open domain, and an info.
    unsafe {
        let ops = &*(*side.domain).ops;
        assert_eq!((ops.endpoint)(side.domain, info, &raw mut opened, ptr::null_mut()), 0);
        (library.freeinfo)(info);
        assert_eq!(bind(opened, side.av, 0), 0);
    }
    opened
}

/// `fi_trywait` of one object.
fn may_wait<T>(side: &Side, object: *mut T) -> c_int {
    let mut fids = [object.cast::<fid>()];
    // SAFETY: open objects.
    unsafe { ((*(*side.fabric).ops).trywait)(side.fabric, fids.as_mut_ptr(), 1) }
}

fn descriptor<T>(object: *mut T) -> c_int {
    let mut descriptor = -1;
    // SAFETY: an open object, and a place for the descriptor.
    assert_eq!(unsafe { control(object, abi::FI_GETWAIT, (&raw mut descriptor).cast()) }, 0);
    descriptor
}

fn is_readable(descriptor: c_int) -> bool {
    let mut poll = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor.
    unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
}

fn progress(queue: *mut fid_cq) -> isize {
    // SAFETY: an open queue; no entry is asked for.
    unsafe { ((*(*queue).ops).read)(queue, ptr::null_mut(), 0) }
}

#[test]
fn a_signal_ends_every_one_of_many_waits() {
    let side = waiting_side();
    let side = &side;
    let wait = || {
        let mut entry = [0u64; 6];
        // SAFETY: an open queue, and room for one entry.
        unsafe { ((*(*side.cq).ops).sread)(side.cq, entry.as_mut_ptr().cast(), 1, ptr::null(), -1) }
    };
    for _ in 0..2000 {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(wait);
            // SAFETY: an open queue.
            assert_eq!(unsafe { ((*(*side.cq).ops).signal)(side.cq) }, 0);
            assert_eq!(waiting.join().unwrap(), minus(abi::FI_EAGAIN));
        });
    }
}

#[test]
fn who_waits_by_descriptor_is_told_of_a_signal_once() {
    let side = waiting_side();
    assert_eq!(may_wait(&side, side.cq), 0);
    assert!(!is_readable(descriptor(side.cq)));
    // SAFETY: an open queue.
    assert_eq!(unsafe { ((*(*side.cq).ops).signal)(side.cq) }, 0);
    assert!(is_readable(descriptor(side.cq)));
    assert_eq!(may_wait(&side, side.cq), int(abi::FI_EAGAIN));
    assert_eq!(may_wait(&side, side.cq), 0);
    assert!(!is_readable(descriptor(side.cq)));
}

/// Messages that are told of in one progress at most.
const MANY: u64 = 2000;

#[test]
fn who_waits_for_one_queue_is_woken_by_what_progress_through_another_leaves() {
    let (a, b) = (Side::new(), waiting_side());
    let received = queue(&b, abi::FI_WAIT_FD, 0);
    let ep = endpoint(&b, abi::FI_TAGGED | abi::FI_MSG);
    let mut buffer = [0u8; 8];
    // SAFETY: open objects, and a buffer that stays.
    unsafe {
        assert_eq!(bind(ep, b.cq, abi::FI_SEND), 0);
        assert_eq!(bind(ep, received, abi::FI_RECV), 0);
        assert_eq!(control(ep, abi::FI_ENABLE, ptr::null_mut()), 0);
        let mut name = [0u8; 64];
        let mut length = name.len();
        let result = ((*(*ep).cm).getname)(ep.cast(), name.as_mut_ptr().cast(), &raw mut length);
        assert_eq!(result, 0);
        let to_b = a.insert(&name[..length]);
        let posted = ((*(*ep).tagged).recv)(
            ep,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            ptr::null_mut(),
            abi::FI_ADDR_UNSPEC,
            2,
            0,
            at(5),
        );
        assert_eq!(posted, 0);
        // The connection is there, and its messages are credited.
        for tag in [1, 2] {
            let mut rounds = 0;
            while a.inject(to_b, tag, b"first", None) != 0 {
                rounds += 1;
                assert!(rounds < common::ROUNDS);
                a.progress();
                progress(received);
            }
        }
        let mut entry = [0u64; 6];
        let mut rounds = 0;
        while ((*(*received).ops).read)(received, entry.as_mut_ptr().cast(), 1) != 1 {
            rounds += 1;
            assert!(rounds < common::ROUNDS);
            a.progress();
        }
        let posted = ((*(*ep).tagged).recv)(
            ep,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            ptr::null_mut(),
            abi::FI_ADDR_UNSPEC,
            2,
            0,
            at(6),
        );
        assert_eq!(posted, 0);
        while may_wait(&b, received) != 0 {
            a.progress();
        }
        for _ in 0..MANY {
            a.send_surely(&[], |a| a.inject(to_b, 1, b"more", None));
        }
        a.send_surely(&[], |a| a.send(to_b, 2, b"last", 7));
        assert!(matches!(a.next(&[]), Received::Ok { context: 7, .. }));
        let waited_for = descriptor(received);
        assert!(is_readable(waited_for));
        // Another reads all that the descriptor has to show, and goes away before all of it is told.
        for _ in 0..64 {
            progress(b.cq);
            assert!(is_readable(waited_for), "nobody tells the one who waits");
        }
        while ((*(*received).ops).read)(received, entry.as_mut_ptr().cast(), 1) != 1 {
            assert!(is_readable(waited_for) || may_wait(&b, received) != 0);
        }
        assert_eq!(entry[0], 6);
        assert_eq!(close(ep), 0);
        assert_eq!(close(received), 0);
    }
}

#[test]
fn a_wait_for_a_counter_ends_with_the_error_that_it_finds_itself() {
    let side = Side::with(Wanted { wait_object: abi::FI_WAIT_FD, counters: true, ..Wanted::default() });
    let mut buffer = [0; 8];
    for threshold in [1, 7] {
        assert_eq!(side.receive(abi::FI_ADDR_UNSPEC, 1, 0, &mut buffer, 5), 0);
        assert_eq!(side.cancel(5), 0);
        // SAFETY: an open counter.
        let waited = unsafe { ((*(*side.received).ops).wait)(side.received, threshold, 10_000) };
        assert_eq!(waited, int(abi::FI_EAVAIL));
    }
}

#[test]
fn who_waits_for_a_counter_is_told_first_of_what_was_counted_since_it_was_read() {
    let side = Side::with(Wanted { wait_object: abi::FI_WAIT_FD, counters: true, ..Wanted::default() });
    let to = side.insert(&side.name());
    let mut buffer = [0; 8];
    for _ in 0..3 {
        assert_eq!(side.receive(abi::FI_ADDR_UNSPEC, 1, 0, &mut buffer, 5), 0);
        side.send_surely(&[], |side| side.inject(to, 1, b"counted", None));
        // Whoever reads the queue makes the progress.
        assert_eq!(side.next(&[]).context(), 5);
        assert_eq!(may_wait(&side, side.received), int(abi::FI_EAGAIN));
        // It may have something to do for itself a few times.
        assert!((0..64).any(|_| may_wait(&side, side.received) == 0));
    }
}

fn poll_set(side: &Side) -> *mut fid_poll {
    let mut attr = fi_poll_attr { flags: 0 };
    let mut opened = ptr::null_mut();
    // SAFETY: an open domain.
    let result = unsafe { ((*(*side.domain).ops).poll_open)(side.domain, &raw mut attr, &raw mut opened) };
    assert_eq!(result, 0, "fi_poll_open");
    opened
}

fn add<T>(set: *mut fid_poll, object: *mut T) -> c_int {
    // SAFETY: an open set, and an open object or none.
    unsafe { ((*(*set).ops).poll_add)(set, object.cast(), 0) }
}

fn delete<T>(set: *mut fid_poll, object: *mut T) -> c_int {
    // SAFETY: an open set.
    unsafe { ((*(*set).ops).poll_del)(set, object.cast(), 0) }
}

#[test]
fn what_is_in_a_poll_set_is_not_closed_until_it_is_taken_out_and_the_set_not_before() {
    let side = Side::new();
    let set = poll_set(&side);
    let (first, second) = (queue(&side, abi::FI_WAIT_NONE, 1), counter(&side, 2));
    // SAFETY: open objects, each closed once.
    unsafe {
        for _ in 0..2 {
            assert_eq!(add(set, first), 0, "to add it again does nothing");
            assert_eq!(add(set, second), 0);
        }
        assert_eq!(close(first), int(abi::FI_EBUSY));
        assert_eq!(close(second), int(abi::FI_EBUSY));
        assert_eq!(delete(set, first), 0);
        assert_eq!(delete(set, first), int(abi::FI_EINVAL));
        assert_eq!(close(first), 0);
        assert_eq!(close(set), int(abi::FI_EBUSY));
        assert_eq!(delete(set, second), 0);
        assert_eq!(close(set), 0);
        assert_eq!(close(second), 0);
    }
}

#[test]
fn a_poll_set_takes_queues_and_counters_of_its_domain_alone() {
    let (side, other) = (Side::new(), Side::new());
    let set = poll_set(&side);
    assert_eq!(add(set, other.cq), int(abi::FI_EDOMAIN));
    assert_eq!(add(set, side.ep), int(abi::FI_EINVAL));
    assert_eq!(add(set, ptr::null_mut::<fid>()), int(abi::FI_EINVAL));
    // SAFETY: open objects.
    unsafe {
        let ops = &*(*set).ops;
        assert_eq!((ops.poll_add)(set, side.cq.cast(), 1), int(abi::FI_EBADFLAGS));
        assert_eq!((ops.poll_del)(set, side.cq.cast(), 1), int(abi::FI_EBADFLAGS));
        assert_eq!(close(set), 0);
    }
}

#[test]
fn a_poll_set_names_what_has_something_by_its_context_and_moves_everything_on() {
    let (a, b) = (Side::new(), Side::new());
    let to_b = a.insert(&b.name());
    let set = poll_set(&b);
    let idle = queue(&b, abi::FI_WAIT_NONE, 77);
    assert_eq!((add(set, idle), add(set, b.cq)), (0, 0));
    let mut contexts = [at(1); 4];
    // SAFETY: an open set, and so much room.
    let mut poll = |count| unsafe { ((*(*set).ops).poll)(set, contexts.as_mut_ptr(), count) };
    assert_eq!(poll(4), 0);
    let mut buffer = [0u8; 4];
    assert_eq!(b.receive(abi::FI_ADDR_UNSPEC, 1, 0, &mut buffer, 5), 0);
    let mut is_sent = false;
    let mut rounds = 0;
    while poll(4) == 0 {
        is_sent = is_sent || a.inject(to_b, 1, b"poll", None) == 0;
        a.progress();
        rounds += 1;
        assert!(rounds < common::ROUNDS);
    }
    assert_eq!(contexts[0], at(0), "that of the side's own queue");
    // SAFETY: open objects.
    unsafe {
        let ops = &*(*set).ops;
        assert_eq!((ops.poll)(set, ptr::null_mut(), 0), 0);
        assert_eq!((ops.poll)(set, ptr::null_mut(), 1), int(abi::FI_EINVAL));
        assert_eq!((ops.poll)(set, contexts.as_mut_ptr(), -1), int(abi::FI_EINVAL));
        assert_eq!((delete(set, idle), delete(set, b.cq)), (0, 0));
        assert_eq!(close(set), 0);
        assert_eq!(close(idle), 0);
    }
    b.next(&[&a]);
}

#[test]
fn a_poll_set_names_a_counter_for_completions_and_errors_but_not_for_what_the_application_adds() {
    let side = Side::with(Wanted { counters: true, ..Wanted::default() });
    let (first, second) = (poll_set(&side), poll_set(&side));
    assert_eq!((add(first, side.sent), add(second, side.sent)), (0, 0));
    let poll = |set: *mut fid_poll| {
        let mut contexts = [at(1); 2];
        // SAFETY: an open set, and so much room.
        unsafe { ((*(*set).ops).poll)(set, contexts.as_mut_ptr(), 2) }
    };
    let to = side.insert(&side.name());
    let send = || {
        // SAFETY: an open counter.
        let count = || unsafe { ((*(*side.sent).ops).read)(side.sent) };
        let before = count();
        side.send_surely(&[], |side| side.send(to, 1, b"", 1));
        for _ in 0..common::ROUNDS {
            if count() > before {
                return;
            }
        }
        panic!("it was not counted");
    };
    // SAFETY: an open counter.
    let ops = unsafe { &*(*side.sent).ops };
    assert_eq!((poll(first), poll(second)), (0, 0));
    send();
    assert_eq!((poll(first), poll(first), poll(second), poll(second)), (1, 0, 1, 0), "each set is told");
    // SAFETY: an open counter.
    unsafe {
        assert_eq!((ops.add)(side.sent, 5), 0);
        assert_eq!((poll(first), poll(second)), (0, 0), "what was added is no news");
        assert_eq!((ops.read)(side.sent), 6);
        assert_eq!((ops.set)(side.sent, 40), 0);
        assert_eq!(poll(first), 0);
        assert_eq!((ops.adderr)(side.sent, 1), 0);
    }
    assert_eq!((poll(first), poll(first)), (1, 0));
    send();
    // SAFETY: an open counter.
    unsafe { assert_eq!((ops.add)(side.sent, 1), 0) };
    assert_eq!(poll(first), 0, "it has not changed since the application added to it");
    send();
    assert_eq!((poll(first), poll(second)), (1, 1));
    assert_eq!((delete(first, side.sent), delete(second, side.sent)), (0, 0));
    // SAFETY: open sets, each closed once.
    unsafe { assert_eq!((close(first), close(second)), (0, 0)) };
}

#[test]
fn wait_sets_are_not_offered_and_nothing_is_bound_to_one() {
    let side = Side::new();
    let mut opened = ptr::null_mut();
    // SAFETY: zeros are valid attributes.
    let mut attr: fi_cq_attr = unsafe { std::mem::zeroed() };
    attr.wait_obj = u32::try_from(abi::FI_WAIT_SET).unwrap();
    // SAFETY: an open fabric and an open domain; the slot looks at no argument.
    unsafe {
        assert_eq!((*(*side.fabric).ops).wait_open.unwrap()(), minus(abi::FI_ENOSYS));
        let ops = &*(*side.domain).ops;
        let result = (ops.cq_open)(side.domain, &raw mut attr, &raw mut opened, ptr::null_mut());
        assert_eq!(result, int(abi::FI_ENOSYS));
    }
    assert!(opened.is_null());
}
