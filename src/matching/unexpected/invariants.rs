//! What is always true of a list of unexpected messages, for tests.

use super::UnexpectedList;
use crate::matching::class::{Groups, fragment};
use crate::matching::fifo::Link;
use crate::matching::message::DENSE;

impl<M: Copy> UnexpectedList<M> {
    /// The invariants of this file, asserted.
    pub(in crate::matching) fn check(&mut self, groups: &Groups) {
        self.store.check(|message| message.state == DENSE);
        for number in 0..self.classes.len() {
            let class = &self.classes[number];
            assert_eq!(class.is_live, self.live & (1 << number) != 0);
            let (mask, kind) = (class.mask, class.kind);
            let cells = class.table.check();
            if !class.is_live {
                assert_eq!(cells.len(), 0);
                continue;
            }
            let mut count = 0;
            for (hash, head) in cells {
                let first = self.store.at(head).envelope();
                let key = self.classes[number].key_of(first.tag.0, first.source.0, groups);
                assert_eq!(fragment(self.hasher, key) | 1 << 31, hash);
                let mut slot = head;
                let mut last = 0;
                loop {
                    let message = self.store.at(slot);
                    assert!(message.is_indexed() && message.has_key(mask, kind, key, groups));
                    assert!(message.sequence > last);
                    last = message.sequence;
                    count += 1;
                    let is_alone = message.is_alone(1 << number);
                    let link =
                        if is_alone { Link::alone(slot) } else { *self.links[number].at(slot as usize) };
                    assert_eq!(link.is_head(), slot == head);
                    slot = link.next();
                    if slot == head {
                        break;
                    }
                }
            }
            assert_eq!(count, self.store.indexed());
        }
    }
}
