//! Whether a run was correct, from what users of the endpoints see and nothing else: every operation ends once, what is
//! received is what was sent, where no fault was nothing is lost, and the order is MPI's (the checker of all rings).
//!
//! An endpoint that dies and starts again is another one (a life), and so is what it sends. A message that a fault may have
//! lost, and nobody received, counts as never sent; a receive of which the end says nothing of a message counts as never
//! posted. Whoever takes such a pair out of a history that some order explains has one left that some order explains.
//!
//! Not here: the run.

use std::collections::{BTreeMap, BTreeSet};

use super::checker::{self, MessageName, Observation, ReceiveName};
use super::endpoint::{Completed, Completion, Failure, Message, PeekAction, Space};
use super::ids::{GroupId, PeerId, Source, Tag};
use super::matching::{Envelope, Pattern, Stay};

/// See the module.
#[derive(Default)]
pub(super) struct Judge {
    lives: Vec<Life>,
    /// By endpoint: the life that it has.
    current: Vec<usize>,
    sent: Vec<Sent>,
    /// Pairs of endpoints between which something may have been lost.
    faulty: BTreeSet<(usize, usize)>,
    /// Memory may be refused.
    pub(super) may_refuse_memory: bool,
}

#[derive(Default)]
struct Life {
    node: usize,
    is_over: bool,
    histories: [Vec<Entry>; 2],
    receives: BTreeMap<u64, Receive>,
    peeks: BTreeMap<u64, Looked>,
    /// Messages claimed, by the context of the peek.
    claims: BTreeMap<u64, u32>,
    /// Those of them that are being received or dropped.
    taken: BTreeMap<u64, u32>,
}

/// A message.
struct Sent {
    from: usize,
    to: usize,
    space: Space,
    tag: Tag,
    length: u64,
    is_ended: bool,
    is_refused: bool,
    /// Somebody has it.
    is_got: bool,
}

/// A receive, as it was posted and as it ended.
#[derive(Clone)]
pub(super) struct Receive {
    pub(super) space: Space,
    pub(super) pattern: Pattern,
    pub(super) is_multi: bool,
    pub(super) address: u64,
    pub(super) length: u64,
    /// Messages that it took at once.
    pub(super) took: usize,
    /// It is on the posted list.
    pub(super) is_queued: bool,
    /// Messages, by where they begin.
    pieces: BTreeMap<u64, Vec<u32>>,
    got: usize,
    has_failed: bool,
    is_cancelling: bool,
    end: Option<End>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Received,
    Cancelled,
    Released,
    Failed,
}

/// A peek that is not answered.
#[derive(Clone, Copy)]
struct Looked {
    pattern: Pattern,
    action: PeekAction,
}

/// What is seen at an endpoint, in its order.
#[derive(Clone, Copy)]
enum Entry {
    Accepted(u32),
    Post(u64),
    Decided(u32, u64),
    Peek(Pattern, Option<u32>, bool),
    Cancel(u64),
    Answer(u64, bool),
}

type Judged = Result<(), String>;

impl Receive {
    pub(super) fn new(space: Space, pattern: Pattern, is_multi: bool, address: u64, length: u64) -> Self {
        Self {
            space,
            pattern,
            is_multi,
            address,
            length,
            took: 0,
            is_queued: false,
            pieces: BTreeMap::new(),
            got: 0,
            has_failed: false,
            is_cancelling: false,
            end: None,
        }
    }

    /// Messages in the order in which it took them.
    fn messages(&self) -> impl Iterator<Item = u32> + '_ {
        self.pieces.values().flatten().copied()
    }

    /// All of what it took is known, and of a multi-receive in which order.
    fn is_known(&self) -> bool {
        let is_clear = self.took == 0 || self.pieces.values().all(|at| at.len() == 1);
        is_clear
            && !self.has_failed
            && (self.end.is_some() || !self.is_multi && self.got > 0)
            && self.got >= self.took
    }
}

impl Judge {
    pub(super) fn is_born(&mut self, node: usize) {
        self.current.resize(self.current.len().max(node + 1), 0);
        self.current[node] = self.lives.len();
        self.lives.push(Life { node, ..Life::default() });
    }

