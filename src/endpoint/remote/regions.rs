//! Memory that peers may access, by its keys: who may do what where, and who is at it.
//!
//! Whatever a peer says – key, address, length – is looked for here, and nowhere else becomes an address. Not here: the
//! memory itself, which transports read and write.

use std::collections::HashMap;

use slab::Slab;

use crate::seam::Buffer;
use crate::wire::{RemoteStatus, RemoteStretch};

/// Memory that peers may access by a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// The key, unique in the endpoint.
    pub key: u64,
    /// By which address peers name its first byte: 0 for offsets, its own for `FI_MR_VIRT_ADDR`.
    pub address: u64,
    /// The memory: one stretch, which stays until the region is withdrawn and not in use any more.
    pub buffer: Buffer,
    /// For what.
    pub access: Access,
}

/// What peers may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// Read it (`FI_REMOTE_READ`).
    pub reads: bool,
    /// Write it (`FI_REMOTE_WRITE`).
    pub writes: bool,
}

/// Another region of the endpoint has this key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("another region has the key {key:#x}")]
pub struct RegionTaken {
    /// Which.
    pub key: u64,
}

/// A region that was withdrawn while transports were at its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Withdrawn {
    index: usize,
    serial: u64,
}

/// What a peer wants to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    Read,
    Write,
}

/// All regions of an endpoint.
#[derive(Default)]
pub(in crate::endpoint) struct Regions {
    all: Slab<Row>,
    by_key: HashMap<u64, usize>,
    made: u64,
}

struct Row {
    region: Region,
    serial: u64,
    /// Pieces on their way into it, and reads of it under way.
    uses: u32,
    is_withdrawn: bool,
}

impl Regions {
    pub(super) fn insert(&mut self, region: Region) -> Result<(), RegionTaken> {
        let key = region.key;
        if self.by_key.contains_key(&key) {
            return Err(RegionTaken { key });
        }
        self.made += 1;
        let index = self.all.insert(Row { region, serial: self.made, uses: 0, is_withdrawn: false });
        self.by_key.insert(key, index);
        Ok(())
    }

    /// Nobody may access it any more. What is still at it, if anything is.
    pub(super) fn withdraw(&mut self, key: u64) -> Option<Withdrawn> {
        let index = self.by_key.remove(&key)?;
        let row = self.all.get_mut(index)?;
        row.is_withdrawn = true;
        if row.uses > 0 {
            return Some(Withdrawn { index, serial: row.serial });
        }
        self.all.remove(index);
        None
    }

    pub(super) fn is_in_use(&self, withdrawn: Withdrawn) -> bool {
        self.all.get(withdrawn.index).is_some_and(|row| row.serial == withdrawn.serial)
    }

    /// Whether it is this one.
    pub(super) const fn is(withdrawn: Withdrawn, index: usize) -> bool {
        withdrawn.index == index
    }

    /// Where a stretch lies that a peer names: which region, and its memory.
    ///
    /// # Errors
    /// There is no such memory for this; what to tell the peer.
    pub(super) fn find(&self, stretch: &RemoteStretch, wish: Wish) -> Result<(usize, Buffer), RemoteStatus> {
        let index = *self.by_key.get(&stretch.key).ok_or(RemoteStatus::NoRegion)?;
        let Region { address, buffer, access, .. } =
            self.all.get(index).ok_or(RemoteStatus::NoRegion)?.region;
        let is_allowed = match wish {
            Wish::Read => access.reads,
            Wish::Write => access.writes,
        };
        if !is_allowed {
            return Err(RemoteStatus::NotAllowed);
        }
        let from = stretch.address.checked_sub(address).ok_or(RemoteStatus::OutOfBounds)?;
        let left = buffer.length.checked_sub(from).ok_or(RemoteStatus::OutOfBounds)?;
        if stretch.length > left {
            return Err(RemoteStatus::OutOfBounds);
        }
        Ok((index, Buffer { length: stretch.length, ..buffer.behind(from) }))
    }

    /// A transport is at it from now on.
    pub(super) fn hold(&mut self, index: usize) {
        if let Some(row) = self.all.get_mut(index) {
            row.uses += 1;
        }
    }

