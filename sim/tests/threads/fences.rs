//! Fences that can be switched off, to see that a model finds what is wrong then.

use std::cell::Cell;

use loom::sync::atomic::Ordering;

thread_local! {
    /// All threads of a model are run by one.
    static ARE_THERE: Cell<bool> = const { Cell::new(true) };
}

/// Run without fences.
pub(crate) fn without(model: &impl Fn()) {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            ARE_THERE.set(true);
        }
    }
    let _restore = Restore;
    ARE_THERE.set(false);
    model();
}

pub(crate) fn fence(order: Ordering) {
    if ARE_THERE.get() {
        loom::sync::atomic::fence(order);
    }
}
