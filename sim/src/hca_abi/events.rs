//! Queues of events behind a descriptor that the program polls and reads: completion channels and the asynchronous
//! events of a context.
//!
//! A queue is a pair of sockets. Events are written in the kernel's structures, always whole, so that a reader that asks for one
//! structure gets one. What the application has *read* counts: destroying an object reports how many of its events
//! were read, takes back those that were not, and libibverbs waits until the application has acknowledged the former.

use super::raw;
use core::ffi::c_int;
use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The events of one descriptor. `SIZE` is the length of the kernel's structure.
#[derive(Debug)]
pub(crate) struct EventQueue<const SIZE: usize> {
    /// The program's end by number: it is the program that closes it.
    descriptor: c_int,
    /// The same end by a descriptor of ours, so that a closed and reused number does no harm.
    reader: OwnedFd,
    writer: OwnedFd,
    /// Written and possibly not read yet, oldest first.
    written: VecDeque<Event<SIZE>>,
    /// Did not fit.
    waiting: VecDeque<Event<SIZE>>,
    /// How many of each object's events were read.
    read: HashMap<Charge, u32>,
}

/// What an event is charged to: a kind of event and the object's number.
pub(crate) type Charge = (EventKind, u32);

/// Kinds of events that an object counts apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum EventKind {
    /// A completion channel's event of a CQ.
    Completion,
    /// Asynchronous events of a CQ.
    Cq,
    /// Asynchronous events of a QP.
    Qp,
    /// Asynchronous events of an SRQ.
    Srq,
    /// Asynchronous events of the device.
    Device,
}

#[derive(Clone, Copy, Debug)]
struct Event<const SIZE: usize> {
    charge: Charge,
    bytes: [u8; SIZE],
}

impl<const SIZE: usize> EventQueue<SIZE> {
    /// A new queue.
    ///
    /// # Errors
    /// The errno of making its descriptors.
    pub(crate) fn new() -> Result<Self, c_int> {
        let mut ends = [0; 2];
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        // SAFETY: room for two descriptors.
        let made = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) };
        if made != 0 {
            return Err(raw::errno());
        }
        let [descriptor, writer] = ends;
        // SAFETY: just made, and nobody else has it.
        let writer = unsafe { OwnedFd::from_raw_fd(writer) };
        // SAFETY: a descriptor that is open.
        let reader = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
        if reader < 0 {
            let errno = raw::errno();
            raw::close(descriptor);
            return Err(errno);
        }
        // SAFETY: just made, and nobody else has it.
        let reader = unsafe { OwnedFd::from_raw_fd(reader) };
        let (written, waiting, read) = Default::default();
        Ok(Self { descriptor, reader, writer, written, waiting, read })
    }

    /// The descriptor that the program reads.
    pub(crate) const fn descriptor(&self) -> c_int {
        self.descriptor
    }

    /// Add an event.
    pub(crate) fn push(&mut self, charge: Charge, bytes: [u8; SIZE]) {
        self.waiting.push_back(Event { charge, bytes });
        self.flush();
    }

    /// Write what waits, as far as there is room.
    pub(crate) fn flush(&mut self) {
        while let Some(event) = self.waiting.front() {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            // SAFETY: bytes of ours of that length.
            let sent =
                unsafe { libc::send(self.writer.as_raw_fd(), event.bytes.as_ptr().cast(), SIZE, flags) };
            if usize::try_from(sent) != Ok(SIZE) {
                return;
            }
            self.written.push_back(*event);
            self.waiting.pop_front();
            if self.written.len() > WRITTEN_MANY {
                self.count_read();
            }
        }
    }

    /// Take back all events of an object that were not read, and say how many were read.
    pub(crate) fn forget(&mut self, charge: Charge) -> u32 {
        self.count_read();
        self.waiting.retain(|event| event.charge != charge);
        if self.written.iter().any(|event| event.charge == charge) {
            self.take_back(charge);
        }
        self.read.remove(&charge).unwrap_or(0)
    }

    /// Read all that lies there and write back what belongs to others. An application that reads meanwhile gets its
    /// events in order all the same, and what it got is counted as read.
    fn take_back(&mut self, charge: Charge) {
        let mut kept = 0;
        let mut bytes = [0u8; SIZE];
        loop {
            // SAFETY: room of that length.
            let length = unsafe {
                libc::recv(self.reader.as_raw_fd(), bytes.as_mut_ptr().cast(), SIZE, libc::MSG_DONTWAIT)
            };
            if usize::try_from(length) != Ok(SIZE) {
                break;
            }
            kept += 1;
        }
        self.charge_oldest(self.written.len().saturating_sub(kept));
        let mut rest: VecDeque<_> = self.written.drain(..).filter(|event| event.charge != charge).collect();
        rest.append(&mut self.waiting);
        self.waiting = rest;
        self.flush();
    }

    /// Charge what the application has read since the last time.
    fn count_read(&mut self) {
        self.charge_oldest(self.written.len().saturating_sub(self.unread()));
    }

    /// The oldest events have been read.
    fn charge_oldest(&mut self, count: usize) {
        for event in self.written.drain(..count) {
            *self.read.entry(event.charge).or_insert(0) += 1;
        }
    }

    /// How many events lie unread.
    fn unread(&self) -> usize {
        let mut bytes: c_int = 0;
        let place: *mut c_int = &raw mut bytes;
        // SAFETY: room for one int.
        let answer = unsafe { raw::ioctl(self.reader.as_raw_fd(), libc::FIONREAD, place.cast()) };
        if answer == 0 { usize::try_from(bytes).unwrap_or(0).div_ceil(SIZE) } else { 0 }
    }
}

