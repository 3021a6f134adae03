//! The matching list of a TM-SRQ: TM-CONTRACT 11.2, and nothing of the driver in front of it.
//!
//! Entries are named by the numbers that device and driver agree on (TM-CONTRACT 8): an APPEND fills the entry
//! that the APPEND before it named as the next. The list knows no messages: it is asked to match a tag, and
//! told to count.

use super::switches::{
    Activation, AppendActivates, CountOrder, OutOfSync, SharedBuffer, Switches, UnmaskedTag,
};
use crate::seam::Buffer;

/// The list, its counters, and the readings it follows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MatchingList {
    /// In append order.
    entries: Vec<Entry>,
    capacity: u32,
    append_next: u16,
    hardware: u16,
    software: u16,
    switches: Switches,
}

impl MatchingList {
    /// An empty list of at most `capacity` entries, numbered from 0, with both counters at `phase` (a real
    /// device starts at 0).
    #[must_use]
    pub const fn new(capacity: u32, phase: u16, switches: Switches) -> Self {
        Self { entries: Vec::new(), capacity, append_next: 0, hardware: phase, software: phase, switches }
    }

    /// APPEND: rules 2 and 3. The number of the entry that was filled.
    ///
    /// # Errors
    /// The driver broke the contract; nothing has changed.
    pub fn append(&mut self, append: Append, count: Option<u16>) -> Result<u16, ListError> {
        self.check_append(&append)?;
        let after = self.switches.count_order == CountOrder::AfterChange;
        if !after {
            self.report(Reporter::Append, count);
        }
        let index = self.append_next;
        let Append { next_index, tag, mask, buffer } = append;
        self.entries.push(Entry { index, tag, mask, buffer, active: self.is_in_sync() });
        self.append_next = next_index;
        if after {
            self.report(Reporter::Append, count);
        }
        Ok(index)
    }

    /// REMOVE: rules 2 and 4. Whether the entry was still there.
    pub fn remove(&mut self, index: u16, count: Option<u16>) -> bool {
        let after = self.switches.count_order == CountOrder::AfterChange;
        if !after {
            self.report(Reporter::Other, count);
        }
        let place = self.entries.iter().position(|entry| entry.index == index);
        if let Some(place) = place {
            self.entries.remove(place);
        }
        if after {
            self.report(Reporter::Other, count);
        }
        place.is_some()
    }

    /// NOOP: rule 2.
    pub fn noop(&mut self, count: Option<u16>) {
        self.report(Reporter::Other, count);
    }

    /// Rule 2 on its own, for a device that does not do a command in one piece (A3).
    pub fn report(&mut self, reporter: Reporter, count: Option<u16>) {
        let Some(count) = count else { return };
        self.software = count;
        if !self.is_in_sync() || self.switches.activation == Activation::OnlyAtAppend {
            return;
        }
        if reporter == Reporter::Append && self.switches.append_activates == AppendActivates::Itself {
            // The new entry is the last one, if it is there already (A3 the other way round).
            let after = self.switches.count_order == CountOrder::AfterChange;
            if let Some(entry) = self.entries.last_mut().filter(|_| after) {
                entry.active = true;
            }
            return;
        }
        for entry in &mut self.entries {
            entry.active = true;
        }
    }

    /// Rule 1: the earliest active entry that fits leaves the list.
    pub fn take_match(&mut self, tag: u64) -> Option<Entry> {
        let place = self.position(tag)?;
        Some(self.entries.remove(place))
    }

    /// What [`Self::take_match`] would take.
    #[must_use]
    pub fn find_match(&self, tag: u64) -> Option<&Entry> {
        self.entries.get(self.position(tag)?)
    }

    /// Rule 1: a message was deemed unexpected.
    pub fn count_unexpected(&mut self) {
        self.hardware = self.hardware.wrapping_add(1);
    }

    /// Unexpected messages so far, mod 2^16: what every list operation's completion carries (rule 6).
    #[must_use]
    pub const fn hardware_phase(&self) -> u16 {
        self.hardware
    }

    /// The last count that was reported, mod 2^16.
    #[must_use]
    pub const fn software_phase(&self) -> u16 {
        self.software
    }

    /// Whether an APPEND now would be active.
    #[must_use]
    pub const fn is_in_sync(&self) -> bool {
        self.hardware == self.software
    }

    /// In append order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry that the next APPEND fills: `append_next_index`.
    #[must_use]
    pub const fn append_next(&self) -> u16 {
        self.append_next
    }

    fn position(&self, tag: u64) -> Option<usize> {
        if !self.is_in_sync() && self.switches.out_of_sync == OutOfSync::NothingMatches {
            return None;
        }
        let masked = self.switches.unmasked_tag == UnmaskedTag::Masked;
        self.entries.iter().position(|entry| {
            let wanted = if masked { entry.tag & entry.mask } else { entry.tag };
            entry.active && tag & entry.mask == wanted
        })
    }

    fn check_append(&self, append: &Append) -> Result<(), ListError> {
        let capacity = self.capacity;
        if self.entries.len() as u64 >= u64::from(capacity) {
            return Err(ListError::Full { capacity });
        }
        for index in [self.append_next, append.next_index] {
            if u32::from(index) >= capacity {
                return Err(ListError::OutOfRange { index, capacity });
            }
        }
        let refuse_shared = self.switches.shared_buffer == SharedBuffer::Refused;
        for entry in &self.entries {
            if entry.index == self.append_next {
                return Err(ListError::Occupied { index: entry.index });
            }
            if refuse_shared && entry.buffer.overlaps(&append.buffer) {
                return Err(ListError::SharedBuffer { index: entry.index });
            }
        }
        Ok(())
    }
}

/// One tag in the list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    /// Its number.
    pub index: u16,
    /// What to compare with.
    pub tag: u64,
    /// Which bits of the message's tag are looked at: 1 = looked at.
    pub mask: u64,
    /// Where the payload goes.
    pub buffer: Buffer,
    /// Whether messages are matched with it.
    pub active: bool,
}

/// What an APPEND says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Append {
    /// The entry that the next APPEND will fill.
    pub next_index: u16,
    /// See [`Entry::tag`].
    pub tag: u64,
    /// See [`Entry::mask`].
    pub mask: u64,
    /// See [`Entry::buffer`].
    pub buffer: Buffer,
}

/// Which command carries a count: only A4 asks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reporter {
    /// APPEND.
    Append,
    /// REMOVE or NOOP.
    Other,
}

/// An APPEND that no driver in its right mind sends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// No room.
    #[error("the matching list is full: {capacity} entries")]
    Full {
        /// Entries it holds.
        capacity: u32,
    },
    /// An entry number that does not exist.
    #[error("entry {index} does not exist in a matching list of {capacity}")]
    OutOfRange {
        /// The number.
        index: u16,
        /// Entries it holds.
        capacity: u32,
    },
    /// The entry to fill is still in the list.
    #[error("entry {index} is still in the matching list")]
    Occupied {
        /// The number.
        index: u16,
    },
    /// A17 the other way: another entry has the same memory.
    #[error("the buffer overlaps that of entry {index}")]
    SharedBuffer {
        /// The other entry.
        index: u16,
    },
}
