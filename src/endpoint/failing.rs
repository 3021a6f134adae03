//! The end of everything at once, where a transport failed.
//!
//! Not here: the transports, which are gone before this begins.

use crate::ids::DeviceId;
use crate::seam::{DeviceError, Event, EventSink};

use super::awaited::Awaited;
use super::cancelling::Cancelling;
use super::core::{Core, Receive};
use super::interface::{Completed, Failure};
use super::links::Links;
use super::operations::Awaits;
use super::peers::State;
use super::remote::Traffic;

impl Core {
    /// Whatever is in progress ends, with one failure each, and nobody is connected any more.
    pub(super) fn end_everything(
        &mut self,
        devices: impl Iterator<Item = DeviceId> + Clone,
        error: &DeviceError,
    ) {
        for engine in &mut self.engines {
            for device in devices.clone() {
                let _hold = engine.handle_event(device, &Event::DeviceFailed(error.clone()));
            }
        }
        // Those that a message was on its way into; then those that wait.
        self.poll_engines();
        self.end_receives();
        self.end_sends();
        if let Some(line) = &mut self.line {
            line.handle_failed(Failure::Device);
            line.handle_lost();
        }
        self.links = Links::default();
        for peer in self.peers.ids() {
            let row = &mut self.peers[peer];
            (row.state, row.twin, row.next) = (State::Idle, None, None);
            (row.is_noted, row.is_touched) = (false, false);
            row.notes.clear();
            row.remote = Traffic::default();
        }
        self.actions.clear();
        self.noted.clear();
        self.touched.clear();
        self.segmented.clear();
        self.serving.clear();
        self.placings.clear();
        self.regions.release_all();
        self.awaited = Awaited::default();
        self.farewells.clear();
        self.entries.clear();
        self.next_deadline = std::time::Duration::MAX;
    }

    fn end_receives(&mut self) {
        let mut left: Vec<Receive> = self.receives.drain().collect();
        self.cancelling = Cancelling::default();
        left.sort_unstable_by_key(|receive| receive.order);
        for receive in &left {
            if let Some(id) = receive.posted {
                self.engines[receive.space as usize].cancel(id);
            }
        }
        for engine in &mut self.engines {
            // Nobody is told of it in this way.
            while engine.next_completion().is_some() {}
        }
        for Receive { context, flags, space, is_multi, .. } in left {
            self.complete(context, flags, space, Completed::Failed(Failure::Device));
            if is_multi {
                self.complete(context, flags, space, Completed::Released);
            }
        }
    }

    fn end_sends(&mut self) {
        self.withdrawals.clear();
        let ids: Vec<_> = self.operations.iter().map(|(id, _)| id).collect();
        for id in ids {
            let Some(operation) = self.operations.get_mut(id) else { continue };
            // One that awaits but the withdrawal was answered.
            if !matches!(operation.awaits, Awaits::Withdrawal { .. }) {
                operation.failure.get_or_insert(Failure::Device);
            }
            (operation.posted, operation.rest, operation.awaits) = (0, None, Awaits::Nothing);
            self.end_if_over(id);
        }
    }

    /// Why a message that was claimed is there no more: its sender died, or the endpoint failed.
    pub(super) const fn why_gone(&self) -> Failure {
        if self.failed.is_some() { Failure::Device } else { Failure::Lost }
    }
}
