//! Receives that the device was to hold and does not, since their memory cannot be registered: the limit of locked memory
//! is reached, or it is no memory.
//!
//! To the engine they are in the list, as entries that the device has not made active yet. What fits them comes
//! unexpected, and then the engine takes them back, as it does whenever a message crosses the ADD of its receive. Two
//! things make it so. Of what overlaps such a receive nothing that comes later goes into the list, else the device would
//! match it first. And for each operation on one a SYNC goes down in its place, so that counts, slots and the order of
//! completions are those that the engine knows of.
//!
//! Not here: registering, and the list.

use std::collections::{HashMap, VecDeque};

use crate::ids::{Ignore, Tag, TagHandle};
use crate::seam::{Command, Event, Operation, OperationDone};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Unlisted {
    entries: HashMap<TagHandle, (Tag, Ignore)>,
    /// Of which operation each completion of a SYNC is to tell, oldest first.
    due: VecDeque<Operation>,
    /// The count that went down last.
    count: u16,
    /// Those of which it is not told yet that the list does without them, and whether for an older one.
    set_aside: VecDeque<(TagHandle, bool)>,
    /// Given up without a completion, and not told yet.
    released: VecDeque<TagHandle>,
}

impl Unlisted {
    /// Whether the list must do without this receive, as it does without what it overlaps.
    pub(super) fn stands_aside(&self, handle: TagHandle, tag: Tag, ignore: Ignore) -> bool {
        let is_overlapped = |(other, its): &(Tag, Ignore)| (tag.0 ^ other.0) & !(ignore.0 | its.0) == 0;
        !self.entries.is_empty()
            && (self.entries.contains_key(&handle) || self.entries.values().any(is_overlapped))
    }

    /// The list does without this receive, for an older one or since it is not registered.
    pub(super) fn keep(&mut self, handle: TagHandle, tag: Tag, ignore: Ignore, overlaps: bool) {
        if self.entries.insert(handle, (tag, ignore)).is_none() {
            self.set_aside.push_back((handle, overlaps));
        }
    }

    /// What goes down for an operation on the list. `count`: the one that goes down before it.
    pub(super) fn in_place_of(&self, command: &Command, count: &mut u16) -> Command {
        match *command {
            Command::Add { handle, unexpected_count, signalled, .. } => {
                *count = unexpected_count;
                let is_here = self.entries.contains_key(&handle);
                if is_here { Command::Sync { unexpected_count, signalled } } else { *command }
            }
            Command::Del { handle, signalled } if self.entries.contains_key(&handle) => {
                Command::Sync { unexpected_count: *count, signalled }
            }
            Command::Sync { unexpected_count, .. } => {
                *count = unexpected_count;
                *command
            }
            Command::Del { .. }
            | Command::Receive { .. }
            | Command::Answer { .. }
            | Command::Read { .. }
            | Command::Copy { .. } => *command,
        }
    }

    /// The device took an operation, or what went down in its place.
    pub(super) fn taken(&mut self, command: &Command) {
        let (operation, is_signalled) = match *command {
            Command::Add { handle, unexpected_count, signalled, .. } => {
                self.count = unexpected_count;
                if !self.entries.contains_key(&handle) {
                    return;
                }
                (Operation::Add(handle), signalled)
            }
            Command::Del { handle, signalled } if self.entries.contains_key(&handle) => {
                if !signalled {
                    // Such a DEL is taken for a success at once.
                    self.entries.remove(&handle);
                    self.released.push_back(handle);
                }
                (Operation::Del(handle), signalled)
            }
            Command::Sync { unexpected_count, signalled } => {
                self.count = unexpected_count;
                (Operation::Sync, signalled)
            }
            Command::Del { .. }
            | Command::Receive { .. }
            | Command::Answer { .. }
            | Command::Read { .. }
            | Command::Copy { .. } => return,
        };
        if is_signalled {
            self.due.push_back(operation);
        }
    }

    /// The count that went down last.
    pub(super) const fn count(&self) -> u16 {
        self.count
    }

    /// An ADD went down with this count.
    pub(super) const fn set_count(&mut self, count: u16) {
        self.count = count;
    }

    /// What a completion is to be told as.
    pub(super) fn completed(&mut self, done: OperationDone) -> OperationDone {
        let is_sync = matches!(done.operation, Operation::Sync);
        let Some(operation) = is_sync.then(|| self.due.pop_front()).flatten() else { return done };
        if let Operation::Del(handle) = operation {
            self.entries.remove(&handle);
            self.released.push_back(handle);
        }
        OperationDone { operation, ..done }
    }

    /// What is to be told: that the list does without one, or that nobody holds one any more.
    pub(super) fn poll(&mut self) -> Option<Event> {
        if let Some((handle, overlaps)) = self.set_aside.pop_front() {
            return Some(Event::SetAside { handle, overlaps });
        }
        self.released.pop_front().map(Event::Released)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
