//! Memory regions: what keys reach, and moving payload through them.

use std::collections::BTreeMap;

use super::memory::HostMemory;
use super::requests::{ContextId, RegisterMemory};
use super::verbs::access;

/// One registered stretch of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub context: ContextId,
    pub pd: u32,
    start: u64,
    length: u64,
    hca_va: u64,
    access: u32,
}

/// All of them, by key. On mlx5 the local and the remote key are the same number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions {
    by_key: BTreeMap<u32, Region>,
    created: u32,
}

/// Part of a payload in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub key: u32,
    pub address: u64,
    pub length: u64,
}

/// Part of a payload in a work request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    Inline(Vec<u8>),
    Memory(Segment),
}

impl Piece {
    pub(crate) const fn length(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::Memory(segment) => segment.length,
        }
    }
}

/// Why a key does not reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeyFault {
    /// No such key, or one of another protection domain.
    Key,
    /// The region does not allow it.
    Access,
    /// Beyond the region, or not memory any more.
    Bounds,
}

/// Why a payload was not placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScatterFault {
    /// Longer than the segments together.
    TooLong,
    Key(KeyFault),
}

/// Which keys: one protection domain, one kind of access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub pd: u32,
    /// A flag of [`access`]; 0: reading by the local side, which is always allowed.
    pub access: u32,
}

impl Regions {
    /// Registers, and gives the key.
    pub(crate) fn insert(&mut self, context: ContextId, pd: u32, request: &RegisterMemory) -> u32 {
        let RegisterMemory { start, length, hca_va, access, .. } = *request;
        let region = Region { context, pd, start, length, hca_va, access };
        loop {
            // The index in the high 24 bits, something that changes with each use of it in the low 8.
            self.created = self.created.wrapping_add(1);
            let index = FIRST_INDEX + self.created % (1 << 22);
            let key = index << 8 | (self.created >> 22) & 0xff;
            if let std::collections::btree_map::Entry::Vacant(vacant) = self.by_key.entry(key) {
                vacant.insert(region);
                return key;
            }
        }
    }

    pub(crate) fn remove(&mut self, key: u32) -> Option<Region> {
        self.by_key.remove(&key)
    }

    pub(crate) fn find(&self, key: u32) -> Option<&Region> {
        self.by_key.get(&key)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(crate) fn remove_context(&mut self, context: ContextId) {
        self.by_key.retain(|_, region| region.context != context);
    }

    pub(crate) fn is_domain_used(&self, pd: u32) -> bool {
        self.by_key.values().any(|region| region.pd == pd)
    }

    /// The host's address behind a key's. Nothing is checked for an empty stretch, as on a real device.
    pub(crate) fn translate(&self, segment: Segment, need: Need) -> Result<u64, KeyFault> {
        if segment.length == 0 {
            return Ok(segment.address);
        }
        let region =
            self.by_key.get(&segment.key).filter(|region| region.pd == need.pd).ok_or(KeyFault::Key)?;
        if region.access & need.access != need.access {
            return Err(KeyFault::Access);
        }
        let base = if region.access & access::ZERO_BASED != 0 { 0 } else { region.hca_va };
        let offset = segment.address.checked_sub(base).ok_or(KeyFault::Bounds)?;
        let end = offset.checked_add(segment.length).ok_or(KeyFault::Bounds)?;
        if end > region.length {
            return Err(KeyFault::Bounds);
        }
        region.start.checked_add(offset).ok_or(KeyFault::Bounds)
    }

    /// Collect `length` bytes from `offset` on.
    pub(crate) fn gather<M: HostMemory>(
        &self,
        memory: &M,
        pd: u32,
        pieces: &[Piece],
        mut offset: u64,
        mut length: u64,
    ) -> Result<Vec<u8>, KeyFault> {
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default().min(BYTES_AT_ONCE));
        for piece in pieces {
            if offset >= piece.length() {
                offset -= piece.length();
                continue;
            }
            if length == 0 {
                break;
            }
            let part = (piece.length() - offset).min(length);
            match piece {
                Piece::Inline(inline) => {
                    let start = usize::try_from(offset).unwrap_or(usize::MAX);
                    let end = start.saturating_add(usize::try_from(part).unwrap_or(usize::MAX));
                    bytes.extend_from_slice(inline.get(start..end).ok_or(KeyFault::Bounds)?);
                }
                Piece::Memory(segment) => {
                    let address = segment.address.wrapping_add(offset);
                    let part = Segment { address, length: part, ..*segment };
                    self.read(memory, part, Need { pd, access: 0 }, &mut bytes)?;
                }
            }
            length -= part;
            offset = 0;
        }
        Ok(bytes)
    }

    /// Append the bytes behind a key.
    pub(crate) fn read<M: HostMemory>(
        &self,
        memory: &M,
        segment: Segment,
        need: Need,
        bytes: &mut Vec<u8>,
    ) -> Result<(), KeyFault> {
        let host = self.translate(segment, need)?;
        let start = bytes.len();
        let part = usize::try_from(segment.length).map_err(|_| KeyFault::Bounds)?;
        bytes.resize(start.saturating_add(part), 0);
        let into = bytes.get_mut(start..).unwrap_or_default();
        memory.read(host, into).map_err(|_| KeyFault::Bounds)
    }

    /// Write bytes behind a key.
    pub(crate) fn write<M: HostMemory>(
        &self,
        memory: &mut M,
        segment: Segment,
        need: Need,
        bytes: &[u8],
    ) -> Result<(), KeyFault> {
        if bytes.is_empty() {
            return Ok(());
        }
        let host = self.translate(Segment { length: bytes.len() as u64, ..segment }, need)?;
        memory.write(host, bytes).map_err(|_| KeyFault::Bounds)
    }

    /// Write bytes into segments of the local side, from `offset` on.
    pub(crate) fn scatter<M: HostMemory>(
        &self,
        memory: &mut M,
        pd: u32,
        segments: impl Iterator<Item = Segment>,
        mut offset: u64,
        mut bytes: &[u8],
    ) -> Result<(), ScatterFault> {
        for segment in segments {
            if bytes.is_empty() {
                return Ok(());
            }
            if offset >= segment.length {
                offset -= segment.length;
                continue;
            }
            let room = usize::try_from(segment.length - offset).unwrap_or(usize::MAX);
            let (part, rest) = bytes.split_at(room.min(bytes.len()));
            let place = Segment { address: segment.address.wrapping_add(offset), ..segment };
            let need = Need { pd, access: access::LOCAL_WRITE };
            self.write(memory, place, need, part).map_err(ScatterFault::Key)?;
            bytes = rest;
            offset = 0;
        }
        if bytes.is_empty() { Ok(()) } else { Err(ScatterFault::TooLong) }
    }
}

/// Below it are keys with a meaning of their own (0x100 is the invalid one).
const FIRST_INDEX: u32 = 0x100;

const BYTES_AT_ONCE: usize = 1 << 20;
