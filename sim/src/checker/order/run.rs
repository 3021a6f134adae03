//! A history read once: what each operation's interval and outcome was.
//!
//! Not here: whether the outcomes go together.

use std::collections::{HashMap, HashSet};

use tagmatch::ids::PeerId;
use tagmatch::matching::{Envelope, Pattern, Stay};

use crate::checker::groups::Groups;
use crate::checker::violation::Fault;
use crate::checker::{MessageName, Name, Observation, Options, ReceiveName, Rule, Violation};

/// Index of an observation that never came.
pub(super) const NEVER: usize = usize::MAX;

/// All operations.
#[derive(Default)]
pub(super) struct Run {
    /// Number of observations.
    pub(super) length: usize,
    pub(super) messages: Vec<Message>,
    /// The queued ones, in the order of their posts.
    pub(super) receives: Vec<Receive>,
    pub(super) cancels: Vec<Cancel>,
    pub(super) looks: Vec<Look>,
    pub(super) groups: Groups,
}

pub(super) struct Message {
    pub(super) name: MessageName,
    pub(super) envelope: Envelope,
    pub(super) sent: u32,
    pub(super) path: u8,
    pub(super) begin: usize,
    pub(super) end: usize,
    /// The receive that it was matched with on arrival.
    pub(super) receive: Option<usize>,
    /// When it left the unexpected list.
    pub(super) taken: usize,
}

impl Message {
    /// It was decided; else it vanished, and was nowhere.
    pub(super) fn is_placed(&self) -> bool {
        self.end != NEVER
    }

    pub(super) fn is_unexpected(&self) -> bool {
        self.is_placed() && self.receive.is_none()
    }
}

pub(super) struct Receive {
    pub(super) name: ReceiveName,
    pub(super) pattern: Pattern,
    pub(super) stay: Stay,
    pub(super) posted: usize,
    pub(super) removal: Removal,
    /// What a multi-receive got.
    pub(super) matches: Vec<usize>,
}

/// What took a receive off the list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    None,
    Arrival(usize),
    Cancel(usize),
    Point(usize),
}

pub(super) struct Cancel {
    pub(super) name: ReceiveName,
    pub(super) receive: Option<usize>,
    pub(super) begin: usize,
    pub(super) end: usize,
    pub(super) cancelled: bool,
}

/// A peek, or a post that took a message.
pub(super) struct Look {
    pub(super) at: usize,
    pub(super) pattern: Pattern,
    pub(super) found: Option<usize>,
}

/// Whether a peer joins a group when a message of its was accepted already.
pub(super) fn joins_late(history: &[Observation]) -> bool {
    let mut accepted = HashSet::new();
    history.iter().any(|observation| match observation {
        Observation::Accepted { envelope, .. } => {
            accepted.insert(envelope.source);
            false
        }
        Observation::GroupJoined { peer, .. } => accepted.contains(peer),
        Observation::Post { .. }
        | Observation::Peek { .. }
        | Observation::MatchedByDevice { .. }
        | Observation::Decided { .. }
        | Observation::CancelCalled { .. }
        | Observation::CancelAnswered { .. }
        | Observation::Released { .. }
        | Observation::PeerLost { .. }
        | Observation::Vanished { .. } => false,
    })
}

type Handled = Result<(), Fault>;

/// What names stand for at the moment.
struct Reader {
    run: Run,
    options: Options,
    /// By name: messages that can be decided or found.
    messages: HashMap<MessageName, usize>,
    /// By name: receives on the list, as far as is known.
    posted: HashMap<ReceiveName, usize>,
    /// By name: whatever was queued last.
    queued: HashMap<ReceiveName, usize>,
    cancels: HashMap<ReceiveName, usize>,
    /// By sender: what of it was accepted.
    sent: HashMap<PeerId, Sent>,
    lost: HashSet<usize>,
    lost_peers: HashSet<PeerId>,
    unreported: HashMap<MessageName, ReceiveName>,
}

#[derive(Default)]
struct Sent {
    accepted: HashSet<u32>,
    /// None below will be accepted any more.
    floor: u32,
    next: u32,
}

