//! A message of more than 4 GiB through the provider: no length on its way has 32 bits.
//!
//! Its memory is one piece that is mapped again and again, and a tail of its own.

use std::ptr;

use super::common::pair::{ANY, Pair, pattern};
use super::common::{Received, minus};
use tagmatch::provider::abi;

const PIECE: usize = 64 << 20;
const PIECES: usize = 64;
const TAIL: usize = (1 << 20) + 5;
const LENGTH: usize = PIECES * PIECE + TAIL;

/// So many addresses, of which all but the tail show the same memory.
struct Area {
    start: *mut u8,
}

impl Area {
    fn new() -> Self {
        // SAFETY: a name, and flags.
        let file = unsafe { libc::memfd_create(c"huge".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(file >= 0, "memfd_create: {}", std::io::Error::last_os_error());
        // SAFETY: an open file.
        assert_eq!(unsafe { libc::ftruncate(file, i64::try_from(PIECE).unwrap()) }, 0);
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, in nobody's place.
        let start = unsafe { libc::mmap(ptr::null_mut(), LENGTH, access, kind | libc::MAP_NORESERVE, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        for piece in 0..PIECES {
            let fixed = libc::MAP_SHARED | libc::MAP_FIXED;
            // SAFETY: within the mapping above.
            let at = unsafe { start.byte_add(piece * PIECE) };
            // SAFETY: in place of a part of that mapping, which nobody has seen.
            let mapped = unsafe { libc::mmap(at, PIECE, access, fixed, file, 0) };
            assert_eq!(mapped, at, "mmap: {}", std::io::Error::last_os_error());
        }
        // SAFETY: open, and closed once; the mappings stay.
        assert_eq!(unsafe { libc::close(file) }, 0);
        Self { start: start.cast() }
    }

    fn piece(&mut self) -> &mut [u8] {
        // SAFETY: mapped, and borrowed as the area is.
        unsafe { std::slice::from_raw_parts_mut(self.start, PIECE) }
    }

    fn tail(&mut self) -> &mut [u8] {
        // SAFETY: mapped, and borrowed as the area is.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(PIECES * PIECE), TAIL) }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no part of it is borrowed.
        assert_eq!(unsafe { libc::munmap(self.start.cast(), LENGTH) }, 0);
    }
}

/// `fi_tsend` and `fi_trecv` of a whole area.
fn send(pair: &Pair, from: &Area, context: u64) {
    pair.a.send_surely(&[&pair.b], |a| {
        let (start, none) = (from.start.cast(), ptr::null_mut());
        let context = super::common::side::at(context);
        // SAFETY: an open endpoint; the area stays until the completion.
        unsafe { ((*(*a.ep).tagged).send)(a.ep, start, LENGTH, none, pair.to_b, 5, context) }
    });
}

fn receive(pair: &Pair, into: &Area, context: u64) {
    let (b, none, context) = (&pair.b, ptr::null_mut(), super::common::side::at(context));
    // SAFETY: an open endpoint; the area stays until the completion.
    let posted =
        unsafe { ((*(*b.ep).tagged).recv)(b.ep, into.start.cast(), LENGTH, none, ANY, 5, 0, context) };
    assert_eq!(posted, 0);
}

#[test]
fn a_message_of_more_than_4_gib_is_peeked_at_cut_and_received_whole_with_its_true_length() {
    let pair = Pair::new();
    let (mut from, mut into) = (Area::new(), Area::new());
    from.piece().copy_from_slice(&pattern(PIECE, 3));
    from.tail().copy_from_slice(&pattern(TAIL, 9));
    send(&pair, &from, 1);
    pair.unexpected(&[]);
    pair.peek(5, 2, 0);
    assert_eq!(pair.received(), (2, 5, LENGTH));
    receive(&pair, &into, 3);
    assert_eq!(pair.received(), (3, 5, LENGTH));
    pair.sent(1);
    assert!(into.piece() == from.piece(), "what is before 4 GiB");
    assert!(into.tail() == from.tail(), "what is behind 4 GiB");
    // Into less, of which it says how much is missing; then what follows is whole.
    let mut less = [0xEE; 80];
    assert_eq!(pair.b.receive(ANY, 5, 0, &mut less[..64], 4), 0);
    send(&pair, &from, 5);
    let (error, overflow) = (abi::FI_ETRUNC, LENGTH - 64);
    let expected = Received::Error { context: 4, error, length: 64, overflow, tag: 5 };
    assert_eq!(pair.b.next(&[&pair.a]), expected);
    pair.sent(5);
    assert!(less[..64] == from.piece()[..64] && less[64..] == [0xEE; 16]);
    assert_eq!(pair.b.receive(ANY, 5, 0, &mut less, 6), 0);
    pair.send(5, b"next");
    assert_eq!(pair.received(), (6, 5, 4));
    // What is injected is copied, and that has a limit.
    let parts: [&[u8]; 1] = [&*from.piece()];
    let injected = pair.a.send_message(pair.to_b, 5, &parts, 0, 7, abi::FI_INJECT);
    assert_eq!(injected, minus(abi::FI_EMSGSIZE));
}
