//! `fi_atomic(3)`: every call, what is offered, what is refused, and what both sides are told.

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

use super::common::pair::Pair;
use super::common::region::Region;
use super::common::side::at;
use super::common::{Received, Side, Wanted, minus};
use super::{BOTH, count};
use tagmatch::provider::abi::{self, fi_atomic_attr, fi_ioc, fi_msg_atomic, fi_rma_ioc};

const U8: c_int = 1;
const U32: c_int = 5;
const U64: c_int = 7;
const F64: c_int = 9;
const LONG_DOUBLE: c_int = 12;
const MIN: c_int = 0;
const SUM: c_int = 2;
const BOR: c_int = 6;
const READ: c_int = 10;
const WRITE: c_int = 11;
const CSWAP: c_int = 12;

fn wanted() -> Wanted {
    Wanted { caps: abi::FI_MSG | abi::FI_ATOMIC | abi::FI_SOURCE, ..Wanted::default() }
}

fn ioc<T>(values: &[T]) -> fi_ioc {
    fi_ioc { addr: values.as_ptr().cast_mut().cast(), count: values.len() }
}

fn pointer<T>(values: &[T]) -> *const c_void {
    values.as_ptr().cast()
}

/// Room for what comes back, which is looked at when the completion has come.
fn room<T>(values: &mut [T]) -> *mut c_void {
    values.as_mut_ptr().cast()
}

/// A's next completion is the success of this operation.
fn done(pair: &Pair, context: u64, fetches: bool) {
    let expected = abi::FI_ATOMIC | if fetches { abi::FI_READ } else { abi::FI_WRITE };
    match pair.a.next(&[&pair.b]) {
        Received::Ok { context: c, flags, .. } => assert_eq!((c, flags), (context, expected)),
        other @ Received::Error { .. } => panic!("{other:?}"),
    }
}

fn region(pair: &Pair, values: &[u64]) -> Region {
    Region::new(&pair.b, 1, values.iter().flat_map(|value| value.to_ne_bytes()).collect(), BOTH)
}

fn values(region: &Region) -> Vec<u64> {
    region.now().as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect()
}

/// Calls of one stretch of the region with key 1, from its first value on.
trait Atomic {
    fn write(&self, operands: &[u64], peer: u64, op: c_int, context: u64) -> isize;
    fn fetch(&self, operands: &[u64], result: *mut c_void, peer: u64, op: c_int, context: u64) -> isize;
    fn valid(&self, call: usize, datatype: c_int, op: c_int) -> (c_int, usize);
}

// SAFETY (of all calls): an open endpoint, and values and room that the test keeps until the completion.
impl Atomic for Side {
    fn write(&self, operands: &[u64], peer: u64, op: c_int, context: u64) -> isize {
        let (none, length) = (null_mut(), operands.len());
        // SAFETY: see above.
        unsafe {
            let call = (*(*self.ep).atomic).write;
            call(self.ep, pointer(operands), length, none, peer, 0, 1, U64, op, at(context))
        }
    }

    fn fetch(&self, operands: &[u64], result: *mut c_void, peer: u64, op: c_int, context: u64) -> isize {
        let (none, length) = (null_mut(), operands.len());
        // SAFETY: see above.
        unsafe {
            let call = (*(*self.ep).atomic).readwrite;
            call(self.ep, pointer(operands), length, none, result, none, peer, 0, 1, U64, op, at(context))
        }
    }

    fn valid(&self, call: usize, datatype: c_int, op: c_int) -> (c_int, usize) {
        let mut most = 0;
        // SAFETY: see above.
        let code = unsafe {
            let ops = &*(*self.ep).atomic;
            [ops.writevalid, ops.readwritevalid, ops.compwritevalid][call](
                self.ep,
                datatype,
                op,
                &raw mut most,
            )
        };
        (code, most)
    }
}

