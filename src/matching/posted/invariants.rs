//! What is always true of a list of posted receives, for tests.

use super::PostedList;
use crate::matching::receive::{DENSE, UNCLASSED};
use crate::matching::store::NO_SLOT;

impl<R: Copy> PostedList<R> {
    /// The invariants of this file, asserted.
    pub(in crate::matching) fn check(&self) {
        self.store.check(|receive| receive.home() == DENSE);
        let mut in_classes = 0usize;
        for (number, class) in self.classes.iter().enumerate() {
            let cells = class.table.check();
            let mut count = 0;
            for (fragment, head) in cells {
                let mut slot = head;
                let mut last = 0;
                assert!(self.store.at(head).link.is_head());
                loop {
                    let receive = self.store.at(slot);
                    assert_eq!(receive.home(), number + 1);
                    assert_eq!(receive.fragment | 1 << 31, fragment);
                    assert_eq!((receive.mask, receive.wanted().kind()), (class.mask, class.kind));
                    assert!(receive.sequence > last);
                    last = receive.sequence;
                    count += 1;
                    slot = receive.link.next();
                    if slot == head {
                        break;
                    }
                }
            }
            assert_eq!(count != 0, self.occupied & (1 << number) != 0);
            in_classes += count;
        }
        let unclassed = self.store.in_order(|receive| receive.home() == UNCLASSED);
        assert_eq!(unclassed.first().map_or(NO_SLOT, |(_, slot)| *slot), self.unclassed);
        assert_eq!(in_classes + unclassed.len(), self.store.indexed() as usize);
    }
}
