//! The usual life of an offloaded receive in few instructions: straight down, its ADD done, matched, released.
//!
//! Each function here does the usual case whole, or tells that this is not it and has changed nothing. Then the
//! general way is taken (`policy`, `events`), which does the same for every case. None of these needs a call: what
//! needs none saves no registers, and most of what a short path costs is saving registers.
//!
//! Not here: rules of its own.

use crate::ids::{DeviceId, ReceiveId, Source, TagHandle};
use crate::matching::Pattern;
use crate::seam::{Buffer, Match, MatchStage, Operation, OperationDone, Placer};

use super::entry::Place;
use super::mirror::FreeRecord;
use super::nic::Nic;
use super::stretches::{Behind, Spot, Stretches};
use super::{Offload, Record, Rules, Statistics};

impl Offload {
    /// Whether a receive that is about to be posted can go straight down to the only device that matches, if its buffer overlaps
    /// none that is there. The record that it then gets. Changes nothing; [`Self::stir`] comes before. Budget: 40 instructions.
    #[inline(always)]
    fn record_for_way_down(&self, pattern: &Pattern, buffer: &Buffer) -> Option<u32> {
        let nic = self.nics.get(self.sole)?;
        let may = nic.is_idle()
            && nic.is_held_up().is_none()
            && self.peers.is_anybody(pattern)
            && nic.takes(buffer)
            && nic.has_room();
        if may { self.mirror.free_place() } else { None }
    }

    /// The same, of a buffer that lies behind all that are there. Budget: 55 instructions.
    #[inline(always)]
    pub(crate) fn way_down(&mut self, pattern: &Pattern, buffer: &Buffer) -> Option<StraightDown<'_>> {
        let nic = self.nics.get_mut(self.sole)?;
        let may = nic.is_idle()
            && nic.is_held_up().is_none()
            && self.peers.is_anybody(pattern)
            && nic.takes(buffer)
            && nic.has_room();
        if !may {
            return None;
        }
        let stretch = self.stretches.behind_all(buffer)?;
        let place = self.mirror.free_record()?;
        let statistics = &mut self.statistics;
        let is_grantable = self.peers.has_no_layout();
        Some(StraightDown { nic, place, stretch, statistics, rules: self.rules, is_grantable })
    }

    /// The same where nothing of the device needs to be looked at, as was granted. Budget: 30 instructions.
    #[inline(always)]
    pub(crate) fn way_straight(&mut self, pattern: &Pattern, buffer: &Buffer) -> Option<Granted<'_>> {
        let nic = self.nics.get_mut(self.sole)?;
        // Only where there is no layout is anything granted.
        debug_assert!(!nic.is_granted(buffer) || self.peers.has_no_layout());
        if !(nic.is_granted(buffer) && pattern.source == Source::Any) {
            return None;
        }
        let stretch = self.stretches.behind_all_that_is_not_empty(buffer)?;
        let place = self.mirror.free_record()?;
        let (statistics, settled) = (&mut self.statistics, &mut self.settled);
        Some(Granted { nic, place, stretch, statistics, settled })
    }

    /// The same, of a buffer anywhere: for [`Self::go_down_among`].
    pub(crate) fn way_down_among(&self, pattern: &Pattern, buffer: &Buffer) -> Option<WayDown> {
        let record = self.record_for_way_down(pattern, buffer)?;
        Some(WayDown { record, spot: self.stretches.spot(buffer)? })
    }

    /// The receive was posted, and goes the way that was found.
    pub(crate) fn go_down_among(
        &mut self,
        way: WayDown,
        id: ReceiveId,
        pattern: &Pattern,
        buffer: &Buffer,
        hand: &mut impl Placer,
    ) {
        self.stretches.put(way.spot, buffer, way.record);
        self.list_straight(way.record, id, pattern, buffer, hand);
    }

    fn list_straight(
        &mut self,
        index: u32,
        id: ReceiveId,
        pattern: &Pattern,
        buffer: &Buffer,
        hand: &mut impl Placer,
    ) {
        let Some(nic) = self.nics.get_mut(self.sole) else { return };
        let reason = nic.held_up_by;
        let Some(record) = self.mirror.track_at(index, id, pattern, buffer, reason) else { return };
        let is_listed = nic.list(record, index as usize, None, self.rules, hand);
        debug_assert!(is_listed, "it was in software");
        self.statistics.tracked += 1;
        self.statistics.adds += 1;
    }

    /// An ADD that was due is done, in phase. Budget: 35 instructions.
    #[inline(always)]
    pub(crate) fn try_add_done(&mut self, device: DeviceId, done: &OperationDone) -> bool {
        let Operation::Add(handle) = done.operation else { return false };
        match self.nics.get_mut(device.0 as usize) {
            Some(nic) if !done.sync_requested => nic.phase.try_add_done(handle, done.phase),
            _ => false,
        }
    }

    /// The entry that a device matched and let go of, if it had nothing else to it and all data is placed in the user's
    /// buffer. Changes nothing. Budget: 30 instructions.
    #[inline(always)]
    pub(crate) fn usual_match(&mut self, device: DeviceId, matched: &Match) -> Option<UsualMatch<'_>> {
        if matched.stage != MatchStage::Complete || !matched.released {
            return None;
        }
        let (record, free) = self.mirror.find_undisturbed(device, matched.handle)?;
        let (nics, stretches, statistics) = (&mut self.nics, &mut self.stretches, &mut self.statistics);
        Some(UsualMatch { nics, device, record, free, stretches, statistics })
    }

    /// So many entries had their usual match, none of which was counted ([`UsualMatch::finish`]).
    #[inline(always)]
    pub(crate) fn count_usual(&mut self, device: DeviceId, count: usize) {
        count_matches(&mut self.statistics, &mut self.nics, device, count);
    }

    /// A device let go of an entry that it had matched. Budget: 60 instructions.
    #[inline(always)]
    pub(crate) fn try_release(&mut self, device: DeviceId, handle: TagHandle) -> bool {
        let Some(record) = self.mirror.find_mut(device, handle) else { return false };
        let Some(nic) = self.nics.get_mut(device.0 as usize) else { return false };
        if record.place() != Place::Gone || !record.is_usual() || !record.slot_kept {
            return false;
        }
        nic.handle_matched_and_released(1);
        (record.pinned, record.slot_kept) = (None, false);
        let buffer = record.buffer;
        self.mirror.forget_clear(handle.index);
        self.stretches.remove_of(handle.index, &buffer);
        true
    }
}

