//! Reads: memory that peers may read, and what this side reads of theirs.
//!
//! A stream cannot read by itself: a frame asks for the bytes, and frames bring them, straight into the buffer.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use slab::Slab;

use super::frame::{self, Kind, READS_MAX, ReadRequest};
use super::link::Link;
use super::medium::{Direct, Stream};
use super::out::Serve;
use super::parts::Parts;
use crate::device::inbox::{Teller, Violation, Wanted, data};
use crate::ids::LinkId;
use crate::seam::{Buffer, DataError, Remote};

/// What this side reads.
#[derive(Debug, Default)]
pub(super) struct Reads {
    table: Slab<Read>,
    made: u32,
}

#[derive(Debug)]
struct Read {
    serial: u32,
    wanted: Wanted,
    /// Bytes that are read: what of the payload the buffer holds.
    length: u64,
    arrived: u64,
}

impl Read {
    #[expect(clippy::cast_possible_truncation, reason = "no slab has so many places")]
    const fn number(&self, index: usize) -> u64 {
        ((self.serial as u64) << 32) | index as u32 as u64
    }
}

impl Reads {
    /// The read that a peer names by a number of this side's.
    pub(super) fn find(&self, link: LinkId, number: u64) -> Option<usize> {
        let index = usize::try_from(number & u64::from(u32::MAX)).ok()?;
        let read = self.table.get(index)?;
        (read.number(index) == number && read.wanted.link == link).then_some(index)
    }

    /// Bytes that have not come.
    pub(super) fn left(&self, index: usize) -> u64 {
        self.table.get(index).map_or(0, |read| read.length - read.arrived)
    }

    /// Where the next bytes go.
    pub(super) fn placing(&self, index: usize) -> Option<(Buffer, u64)> {
        self.table.get(index).map(|read| (read.wanted.buffer, read.arrived))
    }

    pub(super) fn placed(&mut self, index: usize, bytes: u64) {
        if let Some(read) = self.table.get_mut(index) {
            read.arrived += bytes;
        }
    }
}

impl Parts {
    /// A rendezvous was accepted.
    pub(super) fn start_read<S: Stream>(&mut self, link: &mut Link<S>, wanted: Wanted) {
        let length = wanted.remote.length.min(wanted.buffer.length);
        if length == 0 {
            self.inbox.pending.data(wanted.space, wanted.transfer, wanted.remote.length, None);
            return self.tell_done(link, &wanted);
        }
        let into = self.memory.stretches(&wanted.buffer, 0, length);
        match link.stream.read_directly(&wanted.remote, into) {
            Direct::Done => {
                self.inbox.pending.data(wanted.space, wanted.transfer, wanted.remote.length, None);
                return self.tell_done(link, &wanted);
            }
            Direct::Refused => {
                self.inbox.pending.data(
                    wanted.space,
                    wanted.transfer,
                    wanted.remote.length,
                    Some(UNREADABLE),
                );
                return self.push_message(link, wanted.done.refusal().bytes());
            }
            Direct::Not => {}
        }
        let serial = self.reads.made;
        self.reads.made = serial.wrapping_add(1);
        let index = self.reads.table.insert(Read { serial, wanted, length, arrived: 0 });
        if link.reads < READS_MAX {
            self.request(link, index);
        } else {
            link.reads_waiting.push_back(index);
        }
    }

    fn request<S>(&mut self, link: &mut Link<S>, index: usize) {
        let Some(read) = self.reads.table.get(index) else { return };
        let Remote { address, key, .. } = read.wanted.remote;
        let request = ReadRequest { number: read.number(index), address, length: read.length, key };
        link.reads += 1;
        self.push_own(link, &request.to_bytes());
    }

    /// A frame of data for a read is here whole.
    pub(super) fn end_read_body<S>(&mut self, link: &mut Link<S>, index: usize, teller: &mut Teller<'_>) {
        if self.reads.left(index) > 0 {
            return;
        }
        let Some(Read { wanted, .. }) = self.reads.table.try_remove(index) else { return };
        teller.event(wanted.space, &data(wanted.transfer, wanted.remote.length, None));
        self.tell_done(link, &wanted);
        self.next_read(link);
    }