#[test]
fn each_call_does_its_operation_and_fetches_what_was_there() {
    let pair = Pair::with(wanted());
    let region = region(&pair, &[10, 20, 30, 40]);
    let to = pair.to_b;
    pair.a.send_surely(&[&pair.b], |a| a.write(&[1, 2], to, SUM, 1));
    done(&pair, 1, false);
    assert_eq!(values(&region), [11, 22, 30, 40]);
    let mut result = [0_u64; 2];
    let place = room(&mut result);
    pair.a.send_surely(&[&pair.b], |a| a.fetch(&[5, 100], place, to, MIN, 2));
    done(&pair, 2, true);
    assert_eq!((result, values(&region)), ([11, 22], vec![5, 22, 30, 40]));
    // What is only read has no operand.
    let mut all = [0_u64; 4];
    let place = room(&mut all);
    pair.a.send_surely(&[&pair.b], |a| {
        // SAFETY: an open endpoint, and room that stays.
        unsafe {
            let call = (*(*a.ep).atomic).readwrite;
            call(a.ep, null(), 4, null_mut(), place, null_mut(), to, 0, 1, U64, READ, at(3))
        }
    });
    done(&pair, 3, true);
    assert_eq!(all, [5, 22, 30, 40]);
    // The second of three is swapped.
    let (operands, compares, mut before) = ([7_u64, 8, 9], [0_u64, 22, 0], [0_u64; 3]);
    let place = room(&mut before);
    pair.a.send_surely(&[&pair.b], |a| {
        // SAFETY: an open endpoint, values, and room that stays.
        unsafe {
            let call = (*(*a.ep).atomic).compwrite;
            let (none, operands, compares) = (null_mut(), pointer(&operands), pointer(&compares));
            call(a.ep, operands, 3, none, compares, none, place, none, to, 0, 1, U64, CSWAP, at(4))
        }
    });
    done(&pair, 4, true);
    assert_eq!((before, values(&region)), ([5, 22, 30], vec![5, 8, 30, 40]));
    // What is injected is not reported; what comes behind it shows that it is done.
    pair.a.send_surely(&[&pair.b], |a| {
        // SAFETY: an open endpoint, and a value.
        unsafe { ((*(*a.ep).atomic).inject)(a.ep, pointer(&[1_u64]), 1, to, 24, 1, U64, WRITE) }
    });
    pair.a.send_surely(&[&pair.b], |a| a.write(&[6], to, WRITE, 5));
    done(&pair, 5, false);
    assert_eq!(values(&region), [6, 8, 30, 1]);
}

#[test]
fn vectors_and_messages_are_cut_differently_here_and_there() {
    let pair = Pair::with(wanted());
    let region = region(&pair, &[1, 2, 3, 4]);
    let to = pair.to_b;
    let operands = [ioc(&[10_u64]), ioc(&[20_u64, 30])];
    let (mut first, mut second) = ([0_u64; 2], [0_u64; 1]);
    let mut results = [ioc(&first), ioc(&second)];
    (results[0].addr, results[1].addr) = (room(&mut first), room(&mut second));
    let results = results.as_mut_ptr();
    pair.a.send_surely(&[&pair.b], |a| {
        // SAFETY: an open endpoint, and vectors that stay.
        unsafe {
            let call = (*(*a.ep).atomic).readwritev;
            let (none, operands) = (null_mut(), operands.as_ptr());
            call(a.ep, operands, none, 2, results, none, 2, to, 8, 1, U64, SUM, at(1))
        }
    });
    done(&pair, 1, true);
    assert_eq!((first, second, values(&region)), ([2, 3], [4], vec![1, 12, 23, 34]));
    // Two stretches there, the last one first.
    let stretches = [fi_rma_ioc { addr: 24, count: 1, key: 1 }, fi_rma_ioc { addr: 0, count: 2, key: 1 }];
    let message = |op| fi_msg_atomic {
        msg_iov: operands.as_ptr(),
        desc: null_mut(),
        iov_count: 2,
        addr: to,
        rma_iov: stretches.as_ptr(),
        rma_iov_count: 2,
        datatype: U64,
        op,
        context: at(2),
        data: 0,
    };
    let (sum, swap) = (message(SUM), message(CSWAP));
    pair.a.send_surely(&[&pair.b], |a| {
        // SAFETY: an open endpoint, and a message that stays.
        unsafe { ((*(*a.ep).atomic).writemsg)(a.ep, &raw const sum, abi::FI_COMPLETION) }
    });
    done(&pair, 2, false);
    assert_eq!(values(&region), [21, 42, 23, 44]);
    let compares = [ioc(&[44_u64, 0, 42])];
    pair.a.send_surely(&[&pair.b], |a| {
        // SAFETY: an open endpoint, and a message and vectors that stay.
        unsafe {
            let call = (*(*a.ep).atomic).compwritemsg;
            let none = null_mut();
            call(a.ep, &raw const swap, compares.as_ptr(), none, 1, results, none, 2, abi::FI_COMPLETION)
        }
    });
    done(&pair, 2, true);
    assert_eq!((first, second, values(&region)), ([44, 21], [42], vec![21, 30, 23, 10]));
    let data = abi::FI_REMOTE_CQ_DATA;
    // SAFETY: an open endpoint, and a message.
    let refused = unsafe { ((*(*pair.a.ep).atomic).writemsg)(pair.a.ep, &raw const sum, data) };
    assert_eq!(refused, minus(abi::FI_EBADFLAGS), "no data goes with it");
}