/// Above this many events that may have been read, look.
const WRITTEN_MANY: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Charge = (EventKind::Completion, 1);
    const SECOND: Charge = (EventKind::Completion, 2);

    /// Read as an application does: one structure.
    fn read(queue: &EventQueue<8>) -> Option<u64> {
        let mut bytes = [0; 8];
        let fd = queue.descriptor();
        // SAFETY: room of that length.
        let length = unsafe { libc::recv(fd, bytes.as_mut_ptr().cast(), 8, libc::MSG_DONTWAIT) };
        (length == 8).then(|| u64::from_ne_bytes(bytes))
    }

    fn queue(events: &[(Charge, u64)]) -> EventQueue<8> {
        let mut queue = EventQueue::new().unwrap();
        for (charge, value) in events {
            queue.push(*charge, value.to_ne_bytes());
        }
        queue
    }

    #[test]
    fn events_are_read_in_their_order() {
        let queue = queue(&[(FIRST, 10), (SECOND, 20), (FIRST, 11)]);
        assert_eq!([(); 4].map(|()| read(&queue)), [Some(10), Some(20), Some(11), None]);
    }

    #[test]
    fn only_what_was_read_is_reported_and_the_rest_is_taken_back() {
        let mut queue = queue(&[(FIRST, 10), (SECOND, 20), (FIRST, 11), (SECOND, 21)]);
        assert_eq!(read(&queue), Some(10));
        assert_eq!(queue.forget(FIRST), 1);
        assert_eq!([(); 3].map(|()| read(&queue)), [Some(20), Some(21), None]);
        assert_eq!(queue.forget(SECOND), 2);
        assert_eq!(queue.forget(SECOND), 0, "a new object of the same number starts from nothing");
    }

    #[test]
    fn what_does_not_fit_waits_and_keeps_its_order() {
        const MANY: u64 = 20_000;
        let mut queue = queue(&[]);
        for value in 0..MANY {
            queue.push(FIRST, value.to_ne_bytes());
        }
        assert!(!queue.waiting.is_empty(), "more than there is room for");
        for value in 0..MANY {
            assert_eq!(read(&queue), Some(value));
            queue.flush();
        }
        assert_eq!(queue.forget(FIRST), 20_000);
    }

    #[test]
    fn a_waiting_event_is_taken_back_too() {
        let mut queue = queue(&[]);
        while queue.waiting.is_empty() {
            queue.push(FIRST, [0; 8]);
        }
        queue.push(SECOND, 5u64.to_ne_bytes());
        assert_eq!(queue.forget(FIRST), 0);
        assert_eq!(read(&queue), Some(5));
    }
}
