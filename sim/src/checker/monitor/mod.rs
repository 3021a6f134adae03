//! The online checker: one observation at a time.
//!
//! It keeps, of all that was observed, the operations that can still matter and the before-edges between them (in
//! `relation.rs`). An outcome adds the edges that it implies when it is known; what depends on an outcome not known
//! yet is kept as a condition on it. So there is nothing to guess, and no set of guesses to grow.
//!
//! A violation is reported at the latest when the last operation that it involves has ended, and never without one.
//! That no operation which is still pending can be the missing removal of a receive is seen at once; that two of
//! them would need the same one is seen only when they end.
//!
//! What a lost peer sent and is never decided counts as if it had not been sent. That is exact as long as messages of
//! one sender are accepted in the order sent.
//!
//! Cost of an observation: the posted receives are scanned once, and each new edge costs the number of operations
//! known: below 1 us for a few operations under way, some 0.2 ms for a hundred. A path of a model should call
//! the same thing by the same name, whatever the schedule, so that equal states compare equal.
//!
//! Not here: long queues; see [`order`](super::order).

mod mask;
mod relation;

use tagmatch::ids::PeerId;
use tagmatch::matching::{Envelope, Pattern, Stay};

use self::mask::Mask;
use self::relation::{Arrival, Operation, Stage};
use super::groups::Groups;
use super::history::{MessageName, Observation, ReceiveName};
use super::violation::{Fault, Name, Rule, Violation};
use super::{Options, history};

/// What is to be known of a run so far. Equal values have equal futures.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Monitor {
    options: Options,
    /// Arrivals and cancels, by name.
    operations: Vec<Operation>,
    /// Those placed before now. Closed.
    settled: Mask,
    /// In the order of their posts.
    receives: Vec<Receive>,
    predecessors: Vec<Predecessor>,
    /// By peer.
    senders: Vec<Sender>,
    groups: Groups,
    /// Matches by devices which the engine has yet to report, by name.
    unreported: Vec<(MessageName, ReceiveName)>,
}

/// A receive that is queued, or was and may still be in somebody's way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Receive {
    name: ReceiveName,
    pattern: Pattern,
    stay: Stay,
    is_removed: bool,
    /// What is before its post; once it is removed: its removal and all before that. Closed.
    after: Mask,
    /// Ended operations that its removal must be before.
    owed: Mask,
}

/// An arrival that has ended, while a later one of the same sender is pending.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Predecessor {
    envelope: Envelope,
    sent: u32,
    up_to: Mask,
}

impl Predecessor {
    fn is_ahead_of(&self, next: &Arrival) -> bool {
        self.envelope.source == next.envelope.source && self.sent < next.sent
    }
}

/// What was accepted of one peer's messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Sender {
    peer: PeerId,
    /// All below were accepted.
    next: u32,
    /// Accepted ones above, in order.
    beyond: Vec<u32>,
    /// Decided ones above.
    overtakers: Vec<Overtaker>,
}

/// A message that was decided before an earlier one of its sender was accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Overtaker {
    sent: u32,
    /// That of its receive; none if it was unexpected.
    pattern: Option<Pattern>,
}

type Handled = Result<(), Fault>;

