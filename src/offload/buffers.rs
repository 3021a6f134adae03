//! The bounce buffers for receives that are shorter than a device's eager limit.

use crate::seam::Buffer;

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
