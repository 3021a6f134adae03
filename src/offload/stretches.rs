//! Which stretches of the user's memory devices may write. They never overlap: a buffer that is posted twice goes down
//! once (UCX posted both and lost data: UCX.md 6.3).
//!
//! Stretches are disjoint, so that the last one that begins before the end of a buffer is the only one that can reach
//! it. They are kept sorted in short *runs*, and the runs in order: finding a place costs two short binary searches, and
//! entering one moves at most a run. A run that is full is cut in two; one that is empty is dropped, but for the only one.
//! The last run lies at hand, since many programs post buffers in the order of their addresses; and one is taken out
//! at either end of a run without a move, since many receives complete in the order in which they were posted.
//!
//! Not here: who waits for whom.

use crate::seam::Buffer;

/// The stretches in one engine's NICs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretches {
    /// The end of the last of all, or more; 0 if there is none.
    behind: u64,
    last: Run,
    /// As [`Part::first`].
    last_first: u64,
    /// The runs before, in order.
    parts: Vec<Part>,
    runs: Vec<Run>,
    /// Runs that are in no part.
    free: Vec<u32>,
}

/// A run in its place.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Not above the first byte of the run's first stretch, and above all stretches of the runs before; 0 for the first
    /// run of all.
    first: u64,
    run: u32,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: u64,
    end: u64,
    record: u32,
}

impl Stretch {
    /// Nobody's.
    const NONE: Self = Self { first: 0, end: 0, record: u32::MAX };
}

/// Where a stretch can be entered, until anything changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    /// Its number among the parts; theirs is the last run's.
    part: usize,
    place: usize,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    /// By first byte, from `start` to `end`; the others are old. In an empty run the first is nobody's.
    sorted: [Stretch; RUN],
    /// 0 in an empty run.
    start: usize,
    end: usize,
}

impl Stretches {
    /// The holder of a stretch that shares a byte with `buffer`.
    pub(crate) fn overlapping(&self, buffer: &Buffer) -> Option<usize> {
        if holds_nothing(buffer) {
            return None;
        }
        self.in_the_way(buffer, self.spot_before(end(buffer))).map(|stretch| stretch.record as usize)
    }

