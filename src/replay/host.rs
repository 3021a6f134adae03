//! The receiver of a replay: an engine with its devices' events and commands, and a book of what became of every
//! message and receive.
//!
//! A message's word (`app_ctx`) is its number in the trace, a receive's context is the receive's.
//!
//! Not here: who sends, where payloads go, and when devices do what they can.

use std::collections::{HashMap, HashSet};

use super::Fault;
use crate::device::Device;
use crate::engine::{CancelOutcome, ClaimId, Completion, Config, End, Engine, Kind, Posting, Receive};
use crate::ids::{DeviceId, MessageToken, ReceiveId, TagHandle};
use crate::matching::Pattern;
use crate::offload::Statistics;
use crate::seam::{Add, Answer, Buffer, Command, Event, EventSink, Placer};
use crate::traces::{Counts, MessageNumber, PeekNumber, ReceiveNumber};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) engine: Engine,
    ids: Vec<Option<ReceiveId>>,
    claims: Vec<Option<(ClaimId, MessageNumber)>>,
    ended: Vec<Ended>,
    book: Book,
    /// How a message's number is told from its word.
    number_of: fn(u32) -> u32,
    pub(super) matches: u64,
    /// Receives that were cancelled while a device had them.
    pub(super) cancelled_in_device: u64,
}

/// Names that devices use, in the trace's numbers.
#[derive(Clone, Debug, Default)]
struct Book {
    /// Messages that devices hold.
    tokens: HashMap<(DeviceId, MessageToken), u32>,
    /// The same, by their numbers.
    held: HashSet<u32>,
    /// Entries, by the context of their receive.
    entries: HashMap<(DeviceId, TagHandle), u32>,
    /// Messages whose receive is known.
    decided: HashMap<u32, u32>,
}

/// How far a receive is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Ended {
    /// Not at its end.
    #[default]
    Open,
    /// It holds this message.
    Received(u32),
    /// It holds nothing.
    Cancelled,
}

impl Host {
    /// With room for a trace of so many receives and peeks, without devices.
    pub(super) fn new(config: Config, counts: Counts, number_of: fn(u32) -> u32) -> Self {
        Self {
            engine: Engine::new(config),
            ids: vec![None; counts.receives],
            claims: vec![None; counts.peeks],
            ended: vec![Ended::Open; counts.receives],
            book: Book::default(),
            number_of,
            matches: 0,
            cancelled_in_device: 0,
        }
    }

    /// For how much it has room.
    pub(super) fn counts(&self) -> Counts {
        Counts { receives: self.ids.len(), messages: 0, peeks: self.claims.len() }
    }

    /// What offload has done.
    pub(super) fn statistics(&self) -> &Statistics {
        self.engine.statistics()
    }

    /// Hand every command to its device. False: the device has no room for all of them now.
    pub(super) fn submit(&mut self, id: DeviceId, device: &mut impl Device) -> Result<bool, Fault> {
        let commands = self.engine.poll_commands(id);
        if commands.is_empty() {
            return Ok(true);
        }
        let commands = commands.to_vec();
        for command in &commands {
            self.note_command(id, command);
        }
        let taken = device.submit(&commands).map_err(Fault::new)?;
        self.engine.handle_submitted(id, taken);
        Ok(taken == commands.len())
    }

    /// A command that is offered again is noted again, which changes nothing.
    fn note_command(&mut self, id: DeviceId, command: &Command) {
        match *command {
            Command::Add { handle, .. } => {
                if let Some(context) = self.engine.context_of(id, handle) {
                    self.book.entries.insert((id, handle), number(context));
                }
            }
            Command::Answer { message, answer } => {
                if let Some(message) = self.book.tokens.remove(&(id, message)) {
                    self.book.held.remove(&message);
                    self.book.note_accept(&self.engine, message, answer);
                }
            }
            Command::Del { .. }
            | Command::Sync { .. }
            | Command::Receive { .. }
            | Command::Read { .. }
            | Command::Copy { .. } => {}
        }
    }

    /// Let a device tell so many events at most. How many it had.
    pub(super) fn poll(&mut self, device: &mut impl Device, max: usize) -> Result<usize, Fault> {
        let mut ear = Ear { engine: &mut self.engine, book: &mut self.book, number_of: self.number_of };
        device.poll(max, &mut ear).map_err(Fault::new)
    }

