//! A peer that writes into shared memory what it should not: at worst its link ends.

use std::os::fd::{AsRawFd as _, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering::SeqCst;

use proptest::prelude::*;

use super::raw::{RING, Raw, eager, header, keepalive, message};
use crate::device::shm::region::{Area, Region, WORDS};
use crate::device::shm::ring::Rings;
use crate::device::shm::stream::Hello;
use crate::device::shm::{ShmConfig, ShmTransport, abstract_name, socket};
use crate::device::tests::{Memory, Policy, framed, trusted};
use crate::device::transport::{CloseReason, SendError, Sending, Transport};
use crate::seam::DataError;
use crate::wire::{AppContext, OperationId, RemoteMemory, Rendezvous, SendFlags};

const BROKEN: CloseReason = CloseReason::System { errno: libc::EPROTO };

fn file(seals: i32, length: usize) -> OwnedFd {
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(c"test".as_ptr(), libc::MFD_ALLOW_SEALING) };
    // SAFETY: the descriptor is new and nobody else's.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    let length = libc::off_t::try_from(length).expect("it is short");
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::ftruncate(fd, length) }, 0);
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) }, 0);
    file
}

#[test]
fn memory_that_can_be_cut_short_or_is_too_short_or_is_none_ends_the_link() {
    let whole = 8192 + 2 * RING;
    let (null, zeros) = (std::fs::File::open("/dev/null"), std::fs::File::open("/dev/zero"));
    let files = [
        file(0, whole),
        file(libc::F_SEAL_GROW, whole),
        file(libc::F_SEAL_SHRINK, whole - 1),
        file(libc::F_SEAL_SHRINK, 0),
        null.expect("every system has it").into(),
        zeros.expect("every system has it").into(),
    ];
    for file in files {
        let mut raw = Raw::silent();
        raw.pass(RING, &file);
        let reason = raw.until_closed();
        assert!(matches!(reason, CloseReason::System { .. }), "{reason:?}");
    }
}

/// Send the hello with so many descriptors.
fn pass_all(raw: &Raw, files: &[RawFd]) {
    let hello = Hello { ring_bytes: RING }.to_bytes();
    let mut vector = libc::iovec { iov_base: hello.as_ptr().cast_mut().cast(), iov_len: hello.len() };
    let mut room = [0_u64; 16];
    // SAFETY: all zeros is a msghdr without anything.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut vector, 1);
    message.msg_control = room.as_mut_ptr().cast();
    let bytes = u32::try_from(size_of_val(files)).expect("they are few");
    // SAFETY: arithmetic.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(bytes) } as usize;
    // SAFETY: there is room for one control message.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: arithmetic.
    let length = unsafe { libc::CMSG_LEN(bytes) } as usize;
    let head = libc::cmsghdr { cmsg_len: length, cmsg_level: libc::SOL_SOCKET, cmsg_type: libc::SCM_RIGHTS };
    // SAFETY: there is room for it.
    unsafe { header.write(head) };
    // SAFETY: arithmetic, within that room.
    let data = unsafe { libc::CMSG_DATA(header) };
    // SAFETY: there is room for all of them.
    unsafe { std::ptr::copy_nonoverlapping(files.as_ptr().cast(), data, size_of_val(files)) };
    // SAFETY: bytes and control message are ours, and only read.
    let sent = unsafe { libc::sendmsg(raw.socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    assert_eq!(usize::try_from(sent).ok(), Some(hello.len()));
}

/// Of a file, how many descriptors of this process name it.
fn names_of(file: &OwnedFd) -> usize {
    let named = |fd: &str| std::fs::read_link(format!("/proc/self/fd/{fd}")).ok();
    let own = named(&file.as_raw_fd().to_string());
    let all = std::fs::read_dir("/proc/self/fd").expect("every system has it");
    all.filter_map(Result::ok).filter(|entry| named(&entry.file_name().to_string_lossy()) == own).count()
}

#[test]
fn descriptors_that_nobody_expects_are_closed() {
    for count in [0, 2, 3, 10] {
        let mut raw = Raw::silent();
        let (_, file) = Region::create(RING).expect("there is memory");
        // A name of its own among all that tests of this process make.
        let marked = file_named(&format!("several {count}"));
        pass_all(&raw, &vec![marked.as_raw_fd(); count]);
        assert_eq!(raw.until_closed(), BROKEN, "{count}");
        assert_eq!(names_of(&marked), 1, "{count}");
        // And behind the hello, where bytes say nothing.
        let mut raw = Raw::silent();
        raw.pass(RING, &file);
        raw.step();
        pass_all(&raw, &vec![marked.as_raw_fd(); count.max(1)]);
        pass_all(&raw, &[marked.as_raw_fd()]);
        for _ in 0..10 {
            raw.step();
        }
        drop(raw.socket.shutdown(std::net::Shutdown::Both));
        raw.until_closed();
        assert_eq!(names_of(&marked), 1, "{count} behind the hello");
    }
}

fn file_named(name: &str) -> OwnedFd {
    let name = std::ffi::CString::new(name).expect("no zero is in it");
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), 0) };
    // SAFETY: the descriptor is new and nobody else's.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[test]
