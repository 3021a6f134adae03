//! Completions that the owner has not read yet: a ring, and behind it what came while that was full. Neither writing nor
//! reading one makes a call while the ring will do: a short path without calls saves no registers.
//!
//! Not here: bounds. Whoever does not read lets it grow.

use std::collections::VecDeque;

use super::completion::{Completion, End, Received};

/// First in, first out.
#[derive(Clone, Debug)]
pub(super) struct Unread {
    ring: Box<[Completion; PLACES]>,
    /// Counts of what was read of the ring, and written.
    read: usize,
    written: usize,
    /// So many may be in the ring: none more while some are behind it.
    room: usize,
    behind: VecDeque<Completion>,
}

impl Unread {
    pub(super) fn new() -> Self {
        let filler = Completion { context: 0, end: End::Cancelled };
        Self { ring: Box::new([filler; PLACES]), read: 0, written: 0, room: PLACES, behind: VecDeque::new() }
    }

    /// Whether [`Self::put`] may be called.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.written.wrapping_sub(self.read) < self.room
    }

    /// How often it may be.
    #[inline(always)]
    pub(super) fn room(&self) -> usize {
        self.room.saturating_sub(self.written.wrapping_sub(self.read))
    }

    /// Append to a ring that has room.
    #[inline(always)]
    pub(super) fn put(&mut self, completion: Completion) {
        debug_assert!(self.has_room());
        self.ring[self.written % PLACES] = completion;
        self.written = self.written.wrapping_add(1);
    }

    /// [`Self::put`] of a receive that holds a message, which is written where it is to lie: more words than there are
    /// registers, put together first, would be written twice.
    #[inline(always)]
    pub(super) fn put_received(&mut self, context: u64, write: impl FnOnce(&mut Received)) {
        debug_assert!(self.has_room());
        let place = &mut self.ring[self.written % PLACES];
        place.context = context;
        write(received_in(&mut place.end));
        self.written = self.written.wrapping_add(1);
    }

    /// Append.
    #[inline]
    pub(super) fn push(&mut self, completion: Completion) {
        if self.has_room() {
            self.put(completion);
        } else {
            self.push_behind(completion);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_behind(&mut self, completion: Completion) {
        self.behind.push_back(completion);
        self.room = 0;
    }

    /// Take the oldest. It lies where it was until another is appended.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<&Completion> {
        let at = self.read;
        if at == self.written && (self.behind.is_empty() || !self.move_up()) {
            return None;
        }
        self.read = at.wrapping_add(1);
        Some(&self.ring[at % PLACES])
    }

    /// The ring is empty: fill it with those behind. Whether there are any.
    #[cold]
    #[inline(never)]
    fn move_up(&mut self) -> bool {
        let count = self.behind.len().min(PLACES);
        self.room = PLACES;
        for completion in self.behind.drain(..count) {
            self.ring[self.written % PLACES] = completion;
            self.written = self.written.wrapping_add(1);
        }
        if !self.behind.is_empty() {
            self.room = 0;
        }
        count > 0
    }

    /// All of them, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Completion> {
        let count = self.written.wrapping_sub(self.read);
        let in_ring = (0..count).map(|at| &self.ring[self.read.wrapping_add(at) % PLACES]);
        in_ring.chain(&self.behind)
    }

    pub(super) fn len(&self) -> usize {
        self.written.wrapping_sub(self.read) + self.behind.len()
    }

    /// Fill a slice, and say how much of it.
    pub(super) fn pop_into(&mut self, into: &mut [Completion]) -> usize {
        let mut count = 0;
        for place in into {
            let Some(completion) = self.pop() else { break };
            *place = *completion;
            count += 1;
        }
        count
    }
}

/// Room for a message: what lies there is old, and nearly always was one.
#[inline(always)]
fn received_in(end: &mut End) -> &mut Received {
    if !matches!(end, End::Received(_)) {
        *end = End::Received(Received::NOTHING);
    }
    match end {
        End::Received(received) => received,
        End::Cancelled | End::Failed { .. } | End::Released => unreachable!("it was made one"),
    }
}

/// A power of two: 4 KiB.
const PLACES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_first_comes_out_first_also_when_the_ring_is_full() {
        let mut unread = Unread::new();
        let (mut next_in, mut next_out) = (0_u64, 0_u64);
        for round in 0..3_000_u64 {
            for _ in 0..(round * 7) % 41 {
                unread.push(Completion { context: next_in, end: End::Cancelled });
                next_in += 1;
            }
            let mut piece = [Completion { context: 0, end: End::Cancelled }; 23];
            let count = if round % 5 == 0 {
                usize::from(unread.pop().inspect(|&&oldest| piece[0] = oldest).is_some())
            } else {
                let wanted = piece.len().min(usize::try_from(round % 24).unwrap());
                unread.pop_into(&mut piece[..wanted])
            };
            for completion in &piece[..count] {
                assert_eq!(completion.context, next_out);
                next_out += 1;
            }
            assert_eq!(unread.len() as u64, next_in - next_out);
        }
        while let Some(completion) = unread.pop() {
            assert_eq!(completion.context, next_out);
            next_out += 1;
        }
        assert_eq!(next_in, next_out);
        assert!(unread.has_room() && next_in > 50_000);
    }
}
