//! What goes wrong: lost paths, a failed device; and what is done while nothing comes.
//!
//! ```text
//!  Connected ─(error of a send, event, silence, disconnect)─▶ ERR ─(drained)─▶ queue pairs destroyed ─▶ PathLost
//! ```
//!
//! A queue pair is not destroyed before what it did was polled: libmlx5 takes a queue pair's completions out of the
//! queue when it goes, matched messages of the list among them. And nothing that was under way is told as failed
//! before the queue pair is gone, since the device may write until then (TM-CONTRACT 13).

use std::time::Instant;

use super::super::sys;
use super::VerbsDevice;
use super::peers::{Peer, State};
use super::sending::{OutgoingKind, SendDone, SendFailure};
use super::side::{ReceiveSide, Stage};
use crate::ids::PeerId;
use crate::seam::{Data, DataError, DataTarget, DeviceError, Event};

impl VerbsDevice {
    /// Why the path to a peer is being lost, where it is known.
    #[must_use]
    pub fn path_failure(&self, peer: PeerId) -> Option<SendFailure> {
        self.peers.find(peer).and_then(|(_, peer)| peer.failure)
    }

    pub(super) fn fail_path_of(&mut self, peer: PeerId, failure: Option<SendFailure>) {
        if let Some((index, _)) = self.peers.find(peer) {
            self.fail_path(index, failure);
        }
    }

    pub(super) fn fail_path_by_number(&mut self, number: u32, failure: SendFailure) {
        if let Some((index, _)) = self.peers.by_number(number) {
            self.fail_path(index, Some(failure));
        }
    }

    /// Both queue pairs of a peer go to ERR.
    pub(super) fn fail_path(&mut self, index: usize, failure: Option<SendFailure>) {
        let Some(peer) = self.peers.at(index) else { return };
        if matches!(peer.state, State::Failing { .. }) {
            // An event may come before the completion that says why; what is flushed says nothing.
            let says_why = |failure: &SendFailure| failure.status != sys::IBV_WC_WR_FLUSH_ERR;
            peer.failure = peer.failure.or(failure.filter(says_why));
            return;
        }
        let was_connected = peer.state == State::Connected;
        peer.failure = failure;
        // One that cannot even go to ERR is destroyed all the same.
        let both = [peer.receive.fail(), peer.send.fail()];
        let drained = (!was_connected || both[0].is_err(), !was_connected || both[1].is_err());
        peer.state = State::Failing { since: Instant::now(), polls: 0, drained };
        peer.deferred.clear();
        self.may_be_failing = true;
    }

    /// Whether there is something to do while nothing comes.
    #[inline(always)]
    pub(super) const fn is_watching(&self) -> bool {
        self.may_be_failing || self.config.keepalive.is_some()
    }

    /// Nothing came: look for events, end what is drained, ask silent peers.
    #[inline(never)]
    pub(super) fn idle(&mut self) {
        let mut is_failing = false;
        for (_, peer) in self.peers.iter_mut() {
            if let State::Failing { polls, .. } = &mut peer.state {
                *polls = polls.saturating_add(1);
                is_failing = true;
            }
        }
        self.may_be_failing = is_failing;
        if is_failing {
            self.poll_events();
            self.end_drained();
        }
        self.ask_silent();
    }

    /// Asynchronous events, which are looked for in one poll of so many.
    #[cold]
    #[inline(never)]
    pub(super) fn look_for_events(&mut self) {
        self.events_in = self.config.events_every.max(1);
        self.poll_events();
    }

    /// Take asynchronous events.
    pub(in crate::device::verbs) fn poll_events(&mut self) {
        while let Some(event) = self.context.poll_event() {
            let text = || {
                let library = sys::library().ok();
                library.map_or("an unknown event", |library| library.event_text(event.kind))
            };
            match event.kind {
                sys::IBV_EVENT_QP_FATAL | sys::IBV_EVENT_QP_REQ_ERR | sys::IBV_EVENT_QP_ACCESS_ERR => {
                    if let Some(index) = self.peers.by_object(event.object) {
                        self.fail_path(index, None);
                    }
                }
                sys::IBV_EVENT_QP_LAST_WQE_REACHED => self.drained(event.object),
                sys::IBV_EVENT_CQ_ERR | sys::IBV_EVENT_SRQ_ERR => {
                    self.fail(DeviceError::Contract(text().to_owned()));
                }
                sys::IBV_EVENT_DEVICE_FATAL => self.fail(DeviceError::Removed),
                // Ports come back; queue pairs find out by themselves.
                _ => {}
            }
        }
    }

    fn drained(&mut self, object: usize) {
        let Some(index) = self.peers.by_object(object) else { return };
        let Some(peer) = self.peers.at(index) else { return };
        let is_receive = peer.receive.object() == object;
        match &mut peer.state {
            State::Failing { drained, .. } if is_receive => drained.0 = true,
            State::Failing { drained, .. } => drained.1 = true,
            // The device put it into ERR by itself.
            State::Prepared | State::Connected => self.fail_path(index, None),
        }
    }