    /// What it was asked and has not ended never will.
    pub(super) fn is_dead(&mut self, node: usize) {
        let life = self.current[node];
        self.lives[life].is_over = true;
        self.sent.iter_mut().filter(|sent| sent.from == life).for_each(|sent| sent.is_ended = true);
    }

    /// Something may be lost between these two from now on, and of what went before.
    pub(super) fn is_faulty(&mut self, one: usize, other: usize) {
        self.faulty.insert((one.min(other), one.max(other)));
    }

    pub(super) fn is_any_fault(&self) -> bool {
        !self.faulty.is_empty()
    }

    fn may_lose(&self, sent: &Sent) -> bool {
        let (from, to) = (self.lives[sent.from].node, self.lives[sent.to].node);
        self.faulty.contains(&(from.min(to), from.max(to)))
    }

    fn may_fail(&self, node: usize) -> bool {
        self.faulty.iter().any(|&(one, other)| one == node || other == node)
    }

    /// A send was taken.
    pub(super) fn sends(&mut self, from: usize, to: usize, space: Space, tag: Tag, length: u64) {
        let (from, to) = (self.current[from], self.current[to]);
        let number = u32::try_from(self.sent.len()).unwrap();
        self.lives[to].histories[space as usize].push(Entry::Accepted(number));
        let (is_ended, is_refused, is_got) = (false, false, false);
        self.sent.push(Sent { from, to, space, tag, length, is_ended, is_refused, is_got });
    }

    /// The number of the next message.
    pub(super) fn next(&self) -> u32 {
        u32::try_from(self.sent.len()).unwrap()
    }

    pub(super) fn posts(&mut self, node: usize, context: u64, receive: Receive) {
        let history = &mut self.lives[self.current[node]].histories[receive.space as usize];
        history.push(Entry::Post(context));
        if receive.is_multi && receive.is_queued {
            // When it is released is seen late: at any time from now on.
            history.push(Entry::Cancel(context));
        }
        self.lives[self.current[node]].receives.insert(context, receive);
    }

    pub(super) fn peeks(&mut self, node: usize, context: u64, pattern: Pattern, action: PeekAction) {
        self.lives[self.current[node]].peeks.insert(context, Looked { pattern, action });
    }

    /// A receive of this context is cancelled; `is_pending` as was answered.
    pub(super) fn cancels(&mut self, node: usize, context: u64, is_pending: bool) -> Judged {
        let life = &mut self.lives[self.current[node]];
        let Some(receive) = life.receives.get_mut(&context) else { return Ok(()) };
        if is_pending && receive.end.is_some() {
            return Err(format!("receive {context} has ended, and a cancel of it was taken"));
        }
        if receive.is_multi || !receive.is_queued || receive.is_cancelling || receive.end.is_some() {
            return Ok(());
        }
        let history = &mut life.histories[receive.space as usize];
        history.push(Entry::Cancel(context));
        receive.is_cancelling = is_pending;
        if !is_pending {
            history.push(Entry::Answer(context, false));
        }
        Ok(())
    }

    /// Contexts of receives, ended or not, the oldest first.
    pub(super) fn receives(&self, node: usize) -> Vec<u64> {
        self.lives[self.current[node]].receives.keys().copied().collect()
    }

    /// Contexts of receives that have not ended, the oldest first.
    pub(super) fn posted(&self, node: usize) -> Vec<u64> {
        let receives = self.lives[self.current[node]].receives.iter();
        receives.filter(|(_, receive)| receive.end.is_none()).map(|(context, _)| *context).collect()
    }

    /// Contexts of claims.
    pub(super) fn claims(&self, node: usize) -> Vec<u64> {
        self.lives[self.current[node]].claims.keys().copied().collect()
    }

    /// What was claimed is received or dropped.
    pub(super) fn takes(&mut self, node: usize, context: u64) {
        let life = &mut self.lives[self.current[node]];
        if let Some(message) = life.claims.remove(&context) {
            life.taken.insert(context, message);
        }
    }

