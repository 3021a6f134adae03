//! What is observed of engine and devices, for the monitors and the book.
//!
//! Not here: what makes it happen.

use tagmatch::engine::End;

use super::book::Decision;
use super::{Accepted, Acceptor, Machine, Monitors, World, Wrong};
use crate::checker::{MessageName, Observation, ReceiveName};

impl<D: Machine> World<D> {
    /// What happened inside a device.
    pub(super) fn look_into(&mut self, at: usize) -> Result<(), Wrong> {
        for Accepted { message, by } in self.devices[at].take_accepted() {
            let Some(sent) = self.scope.messages.get(message as usize) else { continue };
            let (envelope, path) = (sent.envelope(), sent.path);
            let sent = self.book.sent[message as usize];
            let name = MessageName(message);
            self.book.accepted[envelope.source.0 as usize] += 1;
            self.observe(Observation::Accepted { message: name, envelope, sent, path }, Monitors::BOTH)?;
            match by {
                Acceptor::Entry(handle) => {
                    let Some(receive) = self.book.receive_of(at, handle) else {
                        return Err(Wrong::Refused(format!(
                            "a match with {handle:?}, which was never added"
                        )));
                    };
                    self.book.decisions[message as usize] = Decision::Receive(receive);
                    self.book.by_device.push(message);
                    self.tell(|| format!("    device {at} matches m{message} with r{receive}"));
                    let receive = ReceiveName(receive);
                    self.observe(
                        Observation::MatchedByDevice { message: name, receive },
                        Monitors { points: true, intervals: false },
                    )?;
                }
                Acceptor::Host => {
                    self.tell(|| format!("    device {at} matches m{message} with nothing"));
                }
            }
        }
        Ok(())
    }

    /// The engine gave a message to a receive.
    pub(super) fn handle_decided(&mut self, message: u32, receive: u32) -> Result<(), Wrong> {
        let (name, to) = (MessageName(message), Some(ReceiveName(receive)));
        let decided = Observation::Decided { message: name, receive: to };
        let Some(decision) = self.book.decisions.get(message as usize).copied() else {
            return Err(Wrong::Completion(format!("m{message} was never sent")));
        };
        match decision {
            Decision::Open => {
                self.tell(|| format!("    the engine decides: m{message} goes to r{receive}"));
                self.book.decide(message, Decision::Receive(receive));
                self.observe(decided, Monitors::BOTH)?;
                self.take_piece(receive, message)
            }
            // A device matched it, and the engine heard of it.
            Decision::Receive(by_device) if by_device == receive => {
                if self.book.by_device.contains(&message) {
                    self.book.by_device.retain(|other| *other != message);
                    self.observe(decided, Monitors { points: false, intervals: true })?;
                }
                Ok(())
            }
            Decision::Unexpected | Decision::Claimed => {
                self.book.decisions[message as usize] = Decision::Receive(receive);
                Ok(())
            }
            Decision::Receive(_) | Decision::Vanished => {
                Err(Wrong::Completion(format!("m{message} goes to r{receive}, but was {decision:?} before")))
            }
        }
    }

    /// A match of a multi-receive that is posted: the last one releases it.
    fn take_piece(&mut self, receive: u32, message: u32) -> Result<(), Wrong> {
        let (it, sent) = (self.scope.receives[receive as usize], self.scope.messages[message as usize]);
        if !self.book.take_piece(receive, &it, message, sent.length) {
            return Ok(());
        }
        self.tell(|| format!("    r{receive} is full"));
        self.observe(Observation::Released { receive: ReceiveName(receive) }, Monitors::BOTH)
    }

    /// Unexpected messages that went with their sender.
    pub(super) fn handle_vanished(&mut self) -> Result<(), Wrong> {
        let there: Vec<u32> = self.engine.unexpected().collect();
        for message in 0..u32::try_from(self.scope.messages.len()).unwrap_or(0) {
            let was_there = self.book.decisions[message as usize] == Decision::Unexpected;
            if was_there && self.is_lost(message) && !there.contains(&message) {
                self.book.decisions[message as usize] = Decision::Vanished;
                self.tell(|| format!("    m{message} is gone with its sender"));
                self.observe(Observation::Vanished { message: MessageName(message) }, Monitors::BOTH)?;
            }
        }
        Ok(())
    }