    /// Where a buffer can be entered that lies behind all others, if there is room. Budget: 12 instructions.
    #[inline(always)]
    pub(crate) fn behind_all(&mut self, buffer: &Buffer) -> Option<Behind<'_>> {
        if buffer.length == 0 { None } else { self.behind_all_that_is_not_empty(buffer) }
    }

    /// The same of a buffer with a length. Budget: 10 instructions.
    #[inline(always)]
    pub(crate) fn behind_all_that_is_not_empty(&mut self, buffer: &Buffer) -> Option<Behind<'_>> {
        // None of a buffer without a last byte, which may be one that begins where no byte is.
        let end = buffer.address.checked_add(buffer.length)?;
        if self.behind > buffer.address {
            return None;
        }
        let Run { sorted, end: count, .. } = &mut self.last;
        let place = sorted.get_mut(*count)?;
        Some(Behind { place, end, behind: &mut self.behind, count })
    }

    /// Where a buffer can be entered. None: it overlaps, is empty, or no room is at hand, and
    /// [`Self::try_insert`] tells which. Budget: 150 instructions at 1,000 stretches.
    pub(crate) fn spot(&self, buffer: &Buffer) -> Option<Spot> {
        if holds_nothing(buffer) {
            return None;
        }
        let spot = self.spot_before(end(buffer));
        let is_free = self.in_the_way(buffer, spot).is_none() && self.run(spot.part).has_room();
        is_free.then_some(spot)
    }

    /// Enter a buffer where [`Self::spot`] said. Budget: 90 instructions.
    pub(crate) fn put(&mut self, spot: Spot, buffer: &Buffer, record: u32) {
        let (first, run) = match self.parts.get_mut(spot.part) {
            Some(part) => (&mut part.first, &mut self.runs[part.run as usize]),
            None => (&mut self.last_first, &mut self.last),
        };
        *first = buffer.address.min(*first);
        run.insert(spot.place, Stretch { first: buffer.address, end: end(buffer), record });
        self.note_end();
    }

    /// The last of all may be another.
    fn note_end(&mut self) {
        self.behind = self.last.last().map_or(0, |last| last.end);
    }

    /// Enter one, unless it overlaps another: whether it was entered.
    pub(crate) fn try_insert(&mut self, buffer: &Buffer, record: usize) -> bool {
        if holds_nothing(buffer) {
            return true;
        }
        let mut spot = self.spot_before(end(buffer));
        if self.in_the_way(buffer, spot).is_some() {
            return false;
        }
        if !self.run(spot.part).has_room() {
            spot = self.split(spot, buffer.address);
        }
        self.put(spot, buffer, u32::try_from(record).unwrap_or(u32::MAX));
        true
    }

    /// Forget the one that was entered for a record with this buffer. Budget: 12 instructions for the first of the last
    /// run, as of few; else 220 at 1,000 stretches.
    #[inline(always)]
    pub(crate) fn remove_of(&mut self, record: u32, buffer: &Buffer) {
        let run = &mut self.last;
        // A record has one stretch at most, so it is this one.
        if run.sorted.get(run.start).is_some_and(|it| it.record == record) {
            run.start += 1;
            if run.start == run.end {
                run.reset();
                self.behind = 0;
                if !self.parts.is_empty() {
                    self.drop_last();
                }
            }
            return;
        }
        self.remove(buffer);
    }

    /// The last run is empty, and others are there.
    #[cold]
    #[inline(never)]
    fn drop_last(&mut self) {
        self.drop_run(self.parts.len());
        self.note_end();
    }

    /// Forget one that was entered, unless it is empty.
    #[inline(never)]
    pub(crate) fn remove(&mut self, buffer: &Buffer) {
        if holds_nothing(buffer) {
            return;
        }
        let run = &mut self.last;
        // The last run is dropped when it is empty, unless it is the only one.
        let may_leave = run.end - run.start > 1 || self.parts.is_empty();
        if may_leave && run.last().is_some_and(|it| it.first == buffer.address) {
            run.remove_last();
        } else {
            self.remove_among(buffer.address);
        }
        self.note_end();
    }

    fn remove_among(&mut self, first: u64) {
        // One that begins there begins before the next byte.
        let Spot { part, place } = self.spot_before(first.saturating_add(1));
        let run = self.run_mut(part);
        let is_it = |place: &usize| run.stretches().get(*place).is_some_and(|it| it.first == first);
        let Some(place) = place.checked_sub(1).filter(is_it) else { return };
        run.remove(place);
        if run.end == 0 && !self.parts.is_empty() {
            self.drop_run(part);
        }
    }

    /// A run is empty, and not the only one.
    #[inline(never)]
    fn drop_run(&mut self, part: usize) {
        if part < self.parts.len() {
            self.free.push(self.parts.remove(part).run);
        } else if let Some(Part { first, run }) = self.parts.pop() {
            (self.last, self.last_first) = (self.runs[run as usize], first);
            self.free.push(run);
        }
        // Below the first run lies nothing.
        match self.parts.first_mut() {
            Some(part) => part.first = 0,
            None => self.last_first = 0,
        }
    }

    /// Behind the last stretch that begins before `end`.
    fn spot_before(&self, end: u64) -> Spot {
        let part = if self.last_first < end {
            self.parts.len()
        } else {
            self.parts.partition_point(|part| part.first < end).saturating_sub(1)
        };
        let place = self.run(part).stretches().partition_point(|stretch| stretch.first < end);
        Spot { part, place }
    }

    /// The stretch just before a spot, if it shares a byte with `buffer`.
    fn in_the_way(&self, buffer: &Buffer, spot: Spot) -> Option<&Stretch> {
        let before = match spot.place.checked_sub(1) {
            Some(place) => self.run(spot.part).stretches().get(place),
            None => self.run(spot.part.checked_sub(1)?).last(),
        };
        before.filter(|stretch| stretch.end > buffer.address)
    }

    fn run(&self, part: usize) -> &Run {
        self.parts.get(part).map_or(&self.last, |part| &self.runs[part.run as usize])
    }

    fn run_mut(&mut self, part: usize) -> &mut Run {
        match self.parts.get(part) {
            Some(part) => &mut self.runs[part.run as usize],
            None => &mut self.last,
        }
    }

    /// The run of a spot is full: its lower part becomes a run of its own, so that there is room for a stretch that
    /// begins at `first`. The spot then.
    #[cold]
    #[inline(never)]
    fn split(&mut self, spot: Spot, first: u64) -> Spot {
        let Spot { part, place } = spot;
        // Who posts buffers in the order of their addresses leaves full runs behind.
        let lower = if place == RUN { RUN } else { RUN / 2 };
        let run = self.run_mut(part);
        let mut low = *run;
        low.end = lower;
        run.sorted.copy_within(lower.., 0);
        run.end = RUN - lower;
        if run.end == 0 {
            run.reset();
        }
        let upper_first = if run.end == 0 { first } else { run.sorted[0].first };
        let low_first = match self.parts.get_mut(part) {
            Some(part) => std::mem::replace(&mut part.first, upper_first),
            None => std::mem::replace(&mut self.last_first, upper_first),
        };
        let run = self.new_run(low);
        self.parts.insert(part, Part { first: low_first, run });
        if place < lower { spot } else { Spot { part: part + 1, place: place - lower } }
    }

    fn new_run(&mut self, run: Run) -> u32 {
        if let Some(number) = self.free.pop() {
            self.runs[number as usize] = run;
            return number;
        }
        self.runs.push(run);
        u32::try_from(self.runs.len() - 1).unwrap_or(u32::MAX)
    }
}