impl Monitor {
    /// Nothing happened yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            operations: Vec::new(),
            settled: Mask::default(),
            receives: Vec::new(),
            predecessors: Vec::new(),
            senders: Vec::new(),
            groups: Groups::default(),
            unreported: Vec::new(),
        }
    }

    /// Takes the next observation.
    ///
    /// # Errors
    /// No order explains what was observed so far. The monitor is of no use after that.
    pub fn observe(&mut self, observation: Observation) -> Result<(), Violation> {
        let handled = match observation {
            Observation::Post { receive, pattern, stay, took } => {
                self.handle_post(receive, pattern, stay, took)
            }
            Observation::Peek { pattern, found, claim } => self.handle_peek(pattern, found, claim),
            Observation::Accepted { message, envelope, sent, path } => {
                self.handle_accepted(message, Arrival { envelope, sent, path, lost: false })
            }
            Observation::MatchedByDevice { message, receive } => self.handle_device_match(message, receive),
            Observation::Decided { message, receive } => self.handle_decided(message, receive),
            Observation::CancelCalled { receive } => self.handle_cancel_called(receive),
            Observation::CancelAnswered { receive, cancelled } => {
                self.handle_cancel_answered(receive, cancelled)
            }
            Observation::Released { receive } => self.handle_released(receive),
            Observation::PeerLost { peer } => self.handle_peer_lost(peer),
            Observation::Vanished { message } => self.handle_vanished(message),
            Observation::GroupJoined { peer, group } => self.handle_joined(peer, group),
        };
        let fault_at = |fault: Fault| fault.at(Some(observation));
        handled.map_err(fault_at)?;
        self.forget();
        let begins = matches!(
            observation,
            Observation::Accepted { .. }
                | Observation::CancelCalled { .. }
                | Observation::Post { took: None, .. }
        );
        if begins { Ok(()) } else { self.require_owed().map_err(fault_at) }
    }

    /// The run is over and nothing is under way.
    ///
    /// # Errors
    /// Something is, or a receive is still posted that had to be gone.
    pub fn finish(&self) -> Result<(), Violation> {
        let is_open = |operation: &&Operation| {
            matches!(operation.stage, Stage::Pending | Stage::Again)
                && !operation.arrival.as_ref().is_some_and(|arrival| arrival.lost)
        };
        let mut open: Vec<Name> = self.operations.iter().filter(is_open).map(|open| open.name).collect();
        open.extend(self.unreported.iter().map(|(message, _)| Name::Message(*message)));
        if !open.is_empty() {
            return Err(Fault { rule: Rule::Unfinished, candidates: open }.at(None));
        }
        match self.receives.iter().find(|receive| !receive.owed.is_empty()) {
            Some(receive) => Err(receive.passed_over(&self.operations).at(None)),
            None => Ok(()),
        }
    }

    fn handle_post(
        &mut self,
        name: ReceiveName,
        pattern: Pattern,
        stay: Stay,
        took: Option<MessageName>,
    ) -> Handled {
        if self.posted(name).is_some() || self.slot(Name::Cancel(name)).is_some() {
            return Err(Rule::Record.into());
        }
        match took {
            Some(message) => self.find(message, &pattern, true),
            None => {
                self.find_none(&pattern)?;
                let (after, owed) = (self.settled.clone(), Mask::default());
                self.receives.push(Receive { name, pattern, stay, is_removed: false, after, owed });
                Ok(())
            }
        }
    }

    fn handle_peek(&mut self, pattern: Pattern, found: Option<MessageName>, claim: bool) -> Handled {
        let Some(message) = found else {
            self.find_none(&pattern)?;
            let settled = self.settled.clone();
            self.condition_unexpected(&pattern, &settled);
            return Ok(());
        };
        self.find(message, &pattern, claim)
    }

    fn handle_accepted(&mut self, message: MessageName, arrival: Arrival) -> Handled {
        let name = Name::Message(message);
        let reported = self.unreported.iter().all(|(other, _)| *other != message);
        if self.slot(name).is_some() || !reported {
            return Err(Rule::Record.into());
        }
        let groups = &self.groups;
        let sender = sender(&mut self.senders, arrival.envelope.source);
        if !sender.accept(arrival.sent) {
            return Err(Rule::Record.into());
        }
        let wronged = sender.overtakers.iter().any(|overtaker| {
            overtaker.sent > arrival.sent
                && overtaker.pattern.is_none_or(|pattern| groups.fits(&pattern, &arrival.envelope))
        });
        if wronged {
            return Err(Rule::Overtaken.into());
        }
        let mut before = self.settled.clone();
        if self.options.acceptance_order {
            for (slot, operation) in self.operations.iter().enumerate() {
                if operation.arrival.as_ref().is_some_and(|other| other.path == arrival.path) {
                    before.union(&operation.before);
                    before.insert(slot);
                }
            }
        }
        self.begin(name, Some(arrival), before);
        Ok(())
    }

    fn handle_device_match(&mut self, message: MessageName, receive: ReceiveName) -> Handled {
        let slot = self.pending(Name::Message(message)).ok_or(Rule::MessageGone)?;
        self.match_arrival(slot, receive)?;
        if self.options.device_matches_reported {
            let at = self.unreported.partition_point(|other| *other < (message, receive));
            self.unreported.insert(at, (message, receive));
        }
        Ok(())
    }

    fn handle_decided(&mut self, message: MessageName, receive: Option<ReceiveName>) -> Handled {
        if let Some(at) = self.unreported.iter().position(|(other, _)| *other == message) {
            let (_, by_device) = self.unreported.remove(at);
            let same = receive == Some(by_device);
            return if same { Ok(()) } else { Err(Rule::MessageGone.into()) };
        }
        let slot = self.pending(Name::Message(message)).ok_or(Rule::MessageGone)?;
        match receive {
            Some(receive) => self.match_arrival(slot, receive),
            None => self.list_arrival(slot),
        }
    }

    fn handle_cancel_called(&mut self, receive: ReceiveName) -> Handled {
        if self.pending(Name::Cancel(receive)).is_none() {
            match self.slot(Name::Cancel(receive)) {
                Some(slot) => self.operations[slot].stage = Stage::Again,
                None => self.begin(Name::Cancel(receive), None, self.settled.clone()),
            }
        }
        Ok(())
    }

    fn handle_cancel_answered(&mut self, name: ReceiveName, cancelled: bool) -> Handled {
        let slot = self.slot(Name::Cancel(name)).ok_or(Rule::Record)?;
        match (self.operations[slot].stage, cancelled) {
            (Stage::Pending, _) => {}
            (Stage::Again, true) => return Err(Rule::CancelAnswer.into()),
            (Stage::Again, false) => {
                self.operations[slot].stage = Stage::Ended;
                return Ok(());
            }
            (Stage::Listed | Stage::Ended, _) => return Err(Rule::Record.into()),
        }
        let posted = self.posted(name);
        if cancelled {
            let index = posted.ok_or(Rule::NotPosted)?;
            let matches = self.operations[slot].condition.clone();
            self.require(&matches, slot, Rule::CancelAnswer)?;
            self.remove_receive(index, slot)?;
        } else if let Some(index) = posted {
            if self.receives[index].stay == Stay::Posted {
                return Err(Rule::CancelAnswer.into());
            }
            self.receives[index].owed.insert(slot);
        } else if let Some(receive) = self.receives.iter().rfind(|receive| receive.name == name) {
            let removal = receive.after.clone();
            self.require(&removal, slot, Rule::CancelAnswer)?;
        }
        self.end(slot, Stage::Ended);
        Ok(())
    }

    fn handle_released(&mut self, name: ReceiveName) -> Handled {
        let index = self.posted(name).ok_or(Rule::NotPosted)?;
        let receive = &mut self.receives[index];
        if receive.stay != Stay::Posted {
            return Err(Rule::Record.into());
        }
        if !receive.owed.is_empty() {
            return Err(receive.passed_over(&self.operations));
        }
        receive.is_removed = true;
        receive.after = self.settled.clone();
        Ok(())
    }

    fn handle_peer_lost(&mut self, peer: PeerId) -> Handled {
        let may_vanish = |it: &&mut Operation| matches!(it.stage, Stage::Pending | Stage::Listed);
        for arrival in self.operations.iter_mut().filter(may_vanish).filter_map(|it| it.arrival.as_mut()) {
            arrival.lost |= arrival.envelope.source == peer;
        }
        let sender = sender(&mut self.senders, peer);
        sender.next = sender.beyond.last().map_or(sender.next, |last| last + 1);
        sender.beyond.clear();
        sender.overtakers.clear();
        Ok(())
    }

    fn handle_vanished(&mut self, message: MessageName) -> Handled {
        let slot = self.slot(Name::Message(message)).ok_or(Rule::MessageGone)?;
        if !self.operations[slot].arrival.as_ref().is_some_and(|arrival| arrival.lost) {
            return Err(Rule::Record.into());
        }
        match self.operations[slot].stage {
            Stage::Pending => self.drop_operation(slot),
            Stage::Listed => self.operations[slot].stage = Stage::Ended,
            Stage::Ended | Stage::Again => return Err(Rule::MessageGone.into()),
        }
        Ok(())
    }

    fn handle_joined(&mut self, peer: PeerId, group: tagmatch::ids::GroupId) -> Handled {
        let undecided = self.operations.iter().any(|operation| {
            operation.is_pending()
                && operation.arrival.as_ref().is_some_and(|arrival| arrival.envelope.source == peer)
        });
        if undecided {
            return Err(Rule::Record.into());
        }
        self.groups.join(peer, group);
        Ok(())
    }

    /// An arrival ends: matched.
    fn match_arrival(&mut self, slot: usize, name: ReceiveName) -> Handled {
        let index = self.posted(name).ok_or(Rule::NotPosted)?;
        let Receive { pattern, stay, after, .. } = self.receives[index].clone();
        let arrival = self.arrival(slot)?;
        if !self.groups.fits(&pattern, &arrival.envelope) {
            return Err(Rule::DoesNotFit.into());
        }
        self.require(&after, slot, Rule::BeforePost)?;
        self.pass_over(slot, &arrival, index)?;
        self.follow(slot, &arrival, Some(pattern))?;
        if stay == Stay::Once {
            self.remove_receive(index, slot)?;
        } else if let Some(cancel) = self.pending(Name::Cancel(name)) {
            let matched = self.up_to(slot);
            self.operations[cancel].condition.union(&matched);
        }
        self.end_arrival(slot, &arrival, Stage::Ended);
        Ok(())
    }

    /// An arrival ends: unexpected.
    fn list_arrival(&mut self, slot: usize) -> Handled {
        let arrival = self.arrival(slot)?;
        self.pass_over(slot, &arrival, self.receives.len())?;
        let found = self.operations[slot].condition.clone();
        self.require(&found, slot, Rule::EarlierMessage)?;
        self.follow(slot, &arrival, None)?;
        self.end_arrival(slot, &arrival, Stage::Listed);
        Ok(())
    }

    fn end_arrival(&mut self, slot: usize, arrival: &Arrival, stage: Stage) {
        self.end(slot, stage);
        let past = Predecessor { envelope: arrival.envelope, sent: arrival.sent, up_to: self.up_to(slot) };
        let order = |past: &Predecessor| (past.envelope.source, past.sent);
        let at = self.predecessors.partition_point(|other| order(other) < order(&past));
        self.predecessors.insert(at, past);
    }

    /// A message passes those of the first `count` receives that fit: they are gone before it.
    fn pass_over(&mut self, slot: usize, arrival: &Arrival, count: usize) -> Handled {
        for index in 0..count {
            let receive = &mut self.receives[index];
            if !self.groups.fits(&receive.pattern, &arrival.envelope) {
                continue;
            }
            if receive.is_removed {
                let removal = receive.after.clone();
                self.require(&removal, slot, Rule::EarlierReceive)?;
            } else {
                receive.owed.insert(slot);
            }
        }
        Ok(())
    }

    /// Earlier messages of the sender come first, unless this one is taken by a receive which does not fit them.
    fn follow(&mut self, slot: usize, arrival: &Arrival, pattern: Option<Pattern>) -> Handled {
        let is_bound = |groups: &Groups, earlier: &Envelope| {
            pattern.is_none_or(|pattern| groups.fits(&pattern, earlier))
        };
        for index in 0..self.predecessors.len() {
            let past = &self.predecessors[index];
            if past.is_ahead_of(arrival) && is_bound(&self.groups, &past.envelope) {
                let past = past.up_to.clone();
                self.require(&past, slot, Rule::Overtaken)?;
            }
        }
        for other in 0..self.operations.len() {
            let operation = &self.operations[other];
            let Some(earlier) = operation.arrival.as_ref().filter(|_| operation.is_pending()) else {
                continue;
            };
            let is_ahead = earlier.envelope.source == arrival.envelope.source && earlier.sent < arrival.sent;
            if is_ahead && is_bound(&self.groups, &earlier.envelope) {
                self.require(&self.up_to(other), slot, Rule::Overtaken)?;
            }
        }
        let sender = sender(&mut self.senders, arrival.envelope.source);
        if sender.next < arrival.sent {
            let at = sender.overtakers.partition_point(|other| other.sent < arrival.sent);
            sender.overtakers.insert(at, Overtaker { sent: arrival.sent, pattern });
        }
        Ok(())
    }

    /// An operation takes a receive off the list, before all that passed over it.
    fn remove_receive(&mut self, index: usize, slot: usize) -> Handled {
        let receive = &mut self.receives[index];
        let waiting = std::mem::take(&mut receive.owed);
        let posted = std::mem::take(&mut receive.after);
        receive.is_removed = true;
        self.require(&posted, slot, Rule::BeforePost)?;
        let removal = self.up_to(slot);
        for later in waiting.iter() {
            let rule = match self.operations[later].name {
                Name::Cancel(_) => Rule::CancelAnswer,
                Name::Message(_) | Name::Receive(_) => Rule::EarlierReceive,
            };
            self.require(&removal, later, rule)?;
        }
        self.receives[index].after = self.up_to(slot);
        Ok(())
    }

    /// A post or peek found a message, ahead of all others that fit.
    fn find(&mut self, message: MessageName, pattern: &Pattern, leaves: bool) -> Handled {
        let slot = self.slot(Name::Message(message)).ok_or(Rule::MessageGone)?;
        match self.operations[slot].stage {
            Stage::Pending => self.list_arrival(slot)?,
            Stage::Listed => {}
            Stage::Ended | Stage::Again => return Err(Rule::MessageGone.into()),
        }
        if !self.groups.fits(pattern, &self.arrival(slot)?.envelope) {
            return Err(Rule::DoesNotFit.into());
        }
        for other in 0..self.operations.len() {
            if other != slot && self.is_listed(other, pattern) {
                self.require(&self.up_to(slot), other, Rule::EarlierMessage)?;
            }
        }
        let found = self.up_to(slot);
        self.condition_unexpected(pattern, &found);
        if leaves {
            self.operations[slot].stage = Stage::Ended;
        }
        Ok(())
    }

    /// A post or peek found nothing.
    fn find_none(&self, pattern: &Pattern) -> Handled {
        let missed = (0..self.operations.len()).filter(|slot| self.is_listed(*slot, pattern));
        let candidates: Vec<Name> = missed.map(|slot| self.operations[slot].name).collect();
        if candidates.is_empty() { Ok(()) } else { Err(Fault { rule: Rule::EarlierMessage, candidates }) }
    }

    /// Pending messages that fit what looked at the list just now come after `found`, should they be unexpected.
    fn condition_unexpected(&mut self, pattern: &Pattern, found: &Mask) {
        for operation in self.operations.iter_mut().filter(|operation| operation.is_pending()) {
            if operation.arrival.as_ref().is_some_and(|it| self.groups.fits(pattern, &it.envelope)) {
                operation.condition.union(found);
            }
        }
    }

    /// Something ended: sees to it that receives which must have gone still can.
    fn require_owed(&self) -> Handled {
        for receive in self.receives.iter().filter(|receive| !receive.owed.is_empty()) {
            let could_go = |(slot, operation): (usize, &Operation)| {
                operation.is_pending()
                    && !operation.before.intersects(&receive.owed)
                    && !receive.after.contains(slot)
                    && match &operation.arrival {
                        Some(arrival) => self.groups.fits(&receive.pattern, &arrival.envelope),
                        None => operation.name == Name::Cancel(receive.name),
                    }
            };
            if !self.operations.iter().enumerate().any(could_go) {
                return Err(receive.passed_over(&self.operations));
            }
        }
        Ok(())
    }

    fn slot(&self, name: Name) -> Option<usize> {
        self.operations.binary_search_by(|operation| operation.name.cmp(&name)).ok()
    }

    fn pending(&self, name: Name) -> Option<usize> {
        self.slot(name).filter(|slot| self.operations[*slot].is_pending())
    }

    fn posted(&self, name: ReceiveName) -> Option<usize> {
        self.receives.iter().position(|receive| receive.name == name && !receive.is_removed)
    }

    fn arrival(&self, slot: usize) -> Result<Arrival, Fault> {
        self.operations[slot].arrival.clone().ok_or_else(|| Rule::Record.into())
    }

    fn is_listed(&self, slot: usize, pattern: &Pattern) -> bool {
        let operation = &self.operations[slot];
        operation.stage == Stage::Listed
            && operation.arrival.as_ref().is_some_and(|it| self.groups.fits(pattern, &it.envelope))
    }
}

