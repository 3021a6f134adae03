//! Memory in NICs: which stretches a device may write, and the bounce buffers for receives that are too short.

use crate::seam::Buffer;

/// Stretches of the user's memory that are in one engine's NICs. They never overlap (UCX posted one buffer twice
/// and lost data: UCX.md 6.3).
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretches {
    /// By first byte. What lies behind the first `count` is old.
    sorted: Vec<Stretch>,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: u64,
    end: u64,
    record: u32,
}

impl Stretches {
    /// The holder of a stretch that shares a byte with `buffer`.
    pub(crate) fn overlapping(&self, buffer: &Buffer) -> Option<usize> {
        if buffer.length == 0 {
            return None;
        }
        self.in_the_way(buffer, self.place(end(buffer))).map(|stretch| stretch.record as usize)
    }

    /// Whether [`Self::put_last`] may be called with a buffer that is not empty: there is room, and it lies behind all
    /// others. Many programs post their buffers in the order of their addresses.
    #[inline(always)]
    pub(crate) fn is_behind_all(&self, buffer: &Buffer) -> bool {
        self.count < self.sorted.len() && self.last().is_none_or(|last| last.end <= buffer.address)
    }

    /// Enter one that lies behind all others. Budget: 10 instructions.
    #[inline(always)]
    pub(crate) fn put_last(&mut self, buffer: &Buffer, record: u32) {
        if let Some(place) = self.sorted.get_mut(self.count) {
            *place = Stretch { first: buffer.address, end: end(buffer), record };
            self.count += 1;
        }
    }

    /// Enter one, unless it overlaps another: whether it was entered.
    pub(crate) fn try_insert(&mut self, buffer: &Buffer, record: usize) -> bool {
        if buffer.length == 0 {
            return true;
        }
        let (first, end) = (buffer.address, end(buffer));
        let stretch = Stretch { first, end, record: u32::try_from(record).unwrap_or(u32::MAX) };
        // Nothing begins within it, or it would overlap: so what begins before its end begins before it.
        let place = self.place(end);
        if self.in_the_way(buffer, place).is_some() {
            return false;
        }
        if self.count == self.sorted.len() {
            self.sorted.resize((self.count * 2).max(ROOM_MIN), stretch);
        }
        self.sorted.copy_within(place..self.count, place + 1);
        self.sorted[place] = stretch;
        self.count += 1;
        true
    }

    /// Forget one. Budget: 12 instructions for the last.
    #[inline(always)]
    pub(crate) fn remove(&mut self, buffer: &Buffer) {
        if buffer.length == 0 {
            return;
        }
        if self.last().is_some_and(|last| last.first == buffer.address) {
            self.count -= 1;
            return;
        }
        self.remove_among(buffer.address);
    }

    #[inline(never)]
    fn remove_among(&mut self, first: u64) {
        let place = self.place(first);
        if self.stretches().get(place).is_some_and(|stretch| stretch.first == first) {
            self.sorted.copy_within(place + 1..self.count, place);
            self.count -= 1;
        }
    }

    #[inline(always)]
    fn last(&self) -> Option<&Stretch> {
        self.sorted.get(self.count.wrapping_sub(1))
    }

    fn stretches(&self) -> &[Stretch] {
        self.sorted.get(..self.count).unwrap_or_default()
    }

    /// How many begin before an address.
    fn place(&self, address: u64) -> usize {
        self.stretches().partition_point(|stretch| stretch.first < address)
    }

    /// The one that shares a byte with `buffer`, of which as many as `place` begin before its end. They are disjoint
    /// and sorted: only the last of these can reach it.
    fn in_the_way(&self, buffer: &Buffer, place: usize) -> Option<&Stretch> {
        self.stretches().get(place.checked_sub(1)?).filter(|last| last.end > buffer.address)
    }
}

#[inline(always)]
const fn end(buffer: &Buffer) -> u64 {
    buffer.address.saturating_add(buffer.length)
}

/// Bounce buffers of one device, all of at least its eager limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounces {
    free: Vec<Buffer>,
    total: usize,
}

impl Bounces {
    /// Give one more.
    pub(crate) fn add(&mut self, buffer: Buffer) {
        self.free.push(buffer);
        self.total += 1;
    }

    /// Whether there are any at all.
    pub(crate) fn is_provided(&self) -> bool {
        self.total > 0
    }

    pub(crate) fn take(&mut self) -> Option<Buffer> {
        self.free.pop()
    }

    pub(crate) fn give_back(&mut self, buffer: Buffer) {
        self.free.push(buffer);
    }

    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }
}

/// Room for stretches once there are any.
const ROOM_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_found_at_both_ends_and_inside_and_not_beside() {
        let mut stretches = Stretches::default();
        assert!(stretches.try_insert(&Buffer::new(100, 50), 1));
        assert!(stretches.try_insert(&Buffer::new(300, 50), 3));
        assert!(stretches.try_insert(&Buffer::new(200, 50), 2));
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
            let entered = stretches.clone().try_insert(&buffer, 4);
            assert_eq!(entered, holder.is_none(), "{address}+{length}");
        }
        stretches.remove(&Buffer::new(200, 50));
        assert_eq!(stretches.overlapping(&Buffer::new(200, 50)), None);
        assert_eq!(stretches.overlapping(&Buffer::new(349, 5)), Some(3));
    }
}