    /// The oldest completion, once its receive is known to have ended as it may.
    pub(super) fn poll_completion(&mut self) -> Result<Option<Completion>, Fault> {
        let Some(completion) = self.engine.poll_completion() else {
            return match self.engine.poll_fault() {
                Some(fault) => Err(Fault::new(fault)),
                None => Ok(None),
            };
        };
        let receive = number(completion.context);
        let end = match completion.end {
            End::Received(message) => Ended::Received((self.number_of)(message.app_ctx)),
            End::Cancelled => Ended::Cancelled,
            other @ (End::Failed { .. } | End::Released) => {
                return Err(Fault::new(format!("receive {receive} ended with {other:?}")));
            }
        };
        self.end(receive, end)?;
        Ok(Some(completion))
    }

    /// A receive is posted: the message that it takes, if one fits.
    pub(super) fn post(
        &mut self,
        receive: ReceiveNumber,
        pattern: &Pattern,
        buffer: Buffer,
    ) -> Result<Option<MessageNumber>, Fault> {
        let posting = self.engine.post(&once(receive, pattern, buffer));
        Ok(self.posted(receive, &posting)?.map(|taken| taken.message))
    }

    /// The same, where a device may write at once what it holds in full.
    pub(super) fn post_placing<D: Device>(
        &mut self,
        receive: ReceiveNumber,
        pattern: &Pattern,
        buffer: Buffer,
        devices: &mut [D],
    ) -> Result<Option<Taken>, Fault> {
        let mut hand = Hand { devices, book: &mut self.book, receive };
        let posting = self.engine.post_placing(&once(receive, pattern, buffer), &mut hand);
        self.posted(receive, &posting)
    }

    fn posted(&mut self, receive: ReceiveNumber, posting: &Posting) -> Result<Option<Taken>, Fault> {
        let (message, is_placed) = match posting {
            Posting::Queued(id) => {
                set(&mut self.ids, receive.0, Some(*id));
                return Ok(None);
            }
            Posting::Matched(message) => (message, false),
            Posting::Placed(message) => (message, true),
        };
        self.matches += 1;
        let number = (self.number_of)(message.app_ctx);
        if is_placed {
            self.end(receive.0, Ended::Received(number))?;
        }
        Ok(Some(Taken { message: MessageNumber(number), length: message.length, is_placed }))
    }

    /// A receive ends, once, and with the message that was decided for it.
    fn end(&mut self, receive: u32, end: Ended) -> Result<(), Fault> {
        let Some(ended) = self.ended.get_mut(receive as usize) else {
            return Err(Fault::new(format!("receive {receive} was never posted")));
        };
        if *ended != Ended::Open {
            return Err(Fault::new(format!("receive {receive} ended twice: {ended:?}, then {end:?}")));
        }
        *ended = end;
        if let Ended::Received(message) = end {
            let decided = *self.book.decided.entry(message).or_insert(receive);
            if decided != receive {
                return Err(Fault::new(format!(
                    "message {message} was decided for receive {decided}, and came in receive {receive}"
                )));
            }
        }
        Ok(())
    }

    /// The message that fits, if any.
    pub(super) fn peek(&mut self, peek: PeekNumber, pattern: &Pattern, claim: bool) -> Option<MessageNumber> {
        if !claim {
            let found = self.engine.peek(pattern)?;
            return Some(MessageNumber((self.number_of)(found.app_ctx)));
        }
        let (claim, peeked) = self.engine.claim(pattern)?;
        let number = MessageNumber((self.number_of)(peeked.app_ctx));
        set(&mut self.claims, peek.0, Some((claim, number)));
        Some(number)
    }

    /// The message that a peek bound is received.
    pub(super) fn claim(
        &mut self,
        receive: ReceiveNumber,
        peek: PeekNumber,
        buffer: Buffer,
    ) -> Result<Option<MessageNumber>, Fault> {
        let claimed = self.claims.get_mut(peek.0 as usize).and_then(Option::take);
        let Some((claim, number)) = claimed else { return Ok(None) };
        if !self.engine.receive_claimed(claim, buffer, u64::from(receive.0)) {
            return Err(Fault::new(format!("claim {} is not there", peek.0)));
        }
        self.matches += 1;
        Ok(Some(number))
    }

    /// A receive is cancelled; the answer may have to be waited for.
    pub(super) fn cancel(&mut self, receive: ReceiveNumber) -> CancelOutcome {
        let id = self.ids.get(receive.0 as usize).copied().flatten();
        id.map_or(CancelOutcome::TooLate, |id| self.engine.cancel(id))
    }

    /// What a cancel came to.
    pub(super) fn cancelled(
        &mut self,
        receive: ReceiveNumber,
        outcome: CancelOutcome,
    ) -> Result<bool, Fault> {
        let cancelled = self.ended(receive) == Ended::Cancelled;
        if cancelled == (outcome == CancelOutcome::TooLate) {
            return Err(Fault::new(format!("cancel of receive {}: {outcome:?}", receive.0)));
        }
        self.cancelled_in_device += u64::from(cancelled && outcome == CancelOutcome::Pending);
        Ok(cancelled)
    }