/// A place behind all stretches.
#[derive(Debug)]
pub(crate) struct Behind<'a> {
    place: &'a mut Stretch,
    end: u64,
    behind: &'a mut u64,
    count: &'a mut usize,
}

impl Behind<'_> {
    /// Enter the buffer. Budget: 6 instructions.
    #[inline(always)]
    pub(crate) fn put(self, buffer: &Buffer, record: u32) {
        *self.place = Stretch { first: buffer.address, end: self.end, record };
        *self.behind = self.end;
        *self.count += 1;
    }
}

impl Default for Run {
    fn default() -> Self {
        Self { sorted: [Stretch::NONE; RUN], start: 0, end: 0 }
    }
}

impl Run {
    #[inline(always)]
    fn last(&self) -> Option<&Stretch> {
        self.sorted.get(self.end.wrapping_sub(1))
    }

    const fn has_room(&self) -> bool {
        self.end - self.start < RUN
    }

    fn stretches(&self) -> &[Stretch] {
        self.sorted.get(self.start..self.end).unwrap_or_default()
    }

    /// Before the one that is now at this place, in a run with room.
    fn insert(&mut self, place: usize, stretch: Stretch) {
        if self.end == RUN {
            self.sorted.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let place = self.start + place;
        self.sorted.copy_within(place..self.end, place + 1);
        self.sorted[place] = stretch;
        self.end += 1;
    }

    #[inline(always)]
    fn remove_first(&mut self) {
        self.start += 1;
        self.reset_if_empty();
    }

    #[inline(always)]
    fn remove_last(&mut self) {
        self.end -= 1;
        self.reset_if_empty();
    }

    fn remove(&mut self, place: usize) {
        if place == 0 {
            return self.remove_first();
        }
        let place = self.start + place;
        self.sorted.copy_within(place + 1..self.end, place);
        self.remove_last();
    }

    #[inline(always)]
    fn reset_if_empty(&mut self) {
        if self.start == self.end {
            self.reset();
        }
    }

    /// It is empty.
    #[inline(always)]
    fn reset(&mut self) {
        (self.start, self.end, self.sorted[0].record) = (0, 0, Stretch::NONE.record);
    }
}

/// Nothing is written there: it is empty, or begins where no byte is.
#[inline(always)]
const fn holds_nothing(buffer: &Buffer) -> bool {
    buffer.length == 0 || buffer.address == u64::MAX
}

#[inline(always)]
const fn end(buffer: &Buffer) -> u64 {
    buffer.address.saturating_add(buffer.length)
}

/// Stretches of a run.
const RUN: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(stretches: &mut Stretches, buffer: &Buffer, record: usize) -> bool {
        let spot = stretches.spot(buffer);
        let (mut by_spot, mut at_the_end) = (stretches.clone(), stretches.clone());
        let is_entered = stretches.try_insert(buffer, record);
        if let Some(spot) = spot {
            assert!(is_entered, "there is no spot for what overlaps: {buffer:?}");
            by_spot.put(spot, buffer, u32::try_from(record).unwrap());
            assert_eq!(format!("{by_spot:?}"), format!("{stretches:?}"));
        }
        if let Some(behind) = at_the_end.behind_all(buffer) {
            behind.put(buffer, u32::try_from(record).unwrap());
            assert_eq!(format!("{at_the_end:?}"), format!("{stretches:?}"));
        }
        is_entered
    }

