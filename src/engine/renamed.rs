//! Senders whose number has changed since they were learned: a device may go on saying the old one, in completions
//! that it had written before and for as long as it likes.
//!
//! Not here: what waits or is posted under the old number.

use crate::ids::PeerId;

/// Old numbers, with the new ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Renamed {
    /// By old number. Never the old number of another, so that one look is enough.
    new: Vec<Option<PeerId>>,
}

impl Renamed {
    /// No number has ever changed.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.new.is_empty()
    }

    /// Who it is.
    #[inline]
    pub(super) fn now(&self, said: PeerId) -> PeerId {
        self.new.get(said.0 as usize).copied().flatten().unwrap_or(said)
    }

    /// `old` is `new` from now on. `new` stands for itself.
    pub(super) fn set(&mut self, old: PeerId, new: PeerId) {
        let highest = old.0.max(new.0) as usize;
        if self.new.len() <= highest {
            self.new.resize(highest + 1, None);
        }
        for entry in &mut self.new {
            if *entry == Some(old) {
                *entry = Some(new);
            }
        }
        self.new[new.0 as usize] = None;
        if old != new {
            self.new[old.0 as usize] = Some(new);
        }
    }

    /// Nobody is this one any more, whatever a device says.
    pub(super) fn forget(&mut self, peer: PeerId) {
        for (said, new) in (0..).map(PeerId).zip(&mut self.new) {
            if said == peer || *new == Some(peer) {
                *new = None;
            }
        }
    }

    pub(super) fn canonical(&self, out: &mut Vec<u64>) {
        let renamed = self.new.iter().enumerate();
        out.extend(renamed.filter_map(|(old, new)| Some((old as u64) << 32 | u64::from((*new)?.0))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_each_other_and_can_be_dealt_again() {
        let mut renamed = Renamed::default();
        assert!(renamed.is_empty());
        renamed.set(PeerId(9), PeerId(1));
        renamed.set(PeerId(1), PeerId(2));
        assert_eq!([9, 1, 2, 77].map(|said| renamed.now(PeerId(said)).0), [2, 2, 2, 77]);
        renamed.set(PeerId(9), PeerId(9));
        assert_eq!([9, 1, 2].map(|said| renamed.now(PeerId(said)).0), [9, 2, 2]);
        renamed.forget(PeerId(2));
        assert_eq!([9, 1, 2].map(|said| renamed.now(PeerId(said)).0), [9, 1, 2]);
    }
}
