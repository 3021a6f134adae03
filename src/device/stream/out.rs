//! What waits to go out on a link: bytes of our own, and memory by reference.
//!
//! Not here: writing; and what there is to say when something is out.

use std::collections::VecDeque;
use std::io;

use super::frame::{self, Kind};
use super::medium::Stream;
use crate::device::host_memory::HostMemory;
use crate::device::sockets::sys::{self, Part};
use crate::seam::Buffer;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Out {
    /// Bytes of our own, in order; those before `start` are out.
    bytes: Vec<u8>,
    start: usize,
    items: VecDeque<Item>,
    /// Reads that the peer has asked for, the first of which goes on whenever no piece of one waits.
    serves: VecDeque<Serve>,
    has_piece: bool,
    /// Bytes that were ever given to go out, and those of them that wait.
    given: u64,
    waiting: u64,
    /// The kernel takes no more for now.
    pub(super) is_blocked: bool,
}

#[derive(Debug)]
enum Item {
    /// The next so many of our own.
    Bytes(usize),
    Memory {
        buffer: Buffer,
        at: u64,
        left: u64,
        of: Of,
        /// Bytes of our own before it that go with it, if nothing has to go if it cannot.
        head: Option<usize>,
    },
}

/// Whose memory it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    /// A message's, whose sender wants to know.
    Message(Option<u64>),
    /// That behind a key, for a read.
    Piece { key: u32, number: u64 },
}

/// What became of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// It is out.
    Whole,
    /// It cannot be read.
    Unreadable,
}

/// A read that the peer has asked for.
#[derive(Debug)]
pub(super) struct Serve {
    pub(super) number: u64,
    pub(super) key: u32,
    pub(super) buffer: Buffer,
    pub(super) at: u64,
    pub(super) left: u64,
}

