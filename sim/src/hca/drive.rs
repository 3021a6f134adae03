//! The two drives: one step at a time, or all there is to do.

use super::device::Hca;
use super::memory::HostMemory;
use super::packet::{Body, Packet};

/// What the device can do next, in one piece.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// Fetch or go on with a work request of this QP: one packet, or one list operation.
    Send(u32),
    /// Send the next acknowledgement or packet of read data.
    Respond(u32),
    /// Take the oldest packet between these two QPs.
    Deliver {
        /// Its source.
        from: u32,
        /// Its destination.
        to: u32,
    },
    /// The RNR or retransmission timer of this QP expires.
    Timer(u32),
    /// Flush one work request of this QP, which is in ERR.
    Flush(u32),
}

impl<M: HostMemory> Hca<M> {
    /// Everything that is possible now. Reads doorbell records and arm words, and may queue completion events.
    #[must_use]
    pub fn steps(&mut self) -> Vec<Step> {
        self.check_arms();
        let mut steps: Vec<Step> = self.flows.keys().map(|&(from, to)| Step::Deliver { from, to }).collect();
        for (&qpn, qp) in &self.qps {
            if self.send_plan(qpn).is_some() {
                steps.push(Step::Send(qpn));
            }
            if self.can_respond(qpn) {
                steps.push(Step::Respond(qpn));
            }
            if self.can_flush(qpn) {
                steps.push(Step::Flush(qpn));
            }
            if qp.requester.timer.is_some_and(|timer| timer.due < u64::MAX) {
                steps.push(Step::Timer(qpn));
            }
        }
        steps
    }

    /// Do one step. False: it is not possible now, and nothing has happened.
    pub fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Send(qpn) => self.step_send(qpn),
            Step::Respond(qpn) => self.step_respond(qpn),
            Step::Deliver { from, to } => self.step_deliver(from, to),
            Step::Timer(qpn) => self.step_timer(qpn),
            Step::Flush(qpn) => self.step_flush(qpn),
        }
    }

    /// Do steps until none but timers is possible, at most about `limit`. How many were done: 0 means idle.
    pub fn run(&mut self, limit: usize) -> usize {
        let mut done = 0;
        let mut round = std::mem::take(&mut self.round);
        loop {
            let before = done;
            self.check_arms();
            round.clear();
            round.extend(self.qps.keys());
            for &qpn in &round {
                // A card acknowledges at once: before what the program sends in answer.
                done += burst(|| self.step_respond(qpn));
                done += burst(|| self.step_send(qpn) || self.step_flush(qpn));
            }
            let mut next = (0, 0);
            while let Some((&(from, to), _)) = self.flows.range(next..).next() {
                done += burst(|| self.step_deliver(from, to));
                next = (from, to.wrapping_add(1));
            }
            if done == before || done >= limit {
                break;
            }
        }
        self.round = round;
        done
    }

    /// [`Self::run`] without a limit, timers included: they expire when nothing else is possible. For tests and for
    /// worlds without a clock. An RNR retry without end would never be idle, so at most [`TIMERS_MAX`] expire.
    pub fn run_until_idle(&mut self) {
        for _ in 0..TIMERS_MAX {
            while self.run(usize::MAX) > 0 {}
            let waiting = self.qps.iter().filter_map(|(&qpn, qp)| Some((qp.requester.timer?.due, qpn)));
            let Some((due, qpn)) = waiting.min().filter(|(due, _)| *due < u64::MAX) else { return };
            self.now = self.now.max(due);
            self.step_timer(qpn);
        }
    }

    /// The time, in nanoseconds from any beginning: timers that are due expire.
    pub fn advance_clock(&mut self, now: u64) {
        self.now = self.now.max(now);
        let now = self.now;
        let is_due = |due: u64| due <= now;
        let waiting =
            self.qps.iter().filter(|(_, qp)| qp.requester.timer.is_some_and(|timer| is_due(timer.due)));
        let waiting: Vec<u32> = waiting.map(|(&qpn, _)| qpn).collect();
        for qpn in waiting {
            self.step_timer(qpn);
        }
    }

    /// When the next timer is due.
    #[must_use]
    pub fn next_timer(&self) -> Option<u64> {
        let dues = self.qps.values().filter_map(|qp| qp.requester.timer.map(|timer| timer.due));
        dues.min().filter(|due| *due < u64::MAX)
    }

    fn step_deliver(&mut self, from: u32, to: u32) -> bool {
        let Some(flow) = self.flows.get_mut(&(from, to)) else { return false };
        let packet = flow.pop_front();
        if flow.is_empty() {
            self.flows.remove(&(from, to));
        }
        let Some(Packet { source, destination, body }) = packet else { return false };
        match body {
            Body::Request(request) => self.handle_request(destination, source, request),
            Body::Response(response) => self.handle_response(destination, source, response),
            Body::Datagram(datagram) => self.handle_datagram(destination, source, &datagram),
        }
        true
    }
}

/// So many times in a row, that no QP keeps the others waiting.
fn burst(mut step: impl FnMut() -> bool) -> usize {
    (0..BURST).take_while(|_| step()).count()
}

const BURST: usize = 64;
/// Timers that [`Hca::run_until_idle`] lets expire.
pub const TIMERS_MAX: usize = 64;
