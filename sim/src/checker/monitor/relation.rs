//! Operations that can still matter, and which of them are known to be placed before which.
//!
//! An operation is forgotten as soon as nothing new can be found to be before it: all that was known to be before
//! it is then also known to be before whatever it was before itself, since every set here is closed under
//! "before". That keeps the relation small, and equal for runs with equal futures.
//!
//! Not here: which rule makes what come before what.

use tagmatch::matching::Envelope;

use super::mask::Mask;
use super::{Monitor, Name};
use crate::checker::violation::{Fault, Rule};

/// An arrival or a cancel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Operation {
    pub(super) name: Name,
    pub(super) stage: Stage,
    /// The message, unless this is a cancel.
    pub(super) arrival: Option<Arrival>,
    /// All that is known to be placed before it. Closed.
    pub(super) before: Mask,
    /// Of a pending arrival: what is before it if it turns out unexpected. Of a pending cancel: what is before it if
    /// it succeeds. Closed together with `before`, which it has no slot in common with.
    pub(super) condition: Mask,
}

/// What an arrival brought.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Arrival {
    pub(super) envelope: Envelope,
    pub(super) sent: u32,
    pub(super) path: u8,
    /// Its peer is lost: it may never be decided.
    pub(super) lost: bool,
}

/// How far an operation is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stage {
    /// It has begun.
    Pending,
    /// It has ended: a message on the unexpected list.
    Listed,
    /// It has ended. It stays as long as it waits for the removal of a receive that must be before it.
    Ended,
    /// A cancel which failed and waits so, and was called once more. That it fails again is all there is to it.
    Again,
}

impl Operation {
    pub(super) fn is_pending(&self) -> bool {
        self.stage == Stage::Pending
    }
}

impl Monitor {
    /// Adds an operation which begins now. Slots are in the order of names, whatever came first.
    pub(super) fn begin(&mut self, name: Name, arrival: Option<Arrival>, before: Mask) {
        let slot = self.operations.partition_point(|operation| operation.name < name);
        let condition = Mask::default();
        let operation = Operation { name, stage: Stage::Pending, arrival, before, condition };
        self.operations.insert(slot, operation);
        self.each_mask(|mask| mask.open(slot));
    }

    /// Ends an operation: it was placed before now.
    pub(super) fn end(&mut self, slot: usize, stage: Stage) {
        let operation = &mut self.operations[slot];
        operation.stage = stage;
        operation.condition.clear();
        let placed = self.up_to(slot);
        self.settled.union(&placed);
    }

    /// It and all that is before it.
    pub(super) fn up_to(&self, slot: usize) -> Mask {
        let mut mask = self.operations[slot].before.clone();
        mask.insert(slot);
        mask
    }

    /// Notes that all of `earlier` (a closed set) is placed before `later`.
    pub(super) fn require(&mut self, earlier: &Mask, later: usize, rule: Rule) -> Result<(), Fault> {
        if earlier.is_subset(&self.operations[later].before) {
            return Ok(());
        }
        if earlier.contains(later) {
            return Err(self.circle(earlier, later, rule));
        }
        for (slot, operation) in self.operations.iter_mut().enumerate() {
            if slot == later || operation.before.contains(later) {
                operation.before.union(earlier);
            }
        }
        self.each_outer_mask(|mask| {
            if mask.contains(later) {
                mask.union(earlier);
            }
        });
        Ok(())
    }

    fn circle(&self, earlier: &Mask, later: usize, rule: Rule) -> Fault {
        let on_it = |slot: &usize| *slot == later || self.operations[*slot].before.contains(later);
        let candidates = earlier.iter().filter(on_it).map(|slot| self.operations[slot].name).collect();
        Fault { rule, candidates }
    }

    /// Forgets whatever cannot matter any more.
    pub(super) fn forget(&mut self) {
        let mut owed = Mask::default();
        for receive in self.receives.iter().filter(|receive| !receive.owed.is_empty()) {
            owed.union(&receive.owed);
        }
        // From the last on: the slots below stay what they are.
        for slot in (0..self.operations.len()).rev() {
            let operation = &self.operations[slot];
            let is_over = matches!(operation.stage, Stage::Ended | Stage::Again);
            if is_over && !owed.contains(slot) {
                if operation.stage == Stage::Again {
                    self.operations[slot].stage = Stage::Pending;
                } else {
                    self.drop_operation(slot);
                }
            }
        }
        for operation in &mut self.operations {
            if !operation.condition.is_empty() {
                operation.condition.subtract(&operation.before);
            }
        }
        self.forget_receives();
        let operations = &self.operations;
        self.predecessors.retain(|past| {
            operations.iter().any(|operation| {
                operation.is_pending()
                    && !past.up_to.is_subset(&operation.before)
                    && operation.arrival.as_ref().is_some_and(|next| past.is_ahead_of(next))
            })
        });
        for sender in &mut self.senders {
            sender.overtakers.retain(|overtaker| overtaker.sent > sender.next);
        }
    }

    /// What is before a receive's post, or before its removal, matters to pending operations only.
    fn forget_receives(&mut self) {
        let (operations, groups) = (&self.operations, &self.groups);
        self.receives.retain_mut(|receive| {
            let matters = !receive.after.is_empty()
                && operations.iter().any(|operation| {
                    operation.is_pending()
                        && !receive.after.is_subset(&operation.before)
                        && match &operation.arrival {
                            Some(arrival) => groups.fits(&receive.pattern, &arrival.envelope),
                            None => operation.name == Name::Cancel(receive.name),
                        }
                });
            if !matters {
                receive.after.clear();
            }
            matters || !receive.is_removed
        });
    }

    pub(super) fn drop_operation(&mut self, slot: usize) {
        self.operations.remove(slot);
        self.each_mask(|mask| mask.close(slot));
    }

    /// Every set of operations but those which an operation has itself.
    fn each_outer_mask(&mut self, mut change: impl FnMut(&mut Mask)) {
        change(&mut self.settled);
        for receive in &mut self.receives {
            change(&mut receive.after);
        }
        for past in &mut self.predecessors {
            change(&mut past.up_to);
        }
        for operation in &mut self.operations {
            change(&mut operation.condition);
        }
    }

    fn each_mask(&mut self, mut change: impl FnMut(&mut Mask)) {
        self.each_outer_mask(&mut change);
        for receive in &mut self.receives {
            change(&mut receive.owed);
        }
        for operation in &mut self.operations {
            change(&mut operation.before);
        }
    }
}