impl Run {
    pub(super) fn read(history: &[Observation], options: Options) -> Result<Self, Violation> {
        let mut reader = Reader {
            run: Run { length: history.len(), ..Run::default() },
            options,
            messages: HashMap::new(),
            posted: HashMap::new(),
            queued: HashMap::new(),
            cancels: HashMap::new(),
            sent: HashMap::new(),
            lost: HashSet::new(),
            lost_peers: HashSet::new(),
            unreported: HashMap::new(),
        };
        for (at, observation) in history.iter().enumerate() {
            reader
                .handle(at, *observation)
                .map_err(|fault| Violation { at: Some(at), ..fault.at(Some(*observation)) })?;
        }
        let mut open: Vec<Name> = reader.cancels.keys().map(|receive| Name::Cancel(*receive)).collect();
        open.extend(reader.unreported.keys().map(|message| Name::Message(*message)));
        for (index, message) in reader.run.messages.iter().enumerate() {
            if !message.is_placed() && !reader.lost.contains(&index) {
                open.push(Name::Message(message.name));
            }
        }
        open.sort_unstable();
        if open.is_empty() {
            Ok(reader.run)
        } else {
            Err(Fault { rule: Rule::Unfinished, candidates: open }.at(None))
        }
    }
}

impl Reader {
    fn handle(&mut self, at: usize, observation: Observation) -> Handled {
        match observation {
            Observation::Post { receive, pattern, stay, took } => {
                if self.posted.contains_key(&receive) || self.cancels.contains_key(&receive) {
                    return Err(Rule::Record.into());
                }
                if let Some(message) = took {
                    return self.handle_look(at, pattern, message, true);
                }
                let index = self.run.receives.len();
                let (removal, matches) = (Removal::None, Vec::new());
                self.run.receives.push(Receive {
                    name: receive,
                    pattern,
                    stay,
                    posted: at,
                    removal,
                    matches,
                });
                self.posted.insert(receive, index);
                self.queued.insert(receive, index);
                Ok(())
            }
            Observation::Peek { pattern, found: Some(message), claim } => {
                self.handle_look(at, pattern, message, claim)
            }
            Observation::Peek { pattern, found: None, .. } => {
                self.run.looks.push(Look { at, pattern, found: None });
                Ok(())
            }
            Observation::Accepted { message, envelope, sent, path } => {
                self.handle_accepted(at, message, envelope, (sent, path))
            }
            Observation::MatchedByDevice { message, receive } => {
                if self.options.device_matches_reported {
                    self.unreported.insert(message, receive);
                }
                self.handle_match(at, message, receive)
            }
            Observation::Decided { message, receive } => {
                if let Some(by_device) = self.unreported.remove(&message) {
                    let same = receive == Some(by_device);
                    return if same { Ok(()) } else { Err(Rule::MessageGone.into()) };
                }
                match receive {
                    Some(receive) => self.handle_match(at, message, receive),
                    None => {
                        let index = self.undecided(message).ok_or(Rule::MessageGone)?;
                        self.run.messages[index].end = at;
                        Ok(())
                    }
                }
            }
            Observation::CancelCalled { receive } => {
                let receive_index = self.queued.get(&receive).copied();
                let new = self.run.cancels.len();
                if *self.cancels.entry(receive).or_insert(new) == new {
                    self.run.cancels.push(Cancel {
                        name: receive,
                        receive: receive_index,
                        begin: at,
                        end: NEVER,
                        cancelled: false,
                    });
                }
                Ok(())
            }
            Observation::CancelAnswered { receive, cancelled } => {
                self.handle_cancel_answered(at, receive, cancelled)
            }
            Observation::Released { receive } => {
                let index = self.posted.remove(&receive).ok_or(Rule::NotPosted)?;
                if self.run.receives[index].stay != Stay::Posted {
                    return Err(Rule::Record.into());
                }
                self.run.receives[index].removal = Removal::Point(at);
                Ok(())
            }
            Observation::PeerLost { peer } => {
                let waiting = self.messages.values().filter(|index| {
                    let message = &self.run.messages[**index];
                    !message.is_placed() && message.envelope.source == peer
                });
                self.lost.extend(waiting);
                self.lost_peers.insert(peer);
                let sent = self.sent.entry(peer).or_default();
                sent.floor = sent.next;
                Ok(())
            }
            Observation::Vanished { message } => {
                let index = self.messages.remove(&message).ok_or(Rule::MessageGone)?;
                let it = &mut self.run.messages[index];
                if it.is_unexpected() && self.lost_peers.contains(&it.envelope.source) {
                    it.taken = at;
                    return Ok(());
                }
                if self.lost.contains(&index) { Ok(()) } else { Err(Rule::Record.into()) }
            }
            Observation::GroupJoined { peer, group } => {
                self.run.groups.join(peer, group);
                Ok(())
            }
        }
    }