fn what_is_no_memory_ends_the_link() {
    let mut ends = [0; 2];
    // SAFETY: there is room for two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the descriptors are new and nobody else's.
    let pipe = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    // SAFETY: no memory is passed.
    let event = unsafe { libc::eventfd(0, 0) };
    // SAFETY: the descriptor is new and nobody else's.
    let event = unsafe { OwnedFd::from_raw_fd(event) };
    let folder = std::fs::File::open("/").expect("every system has it").into();
    let (socket, other) = std::os::unix::net::UnixStream::pair().expect("there are descriptors");
    let [end, out] = pipe;
    for file in [end, out, event, folder, socket.into(), other.into()] {
        let mut raw = Raw::silent();
        raw.pass(RING, &file);
        let reason = raw.until_closed();
        assert!(matches!(reason, CloseReason::System { .. }), "{reason:?}");
    }
}

#[test]
fn memory_that_is_shared_is_neither_cut_nor_grown_nor_sealed_and_a_hole_in_it_is_zeros() {
    let (region, file) = Region::create(RING).expect("there is memory");
    let (fd, whole) = (file.as_raw_fd(), libc::off_t::try_from(8192 + 2 * RING).expect("it is short"));
    let error = || std::io::Error::last_os_error().raw_os_error();
    for length in [0, 1, 4096, whole - 1, whole + 1, whole * 2] {
        // SAFETY: no memory is passed.
        assert_eq!((unsafe { libc::ftruncate(fd, length) }, error()), (-1, Some(libc::EPERM)), "{length}");
    }
    for seal in [libc::F_SEAL_WRITE, libc::F_SEAL_FUTURE_WRITE, libc::F_SEAL_SHRINK] {
        // SAFETY: no memory is passed.
        let sealed = unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seal) };
        assert_eq!((sealed, error()), (-1, Some(libc::EPERM)), "{seal}");
    }
    let raw = Raw::silent();
    raw.pass(RING, &file);
    let mut raw = raw;
    let mut rings = Rings::new(region, true);
    rings.write(&eager(1, &[1; 100])).expect("there is room");
    raw.until(|raw| !raw.ear.arrivals().is_empty());
    // What the kernel allows takes the bytes, and not the place where they stood.
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::fallocate(fd, mode, 0, whole) }, 0);
    assert!(raw.until_closed() != CloseReason::Here);
}

#[test]
fn memory_that_may_not_be_written_ends_the_link() {
    let mut raw = Raw::silent();
    let made = file(libc::F_SEAL_SHRINK | libc::F_SEAL_FUTURE_WRITE, 8192 + 2 * RING);
    raw.pass(RING, &made);
    assert_eq!(raw.until_closed(), CloseReason::System { errno: libc::EPERM });
}

#[test]
fn rings_of_lengths_that_cannot_be_end_the_link() {
    for length in [0, 1, 4096, RING + 1, RING + 4096, 3 * RING, 128 << 20, usize::MAX] {
        let mut raw = Raw::silent();
        let (_, file) = Region::create(RING).expect("there is memory");
        raw.pass(length, &file);
        assert_eq!(raw.until_closed(), BROKEN, "{length}");
    }
}

#[test]
fn a_hello_without_memory_ends_the_link() {
    use std::io::Write as _;
    for bytes in [&b"tagm-sh2"[..], b"x", &[0; 16], &[0xFF; 200]] {
        let mut raw = Raw::silent();
        raw.socket.write_all(bytes).expect("there is room");
        assert_eq!(raw.until_closed(), BROKEN);
    }
}

#[test]
fn whoever_says_nothing_holds_nobody_up_and_ends_as_others_do() {
    let mut raw = Raw::silent();
    for _ in 0..1000 {
        raw.step();
    }
    assert_eq!(raw.closed(), None);
    drop(raw.socket.shutdown(std::net::Shutdown::Both));
    assert!(matches!(raw.until_closed(), CloseReason::System { .. } | CloseReason::Peer));
}

#[test]
fn numbers_of_bytes_that_cannot_be_end_the_link() {
    // Of the peer's ring: written more than there is room for; of this side's: taken more than was written.
    for (word, value) in [(0, RING as u64 + 1), (0, u64::MAX), (32 + 16, 1 << 20), (32 + 16, u64::MAX / 2)] {
        let raw = Raw::silent();
        let (region, file) = Region::create(RING).expect("there is memory");
        raw.pass(RING, &file);
        let mut raw = raw;
        // It is greeted when it first reads.
        raw.step();
        region.word(word).store(value, SeqCst);
        // Something to send, which looks at what was taken when there is no room.
        let link = raw.link;
        for _ in 0..RING / 1000 + 2 {
            let _ = raw.transport.send(link, &message(&header(1), &[7; 1000]));
        }
        raw.until(|raw| raw.closed().is_some());
        assert_eq!(raw.closed(), Some(BROKEN), "word {word} = {value:#x}");
    }
}