    /// The peer will send nothing more for a read. Where it has taken its memory back it is closing: that is told as the
    /// loss of the path is, which may be told first.
    pub(super) fn refused<S>(
        &mut self,
        link: &mut Link<S>,
        number: u64,
        why: DataError,
        teller: &mut Teller<'_>,
    ) -> Result<(), Violation> {
        let Some(index) = self.reads.find(link.id, number) else {
            return Err(Violation(format!("a refusal of read {number:#x}, which nobody asked for")));
        };
        let Read { wanted, .. } = self.reads.table.remove(index);
        teller.event(wanted.space, &data(wanted.transfer, wanted.remote.length, Some(why)));
        self.push_message(link, wanted.done.refusal().bytes());
        self.next_read(link);
        Ok(())
    }

    fn next_read<S>(&mut self, link: &mut Link<S>) {
        link.reads = link.reads.saturating_sub(1);
        if let Some(index) = link.reads_waiting.pop_front() {
            self.request(link, index);
        }
    }

    fn tell_done<S>(&mut self, link: &mut Link<S>, wanted: &Wanted) {
        self.push_message(link, wanted.done.message().bytes());
    }

    /// The peer asks for what is behind a key.
    pub(super) fn serve<S>(&mut self, link: &mut Link<S>, request: &ReadRequest) -> Result<(), Violation> {
        if link.out.serves() >= READS_MAX {
            return Err(Violation(format!("more than {READS_MAX} reads at a time")));
        }
        let ReadRequest { number, address, length, key } = *request;
        let exposed = self.exposed.table.get(&key).filter(|exposed| exposed.link == link.id);
        match exposed.map(|exposed| exposed.buffer) {
            Some(buffer) if address.saturating_add(length) <= buffer.length => {
                link.out.push_serve(Serve { number, key, buffer, at: address, left: length });
                self.unsent(link);
            }
            Some(_) => self.push_own(link, &frame::numbered(Kind::ReadRefused, number, 0)),
            None => self.push_own(link, &frame::numbered(Kind::ReadWithdrawn, number, 0)),
        }
        Ok(())
    }

    /// The end of a link is that of all that was read through it.
    pub(super) fn lose_reads(&mut self, link: LinkId) {
        let pending = &mut self.inbox.pending;
        self.reads.table.retain(|_, Read { wanted, .. }| {
            let is_lost = wanted.link == link;
            if is_lost {
                pending.lost(wanted.space, wanted.transfer, wanted.remote.length);
            }
            !is_lost
        });
        self.exposed.table.retain(|_, exposed| exposed.link != link);
    }
}

/// Memory that peers may read, by keys drawn at random.
#[derive(Debug)]
pub(super) struct Exposures {
    table: HashMap<u32, Exposed>,
    random: u64,
}

#[derive(Clone, Copy, Debug)]
struct Exposed {
    link: LinkId,
    buffer: Buffer,
}

impl Exposures {
    pub(super) fn new() -> Self {
        Self { table: HashMap::new(), random: RandomState::new().build_hasher().finish() }
    }

    /// What the peer is told begins at address 0: it learns no address of this process.
    pub(super) fn insert(&mut self, link: LinkId, buffer: Buffer) -> Remote {
        let key = loop {
            let key = self.draw();
            if key != 0 && !self.table.contains_key(&key) {
                break key;
            }
        };
        self.table.insert(key, Exposed { link, buffer });
        Remote { address: 0, key, length: buffer.length }
    }

    /// Which link's it was.
    pub(super) fn remove(&mut self, key: u32) -> Option<LinkId> {
        self.table.remove(&key).map(|exposed| exposed.link)
    }

    /// SplitMix64.
    fn draw(&mut self) -> u32 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or(0)
    }
}

/// The owner has the memory no more, although it has said that it may be read. A NIC says that so: `IBV_WC_REM_ACCESS_ERR`.
pub(super) const UNREADABLE: DataError = DataError::Completion { status: 10, vendor_error: 0 };