    fn handle_accepted(
        &mut self,
        at: usize,
        name: MessageName,
        envelope: Envelope,
        (sent, path): (u32, u8),
    ) -> Handled {
        if self.messages.contains_key(&name) || self.unreported.contains_key(&name) {
            return Err(Rule::Record.into());
        }
        let sender = self.sent.entry(envelope.source).or_default();
        if sent < sender.floor || !sender.accepted.insert(sent) {
            return Err(Rule::Record.into());
        }
        sender.next = sender.next.max(sent.saturating_add(1));
        self.messages.insert(name, self.run.messages.len());
        self.run.messages.push(Message {
            name,
            envelope,
            sent,
            path,
            begin: at,
            end: NEVER,
            receive: None,
            taken: NEVER,
        });
        Ok(())
    }

    fn handle_match(&mut self, at: usize, name: MessageName, receive: ReceiveName) -> Handled {
        let message = self.undecided(name).ok_or(Rule::MessageGone)?;
        let index = *self.posted.get(&receive).ok_or(Rule::NotPosted)?;
        let Receive { pattern, stay, matches, removal, .. } = &mut self.run.receives[index];
        if !self.run.groups.fits(pattern, &self.run.messages[message].envelope) {
            return Err(Rule::DoesNotFit.into());
        }
        match stay {
            Stay::Posted => matches.push(message),
            Stay::Once => {
                *removal = Removal::Arrival(message);
                self.posted.remove(&receive);
            }
        }
        let matched = &mut self.run.messages[message];
        (matched.end, matched.receive) = (at, Some(index));
        self.messages.remove(&name);
        Ok(())
    }

    fn handle_look(&mut self, at: usize, pattern: Pattern, name: MessageName, leaves: bool) -> Handled {
        let index = *self.messages.get(&name).ok_or(Rule::MessageGone)?;
        let message = &mut self.run.messages[index];
        if !self.run.groups.fits(&pattern, &message.envelope) {
            return Err(Rule::DoesNotFit.into());
        }
        message.end = message.end.min(at);
        if leaves {
            message.taken = at;
            self.messages.remove(&name);
        }
        self.run.looks.push(Look { at, pattern, found: Some(index) });
        Ok(())
    }

    fn handle_cancel_answered(&mut self, at: usize, name: ReceiveName, cancelled: bool) -> Handled {
        let index = self.cancels.remove(&name).ok_or(Rule::Record)?;
        let cancel = &mut self.run.cancels[index];
        (cancel.end, cancel.cancelled) = (at, cancelled);
        let posted = self.posted.get(&name).copied();
        if cancelled {
            let receive = posted.ok_or(Rule::NotPosted)?;
            self.run.receives[receive].removal = Removal::Cancel(index);
            cancel.receive = posted;
            self.posted.remove(&name);
        } else if posted.is_some_and(|receive| self.run.receives[receive].stay == Stay::Posted) {
            return Err(Rule::CancelAnswer.into());
        }
        Ok(())
    }

    fn undecided(&self, name: MessageName) -> Option<usize> {
        self.messages.get(&name).copied().filter(|index| !self.run.messages[*index].is_placed())
    }
}
