//! Waiting: who is woken by what, and what a waiter must not miss.

use std::sync::Arc;

use super::*;
use crate::provider::error::fail;
use crate::provider::wait::WaitSet;

fn state_with_a_queue() -> (State, usize) {
    let mut state = State::default();
    let set = Arc::new(WaitSet::new().unwrap());
    let index = state.queues.insert(Queue::new(1, Some(set)));
    (state, index)
}

/// As a queue's reader waits.
fn may_wait(state: &mut State, index: usize) -> bool {
    state.may_wait(Target::Queue(index), |state| state.queues.get(index).is_none_or(|q| !q.is_empty()))
}

#[test]
fn a_signal_forbids_waiting_until_somebody_takes_it() {
    let (mut state, index) = state_with_a_queue();
    assert!(may_wait(&mut state, index));
    state.queue(index).unwrap().waiting.signal();
    assert!(!may_wait(&mut state, index));
    assert!(!may_wait(&mut state, index), "the question alone took the signal");
    assert!(state.queue(index).unwrap().waiting.take_signal());
    assert!(may_wait(&mut state, index));
}

#[test]
fn a_queue_that_is_gone_is_not_waited_for() {
    let mut state = State::default();
    assert!(!may_wait(&mut state, 7));
    assert_eq!(state.read(7, 1, |_, _| {}), fail(abi::FI_EINVAL));
}