    /// One is at it no more.
    pub(in crate::endpoint) fn release(&mut self, index: usize) {
        let Some(row) = self.all.get_mut(index) else { return };
        row.uses = row.uses.saturating_sub(1);
        if row.uses == 0 && row.is_withdrawn {
            self.all.remove(index);
        }
    }

    /// Whether peers may no longer access it.
    pub(super) fn is_withdrawn(&self, index: usize) -> bool {
        self.all.get(index).is_none_or(|row| row.is_withdrawn)
    }

    /// The transports are gone: nobody is at any of them.
    pub(in crate::endpoint) fn release_all(&mut self) {
        self.all.retain(|_, row| {
            row.uses = 0;
            !row.is_withdrawn
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REGION: Region = Region {
        key: 7,
        address: 1000,
        buffer: Buffer::new(50_000, 100),
        access: Access { reads: true, writes: false },
    };

    fn regions(region: Region) -> Regions {
        let mut regions = Regions::default();
        assert_eq!(regions.insert(region), Ok(()));
        regions
    }

    #[test]
    fn a_stretch_is_found_by_key_address_and_right() {
        let regions = regions(REGION);
        let stretch = |key, address, length| RemoteStretch { key, address, length };
        let cases = [
            (stretch(7, 1000, 100), Ok((0, Buffer::new(50_000, 100)))),
            (stretch(7, 1099, 1), Ok((0, Buffer::new(50_099, 1)))),
            (stretch(7, 1100, 0), Ok((0, Buffer::new(50_100, 0)))),
            (stretch(7, 1100, 1), Err(RemoteStatus::OutOfBounds)),
            (stretch(7, 1101, 0), Err(RemoteStatus::OutOfBounds)),
            (stretch(7, 999, 1), Err(RemoteStatus::OutOfBounds)),
            (stretch(7, 1000, 101), Err(RemoteStatus::OutOfBounds)),
            (stretch(8, 1000, 1), Err(RemoteStatus::NoRegion)),
        ];
        for (stretch, expected) in cases {
            assert_eq!(regions.find(&stretch, Wish::Read), expected, "{stretch:?}");
        }
        assert_eq!(regions.find(&stretch(7, 1000, 1), Wish::Write), Err(RemoteStatus::NotAllowed));
    }

    #[test]
    fn a_region_that_was_withdrawn_is_found_no_more_and_stays_until_nobody_is_at_it() {
        let mut regions = regions(REGION);
        assert_eq!(regions.insert(REGION), Err(RegionTaken { key: 7 }));
        regions.hold(0);
        let withdrawn = regions.withdraw(7).expect("somebody is at it");
        let stretch = RemoteStretch { key: 7, address: 1000, length: 1 };
        assert_eq!(regions.find(&stretch, Wish::Read), Err(RemoteStatus::NoRegion));
        assert!(regions.is_in_use(withdrawn) && regions.is_withdrawn(0));
        // Another may have the key meanwhile.
        assert_eq!(regions.insert(REGION), Ok(()));
        regions.release(0);
        assert!(!regions.is_in_use(withdrawn));
        assert_eq!(regions.withdraw(7), None);
        assert_eq!(regions.withdraw(7), None);
    }

    proptest! {
        #[test]
        fn whatever_a_peer_says_nothing_outside_is_found(
            base: u64, address: u64, length: u64, memory in 1_u64..1 << 47, size in 0_u64..1 << 40,
            near in 0_u64..3,
        ) {
            let buffer = Buffer::new(memory, size);
            let regions = regions(Region { address: base, buffer, ..REGION });
            // Near its edges as often as anywhere.
            let (address, length) = match near {
                0 => (address, length),
                1 => (base.wrapping_add(size).wrapping_sub(address % 3), length % 4),
                _ => (base.wrapping_add(address % 3), size.wrapping_add(length % 3).wrapping_sub(1)),
            };
            let stretch = RemoteStretch { key: 7, address, length };
            if let Ok((_, found)) = regions.find(&stretch, Wish::Read) {
                prop_assert!(found.address >= memory && found.length == length);
                prop_assert!(u128::from(found.address) + u128::from(length) <= u128::from(memory + size));
            }
        }
    }
}