    /// How far a receive is.
    pub(super) fn ended(&self, receive: ReceiveNumber) -> Ended {
        self.ended.get(receive.0 as usize).copied().unwrap_or_default()
    }

    /// Whether it is known what becomes of a message: its receive, or that it joined the unexpected list.
    pub(super) fn is_decided(&self, message: MessageNumber) -> bool {
        self.book.decided.contains_key(&message.0)
            || self.engine.waiting() == 0 && self.book.held.contains(&message.0)
    }

    /// The receive that was decided, by the host or by a device.
    pub(super) fn outcome(&self, message: MessageNumber) -> Option<u32> {
        self.book.decided.get(&message.0).copied()
    }

    /// A device matched a message with one of its entries: the entry's receive.
    pub(super) fn note_match(&mut self, id: DeviceId, handle: TagHandle, message: u32) -> Option<u32> {
        let receive = self.book.entries.get(&(id, handle)).copied()?;
        self.book.decided.insert(message, receive);
        Some(receive)
    }

    /// Receives that hold a message.
    pub(super) fn received(&self) -> u64 {
        self.ended.iter().filter(|ended| matches!(ended, Ended::Received(_))).count() as u64
    }

    /// Nothing more comes: everything must be at its end.
    pub(super) fn check_finished(&self) -> Result<(), Fault> {
        let received = self.received();
        if received != self.matches {
            return Err(Fault::new(format!("{} matches, {received} receives completed", self.matches)));
        }
        if self.engine.waiting() > 0 || self.engine.transfers() > 0 {
            return Err(Fault::new("messages wait or transfers are under way though nothing can happen"));
        }
        Ok(())
    }
}

/// A message that a post took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Taken {
    pub(super) message: MessageNumber,
    pub(super) length: u64,
    /// Its payload is in its place, and no completion follows.
    pub(super) is_placed: bool,
}

impl Book {
    /// An accepted message whose completion is still to come.
    fn note_accept(&mut self, engine: &Engine, message: u32, answer: Answer) {
        if let Answer::Accept { transfer: Some(transfer), .. } = answer
            && let Some(context) = engine.context_of_transfer(transfer)
        {
            self.decided.insert(message, number(context));
        }
    }
}

/// Writes at once what a device holds in full, and puts receives into lists at once.
struct Hand<'a, D> {
    devices: &'a mut [D],
    book: &'a mut Book,
    /// What is posted.
    receive: ReceiveNumber,
}

impl<D: Device> Placer for Hand<'_, D> {
    fn place(&mut self, device: DeviceId, message: MessageToken, buffer: &Buffer) -> bool {
        let found = self.devices.get_mut(usize::from(device.0));
        let is_placed = found.is_some_and(|found| found.place_held(message, buffer));
        if is_placed && let Some(message) = self.book.tokens.remove(&(device, message)) {
            self.book.held.remove(&message);
        }
        is_placed
    }

    fn add(&mut self, device: DeviceId, add: &Add<'_>) -> bool {
        let found = self.devices.get_mut(usize::from(device.0));
        let is_added = found.is_some_and(|found| found.add(add));
        if is_added {
            self.book.entries.insert((device, add.handle), self.receive.0);
        }
        is_added
    }
}

/// Hears what a device says before the engine does.
struct Ear<'a> {
    engine: &'a mut Engine,
    book: &'a mut Book,
    number_of: fn(u32) -> u32,
}

impl EventSink for Ear<'_> {
    fn handle_event(&mut self, device: DeviceId, event: &Event) -> Answer {
        let answer = self.engine.handle_event(device, event);
        if let Event::Arrived(arrival) = event {
            let message = (self.number_of)(arrival.header.app_ctx);
            if answer == Answer::Hold {
                self.book.tokens.insert((device, arrival.message), message);
                self.book.held.insert(message);
            } else {
                self.book.note_accept(self.engine, message, answer);
            }
        }
        answer
    }
}

fn once(receive: ReceiveNumber, pattern: &Pattern, buffer: Buffer) -> Receive {
    Receive { pattern: *pattern, buffer, context: u64::from(receive.0), kind: Kind::Once }
}

fn number(context: u64) -> u32 {
    u32::try_from(context).unwrap_or(u32::MAX)
}

fn set<T>(table: &mut Vec<Option<T>>, at: u32, value: Option<T>) {
    let at = at as usize;
    if table.len() <= at {
        table.resize_with(at + 1, || None);
    }
    table[at] = value;
}
