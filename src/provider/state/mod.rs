//! Everything of a domain that calls change: one value, one call at a time.
//!
//! Objects of the application know their place here by an index. Not here: their memory and their calls.

pub(in crate::provider) mod completion;
pub(in crate::provider) mod counter;
pub(in crate::provider) mod endpoint;
pub(in crate::provider) mod events;
pub(in crate::provider) mod marks;
pub(in crate::provider) mod queue;
pub(in crate::provider) mod region;
pub(in crate::provider) mod remote;
pub(in crate::provider) mod transfer;
pub(in crate::provider) mod vector;

#[cfg(test)]
mod tests;

use std::time::Duration;

use slab::Slab;

use self::completion::Places;
use self::counter::Counter;
use self::endpoint::EndpointState;
use self::queue::{Queue, Waiting};
use self::region::{Bound, Regions};
use self::vector::Vector;
use super::abi;
use super::clock::now;
use super::error::{Code, Outcome, code};
use super::statistics::Publisher;
use super::turn::NoWork;
use crate::domain::Handle;
use crate::endpoint::{Address, Endpoint};
use crate::seam::Segment;

/// See the file.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) endpoints: Slab<EndpointState>,
    pub(super) queues: Slab<Queue>,
    pub(super) counters: Slab<Counter>,
    pub(super) vectors: Slab<Vector>,
    pub(super) regions: Regions,
    /// The io vectors of operations in progress, and whose they are. (Vectors, since boxes must not move while others read
    /// them.)
    segments: Slab<(usize, Vec<Segment>)>,
    /// The thread of automatic progress, if there is one.
    pub(super) automatic: Waiting,
    /// Some of those that can be waited for may be armed.
    may_be_armed: bool,
    /// Some endpoint has said that it failed.
    has_failed: bool,
    /// Shows the counters of all endpoints to who asks from outside.
    pub(super) publisher: Option<Publisher>,
}

/// A queue or a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    Queue(usize),
    Counter(usize),
}

impl State {
    /// Move an endpoint on, and report what it says.
    #[inline]
    pub(super) fn progress(&mut self, index: usize, now: Duration) -> usize {
        let Some(state) = self.endpoints.get_mut(index) else { return 0 };
        let Some(endpoint) = &mut state.endpoint else { return 0 };
        let was_failed = endpoint.failure().is_some();
        // What ended with a transport that failed is reported below; whoever wants more is told of the failure.
        let moved = endpoint.progress(now);
        self.report(index);
        if self.publisher.as_ref().is_some_and(|publisher| publisher.is_due(now)) {
            self.publish(now);
        }
        if moved.is_err() {
            self.has_failed = true;
            if !was_failed {
                self.tell_waiting(index);
            }
        }
        moved.unwrap_or_default()
    }

    /// Report what an endpoint has to say: completions, then what became of its connection.
    #[inline]
    pub(super) fn report(&mut self, index: usize) {
        let Some(state) = self.endpoints.get_mut(index) else { return };
        let mut places = Places {
            queues: &mut self.queues,
            counters: &mut self.counters,
            vectors: &mut self.segments,
            regions: &self.regions,
        };
        while let Some(completion) = state.endpoint.as_mut().and_then(Endpoint::poll_completion) {
            places.handle(state, &completion);
        }
        if state.connection.is_some() {
            state.report_connection();
        }
    }

    /// Nothing more will come to a queue or a counter through an endpoint that failed.
    ///
    /// # Errors
    /// There is such an endpoint: its failure.
    pub(super) fn check_alive(&self, target: Target) -> Outcome<()> {
        let endpoints = self.endpoints_of(target).iter().filter_map(|index| self.endpoints.get(*index));
        match endpoints.filter_map(|state| state.endpoint.as_ref()?.failure()).next() {
            Some(failure) => Err(failure.clone().into()),
            None => Ok(()),
        }
    }

    #[cold]
    fn publish(&mut self, now: Duration) {
        if let Some(publisher) = &mut self.publisher {
            let endpoints = self.endpoints.iter().filter_map(|(_, state)| state.endpoint.as_ref());
            publisher.publish(now, endpoints);
        }
    }

    /// Move all endpoints on.
    pub(super) fn progress_all(&mut self) {
        let now = now();
        let mut next = 0;
        while let Some(index) = self.endpoints.iter().map(|(index, _)| index).find(|index| *index >= next) {
            self.progress(index, now);
            next = index + 1;
        }
    }

    /// Move all endpoints of a queue or a counter on.
    #[inline]
    pub(super) fn progress_target(&mut self, target: Target) -> usize {
        let now = now();
        let mut moved = 0;
        let mut place = 0;
        while let Some(index) = self.endpoints_of(target).get(place).copied() {
            moved += self.progress(index, now);
            // Others may wait for the same endpoint.
            self.tell_waiting(index);
            place += 1;
        }
        moved
    }

    #[inline]
    fn endpoints_of(&self, target: Target) -> &[usize] {
        match target {
            Target::Queue(index) => self.queues.get(index).map_or(&[], |queue| &queue.endpoints),
            Target::Counter(index) => self.counters.get(index).map_or(&[], |counter| &counter.endpoints),
        }
    }