impl Receive {
    /// It was never removed in time.
    fn passed_over(&self, operations: &[Operation]) -> Fault {
        let by: Vec<Name> = self.owed.iter().map(|slot| operations[slot].name).collect();
        let cancel = by.iter().all(|name| matches!(name, Name::Cancel(_)));
        let rule = if cancel { Rule::CancelAnswer } else { Rule::EarlierReceive };
        Fault { rule, candidates: [Name::Receive(self.name)].into_iter().chain(by).collect() }
    }
}

impl Sender {
    /// Whether that message was not accepted before.
    fn accept(&mut self, sent: u32) -> bool {
        let Err(at) = self.beyond.binary_search(&sent) else { return false };
        if sent < self.next {
            return false;
        }
        self.beyond.insert(at, sent);
        while self.beyond.first() == Some(&self.next) {
            self.beyond.remove(0);
            self.next += 1;
        }
        true
    }
}

fn sender(senders: &mut Vec<Sender>, peer: PeerId) -> &mut Sender {
    let at = senders.partition_point(|sender| sender.peer < peer);
    if senders.get(at).is_none_or(|sender| sender.peer != peer) {
        let new = Sender { peer, next: 0, beyond: Vec::new(), overtakers: Vec::new() };
        senders.insert(at, new);
    }
    &mut senders[at]
}

/// Runs the monitor over a finished history.
///
/// # Errors
/// The rule that was broken, and where.
pub fn check(history: &[history::Observation], options: Options) -> Result<(), Violation> {
    let mut monitor = Monitor::new(options);
    for (at, observation) in history.iter().enumerate() {
        monitor.observe(*observation).map_err(|violation| Violation { at: Some(at), ..violation })?;
    }
    monitor.finish()
}
