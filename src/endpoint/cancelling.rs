//! Which receives have a context: for cancels alone, which name one by it.
//!
//! Programs that never cancel pay nothing: the index is made by a cancel, from the receives that are pending, and kept up
//! as long as most of what is in it is pending still. So it is given up only after as many posts as it costs to make it.

use std::collections::{HashMap, VecDeque};

use slab::Slab;

use super::core::Receive;
use crate::offload::{Bug, is_planted};

/// See the module.
#[derive(Default)]
pub(super) struct Cancelling {
    index: Option<Index>,
}

/// Receives by context, the oldest first. Some of them may be over.
#[derive(Default)]
struct Index {
    of: HashMap<u64, VecDeque<(u64, usize)>>,
    /// Receives in it.
    count: usize,
}

impl Cancelling {
    /// This receive was posted.
    #[inline]
    pub(super) fn note(&mut self, key: usize, receives: &Slab<Receive>) {
        if self.index.is_some() {
            self.note_it(key, receives);
        }
    }

    #[cold]
    fn note_it(&mut self, key: usize, receives: &Slab<Receive>) {
        let (Some(index), Some(receive)) = (&mut self.index, receives.get(key)) else { return };
        // What it costs to make it is as much as there were receives at a time.
        if index.count > receives.len().saturating_mul(2).max(receives.capacity() / 8).max(COUNT_MIN) {
            self.index = None;
            return;
        }
        index.insert(receive.context, receive.order, key);
    }

    /// The oldest receive of this context that is posted. It is given out once.
    pub(super) fn oldest(&mut self, context: u64, receives: &Slab<Receive>) -> Option<Receive> {
        let index = self.index.get_or_insert_with(|| Index::new(receives));
        let queue = index.of.get_mut(&context)?;
        let mut found = None;
        while found.is_none()
            && let Some((order, key)) = queue.pop_front()
        {
            index.count -= 1;
            let is_it = |receive: &&Receive| receive.order == order || is_planted(Bug::StaleHandle);
            found = receives.get(key).filter(is_it).copied();
        }
        // A context may never come again: nothing stays of one that has no receives.
        if queue.is_empty() {
            index.of.remove(&context);
        }
        found
    }
}

impl Index {
    fn new(receives: &Slab<Receive>) -> Self {
        let posted = receives.iter().filter(|(_, receive)| receive.posted.is_some());
        let mut all: Vec<_> = posted.map(|(key, receive)| (receive.order, receive.context, key)).collect();
        all.sort_unstable();
        let mut index = Self::default();
        for (order, context, key) in all {
            index.insert(context, order, key);
        }
        index
    }

    fn insert(&mut self, context: u64, order: u64, key: usize) {
        self.count += 1;
        self.of.entry(context).or_default().push_back((order, key));
    }
}

/// An index of at most so many is kept in any case.
const COUNT_MIN: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Space;
    use crate::ids::ReceiveId;

    fn post(receives: &mut Slab<Receive>, context: u64) -> usize {
        let posted = Some(ReceiveId::new(0, 0));
        let (space, order) = (Space::Tagged, context);
        receives.insert(Receive { context, flags: 0, space, is_multi: false, order, posted })
    }

    #[test]
    fn nothing_stays_of_contexts_that_do_not_come_again_whether_cancelled_or_received() {
        let (mut cancelling, mut receives) = (Cancelling::default(), Slab::new());
        assert!(cancelling.oldest(0, &receives).is_none());
        for context in 1..10_000 {
            let key = post(&mut receives, context);
            cancelling.note(key, &receives);
            if context % 3 > 0 {
                let found = cancelling.oldest(context, &receives).map(|receive| receive.context);
                assert_eq!(found, Some(context));
                assert!(cancelling.oldest(context, &receives).is_none(), "it is given out once");
            }
            receives.remove(key);
            let index = cancelling.index.as_ref();
            assert!(index.is_none_or(|index| index.of.len() <= COUNT_MIN + 1), "{context}");
        }
    }
}