    /// Messages that no longer wait and were given to nobody are unexpected.
    pub(super) fn handle_undecided(&mut self) -> Result<(), Wrong> {
        if self.book.undecided.len() == self.engine.waiting() {
            return Ok(());
        }
        let waiting: std::collections::HashSet<u32> = self.engine.undecided().collect();
        let mut at = 0;
        while let Some(&message) = self.book.undecided.get(at) {
            if waiting.contains(&message) {
                at += 1;
                continue;
            }
            self.book.decide(message, Decision::Unexpected);
            let name = MessageName(message);
            if self.is_lost(message) && self.engine.unexpected().all(|unexpected| unexpected != message) {
                self.book.decisions[message as usize] = Decision::Vanished;
                self.tell(|| format!("    m{message} is gone with its sender"));
                self.observe(Observation::Vanished { message: name }, Monitors::BOTH)?;
                continue;
            }
            self.tell(|| format!("    the engine decides: m{message} is unexpected"));
            self.observe(Observation::Decided { message: name, receive: None }, Monitors::BOTH)?;
        }
        Ok(())
    }

    pub(super) fn handle_completions(&mut self) -> Result<(), Wrong> {
        while let Some(completion) = self.engine.poll_completion() {
            let receive = u32::try_from(completion.context).unwrap_or(u32::MAX);
            let Some(progress) = self.book.progress.get(receive as usize).copied() else {
                return Err(Wrong::Completion(format!("{completion:?} is of no receive")));
            };
            if progress.ended {
                return Err(Wrong::Completion(format!("r{receive} ended twice: {:?}", completion.end)));
            }
            let is_multi = self.scope.receives[receive as usize].least.is_some();
            let cancelled = match completion.end {
                End::Received(message) => {
                    self.check_received(receive, message.app_ctx, message.address)?;
                    if std::mem::replace(&mut self.book.delivered[message.app_ctx as usize], true) {
                        let what = format!("r{receive} got m{} twice", message.app_ctx);
                        return Err(Wrong::Completion(what));
                    }
                    false
                }
                End::Cancelled if progress.cancelling => true,
                End::Failed { app_ctx, .. } if self.book.is_anything_lost() => {
                    if self.book.decisions.get(app_ctx as usize) == Some(&Decision::Open) {
                        self.handle_decided(app_ctx, receive)?;
                    }
                    false
                }
                End::Released if progress.full => false,
                End::Cancelled | End::Failed { .. } | End::Released => {
                    return Err(Wrong::Completion(format!("r{receive} ended with {:?}", completion.end)));
                }
            };
            if is_multi && matches!(completion.end, End::Received(_) | End::Failed { .. }) {
                self.tell(|| format!("    r{receive} has a message"));
                continue;
            }
            self.book.progress[receive as usize].ended = true;
            self.tell(|| {
                format!("    r{receive} ends, {}", if cancelled { "cancelled" } else { "received" })
            });
            if progress.cancelling {
                self.book.progress[receive as usize].cancelling = false;
                let receive = ReceiveName(receive);
                self.observe(Observation::CancelAnswered { receive, cancelled }, Monitors::BOTH)?;
            }
        }
        Ok(())
    }

    pub(super) fn check_received(&self, receive: u32, message: u32, address: u64) -> Result<(), Wrong> {
        let decision = self.book.decisions.get(message as usize);
        if decision != Some(&Decision::Receive(receive)) {
            return Err(Wrong::Completion(format!("r{receive} got m{message}, which was {decision:?}")));
        }
        if address != self.places.address_of(receive) + self.book.offsets[message as usize] {
            return Err(Wrong::Completion(format!("r{receive} got m{message} at {address:#x}")));
        }
        let length = self.scope.receives[receive as usize].length;
        let sent = self.scope.messages[message as usize];
        self.devices[usize::from(sent.path)]
            .check_data(message, sent.length, address, length)
            .map_err(|what| Wrong::Completion(format!("r{receive} got m{message}: {what}")))
    }

    pub(super) fn observe(&mut self, observation: Observation, by: Monitors) -> Result<(), Wrong> {
        if let Some(monitor) = self.points.as_mut().filter(|_| by.points) {
            monitor.observe(observation)?;
        }
        if let Some(monitor) = self.intervals.as_mut().filter(|_| by.intervals) {
            monitor.observe(observation)?;
        }
        let (points, intervals) = (by.points, by.intervals);
        let kept = if self.scope.is_failing() { intervals } else { points };
        if let Some(history) = self.history.as_mut().filter(|_| kept) {
            history.push(observation);
        }
        Ok(())
    }
}