    fn waiting(&mut self, target: Target) -> Option<&mut Waiting> {
        match target {
            Target::Queue(index) => self.queues.get_mut(index).map(|queue| &mut queue.waiting),
            Target::Counter(index) => self.counters.get_mut(index).map(|counter| &mut counter.waiting),
        }
    }

    /// Read a queue (`fi_cq_read(3)`): what is there, else what progress brings. Whoever asks for no entry wants progress
    /// alone.
    ///
    /// # Errors
    /// As [`Queue::read`]; of an endpoint that failed, when nothing is left, its failure.
    #[inline]
    pub(super) fn read(
        &mut self,
        index: usize,
        count: usize,
        take: impl FnMut(usize, &queue::Entry),
    ) -> Outcome<usize> {
        if self.queue(index)?.is_empty() || count == 0 {
            self.progress_target(Target::Queue(index));
        }
        let read = self.queue(index)?.read(count, take);
        if read.is_err() && self.has_failed && self.queue(index)?.is_empty() {
            self.check_alive(Target::Queue(index))?;
        }
        read
    }

    /// Read an error of a queue.
    ///
    /// # Errors
    /// As [`Queue::read_error`].
    pub(super) fn read_error(&mut self, index: usize) -> Outcome<queue::Entry> {
        if self.queue(index)?.is_empty() {
            self.progress_target(Target::Queue(index));
        }
        self.queue(index)?.read_error()
    }

    #[inline]
    pub(super) fn queue(&mut self, index: usize) -> Outcome<&mut Queue> {
        self.queues.get_mut(index).ok_or(GONE)
    }

    #[inline]
    pub(super) fn endpoint(&mut self, index: usize) -> Outcome<&mut EndpointState> {
        self.endpoints.get_mut(index).ok_or(GONE)
    }

    pub(super) fn counter(&mut self, index: usize) -> Outcome<&mut Counter> {
        self.counters.get_mut(index).ok_or(GONE)
    }

    /// In how many poll sets it is.
    pub(super) fn sets(&mut self, target: Target) -> Outcome<&mut usize> {
        match target {
            Target::Queue(index) => Ok(&mut self.queue(index)?.sets),
            Target::Counter(index) => Ok(&mut self.counter(index)?.sets),
        }
    }

    /// Take a queue or a counter out.
    ///
    /// # Errors
    /// `FI_EBUSY`: an endpoint or a memory region is bound to it, or it is in a poll set.
    pub(super) fn remove_target(&mut self, target: Target) -> Outcome<()> {
        let is_held = match target {
            Target::Queue(_) => false,
            Target::Counter(index) => {
                self.regions.hold(|bound| matches!(bound, Bound::Counter(counter, _) if *counter == index))
            }
        };
        // Counters of regions move on endpoints that are not bound to them.
        let is_bound = |index: &usize| {
            self.endpoints.get(*index).is_some_and(|state| match target {
                Target::Queue(queue) => state.queues().any(|bound| bound == queue),
                Target::Counter(counter) => state.counters().any(|bound| bound == counter),
            })
        };
        let is_held = is_held || self.endpoints_of(target).iter().any(is_bound);
        if is_held || *self.sets(target)? > 0 {
            return Err(code(abi::FI_EBUSY));
        }
        match target {
            Target::Queue(index) => drop(self.queues.try_remove(index)),
            Target::Counter(index) => drop(self.counters.try_remove(index)),
        }
        Ok(())
    }

    pub(super) fn vector(&mut self, index: usize) -> Outcome<&mut Vector> {
        self.vectors.get_mut(index).ok_or(GONE)
    }

    /// Whether an endpoint may be closed.
    ///
    /// # Errors
    /// `FI_EBUSY`: a memory region is bound to it.
    pub(super) fn may_close(&self, index: usize) -> Outcome<()> {
        if self.regions.hold(|bound| *bound == Bound::Endpoint(index)) {
            Err(code(abi::FI_EBUSY))
        } else {
            Ok(())
        }
    }

    /// Take an endpoint out: its transports let go of all memory. Nothing comes to its queues and counters any more.
    ///
    /// # Errors
    /// It is not there, or [`Self::may_close`] says so.
    pub(super) fn remove_endpoint(&mut self, index: usize) -> Outcome<()> {
        self.may_close(index)?;
        let gone = self.endpoints.try_remove(index).ok_or(GONE)?;
        if let (Some(publisher), Some(endpoint)) = (&mut self.publisher, &gone.endpoint) {
            publisher.keep(endpoint);
        }
        // The transports first, then what they read from.
        drop(gone);
        self.segments.retain(|_, (owner, _)| *owner != index);
        let stays = |other: &usize| *other != index;
        for (_, queue) in &mut self.queues {
            queue.endpoints.retain(stays);
        }
        for (_, counter) in &mut self.counters {
            counter.endpoints.retain(stays);
        }
        for (_, vector) in &mut self.vectors {
            vector.endpoints.retain(stays);
        }
        Ok(())
    }