    #[test]
    fn overlap_is_found_at_both_ends_and_inside_and_not_beside() {
        let mut stretches = Stretches::default();
        for (address, record) in [(100, 1), (300, 3), (200, 2)] {
            assert!(entered(&mut stretches, &Buffer::new(address, 50), record));
        }
        for (address, length, holder) in [
            (99, 2, Some(1)),
            (149, 1, Some(1)),
            (120, 5, Some(1)),
            (0, 1000, Some(3)),
            (150, 50, None),
            (150, 51, Some(2)),
            (99, 1, None),
            (350, 9, None),
            (120, 0, None),
            (u64::MAX, 10, None),
        ] {
            let buffer = Buffer::new(address, length);
            assert_eq!(stretches.overlapping(&buffer), holder, "{address}+{length}");
            let is_entered = stretches.clone().try_insert(&buffer, 4);
            assert_eq!(is_entered, holder.is_none(), "{address}+{length}");
        }
        let nowhere = Buffer::new(u64::MAX, 10);
        assert!(stretches.behind_all(&nowhere).is_none() && stretches.spot(&nowhere).is_none());
        stretches.remove(&Buffer::new(200, 50));
        assert_eq!(stretches.overlapping(&Buffer::new(200, 50)), None);
        assert_eq!(stretches.overlapping(&Buffer::new(349, 5)), Some(3));
    }

    /// Enter and forget by a pattern of addresses; every answer must be a scan's.
    fn compare_with_scan(address: impl Fn(u64) -> u64, lengths: u64, live_max: usize) {
        let mut stretches = Stretches::default();
        let mut live: Vec<(Buffer, usize)> = Vec::new();
        for step in 0..6_000_u64 {
            let record = usize::try_from(step).unwrap();
            let buffer = Buffer::new(address(step), 1 + step % lengths);
            let holder = live
                .iter()
                .filter(|(other, _)| other.overlaps(&buffer))
                .max_by_key(|(other, _)| other.address);
            assert_eq!(stretches.overlapping(&buffer), holder.map(|&(_, record)| record), "step {step}");
            let is_free = holder.is_none();
            assert_eq!(entered(&mut stretches, &buffer, record), is_free, "step {step}");
            if is_free {
                live.push((buffer, record));
            }
            let shrinks = step / 1_000 % 2 == 1;
            while live.len() > if shrinks { 2 } else { live_max } {
                let gone = if step % 3 == 0 { live.len() - 1 } else { record * 7 % live.len() };
                let (buffer, record) = live.swap_remove(gone);
                if step % 2 == 0 {
                    stretches.remove(&buffer);
                } else {
                    stretches.remove_of(u32::try_from(record).unwrap(), &buffer);
                }
                if !shrinks || step % 5 != 0 {
                    break;
                }
            }
        }
        assert!(stretches.runs.len() <= 6_000 / RUN, "runs are used again: {}", stretches.runs.len());
    }

    #[test]
    fn many_stretches_answer_as_a_scan_does() {
        compare_with_scan(|step| step.wrapping_mul(0x9e37_79b9) % 100_000, 40, 700);
        compare_with_scan(|step| step * 64 % 65_536, 64, 300);
        compare_with_scan(|step| 1_000_000 - step * 32, 33, 200);
        compare_with_scan(|step| step * 4096, 8000, 1000);
    }
}