    /// Queues were just found empty. Peers whose queue pairs take part in nothing more, end.
    fn end_drained(&mut self) {
        let (polls_max, time) = (self.config.drain_polls, self.config.drain_time);
        let is_over = |peer: &Peer| match peer.state {
            State::Failing { drained: (true, true), polls, .. } => polls >= 2,
            State::Failing { since, polls, .. } => polls >= polls_max && since.elapsed() >= time,
            State::Prepared | State::Connected => false,
        };
        let over: Vec<usize> =
            self.peers.iter_mut().filter(|(_, peer)| is_over(peer)).map(|(index, _)| index).collect();
        for index in over {
            self.end_path(index);
        }
    }

    /// Destroy a peer's queue pairs, and tell what is lost with them.
    fn end_path(&mut self, index: usize) {
        let Some(peer) = self.peers.remove(index) else { return };
        let (id, failure) = (peer.id, peer.failure);
        drop(peer);
        self.lose_entries(id);
        let jobs: Vec<usize> =
            self.jobs.iter().filter(|(_, job)| job.peer == id).map(|(index, _)| index).collect();
        for job in jobs {
            let job = self.jobs.remove(job);
            self.read_lost(&job, DataError::PathLost);
        }
        for token in self.held.remote_of(id) {
            let Some(held) = self.held.take(token) else { continue };
            self.pending.push_back(lost(DataTarget::Message(token), held.header.length));
        }
        self.lose_sends(index, id, failure);
        if self.config.keep_untagged {
            self.causes.extend(failure.map(|failure| (id, failure)));
        }
        self.pending.push_back(Event::PathLost { peer: id });
    }

    fn lose_entries(&mut self, id: PeerId) {
        let ReceiveSide::Matching(matching) = &self.side else { return };
        let is_of = |stage| matches!(stage, Stage::DataFollows(peer) | Stage::Broken(peer) | Stage::HandedBack(peer, ..) if peer == id);
        let is_read =
            |index: u32| self.jobs.iter().any(|(_, job)| job.target == super::reads::ReadFor::Entry(index));
        let lost_entries: Vec<_> = matching
            .stages()
            .filter(|&(handle, stage)| is_of(stage) && !is_read(handle.index))
            .map(|(handle, _)| handle)
            .collect();
        for handle in lost_entries {
            self.pending.push_back(lost(DataTarget::Entry(handle), 0));
            // Where the list said no last word of it, its tag does not come back.
            self.entry_done(handle.index);
        }
    }

    /// Sends whose completions went with the queue pair.
    fn lose_sends(&mut self, index: usize, peer: PeerId, failure: Option<SendFailure>) {
        let flushed = SendFailure { status: sys::IBV_WC_WR_FLUSH_ERR, vendor_error: 0 };
        let of_peer = self.outgoing.iter().filter(|(_, outgoing)| outgoing.peer == index);
        let left: Vec<usize> = of_peer.map(|(id, _)| id).collect();
        for id in left {
            let outgoing = self.outgoing.remove(id);
            self.send_free.extend(outgoing.buffer);
            if let OutgoingKind::User(context) = outgoing.kind {
                let result = Err(failure.unwrap_or(flushed));
                self.sent.push_back(SendDone { peer, context, result });
            }
        }
    }

    /// The device is of no more use. Everything that could touch memory is destroyed, then the engine is told.
    pub(super) fn fail(&mut self, error: DeviceError) {
        if self.failure.is_some() {
            return;
        }
        for peer in self.peers.clear() {
            drop(peer);
        }
        self.side = ReceiveSide::Gone;
        self.jobs.clear();
        self.outgoing.clear();
        self.untagged.clear();
        // Arrivals whose buffers are gone must not be told; their messages end with the device.
        self.pending.retain(|event| !matches!(event, Event::Arrived(_)));
        self.failure = Some(error.clone());
        self.pending.push_back(Event::DeviceFailed(error));
    }

    /// Ask peers of which nothing was heard for a while.
    fn ask_silent(&mut self) {
        let Some(keepalive) = self.config.keepalive else { return };
        if !self.polls.is_multiple_of(CLOCK_EVERY) || self.checked.elapsed() < keepalive {
            return;
        }
        self.checked = Instant::now();
        self.peers.listen_anew();
        let mut silent = Vec::new();
        for (_, peer) in self.peers.iter_mut() {
            let heard = std::mem::take(&mut peer.heard);
            // What is under way to it will say the same.
            if !heard && peer.state == State::Connected && peer.used == 0 {
                silent.push(peer.id);
            }
        }
        for peer in silent {
            // Full: what is under way asks as well.
            let _posted = self.probe(peer);
        }
    }
}

const fn lost(target: DataTarget, length: u64) -> Event {
    Event::Data(Data { target, length, immediate: None, error: Some(DataError::PathLost) })
}

/// The clock is looked at every so many polls.
const CLOCK_EVERY: u32 = 16;