/// A receive that is about to be posted, on its way straight down.
#[derive(Debug)]
pub(crate) struct StraightDown<'a> {
    nic: &'a mut Nic,
    place: FreeRecord<'a>,
    stretch: Behind<'a>,
    statistics: &'a mut Statistics,
    rules: Rules,
    is_grantable: bool,
}

impl StraightDown<'_> {
    /// The record that it gets.
    #[inline(always)]
    pub(crate) fn record(&self) -> u32 {
        self.place.index
    }

    /// It was posted. Budget: 75 instructions.
    #[inline(always)]
    pub(crate) fn go(self, id: ReceiveId, pattern: &Pattern, buffer: &Buffer, hand: &mut impl Placer) {
        let Self { nic, place, stretch, statistics, rules, is_grantable } = self;
        let (index, record) = place.track(id, pattern, buffer, nic.held_up_by);
        let is_listed = nic.list(record, index as usize, None, rules, hand);
        debug_assert!(is_listed, "it was in software");
        stretch.put(buffer, index);
        statistics.tracked += 1;
        statistics.adds += 1;
        if is_grantable {
            nic.grant(rules);
        }
    }
}

/// The same where that was granted.
#[derive(Debug)]
pub(crate) struct Granted<'a> {
    nic: &'a mut Nic,
    place: FreeRecord<'a>,
    stretch: Behind<'a>,
    statistics: &'a mut Statistics,
    settled: &'a mut bool,
}

impl Granted<'_> {
    /// The record that it gets.
    #[inline(always)]
    pub(crate) fn record(&self) -> u32 {
        self.place.index
    }

    /// It was posted. Budget: 55 instructions.
    #[inline(always)]
    pub(crate) fn go(self, id: ReceiveId, pattern: &Pattern, buffer: &Buffer, hand: &mut impl Placer) {
        let Self { nic, place, stretch, statistics, settled } = self;
        let handle = place.track_listed(id, pattern, buffer, nic.id);
        stretch.put(buffer, handle.index);
        statistics.tracked += 1;
        statistics.adds += 1;
        if !nic.list_granted(handle, pattern, buffer, hand) {
            *settled = false;
        }
    }
}

/// See [`Offload::usual_match`].
#[derive(Debug)]
pub(crate) struct UsualMatch<'a> {
    nics: &'a mut [Nic],
    device: DeviceId,
    statistics: &'a mut Statistics,
    record: &'a mut Record,
    free: &'a mut u32,
    stretches: &'a mut Stretches,
}

impl UsualMatch<'_> {
    /// The receive.
    #[inline(always)]
    pub(crate) fn receive(&self) -> ReceiveId {
        self.record.receive
    }

    /// Its buffer.
    #[inline(always)]
    pub(crate) fn buffer(&self) -> &Buffer {
        &self.record.buffer
    }

    /// The receive is complete, and the device has let go of the entry. Unless it `is_counted` here it is by
    /// [`Offload::count_usual`]. Budget: 25 instructions, and 10 to be counted.
    #[inline(always)]
    pub(crate) fn finish(self, index: u32, is_counted: bool) {
        let Self { nics, device, statistics, record, free, stretches } = self;
        if is_counted {
            count_matches(statistics, nics, device, 1);
        }
        record.end_and_free_undisturbed(index, free);
        stretches.remove_of(index, &record.buffer);
    }
}

#[inline(always)]
fn count_matches(statistics: &mut Statistics, nics: &mut [Nic], device: DeviceId, count: usize) {
    statistics.matched_by_device += count as u64;
    // Where there was one, the device is there.
    if let Some(nic) = nics.get_mut(device.0 as usize) {
        nic.handle_matched_and_released(u32::try_from(count).unwrap_or(u32::MAX));
    }
}

/// How a receive goes straight down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WayDown {
    /// The record that it gets.
    pub(crate) record: u32,
    spot: Spot,
}