    /// Sends and claims under way: whether all is over but what is posted.
    pub(super) fn is_over(&self) -> bool {
        self.sent.iter().all(|sent| sent.is_ended)
            && self.lives.iter().all(|life| life.is_over || life.taken.is_empty())
    }

    /// An endpoint said something; `text` is what lies where it says that it has put a payload.
    pub(super) fn hears(&mut self, node: usize, said: &Completion, text: &[u8]) -> Judged {
        if said.context & SENDS != 0 {
            return self.hears_of_send(node, said);
        }
        let at = self.current[node];
        let life = &self.lives[at];
        if let Some(looked) = life.peeks.get(&said.context).copied() {
            self.lives[at].peeks.remove(&said.context);
            return self.hears_of_peek(at, said, looked);
        }
        if let Some(&message) = life.taken.get(&said.context) {
            self.lives[at].taken.remove(&said.context);
            return match said.what {
                Completed::Received { message: told, placed, .. } => {
                    self.is_whole(at, said.space, &told, placed, LENGTH_OF_CLAIMS, text)?;
                    self.is_it(message, &told)
                }
                Completed::Peeked(told) => self.is_it(message, &told),
                Completed::Failed(_) if self.may_lose(&self.sent[message as usize]) => Ok(()),
                other => Err(format!("the claim of m{message} ended with {other:?}")),
            };
        }
        self.hears_of_receive(at, said, text)
    }

    fn hears_of_send(&mut self, node: usize, said: &Completion) -> Judged {
        let number = usize::try_from(said.context ^ SENDS).unwrap();
        let may_lose = self.may_lose(&self.sent[number]);
        let sent = &mut self.sent[number];
        if sent.from != self.current[node] || std::mem::replace(&mut sent.is_ended, true) {
            return Err(format!("the send of m{number} ended twice, or elsewhere: {said:?}"));
        }
        match said.what {
            Completed::Sent => Ok(()),
            Completed::Failed(Failure::Memory | Failure::ReadFailed) if self.may_refuse_memory => {
                sent.is_refused = true;
                if sent.is_got { Err(format!("m{number} was refused, and came")) } else { Ok(()) }
            }
            Completed::Failed(_) if may_lose => Ok(()),
            other => Err(format!("the send of m{number} ended with {other:?}, and there was no fault")),
        }
    }

    fn hears_of_peek(&mut self, at: usize, said: &Completion, looked: Looked) -> Judged {
        let found = match said.what {
            Completed::Peeked(message) => Some(self.number_of(at, said.space, &message)?),
            Completed::NoMessage => None,
            Completed::Failed(_) if self.may_fail(self.lives[at].node) => return Ok(()),
            other => return Err(format!("a peek was answered {other:?}")),
        };
        let is_taken = looked.action != PeekAction::Look;
        if let Some(message) = found.filter(|_| is_taken) {
            self.is_got(message)?;
            if looked.action == PeekAction::Claim {
                self.lives[at].claims.insert(said.context, message);
            }
        }
        let history = &mut self.lives[at].histories[said.space as usize];
        history.push(Entry::Peek(looked.pattern, found, is_taken && found.is_some()));
        Ok(())
    }