#[test]
fn what_was_written_before_the_end_is_told_before_it() {
    let (mut raw, mut rings) = Raw::greeted();
    for tag in 0..100 {
        assert_eq!(rings.write(&eager(tag, &[tag; 100])).expect("there is room"), 124);
    }
    drop(rings);
    drop(raw.socket.shutdown(std::net::Shutdown::Both));
    assert_eq!(raw.until_closed(), CloseReason::Peer);
    let arrivals = raw.ear.arrivals();
    assert_eq!(arrivals.len(), 100);
    assert!(arrivals.iter().enumerate().all(|(at, arrival)| arrival.header.tag.0 == at as u64));
}

#[test]
fn an_end_that_is_said_in_the_memory_is_heard_while_the_socket_is_open() {
    let (mut raw, mut rings) = Raw::greeted();
    rings.write(&eager(1, &[1; 100])).expect("there is room");
    rings.end();
    assert_eq!(raw.until_closed(), CloseReason::Peer);
    assert_eq!(raw.ear.arrivals().len(), 1, "what came before is told before");
}

#[test]
fn nothing_is_written_for_who_has_ended() {
    let (mut raw, rings) = Raw::greeted();
    let link = raw.link;
    while raw.transport.send(link, &message(&header(1), &[])) != Ok(Sending::Done) {
        raw.step();
    }
    raw.until(|_| rings.available().is_ok_and(|count| count > 0));
    rings.end();
    let refused = raw.transport.send(link, &message(&header(1), &[]));
    assert!(matches!(refused, Err(SendError::NoLink(_))), "{refused:?}");
    assert_eq!(raw.until_closed(), CloseReason::Peer);
}

#[test]
fn an_end_in_the_middle_of_a_message_is_an_error() {
    let (mut raw, mut rings) = Raw::greeted();
    let message = eager(1, &[1; 100]);
    rings.write(&message[..50]).expect("there is room");
    drop(raw.socket.shutdown(std::net::Shutdown::Both));
    assert_eq!(raw.until_closed(), CloseReason::System { errno: libc::ECONNRESET });
}

#[test]
fn memory_that_nobody_offered_is_not_read() {
    // An address in this very process: a peer that says whose it is would have it read what it could not see.
    let (mut raw, mut rings) = Raw::greeted();
    let into = Memory::zeros(16);
    raw.ear.policy = Policy::Accept([into.buffer()].into());
    let context = AppContext { operation: OperationId::new(5).expect("it is small"), flags: SendFlags::NONE };
    let secret = Memory::new(vec![7; 16]);
    let memory = RemoteMemory { address: secret.buffer().address, key: 9, length: 16 };
    let mut bytes = [0; 64];
    let length =
        Rendezvous { context, tag: crate::ids::Tag(1), memory }.encode(&mut bytes).expect("it is good");
    rings.write(&framed(&bytes[..length])).expect("there is room");
    // It asks for what the key stands for, by a frame, since there is no offer.
    let mut asked = [0; 40];
    raw.until(|_| rings.available().is_ok_and(|count| count >= 40));
    assert_eq!(rings.read(&mut asked).expect("it is there"), 40);
    assert_eq!((asked[4], &asked[32..36]), (3, &[0, 0, 0, 9][..]));
    assert_eq!(into.bytes(), [0; 16]);
    drop(raw.socket.shutdown(std::net::Shutdown::Both));
    raw.until_closed();
    assert_eq!(raw.ear.data().last().expect("it was told").error, Some(DataError::PathLost));
}

#[test]
fn a_name_that_is_taken_is_refused_and_the_owner_goes_on() {
    let first = crate::device::tests::shared_memory();
    let again = ShmTransport::open(first.name(), ShmConfig::default(), trusted());
    assert_eq!(again.err().map(|error| error.to_string()).as_deref(), Some("bind failed with errno 98"));
    assert!(socket::connect(&abstract_name(first.name())).is_ok());
    let config = ShmConfig { ring_bytes: 100_000, ..ShmConfig::default() };
    assert!(ShmTransport::open(b"some other", config, trusted()).is_err());
    assert!(socket::connect(&abstract_name(b"nobody listens here")).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn whatever_stands_in_the_memory_nobody_else_is_harmed(
        words in prop::collection::vec((0..WORDS, any::<u64>()), 0..20),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        written in 0..400_u64,
    ) {
        let mut raw = Raw::silent();
        let (region, file) = Region::create(RING).expect("there is memory");
        raw.pass(RING, &file);
        region.put(Area::First, 0, &bytes);
        region.word(0).store(written, SeqCst);
        for _ in 0..3 {
            raw.step();
        }
        for (word, value) in words {
            region.word(word).store(value, SeqCst);
            raw.step();
        }
        // Another one is served as ever.
        let name = raw.transport.name().to_vec();
        let other = socket::connect(&abstract_name(&name)).expect("it listens");
        let (region, file) = Region::create(RING).expect("there is memory");
        socket::pass(&other, &Hello { ring_bytes: RING }.to_bytes(), &file).expect("there is room");
        let mut rings = Rings::new(region, true);
        rings.write(&framed(&keepalive())).expect("there is room");
        raw.until(|_| rings.is_all_taken());
        prop_assert!(socket::is_there(&other));
    }
}
