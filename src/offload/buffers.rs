//! Memory in NICs: which stretches a device may write, and the bounce buffers for receives that are too short.

use crate::seam::Buffer;

/// Stretches of the user's memory that are in one engine's NICs. They never overlap (UCX posted one buffer twice
/// and lost data: UCX.md 6.3).
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretches {
    /// By first byte; ends and holders beside it.
    sorted: Vec<Stretch>,
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
        let end = buffer.address.saturating_add(buffer.length);
        // Disjoint and sorted: only the last one that begins before our end can reach us.
        let behind = self.sorted.partition_point(|stretch| stretch.first < end);
        let last = self.sorted.get(behind.checked_sub(1)?)?;
        (last.end > buffer.address).then_some(last.record as usize)
    }

    /// Enter one that overlaps none.
    pub(crate) fn insert(&mut self, buffer: &Buffer, record: usize) {
        if buffer.length == 0 {
            return;
        }
        let place = self.sorted.partition_point(|stretch| stretch.first < buffer.address);
        let record = u32::try_from(record).unwrap_or(u32::MAX);
        let end = buffer.address.saturating_add(buffer.length);
        self.sorted.insert(place, Stretch { first: buffer.address, end, record });
    }

    /// Forget one.
    pub(crate) fn remove(&mut self, buffer: &Buffer) {
        if buffer.length == 0 {
            return;
        }
        let place = self.sorted.partition_point(|stretch| stretch.first < buffer.address);
        if self.sorted.get(place).is_some_and(|stretch| stretch.first == buffer.address) {
            self.sorted.remove(place);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_found_at_both_ends_and_inside_and_not_beside() {
        let mut stretches = Stretches::default();
        stretches.insert(&Buffer::new(100, 50), 1);
        stretches.insert(&Buffer::new(300, 50), 3);
        stretches.insert(&Buffer::new(200, 50), 2);
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
            assert_eq!(stretches.overlapping(&Buffer::new(address, length)), holder, "{address}+{length}");
        }
        stretches.remove(&Buffer::new(200, 50));
        assert_eq!(stretches.overlapping(&Buffer::new(200, 50)), None);
        assert_eq!(stretches.overlapping(&Buffer::new(349, 5)), Some(3));
    }
}