    fn hears_of_receive(&mut self, at: usize, said: &Completion, text: &[u8]) -> Judged {
        let may_fail = self.may_fail(self.lives[at].node);
        let wrong = |what: &str| Err(format!("receive {} {what}: {said:?}", said.context));
        let Some(receive) = self.lives[at].receives.get(&said.context).cloned() else {
            return wrong("is none");
        };
        if receive.end.is_some() || receive.space != said.space {
            return wrong("ended before, or elsewhere");
        }
        let end = match said.what {
            Completed::Received { message, address, placed, released } => {
                let number = self.number_of(at, said.space, &message)?;
                let Some(room) =
                    address.checked_sub(receive.address).and_then(|at| receive.length.checked_sub(at))
                else {
                    return wrong("has a message elsewhere");
                };
                self.is_whole(at, said.space, &message, placed, room, text)?;
                self.is_got(number)?;
                let receive = self.lives[at].receives.get_mut(&said.context).unwrap();
                receive.pieces.entry(address).or_default().push(number);
                receive.got += 1;
                self.lives[at].histories[said.space as usize].push(Entry::Decided(number, said.context));
                match (receive_is_multi(&self.lives[at], said.context), released) {
                    (true, false) => return Ok(()),
                    (true, true) => End::Released,
                    (false, _) => End::Received,
                }
            }
            Completed::Released if receive.is_multi => End::Released,
            Completed::Cancelled if receive.is_cancelling || receive.is_multi => End::Cancelled,
            Completed::Failed(_) if may_fail || self.may_refuse_memory => {
                self.lives[at].receives.get_mut(&said.context).unwrap().has_failed = true;
                if receive.is_multi {
                    return Ok(());
                }
                End::Failed
            }
            _ => return wrong("ended so"),
        };
        let life = &mut self.lives[at];
        let receive = life.receives.get_mut(&said.context).unwrap();
        receive.end = Some(end);
        if receive.is_multi && receive.is_queued {
            life.histories[said.space as usize].push(Entry::Answer(said.context, true));
        } else if receive.is_cancelling {
            let is_cancelled = end == End::Cancelled;
            life.histories[said.space as usize].push(Entry::Answer(said.context, is_cancelled));
        }
        Ok(())
    }

    /// Which message it is: its remote CQ data says so.
    fn number_of(&self, at: usize, space: Space, message: &Message) -> Result<u32, String> {
        let number = message.cq_data.filter(|&number| (number as usize) < self.sent.len());
        let Some(number) = number else { return Err(format!("{message:?} was never sent")) };
        let sent = &self.sent[number as usize];
        let from = self.lives[sent.from].node as u64;
        let is_tag = space == Space::Untagged || message.tag == sent.tag;
        let is_same = (sent.to, sent.space, sent.length) == (at, space, message.length) && is_tag;
        if is_same && message.source.is_some_and(|source| source.0 == from) && !sent.is_refused {
            return Ok(number);
        }
        Err(format!("m{number} came as {message:?}, in life {at}"))
    }

    fn is_it(&self, number: u32, message: &Message) -> Judged {
        if message.cq_data == Some(number) {
            Ok(())
        } else {
            Err(format!("m{number} was claimed, not {message:?}"))
        }
    }

    fn is_got(&mut self, number: u32) -> Judged {
        if std::mem::replace(&mut self.sent[number as usize].is_got, true) {
            return Err(format!("m{number} came twice"));
        }
        Ok(())
    }

    fn is_whole(
        &self,
        at: usize,
        space: Space,
        message: &Message,
        placed: u64,
        room: u64,
        text: &[u8],
    ) -> Judged {
        let number = self.number_of(at, space, message)?;
        let whole = payload(number, message.length);
        let fits = usize::try_from(message.length.min(room)).unwrap();
        if placed == fits as u64 && text == &whole[..fits] {
            return Ok(());
        }
        Err(format!(
            "m{number}: {placed} of {} bytes were placed in {room}, and are not right",
            message.length
        ))
    }

    /// The run is over.
    pub(super) fn finish(&self) -> Judged {
        for (number, sent) in self.sent.iter().enumerate() {
            if !sent.is_ended {
                return Err(format!("the send of m{number} never ended"));
            }
            if !sent.is_got && !sent.is_refused && !self.may_lose(sent) {
                return Err(format!("m{number} never came, and there was no fault"));
            }
        }
        for life in self.lives.iter().filter(|life| !life.is_over) {
            let open = life.receives.iter().find(|(_, receive)| receive.end.is_none());
            if let Some((context, _)) = open {
                return Err(format!("receive {context} of endpoint {} never ended", life.node));
            }
        }
        for (at, life) in self.lives.iter().enumerate() {
            for space in [Space::Tagged, Space::Untagged] {
                let history = self.history(at, space);
                checker::check(&history, checker::Options::default()).map_err(|violation| {
                    let (node, text) = (life.node, checker::print(&history));
                    format!("endpoint {node}, life {at}, {space:?}: {violation}\n{text}")
                })?;
            }
        }
        Ok(())
    }

