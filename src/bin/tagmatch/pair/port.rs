//! What carries messages with a tag between the two halves: one endpoint that knows one other.
//!
//! Each contender has its own; loops over them (`work`) are the same for all, and are compiled for each.

use super::plan::{AHEAD, ANY_TAG, List, Setup};
use crate::bench::memory::Pool;
use tagmatch::seam::Buffer;

/// See the module.
pub(super) trait Port {
    /// The address under which the other half finds it.
    fn name(&self) -> Vec<u8>;

    /// What it is: words for the person.
    fn what(&self) -> String;

    /// The other half's name. Nothing was sent before.
    fn meet(&mut self, name: &[u8]) -> Result<(), String>;

    /// Post a receive; false: not now. A context is free again when it came back.
    fn post(&mut self, wanted: Wanted, buffer: &Buffer, context: usize) -> Result<bool, String>;

    /// Send the beginning of this memory, which stays as it is until the send is done.
    fn send(&mut self, tag: u64, memory: &Sent, length: usize, context: usize) -> Result<Sending, String>;

    /// Move on; one thing that is done.
    fn poll(&mut self) -> Result<Option<Done>, String>;
}

/// Which message a receive takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wanted {
    pub(super) tag: u64,
    /// Bits of the tag that do not count.
    pub(super) ignore: u64,
    /// Whoever sent it.
    pub(super) any_source: bool,
}

impl Wanted {
    /// Of the other half, with this tag.
    pub(super) const fn exactly(tag: u64) -> Self {
        Self { tag, ignore: 0, any_source: false }
    }

    /// The one of this number in a list.
    pub(super) fn ahead(list: List, number: usize) -> Self {
        let tag = AHEAD | number as u64;
        match list {
            List::Specific | List::Unexpected => Self::exactly(tag),
            List::AnySource => Self { any_source: true, ..Self::exactly(tag) },
            List::AnyTag => Self { ignore: ANY_TAG, ..Self::exactly(AHEAD) },
        }
    }
}

/// What became of a send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sending {
    /// Not now: move on, and try again.
    Again,
    /// It is done, and nothing follows.
    Over,
    /// [`Done::Sent`] follows.
    Underway,
}

/// Something that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Done {
    Sent { context: usize },
    Received { context: usize, tag: u64, length: usize },
}

/// Memory that messages are sent from.
#[derive(Debug)]
pub(super) struct Sent {
    /// As long as the longest.
    pub(super) memory: Buffer,
    /// The same bytes, for those that are copied.
    pub(super) short: Vec<u8>,
}

/// The memory of a contender on one side. It is never freed.
#[derive(Debug)]
pub(super) struct Areas {
    pool: Pool,
    pub(super) sent: Sent,
    pub(super) received: Buffer,
    /// Of whatever waits in lists.
    pub(super) ahead: Buffer,
    pub(super) fence: Buffer,
}

impl Areas {
    pub(super) fn new(setup: &Setup) -> Result<Self, String> {
        let length = setup.bytes_max.max(SMALL);
        let mut pool = Pool::new(2 * (length + PAGE) + PAGE);
        let of = |pool: &mut Pool, length: usize| pool.take(length.next_multiple_of(PAGE) as u64);
        let memory = of(&mut pool, length)?;
        let received = of(&mut pool, length)?;
        let (ahead, fence) = (pool.take(SMALL as u64)?, pool.take(SMALL as u64)?);
        Ok(Self { pool, sent: Sent { memory, short: vec![0; SHORT_MAX] }, received, ahead, fence })
    }

    /// What is sent consists of this byte from now on.
    pub(super) fn write(&mut self, byte: u8) {
        self.pool.fill(&self.sent.memory, byte);
        self.sent.short.fill(byte);
        self.pool.fill(&self.received, NOTHING);
    }

    /// Whether first and last byte of what was received are this, and nothing lies behind.
    pub(super) fn holds(&self, length: usize, byte: u8) -> bool {
        let buffer = Buffer { length: length as u64, ..self.received };
        let rest = Buffer {
            address: self.received.address + length as u64,
            length: self.received.length - length as u64,
            ..self.received
        };
        let is_whole = length == 0 || self.pool.holds(&buffer, byte);
        is_whole && (rest.length == 0 || self.pool.holds(&rest, NOTHING))
    }
}

/// Bytes of what waits in lists, and of fences.
pub(super) const SMALL: usize = 8;
/// The longest that may be copied at once.
pub(super) const SHORT_MAX: usize = 16 << 10;
/// What stands where nothing was received.
const NOTHING: u8 = 0x11;
const PAGE: usize = 4096;