impl Out {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.serves.is_empty()
    }

    /// Bytes of our own that wait.
    pub(super) fn length(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Pieces that wait.
    pub(super) fn pieces(&self) -> usize {
        self.items.len()
    }

    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.bytes.extend_from_slice(bytes);
        self.count_bytes(bytes.len());
    }

    /// Copy from memory.
    pub(super) fn push_copy(&mut self, memory: HostMemory, buffer: &Buffer, at: u64, left: u64) {
        let Ok(length) = usize::try_from(left) else { return };
        let end = self.bytes.len();
        self.bytes.resize(end + length, 0);
        if let Some(place) = self.bytes.get_mut(end..) {
            memory.read(buffer, at, place);
        }
        self.count_bytes(length);
    }

    /// Bytes that were ever given to go out.
    pub(super) fn given(&self) -> u64 {
        self.given
    }

    /// Of these, bytes that the kernel has not taken.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// So many bytes went out without having to wait.
    pub(super) fn count_direct(&mut self, sent: u64) {
        self.given += sent;
    }

    fn count_bytes(&mut self, length: usize) {
        self.given += length as u64;
        self.waiting += length as u64;
        match self.items.back_mut() {
            Some(Item::Bytes(waiting)) => *waiting += length,
            _ if length == 0 => {}
            _ => self.items.push_back(Item::Bytes(length)),
        }
    }

    /// Memory. If it cannot be read, it and the `head` bytes before it are left out, if there are some and none has gone.
    pub(super) fn push_memory(&mut self, buffer: Buffer, at: u64, left: u64, of: Of, head: Option<usize>) {
        self.given += left;
        self.waiting += left;
        self.items.push_back(Item::Memory { buffer, at, left, of, head });
    }

    pub(super) fn push_serve(&mut self, serve: Serve) {
        self.serves.push_back(serve);
    }

    pub(super) fn serves(&self) -> usize {
        self.serves.len()
    }

    /// Write what the kernel takes in one call. Those whose memory is out, or cannot be read, come to `done`. Nothing
    /// waits: nothing is done.
    ///
    /// # Errors
    /// The stream cannot go on.
    pub(super) fn write(
        &mut self,
        stream: &mut impl Stream,
        memory: HostMemory,
        mut done: impl FnMut(Of, Sent),
    ) -> io::Result<()> {
        self.refill();
        let (sent, wanted) = match self.write_items(stream, memory, self.items.len()) {
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                return self.write_first(stream, memory, done);
            }
            result => self.handle_written(result)?,
        };
        self.is_blocked = sent < wanted;
        self.advance(sent as u64, &mut done);
        Ok(())
    }

    /// Some memory cannot be read: what is before the first is written alone, then that, which may be the one.
    #[cold]
    fn write_first(
        &mut self,
        stream: &mut impl Stream,
        memory: HostMemory,
        mut done: impl FnMut(Of, Sent),
    ) -> io::Result<()> {
        let own = match self.items.front() {
            Some(Item::Bytes(length)) => *length,
            Some(Item::Memory { .. }) | None => 0,
        };
        let first = usize::from(own > 0);
        let Some(Item::Memory { of, head, left, .. }) = self.items.get(first) else {
            return Err(io::Error::from_raw_os_error(libc::EFAULT));
        };
        let (of, head, left) = (*of, *head, *left);
        let before = head.map_or(own, |head| own - head.min(own));
        let result = if before > 0 {
            let bytes = self.bytes.get(self.start..self.start + before).unwrap_or_default();
            stream.send_bytes(bytes).map(|sent| (sent, before))
        } else {
            self.write_items(stream, memory, first + 1)
        };
        match result {
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) && before == 0 => {
                let whole = head.filter(|&head| head == own);
                done(of, Sent::Unreadable);
                if whole.is_none() {
                    self.items.remove(first);
                    return Err(error);
                }
                self.leave_out(own, left, of);
            }
            result => {
                let (sent, wanted) = self.handle_written(result)?;
                self.is_blocked = sent < wanted;
                self.advance(sent as u64, &mut done);
            }
        }
        Ok(())
    }

    /// The first memory, and the `own` bytes before it, do not go out.
    fn leave_out(&mut self, own: usize, left: u64, of: Of) {
        self.items.drain(..2);
        self.start += own;
        self.waiting = self.waiting.saturating_sub(own as u64 + left);
        if let Of::Piece { number, .. } = of {
            self.has_piece = false;
            self.serves.retain(|serve| serve.number != number);
            self.push_bytes(&frame::numbered(Kind::ReadRefused, number, 0));
        }
    }

    /// What is no error of the stream: nothing was written for now.
    fn handle_written(&mut self, result: io::Result<(usize, usize)>) -> io::Result<(usize, usize)> {
        match result {
            // Blocked: less was written than was wanted.
            Err(error) if sys::is_passing(&error) => Ok((0, 1)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok((0, 0)),
            result => result,
        }
    }

    /// Write of the first items what the kernel takes in one call: how much that is, and of how much.
    fn write_items(
        &self,
        stream: &mut impl Stream,
        memory: HostMemory,
        count: usize,
    ) -> io::Result<(usize, usize)> {
        let (mut place, mut wanted) = (self.start, 0);
        let bytes = &self.bytes;
        let parts = self.items.iter().take(count).flat_map(|item| {
            let (own, stretches) = match item {
                Item::Bytes(length) => {
                    let own = bytes.get(place..place + length).unwrap_or_default();
                    place += length;
                    (Some(Part::Bytes(own)), None)
                }
                Item::Memory { buffer, at, left, .. } => {
                    (None, Some(memory.stretches(buffer, *at, *left).map(Part::Memory)))
                }
            };
            own.into_iter().chain(stretches.into_iter().flatten())
        });
        let parts = parts.take(sys::PARTS_MAX).inspect(|part| {
            wanted += match part {
                Part::Bytes(bytes) => bytes.len(),
                Part::Memory(stretch) => stretch.length(),
            }
        });
        let sent = stream.send(parts)?;
        Ok((sent, wanted))
    }

    /// So many bytes are out.
    fn advance(&mut self, mut sent: u64, mut done: impl FnMut(Of, Sent)) {
        self.waiting = self.waiting.saturating_sub(sent);
        while let Some(item) = self.items.front_mut() {
            match item {
                Item::Bytes(length) => {
                    let taken = usize::try_from(sent).unwrap_or(usize::MAX).min(*length);
                    self.start += taken;
                    sent -= taken as u64;
                    *length -= taken;
                    if *length > 0 {
                        break;
                    }
                }
                Item::Memory { at, left, of, .. } => {
                    let taken = sent.min(*left);
                    *at += taken;
                    *left -= taken;
                    sent -= taken;
                    if *left > 0 {
                        break;
                    }
                    self.has_piece &= !matches!(of, Of::Piece { .. });
                    done(*of, Sent::Whole);
                }
            }
            self.items.pop_front();
        }
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(BYTES_KEPT);
            self.start = 0;
        } else if self.start > COMPACT_FROM && self.start * 2 > self.bytes.len() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// The next piece of what the peer reads goes behind what waits, so that messages get through in between.
    fn refill(&mut self) {
        if self.has_piece {
            return;
        }
        let Some(serve) = self.serves.front_mut() else { return };
        let length = serve.left.min(PIECE);
        let Serve { number, key, buffer, at, left } = *serve;
        serve.at += length;
        serve.left -= length;
        if left == length {
            self.serves.pop_front();
        }
        let head = frame::numbered(Kind::ReadData, number, u32::try_from(length).unwrap_or(0));
        self.push_bytes(&head);
        self.push_memory(buffer, at, length, Of::Piece { key, number }, Some(head.len()));
        self.has_piece = true;
    }

    /// What is behind this key may be read no more. A piece that waits is copied; what is behind it never comes.
    pub(super) fn withdraw(&mut self, key: u32, memory: HostMemory) {
        let mut withdrawn = Vec::new();
        self.serves.retain(|serve| {
            if serve.key == key {
                withdrawn.push(serve.number);
            }
            serve.key != key
        });
        self.copy_piece(key, memory);
        for number in withdrawn {
            self.push_bytes(&frame::numbered(Kind::ReadWithdrawn, number, 0));
        }
    }

    fn copy_piece(&mut self, key: u32, memory: HostMemory) {
        let mut place = self.start;
        for item in &mut self.items {
            match item {
                Item::Bytes(length) => place += *length,
                Item::Memory { buffer, at, left, of: Of::Piece { key: of, .. }, .. } if *of == key => {
                    let length = usize::try_from(*left).unwrap_or(0);
                    let mut copy = vec![0; length];
                    memory.read(buffer, *at, &mut copy);
                    self.bytes.splice(place..place, copy);
                    place += length;
                    *item = Item::Bytes(length);
                    self.has_piece = false;
                }
                Item::Memory { .. } => {}
            }
        }
    }

    /// Nothing more goes out: those whose memory was to.
    pub(super) fn give_up(&mut self) -> impl Iterator<Item = Of> {
        let items = std::mem::take(self).items;
        items.into_iter().filter_map(|item| match item {
            Item::Memory { of, .. } => Some(of),
            Item::Bytes(_) => None,
        })
    }
}

/// What the peer reads goes out in pieces of so many bytes.
const PIECE: u64 = 256 * 1024;
const BYTES_KEPT: usize = 64 * 1024;
const COMPACT_FROM: usize = 64 * 1024;
