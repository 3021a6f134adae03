//! Runs one script on one port, and says what it saw.
//!
//! The first thing that is not as the script says ends it: what follows would mean nothing.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use crate::port::{Abilities, Posting, PostingKind, TmDevice, TmPort, sizes};
use crate::record::{Record, Seen};
use crate::refusal::NO_TAGS;
use crate::script::{
    Bytes, Completion, Count, Creation, Expected, Form, Limit, Message, Operation, OperationKind, Script,
    Setup, Step, Target, flags, opcode, status,
};

/// What came of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// How it ended.
    pub verdict: Verdict,
    /// What was seen up to there.
    pub records: Vec<Record>,
}

/// How a script ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Everything was as it says.
    Passed,
    /// What was not.
    Failed(String),
    /// Why it was not run.
    Skipped(String),
}

/// Run a script on a device, from nothing to nothing.
pub fn run(script: &Script, device: &mut dyn TmDevice) -> Outcome {
    let abilities = device.abilities();
    if let Some(reason) = reason_to_skip(script, &abilities) {
        return Outcome { verdict: Verdict::Skipped(reason), records: Vec::new() };
    }
    let mut port = match device.open() {
        Ok(port) => port,
        Err(error) => {
            let verdict = Verdict::Failed(format!("nothing could be opened: {error}"));
            return Outcome { verdict, records: Vec::new() };
        }
    };
    let mut runner = Runner::new(port.as_mut(), abilities);
    let set_up = script.setup.as_ref().map_or(Ok(()), |setup| runner.set_up(setup));
    let ran = set_up.and_then(|()| runner.steps(&script.steps));
    let records = runner.records;
    let torn_down = port.tear_down().map_err(|error| format!("at the end: {error}"));
    let verdict = match ran.and(torn_down) {
        Ok(()) => Verdict::Passed,
        Err(what) => Verdict::Failed(what),
    };
    Outcome { verdict, records }
}

/// Why a script cannot run on a device.
#[must_use]
pub fn reason_to_skip(script: &Script, abilities: &Abilities) -> Option<String> {
    let needs = script.needs;
    let tags = script.setup.map_or(1, |setup| setup.tags);
    if abilities.tags == 0 {
        Some(NO_TAGS.to_owned())
    } else if abilities.tags < tags {
        Some(format!("needs {tags} tags, the device has {}", abilities.tags))
    } else if needs.stepping && !abilities.stepping {
        Some("the device cannot be advanced by hand".to_owned())
    } else if needs.rendezvous && !abilities.rendezvous {
        Some("no rendezvous offload: IBV_TM_CAP_RC is clear".to_owned())
    } else {
        let unknown = needs.assumption.filter(|_| !abilities.is_model);
        unknown.map(|point| format!("depends on {point}, which is not known of a card: --probe asks"))
    }
}