    /// What the checker sees of one life.
    fn history(&self, at: usize, space: Space) -> Vec<Observation> {
        let life = &self.lives[at];
        let nodes = self
            .lives
            .iter()
            .enumerate()
            .map(|(at, life)| (peer(at), GroupId(u32::try_from(life.node).unwrap())));
        let mut history: Vec<Observation> =
            nodes.map(|(peer, group)| Observation::GroupJoined { peer, group }).collect();
        // Those that took messages nobody knows of are left out with what they took.
        let unknown: BTreeSet<u32> =
            life.receives.values().filter(|it| !it.is_known()).flat_map(Receive::messages).collect();
        let kept = |context: &u64| life.receives.get(context).filter(|receive| receive.is_known());
        let name = |context: u64| ReceiveName(u32::try_from(context).unwrap());
        let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
        for entry in &life.histories[space as usize] {
            match *entry {
                Entry::Accepted(number) => {
                    let sent = &self.sent[number as usize];
                    if sent.is_got && !unknown.contains(&number) {
                        let count = counts.entry(sent.from).or_default();
                        let envelope = Envelope { tag: tag_in(space, sent.tag), source: peer(sent.from) };
                        let message = MessageName(number);
                        history.push(Observation::Accepted { message, envelope, sent: *count, path: 0 });
                        *count += 1;
                    }
                }
                Entry::Post(context) => {
                    let Some(receive) = kept(&context) else { continue };
                    let stay = if receive.is_multi { Stay::Posted } else { Stay::Once };
                    let post = |took| Observation::Post {
                        receive: name(context),
                        pattern: receive.pattern,
                        stay,
                        took,
                    };
                    let took =
                        receive.messages().take(receive.took).map(|number| post(Some(MessageName(number))));
                    history.extend(took);
                    history.extend(receive.is_queued.then(|| post(None)));
                }
                Entry::Decided(number, context) => {
                    let took =
                        |receive: &Receive| receive.messages().take(receive.took).any(|it| it == number);
                    if kept(&context).is_some_and(|receive| !took(receive)) {
                        let (message, receive) = (MessageName(number), Some(name(context)));
                        history.push(Observation::Decided { message, receive });
                    }
                }
                Entry::Peek(pattern, found, claim) => {
                    if found.is_none_or(|found| self.sent[found as usize].is_got && !unknown.contains(&found))
                    {
                        let found = found.map(MessageName);
                        history.push(Observation::Peek { pattern, found, claim });
                    }
                }
                Entry::Cancel(context) if kept(&context).is_some() => {
                    history.push(Observation::CancelCalled { receive: name(context) });
                }
                Entry::Answer(context, cancelled) if kept(&context).is_some() => {
                    history.push(Observation::CancelAnswered { receive: name(context), cancelled });
                }
                Entry::Cancel(_) | Entry::Answer(..) => {}
            }
        }
        history
    }
}

fn receive_is_multi(life: &Life, context: u64) -> bool {
    life.receives.get(&context).is_some_and(|receive| receive.is_multi)
}

fn peer(life: usize) -> PeerId {
    PeerId(u32::try_from(life).unwrap())
}

fn tag_in(space: Space, tag: Tag) -> Tag {
    if space == Space::Tagged { tag } else { Tag(0) }
}

/// A pattern as the checker sees it: a sender is whoever lives at that endpoint.
pub(super) fn from(node: Option<u64>) -> Source {
    node.map_or(Source::Any, |node| Source::Group(GroupId(u32::try_from(node).unwrap())))
}

/// Bytes by which a message is known again.
pub(super) fn payload(number: u32, length: u64) -> Vec<u8> {
    let start = u64::from(number).wrapping_mul(0x9E37_79B9);
    (0..length).map(|at| u8::try_from((start + at * 7) % 251).unwrap()).collect()
}

/// Contexts of sends are their messages' numbers with this.
pub(super) const SENDS: u64 = 1 << 40;
/// Of what is received by a claim, in bytes.
pub(super) const LENGTH_OF_CLAIMS: u64 = super::script::LENGTH_MAX;
