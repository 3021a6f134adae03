//! Who may still go down: per device, the receives not yet looked at, in post order, and those that wait for
//! something that stood in their way.
//!
//! Each tracked receive is looked at once, when the device has room for it and everything older has been looked
//! at. If something older stands in its way it waits for exactly that one, and is looked at again when that one
//! is out of the way. So nothing is looked at twice for nothing, and offload resumes by itself.
//!
//! Not here: what stands in whose way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The queue of one device. Records are named by their index in the mirror.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    tracks: Vec<Track>,
    head: Option<u32>,
    tail: Option<u32>,
    again: BinaryHeap<Reverse<(u64, u32)>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Track {
    stage: Stage,
    older: Option<u32>,
    newer: Option<u32>,
    /// Waits for this one.
    waits_for: Option<u32>,
    /// First of those that wait for it; they are chained by `older`/`newer`.
    first_waiter: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    /// Not a candidate.
    #[default]
    Out,
    /// Not yet looked at.
    Fresh,
    /// To be looked at again.
    Again,
    /// Waits for another.
    Waiting,
}

/// A candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Candidate {
    pub(crate) record: usize,
    /// It has been looked at before.
    pub(crate) again: bool,
}

impl Queue {
    /// A receive was posted.
    pub(crate) fn push(&mut self, record: usize) {
        let me = self.reach(record);
        let older = self.tail;
        self.tracks[record] = Track { stage: Stage::Fresh, older, first_waiter: None, ..Track::default() };
        match older {
            Some(older) => self.tracks[older as usize].newer = Some(me),
            None => self.head = Some(me),
        }
        self.tail = Some(me);
    }

    /// There are no candidates. (Entries of the heap may be stale; then the slower answer is right as well.)
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_none() && self.again.is_empty()
    }

    /// The next candidate, oldest first. It stays until it is taken out, made to wait, or asked again.
    pub(crate) fn first(&mut self) -> Option<Candidate> {
        // What is looked at again is older than everything not yet looked at.
        while let Some(&Reverse((_, record))) = self.again.peek() {
            let record = record as usize;
            if self.tracks[record].stage == Stage::Again {
                return Some(Candidate { record, again: true });
            }
            self.again.pop();
        }
        self.head.map(|head| Candidate { record: head as usize, again: false })
    }

    /// It is no candidate (any more).
    pub(crate) fn take_out(&mut self, record: usize) {
        let Some(track) = self.tracks.get(record).copied() else { return };
        match track.stage {
            Stage::Out => {}
            Stage::Fresh => self.unchain(track, None),
            Stage::Waiting => self.unchain(track, track.waits_for),
            Stage::Again => {
                if self.again.peek().is_some_and(|Reverse((_, top))| *top as usize == record) {
                    self.again.pop();
                }
            }
        }
        let track = &mut self.tracks[record];
        *track = Track { first_waiter: track.first_waiter, ..Track::default() };
    }

    /// It waits until `other` is out of the way.
    pub(crate) fn wait_for(&mut self, record: usize, other: usize) {
        self.take_out(record);
        let me = self.reach(record);
        let you = self.reach(other);
        let next = self.tracks[other].first_waiter;
        if let Some(next) = next {
            self.tracks[next as usize].older = Some(me);
        }
        let track = &mut self.tracks[record];
        (track.stage, track.waits_for, track.older, track.newer) = (Stage::Waiting, Some(you), None, next);
        self.tracks[other].first_waiter = Some(me);
    }

    /// `record` is out of the way: those that waited for it are candidates again. `sequence` tells their age.
    pub(crate) fn wake(&mut self, record: usize, sequence: impl Fn(usize) -> u64) {
        let Some(mut next) = self.tracks.get_mut(record).and_then(|track| track.first_waiter.take()) else {
            return;
        };
        loop {
            let waiter = next as usize;
            let behind = self.tracks[waiter].newer;
            self.ask_again_unchained(waiter, sequence(waiter));
            let Some(behind) = behind else { return };
            next = behind;
        }
    }

    /// It is a candidate again.
    pub(crate) fn ask_again(&mut self, record: usize, sequence: u64) {
        self.take_out(record);
        self.ask_again_unchained(record, sequence);
    }

    fn ask_again_unchained(&mut self, record: usize, sequence: u64) {
        let me = self.reach(record);
        let track = &mut self.tracks[record];
        let first_waiter = track.first_waiter;
        *track = Track { stage: Stage::Again, first_waiter, ..Track::default() };
        // A stale entry of an earlier turn may be left; it is harmless, since the stage decides.
        self.again.push(Reverse((sequence, me)));
    }

    fn unchain(&mut self, track: Track, holder: Option<u32>) {
        match (track.older, holder) {
            (Some(older), _) => self.tracks[older as usize].newer = track.newer,
            (None, Some(holder)) => self.tracks[holder as usize].first_waiter = track.newer,
            (None, None) => self.head = track.newer,
        }
        match (track.newer, holder) {
            (Some(newer), _) => self.tracks[newer as usize].older = track.older,
            (None, Some(_)) => {}
            (None, None) => self.tail = track.older,
        }
    }

    fn reach(&mut self, record: usize) -> u32 {
        if self.tracks.len() <= record {
            self.tracks.resize(record + 1, Track::default());
        }
        u32::try_from(record).unwrap_or(u32::MAX)
    }

    /// Where a record stands, for counting states: stage and whom it waits for.
    pub(crate) fn standing(&self, record: usize) -> (u64, Option<usize>) {
        self.tracks
            .get(record)
            .map_or((0, None), |track| (track.stage as u64, track.waits_for.map(|other| other as usize)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queue: &mut Queue) -> Vec<usize> {
        std::iter::from_fn(|| {
            let first = queue.first()?;
            queue.take_out(first.record);
            Some(first.record)
        })
        .collect()
    }

    #[test]
    fn candidates_come_in_post_order_and_leave_from_anywhere() {
        let mut queue = Queue::default();
        for record in 0..6 {
            queue.push(record);
        }
        for gone in [0, 3, 5] {
            queue.take_out(gone);
        }
        queue.push(3);
        assert_eq!(drain(&mut queue), [1, 2, 4, 3]);
        assert_eq!(queue.first(), None);
    }

    #[test]
    fn waiters_come_again_oldest_first_and_before_the_fresh() {
        let mut queue = Queue::default();
        for record in 0..6 {
            queue.push(record);
        }
        queue.take_out(0);
        for waiter in [3, 1, 2] {
            queue.wait_for(waiter, 0);
        }
        queue.take_out(2);
        queue.wake(0, |record| record as u64);
        assert_eq!(queue.first(), Some(Candidate { record: 1, again: true }));
        assert_eq!(drain(&mut queue), [1, 3, 4, 5]);
    }

    #[test]
    fn an_old_entry_of_the_heap_does_not_bring_a_record_back() {
        let mut queue = Queue::default();
        queue.push(0);
        queue.push(1);
        queue.ask_again(1, 1);
        queue.ask_again(0, 0);
        queue.take_out(1);
        assert_eq!(drain(&mut queue), [0]);
    }
}