pub(crate) struct Runner<'a> {
    pub(crate) port: &'a mut dyn TmPort,
    pub(crate) abilities: Abilities,
    pub(crate) records: Vec<Record>,
    /// By receive: handle and tagged buffer.
    entries: HashMap<u32, (u32, u32)>,
    /// By sender and tag: where the data of its last rendezvous lies.
    sources: HashMap<(u8, u64), (u64, u32)>,
    /// Unexpected buffers that are not posted.
    free: VecDeque<u32>,
    posted: VecDeque<u32>,
    /// UNEXPECTED completions polled.
    unexpected: u32,
    /// Within many repetitions nobody waits for what must not come.
    hurries: bool,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(port: &'a mut dyn TmPort, abilities: Abilities) -> Self {
        Self {
            port,
            abilities,
            records: Vec::new(),
            entries: HashMap::new(),
            sources: HashMap::new(),
            free: (0..sizes::UNEXPECTED_BUFFERS).collect(),
            posted: VecDeque::new(),
            unexpected: 0,
            hurries: false,
        }
    }

    pub(crate) fn set_up(&mut self, setup: &Setup) -> Result<(), String> {
        let creation = Creation {
            tags: Limit::Exactly(setup.tags),
            operations: setup.operations,
            receives: Limit::Exactly(setup.receives),
            segments: Limit::Exactly(1),
            form: Form::Whole,
        };
        self.create(&creation, Ok(None))?;
        self.receives(setup.posted, setup.posted)?;
        for sender in 0..setup.senders {
            self.port.connect(sender, false).map_err(|error| format!("sender {sender}: {error}"))?;
        }
        Ok(())
    }

    pub(crate) fn steps(&mut self, steps: &[Step]) -> Result<(), String> {
        for (number, step) in steps.iter().enumerate() {
            self.step(step).map_err(|what| format!("step {}: {what}", number + 1))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Create(creation, result) => self.create(creation, *result),
            Step::Post { operations, handles, refused } => {
                self.post(operations, handles.as_deref(), *refused)
            }
            Step::Receives { calls, taken } => self.receives(*calls, *taken),
            Step::Send(message) => self.send(message),
            Step::Settle => self.port.settle().map_err(text),
            Step::Advance(advance) => match self.port.advance(*advance).map_err(text)? {
                true => Ok(()),
                false => Err(format!("{advance:?} was not possible")),
            },
            Step::Poll(expected) => self.poll_in_order(expected),
            Step::Completions(expected) => {
                self.settle_before(expected)?;
                self.poll_in_order(expected)?;
                self.nothing_more()
            }
            Step::InAnyOrder(expected) => {
                self.settle_before(expected)?;
                self.poll_in_any_order(expected)?;
                self.nothing_more()
            }
            Step::InsidePoll(expected, steps) => self.inside_poll(expected, steps),
            Step::Sent(sender, statuses) => self.sent(*sender, statuses),
            Step::Finished(message) => self.finished(message),
            Step::Buffer(number, bytes) => self.check_buffer(*number, bytes).map(|_| ()),
            Step::FailQp(sender) => self.port.fail_qp(*sender).map_err(text),
            Step::DestroyQp(sender) => self.port.destroy_qp(*sender).map_err(text),
            Step::DestroySrq(errno) => {
                let seen = self.port.destroy_srq().map_err(text)?;
                self.records.push(Record::Destroyed(seen));
                same("ibv_destroy_srq", *errno, seen)
            }
            Step::Repeat(times, steps) => {
                let hurried = self.hurries;
                self.hurries |= *times > HURRY;
                for time in 0..*times {
                    self.steps(steps).map_err(|what| format!("time {}, {what}", time + 1))?;
                }
                self.hurries = hurried;
                Ok(())
            }
        }
    }

    fn create(&mut self, creation: &Creation, expected: Result<Option<u32>, i32>) -> Result<(), String> {
        let created = self.port.create(creation).map_err(text)?;
        self.records.push(Record::Created(created));
        match (expected, created) {
            (Ok(None), Ok(_)) => Ok(()),
            (Ok(Some(receives)), Ok(created)) => same("attr.max_wr", receives, created.receives),
            (Err(errno), Err(seen)) => same("errno of ibv_create_srq_ex", errno, seen),
            (Ok(_), Err(errno)) => Err(format!("ibv_create_srq_ex failed with errno {errno}")),
            (Err(errno), Ok(_)) => Err(format!("ibv_create_srq_ex succeeded instead of errno {errno}")),
        }
    }

    fn post(
        &mut self,
        operations: &[Operation],
        handles: Option<&[u32]>,
        refused: Option<(i32, usize)>,
    ) -> Result<(), String> {
        let list =
            operations.iter().map(|operation| self.posting(operation)).collect::<Result<Vec<_>, _>>()?;
        let posted = self.port.post_srq_ops(&list).map_err(text)?;
        let mut given = posted.handles.iter();
        for operation in operations {
            if let OperationKind::Add { receive, buffer, .. } = operation.kind
                && let Some(handle) = given.next()
            {
                self.entries.insert(receive, (*handle, buffer));
            }
        }
        self.records.push(Record::Posted(posted.handles.clone(), posted.refused));
        if posted.refused != refused {
            let seen = posted.refused;
            return Err(format!("ibv_post_srq_ops: expected (errno, bad) {refused:?}, saw {seen:?}"));
        }
        match handles {
            Some(handles) if handles != posted.handles => {
                Err(format!("handles: expected {handles:?}, saw {:?}", posted.handles))
            }
            _ => Ok(()),
        }
    }

    /// Post, whatever the answer: what was refused.
    pub(crate) fn post_freely(&mut self, operations: &[Operation]) -> Result<Option<(i32, usize)>, String> {
        let answer = self.post(operations, None, None);
        match self.records.last() {
            Some(Record::Posted(_, refused)) => Ok(*refused),
            _ => answer.map(|()| None),
        }
    }

    /// Settle, and take whatever completes.
    pub(crate) fn drain(&mut self) -> Result<Vec<Completion>, String> {
        self.port.settle().map_err(text)?;
        let mut completions = Vec::new();
        let mut last = Instant::now();
        loop {
            if let Some(completion) = self.port.start_poll().map_err(text)? {
                self.port.end_poll();
                self.take_freely(&completion);
                completions.push(completion);
                last = Instant::now();
            } else if last.elapsed() >= self.abilities.quiet {
                return Ok(completions);
            }
        }
    }

    /// Settle, and take so many completions, without waiting for more; fewer if they do not come.
    pub(crate) fn drain_some(&mut self, number: usize) -> Result<Vec<Completion>, String> {
        if self.abilities.patience.is_zero() {
            self.port.settle().map_err(text)?;
        }
        let mut completions = Vec::new();
        while completions.len() < number {
            let Some(completion) = self.wait_for_completion(false)? else { break };
            self.take_freely(&completion);
            completions.push(completion);
        }
        Ok(completions)
    }

    /// Record a completion that nothing is expected of.
    pub(crate) fn take_freely(&mut self, completion: &Completion) {
        let number = completion.wr_id.wrapping_sub(sizes::UNEXPECTED_WR_ID);
        if completion.flags & (flags::MATCH | flags::DATA_VALID) == 0
            && let Some(place) = self.posted.iter().position(|posted| u64::from(*posted) == number)
        {
            self.posted.remove(place);
            self.free.extend(u32::try_from(number));
            self.unexpected += u32::from(is_unexpected(completion));
        }
        self.records.push(Record::Completed(*completion, Seen::Nothing));
    }

    fn posting(&mut self, operation: &Operation) -> Result<Posting, String> {
        let kind = match operation.kind {
            OperationKind::Add { receive, buffer, length, segments, tag, mask } => {
                for number in buffer..buffer + segments.max(1) {
                    self.port.clear_tagged_buffer(number);
                }
                PostingKind::Add {
                    receive: receive.into(),
                    segments: (buffer..buffer + segments).map(|number| (number, length)).collect(),
                    tag,
                    mask,
                }
            }
            OperationKind::Del(Target::Handle(handle)) => PostingKind::Del(handle),
            OperationKind::Del(Target::Receive(receive)) => {
                let entry = self.entries.get(&receive);
                PostingKind::Del(entry.ok_or_else(|| format!("receive {receive} was never added"))?.0)
            }
            OperationKind::Sync => PostingKind::Sync,
            OperationKind::Unknown(opcode) => PostingKind::Unknown(opcode),
        };
        let (count, count_valid) = match operation.count {
            Count::None => (0, false),
            Count::Unflagged(count) => (count, false),
            Count::Exactly(count) => (count, true),
            Count::Polled => (self.unexpected, true),
            Count::PolledLow => (self.unexpected & 0xffff, true),
        };
        Ok(Posting { wr_id: operation.wr_id, kind, signalled: operation.signalled, count, count_valid })
    }

    pub(crate) fn receives(&mut self, calls: u32, taken: u32) -> Result<(), String> {
        let mut succeeded = 0;
        for _ in 0..calls {
            let number = self.free.front().copied().unwrap_or_default();
            match self.port.post_srq_recv(number).map_err(text)? {
                0 => {
                    succeeded += 1;
                    self.free.pop_front();
                    self.posted.push_back(number);
                }
                crate::script::ENOMEM => {}
                errno => return Err(format!("ibv_post_srq_recv failed with errno {errno}")),
            }
        }
        self.records.push(Record::Received(succeeded));
        same("receives taken", taken, succeeded)
    }

    pub(crate) fn send(&mut self, message: &Message) -> Result<(), String> {
        let length = message.source_length();
        let (address, key) = if matches!(message.kind, crate::script::MessageKind::Rendezvous { .. }) {
            let place = self.port.source(message.sender, &message.payload()).map_err(text)?;
            self.sources.insert((message.sender, message.tag), place);
            place
        } else {
            (0, 0)
        };
        debug_assert!(length <= sizes::SOURCE_STRIDE, "a rendezvous has its own stretch of memory");
        self.port.send(message.sender, &message.encode(address, key), message.immediate).map_err(text)
    }

    /// On a device that runs by itself, what must come is waited for anyway.
    fn settle_before(&mut self, expected: &[Expected]) -> Result<(), String> {
        if self.abilities.patience.is_zero() || expected.is_empty() && !self.hurries {
            self.port.settle().map_err(text)?;
        }
        Ok(())
    }

    fn poll_in_order(&mut self, expected: &[Expected]) -> Result<(), String> {
        for (number, expected) in expected.iter().enumerate() {
            let name = || format!("completion {}", number + 1);
            let completion = self.wait_for_completion(false).map_err(|what| format!("{}: {what}", name()))?;
            let Some(completion) = completion else {
                return Err(format!("{} did not come: {expected:?}", name()));
            };
            self.check(expected, &completion).map_err(|what| format!("{}: {what}", name()))?;
        }
        Ok(())
    }

    fn poll_in_any_order(&mut self, expected: &[Expected]) -> Result<(), String> {
        let mut left: Vec<_> = expected.iter().collect();
        while !left.is_empty() {
            let Some(completion) = self.wait_for_completion(false)? else {
                return Err(format!("did not come: {left:?}"));
            };
            let place = left.iter().position(|expected| expected.difference(&completion).is_none());
            let Some(place) = place else {
                self.records.push(Record::Completed(completion, Seen::Nothing));
                return Err(format!("not expected: {completion}"));
            };
            let expected = left.remove(place);
            self.check(expected, &completion)?;
        }
        Ok(())
    }

    fn inside_poll(&mut self, expected: &[Expected], steps: &[Step]) -> Result<(), String> {
        let Some((first, others)) = expected.split_first() else {
            return Err("a script must expect something inside a poll".to_owned());
        };
        let Some(completion) = self.wait_for_completion(true)? else {
            return Err(format!("did not come: {first:?}"));
        };
        self.check(first, &completion)?;
        self.steps(steps)?;
        for expected in others {
            let Some(completion) = self.port.next_poll().map_err(text)? else {
                return Err(format!("did not come within the poll: {expected:?}"));
            };
            self.check(expected, &completion)?;
        }
        self.port.end_poll();
        Ok(())
    }

    /// With `open`, the poll section in which it came stays open.
    fn wait_for_completion(&mut self, open: bool) -> Result<Option<Completion>, String> {
        let start = Instant::now();
        loop {
            if let Some(completion) = self.port.start_poll().map_err(text)? {
                if !open {
                    self.port.end_poll();
                }
                return Ok(Some(completion));
            }
            if start.elapsed() >= self.abilities.patience {
                return Ok(None);
            }
        }
    }

    fn nothing_more(&mut self) -> Result<(), String> {
        let start = Instant::now();
        loop {
            if let Some(completion) = self.port.start_poll().map_err(text)? {
                self.port.end_poll();
                self.records.push(Record::Completed(completion, Seen::Nothing));
                return Err(format!("one completion too many: {completion}"));
            }
            if self.hurries || start.elapsed() >= self.abilities.quiet {
                return Ok(());
            }
        }
    }

    fn check(&mut self, expected: &Expected, completion: &Completion) -> Result<(), String> {
        self.unexpected += u32::from(is_unexpected(completion));
        let difference = expected.difference(completion);
        if difference.is_some() {
            self.records.push(Record::Completed(*completion, Seen::Nothing));
        }
        difference.map_or(Ok(()), |what| Err(format!("{what}; saw {completion}")))?;
        let (seen, result) = match self.check_bytes(expected, completion) {
            Ok(length) => (length.map_or(Seen::Nothing, Seen::AsExpected), Ok(())),
            Err((bytes, what)) => (Seen::Other(bytes), Err(what)),
        };
        self.records.push(Record::Completed(*completion, seen));
        result
    }

    /// The bytes of a completion: how many were as they must be, or what they are.
    fn check_bytes(
        &mut self,
        expected: &Expected,
        completion: &Completion,
    ) -> Result<Option<u32>, (Vec<u8>, String)> {
        if expected.uses_receive {
            let number = completion.wr_id.wrapping_sub(sizes::UNEXPECTED_WR_ID);
            let place = self.posted.iter().position(|posted| u64::from(*posted) == number);
            let Some(number) = place.and_then(|place| self.posted.remove(place)) else {
                let what = format!("wr_id {:#x} names no receive that is posted", completion.wr_id);
                return Err((Vec::new(), what));
            };
            self.free.push_back(number);
            let Bytes::Whole(message) = &expected.bytes else { return Ok(None) };
            let wanted = self.encode(message);
            let seen = self.port.unexpected_buffer(number, length_of(&wanted));
            return if seen == wanted {
                Ok(Some(length_of(&wanted)))
            } else {
                Err((seen, "the unexpected buffer does not hold the message".to_owned()))
            };
        }
        let wanted = match &expected.bytes {
            Bytes::Any => return Ok(None),
            Bytes::Payload(message) => message.payload(),
            Bytes::Whole(message) => self.encode(message),
        };
        let entry = u32::try_from(completion.wr_id).ok().and_then(|receive| self.entries.get(&receive));
        let Some((_, buffer)) = entry.copied() else {
            return Err((Vec::new(), format!("wr_id {:#x} names no receive", completion.wr_id)));
        };
        self.check_buffer(buffer, &wanted)
            .map(Some)
            .map_err(|what| (self.port.tagged_buffer(buffer, length_of(&wanted) + GUARD), what))
    }

    fn check_buffer(&self, number: u32, wanted: &[u8]) -> Result<u32, String> {
        let length = length_of(wanted);
        let seen = self.port.tagged_buffer(number, length + GUARD);
        let (data, behind) = seen.split_at(wanted.len().min(seen.len()));
        if data != wanted {
            return Err(format!("tagged buffer {number} does not hold the data: {data:02x?}"));
        }
        if behind.iter().any(|byte| *byte != sizes::FILL) {
            return Err(format!("tagged buffer {number} was written behind byte {length}"));
        }
        Ok(length)
    }

    fn encode(&self, message: &Message) -> Vec<u8> {
        let place = self.sources.get(&(message.sender, message.tag)).copied();
        let (address, key) = place.unwrap_or_default();
        message.encode(address, key)
    }

    pub(crate) fn sent(&mut self, sender: u8, expected: &[u32]) -> Result<(), String> {
        let mut seen = Vec::new();
        let start = Instant::now();
        loop {
            seen.extend(self.port.sent(sender).map_err(text)?);
            let limit =
                if seen.len() < expected.len() { self.abilities.patience } else { self.abilities.quiet };
            if start.elapsed() >= limit {
                break;
            }
        }
        self.records.push(Record::Sent(sender, seen.clone()));
        if seen == expected {
            Ok(())
        } else {
            Err(format!("SENDs of sender {sender}: expected {expected:?}, saw {seen:?}"))
        }
    }

    fn finished(&mut self, message: &Message) -> Result<(), String> {
        let place = self.sources.get(&(message.sender, message.tag)).copied();
        let (address, key) = place.ok_or("a script must send what is to be finished")?;
        let wanted = message.encode_fin(address, key);
        let start = Instant::now();
        let seen = loop {
            let received = self.port.received(message.sender).map_err(text)?;
            if !received.is_empty() || start.elapsed() >= self.abilities.patience {
                break received;
            }
        };
        if seen.as_slice() == [wanted.as_slice()] {
            self.records.push(Record::Finished(message.sender));
            Ok(())
        } else {
            Err(format!("sender {}: expected the FIN {wanted:02x?}, saw {seen:02x?}", message.sender))
        }
    }
}

/// Whether it is the completion of a message that the device counted.
pub(crate) fn is_unexpected(completion: &Completion) -> bool {
    completion.status == status::SUCCESS
        && matches!(completion.opcode, opcode::TM_RECV | opcode::RECV)
        && completion.flags & (flags::MATCH | flags::DATA_VALID) == 0
}

fn same<T: PartialEq + std::fmt::Display>(what: &str, expected: T, seen: T) -> Result<(), String> {
    if expected == seen { Ok(()) } else { Err(format!("{what}: expected {expected}, saw {seen}")) }
}

fn text(error: crate::port::PortError) -> String {
    error.0
}

fn length_of(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// Repetitions from which on nobody waits for what must not come.
const HURRY: u32 = 10;
/// Bytes behind a payload that must not be written.
const GUARD: u32 = 64;
