//! What threads and processes share, in every order of their steps and with every memory order that the language allows: loom
//! runs it. The sources are the library's own files; only the primitives under them are loom's (decision 0046).
//!
//! Each model is run without the fences as well, and must fail then: else it would show nothing.

#[path = "threads/device/mod.rs"]
mod device;
#[allow(dead_code, unreachable_pub, reason = "it is the library's")]
#[path = "../../src/domain/owner.rs"]
mod owner;
#[path = "threads/owner.rs"]
mod owners;
#[path = "threads/sync.rs"]
mod sync;

use std::sync::atomic::Ordering;

// What the owner lock sees above it.
use tagmatch::domain::{Domain, Handle, NotPosted, Posted, Refusal};

/// Every order of at most so many preemptions; `None`: of any number.
fn explore(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 10_000;
    builder.check(model);
}

/// The same without fences of this order: some order of steps is wrong.
fn fails_without_fences(
    order: Ordering,
    preemptions: Option<usize>,
    model: impl Fn() + Sync + Send + 'static,
) {
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        explore(preemptions, move || sync::without_fences(order, &model));
    }));
    assert!(failed.is_err(), "nothing was found without the fences");
}