    /// Whether one may wait for a queue or a counter (`fi_trywait(3)`): there is nothing, and nothing to be done for
    /// it. From then on whoever brings something wakes.
    pub(super) fn may_wait(&mut self, target: Target, is_done: impl Fn(&Self) -> bool) -> bool {
        self.progress_target(target);
        if is_done(self) {
            return false;
        }
        let mut deadline: Option<Duration> = None;
        let mut place = 0;
        while let Some(index) = self.endpoints_of(target).get(place).copied() {
            place += 1;
            let Some(endpoint) = self.endpoints.get_mut(index).and_then(|state| state.endpoint.as_mut())
            else {
                continue;
            };
            if !endpoint.may_wait() {
                // Whoever sees what has come takes the wake-up for it, which others were to have who wait already.
                self.tell_waiting(index);
                return false;
            }
            deadline = deadline.into_iter().chain(endpoint.next_deadline()).min();
        }
        let Some(waiting) = self.waiting(target) else { return false };
        // Whoever waits takes the signal; others ask the same question.
        if waiting.is_signalled() {
            return false;
        }
        waiting.arm(deadline);
        self.may_be_armed = true;
        true
    }

    /// After an operation, and after progress for somebody else: whoever waits for this endpoint must look again if there
    /// is something to do now, or earlier than he would look. (What was read from a descriptor does not show there any
    /// more.)
    #[inline]
    pub(super) fn tell_waiting(&mut self, index: usize) {
        if self.may_be_armed {
            self.tell_armed(index);
        }
    }

    fn tell_armed(&mut self, index: usize) {
        let Some(state) = self.endpoints.get_mut(index) else { return };
        let is_awaited = self.automatic.is_armed()
            || state.queues().any(|queue| self.queues.get(queue).is_some_and(|q| q.waiting.is_armed()))
            || state
                .counters()
                .any(|counter| self.counters.get(counter).is_some_and(|c| c.waiting.is_armed()));
        if is_awaited {
            self.wake_waiting(index);
        }
        self.may_be_armed = self.automatic.is_armed()
            || self.queues.iter().any(|(_, queue)| queue.waiting.is_armed())
            || self.counters.iter().any(|(_, counter)| counter.waiting.is_armed());
    }

    fn wake_waiting(&mut self, index: usize) {
        let Some(state) = self.endpoints.get_mut(index) else { return };
        let Some(endpoint) = &mut state.endpoint else { return };
        let is_idle = endpoint.may_wait();
        let deadline =
            if is_idle { endpoint.next_deadline().unwrap_or(Duration::MAX) } else { Duration::ZERO };
        for queue in state.queues() {
            if let Some(queue) = self.queues.get_mut(queue) {
                queue.waiting.wake_by(deadline);
            }
        }
        for counter in state.counters() {
            if let Some(counter) = self.counters.get_mut(counter) {
                counter.waiting.wake_by(deadline);
            }
        }
        self.automatic.wake_by(deadline);
    }

    /// For the thread of automatic progress: as [`Self::may_wait`] of all endpoints.
    pub(super) fn may_wait_for_all(&mut self) -> bool {
        let mut deadline: Option<Duration> = None;
        for (_, state) in &mut self.endpoints {
            let Some(endpoint) = state.endpoint.as_mut().filter(|endpoint| endpoint.failure().is_none())
            else {
                continue;
            };
            if !endpoint.may_wait() {
                return false;
            }
            deadline = deadline.into_iter().chain(endpoint.next_deadline()).min();
        }
        self.automatic.arm(deadline);
        self.may_be_armed = true;
        true
    }

    /// Tell every endpoint of an address vector what a number stands for.
    ///
    /// # Errors
    /// An endpoint cannot take it.
    pub(super) fn enter(&mut self, vector: usize, number: u64) -> Outcome<()> {
        let name = self.vector(vector)?.lookup(number)?;
        let mut place = 0;
        while let Some(index) = self.vector(vector)?.endpoints.get(place).copied() {
            if let Some(endpoint) = &mut self.endpoint(index)?.endpoint {
                endpoint.set_address(Address(number), name.bytes())?;
            }
            // What had come from that name may be somebody's now.
            self.tell_waiting(index);
            place += 1;
        }
        Ok(())
    }

    /// Tell every endpoint of an address vector that a number stands for nobody.
    ///
    /// # Errors
    /// It stood for nobody before.
    pub(super) fn leave(&mut self, vector: usize, number: u64) -> Outcome<()> {
        self.vector(vector)?.remove(number)?;
        let mut place = 0;
        while let Some(index) = self.vector(vector)?.endpoints.get(place).copied() {
            if let Some(endpoint) = &mut self.endpoint(index)?.endpoint {
                endpoint.remove_address(Address(number));
            }
            place += 1;
        }
        Ok(())
    }
}

impl Handle<NoWork> for State {
    type Done = ();

    fn handle_now(&mut self, work: NoWork) {
        match work {}
    }

    fn handle_queued(&mut self, work: NoWork) {
        match work {}
    }
}

/// The object was closed.
const GONE: Code = code(abi::FI_EINVAL);