#[test]
fn what_is_offered_is_told_and_what_is_not_is_refused() {
    let pair = Pair::with(wanted());
    let side = &pair.a;
    let unsupported = c_int::try_from(minus(abi::FI_EOPNOTSUPP)).unwrap();
    for (call, datatype, op, expected) in [
        (0, U64, SUM, (0, 128)),
        (0, U8, WRITE, (0, 1024)),
        (1, F64, READ, (0, 128)),
        (2, U32, CSWAP, (0, 256)),
        (0, U64, READ, (unsupported, 0)),
        (1, U64, CSWAP, (unsupported, 0)),
        (2, U64, SUM, (unsupported, 0)),
        (0, F64, BOR, (unsupported, 0)),
        (0, LONG_DOUBLE, SUM, (unsupported, 0)),
        (0, U64, 99, (unsupported, 0)),
        (0, -1, SUM, (unsupported, 0)),
    ] {
        assert_eq!(side.valid(call, datatype, op), expected, "{call} {datatype} {op}");
        let flags = [0, abi::FI_FETCH_ATOMIC, abi::FI_COMPARE_ATOMIC][call];
        let mut told = fi_atomic_attr { count: 0, size: 0 };
        // SAFETY: an open domain, and a place.
        let code =
            unsafe { ((*(*side.domain).ops).query_atomic)(side.domain, datatype, op, &raw mut told, flags) };
        assert_eq!((code, told.count), expected);
        assert_eq!(told.count * told.size, if code == 0 { 1024 } else { 0 });
    }
    assert_eq!(side.write(&[0; 129], pair.to_b, SUM, 1), minus(abi::FI_EMSGSIZE));
    assert_eq!(side.write(&[], pair.to_b, SUM, 1), minus(abi::FI_EINVAL));
    assert_eq!(side.write(&[1], pair.to_b, READ, 1), minus(abi::FI_EOPNOTSUPP));
    let without = Pair::with(Wanted { caps: abi::FI_MSG | abi::FI_RMA, ..Wanted::default() });
    assert_eq!(without.a.write(&[1], without.to_b, SUM, 1), minus(abi::FI_ENOSYS), "it was not asked for");
    assert_eq!(without.a.valid(0, U64, SUM), (unsupported, 0));
}

#[test]
fn both_sides_count_it_and_who_may_not_gets_one_error() {
    let pair = Pair::with(Wanted { counters: true, ..wanted() });
    let region = region(&pair, &[1]);
    pair.a.send_surely(&[&pair.b], |a| a.write(&[5], pair.to_b, SUM, 1));
    done(&pair, 1, false);
    let mut result = [0_u64];
    let place = room(&mut result);
    pair.a.send_surely(&[&pair.b], |a| a.fetch(&[5], place, pair.to_b, SUM, 2));
    done(&pair, 2, true);
    assert_eq!((result, values(&region)), ([6], vec![11]));
    assert_eq!((count(pair.a.sent), count(pair.b.received)), ((2, 0), (2, 0)));
    drop(region);
    let only = Region::new(&pair.b, 1, vec![0; 8], abi::FI_REMOTE_READ);
    pair.a.send_surely(&[&pair.b], |a| a.write(&[5], pair.to_b, SUM, 3));
    match pair.a.next(&[&pair.b]) {
        Received::Error { context, error, .. } => assert_eq!((context, error), (3, abi::FI_EACCES)),
        other @ Received::Ok { .. } => panic!("{other:?}"),
    }
    assert_eq!((count(pair.a.sent), only.now()), ((2, 1), vec![0; 8]));
}
