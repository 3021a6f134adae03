//! The steps of a soft device: what is possible now, and doing it.
//!
//! A step is what a NIC does in one piece: a command, the acceptance of a message, a further packet, a read.
//! Not here: polling, which is the host's, and failures.

use super::completion::{Cqe, CqeOperation, TmInfo, status};
use super::device::{Output, PendingRead, ReadTarget, Serial, SoftDevice, TagMatching};
use super::held::{Fate, Held, Payload, Telling};
use super::list::{Entry, Reporter};
use super::memory::Memory;
use super::message::{Acceptance, Kind, Observation, SoftMessage};
use super::peers::{Into, Peer, Receiving};
use super::receive_queue::ReceiveQueue;
use super::request::ListOperation;
use super::switches::{
    CompletionOrder, ConsumedLength, CountAt, CountOrder, EmptyRendezvous, ExpectedOrder, FewBuffers,
    FinOrder, HandBack, ImmediateOn, Malformed, NoOffload, ReadFailure, TooLong,
};
use crate::ids::{PeerId, TagHandle};
use crate::seam::{Buffer, Data, DataTarget, DeviceError, Event, Remote};

/// One thing that the device can do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// Execute the oldest command (with A3 not atomic: its count first, the rest in a second step).
    Command,
    /// Accept the first packet of this sender's next message.
    Accept(PeerId),
    /// Receive one more packet of the message that this sender has begun.
    Packet(PeerId),
    /// Finish the read at this place in the list of reads under way.
    Read(usize),
}

impl<M: Memory> SoftDevice<M> {
    /// Everything that is possible now. A message for which there is no buffer waits at its sender (RNR).
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        self.each_step(|step| {
            steps.push(step);
            true
        });
        steps
    }

    /// Do one step. False: it is not possible now, and nothing has happened.
    pub fn step(&mut self, step: Step) -> bool {
        if !self.is_possible(step) {
            return false;
        }
        match step {
            Step::Command => self.execute_command(),
            Step::Accept(peer) => self.accept_next(peer),
            Step::Packet(peer) => self.receive_packet(peer),
            Step::Read(place) => self.finish_read(place),
        }
        true
    }

    /// Do steps until none is possible: commands first, then what has begun, then new messages in the order in
    /// which they were sent.
    pub fn run(&mut self) {
        while let Some(step) = self.next_step() {
            self.step(step);
        }
    }

    fn next_step(&self) -> Option<Step> {
        let mut begun = None;
        self.each_step(|step| {
            let is_new = matches!(step, Step::Accept(_));
            if !is_new {
                begun = Some(step);
            }
            is_new
        });
        begun.or_else(|| {
            let ready = self.peers.iter().filter(|peer| self.way(peer).is_some());
            let next = ready.min_by_key(|peer| peer.queue.front().map(|queued| queued.sequence))?;
            Some(Step::Accept(next.id))
        })
    }

    /// Calls `take` with every possible step until it answers false.
    fn each_step(&self, mut take: impl FnMut(Step) -> bool) {
        if self.failure.is_some() {
            return;
        }
        if self.has_command() && !take(Step::Command) {
            return;
        }
        for place in 0..self.reads.len() {
            if self.is_read_possible(place) && !take(Step::Read(place)) {
                return;
            }
        }
        for peer in self.peers.iter() {
            let step = if self.is_packet_possible(peer) {
                Step::Packet(peer.id)
            } else if self.way(peer).is_some() {
                Step::Accept(peer.id)
            } else {
                continue;
            };
            if !take(step) {
                return;
            }
        }
    }

    fn is_possible(&self, step: Step) -> bool {
        self.failure.is_none()
            && match step {
                Step::Command => self.has_command(),
                Step::Accept(peer) => self.peers.find(peer).is_some_and(|peer| self.way(peer).is_some()),
                Step::Packet(peer) => self.peers.find(peer).is_some_and(|peer| self.is_packet_possible(peer)),
                Step::Read(place) => self.is_read_possible(place),
            }
    }

    fn has_command(&self) -> bool {
        self.matching.as_ref().is_some_and(|matching| matching.driver.next_command().is_some())
    }

    fn is_read_possible(&self, place: usize) -> bool {
        match self.reads.get(place).map(|read| read.target) {
            None => false,
            Some(ReadTarget::Entry(index)) => self.may_finish(index),
            Some(ReadTarget::Message(_) | ReadTarget::Transfer(_)) => true,
        }
    }

    fn is_packet_possible(&self, peer: &Peer) -> bool {
        match &peer.receiving {
            None => false,
            Some(Receiving { remaining: 1, into: Into::Entry { index, .. }, .. }) => self.may_finish(*index),
            Some(_) => true,
        }
    }

    /// A12
    fn may_finish(&self, index: u16) -> bool {
        self.config.switches.expected_order == ExpectedOrder::Any || self.expecting.front() == Some(&index)
    }

    /// Where the sender's next message would go; `None`: there is none, or it must wait.
    fn way(&self, peer: &Peer) -> Option<Way> {
        let message = &peer.queue.front()?.message;
        if peer.receiving.is_some() { None } else { self.way_of(message) }
    }

    /// Whether a message that is sent now can be accepted at once.
    pub(crate) fn would_accept(&self, peer: PeerId, message: &SoftMessage) -> bool {
        let waits = |peer: &Peer| peer.receiving.is_some() || !peer.queue.is_empty();
        !self.peers.find(peer).is_some_and(waits) && self.way_of(message).is_some()
    }

    fn way_of(&self, message: &SoftMessage) -> Option<Way> {
        let Some(matching) = &self.matching else { return Some(Way::Host) };
        if !self.is_operating(matching) {
            return None;
        }
        if self.may_match(message) && matching.list.find_match(message.tag.0).is_some() {
            return Some(Way::Entry);
        }
        (matching.driver.receives.posted() > 0).then_some(Way::Receive)
    }

    /// A6
    fn is_operating(&self, matching: &TagMatching) -> bool {
        let receives = &matching.driver.receives;
        match self.config.switches.few_buffers {
            FewBuffers::WaitAtStart => receives.is_started(),
            FewBuffers::WaitAlways => receives.posted() >= ReceiveQueue::MINIMUM,
            FewBuffers::Work => true,
        }
    }

    /// A9
    fn may_match(&self, message: &SoftMessage) -> bool {
        let offloaded =
            self.config.rendezvous || self.config.switches.no_offload == NoOffload::SoftwareRendezvous;
        message.is_tagged() && (message.remote().is_none() || offloaded)
    }

    fn execute_command(&mut self) {
        let Some(matching) = &mut self.matching else { return };
        let Some(command) = matching.driver.next_command().copied() else { return };
        let in_two = self.config.switches.count_order == CountOrder::BeforeChangeNotAtomic
            && command.operation != ListOperation::Noop
            && command.count.is_some();
        if in_two && !matching.count_applied {
            let reporter = match command.operation {
                ListOperation::Append(_) => Reporter::Append,
                ListOperation::Remove { .. } | ListOperation::Noop => Reporter::Other,
            };
            matching.list.report(reporter, command.count);
            matching.count_applied = true;
            return;
        }
        matching.driver.take_command();
        let count = command.count.filter(|_| !std::mem::take(&mut matching.count_applied));
        let operation = match command.operation {
            ListOperation::Append(append) => match matching.list.append(append, count) {
                Ok(_) => CqeOperation::Append { phase: matching.list.hardware_phase() },
                Err(error) => return self.fail(DeviceError::Contract(error.to_string())),
            },
            ListOperation::Remove { index } => {
                let success = matching.list.remove(index, count);
                CqeOperation::Remove { phase: matching.list.hardware_phase(), success }
            }
            ListOperation::Noop => {
                matching.list.noop(count);
                CqeOperation::Noop { phase: matching.list.hardware_phase() }
            }
        };
        if command.signalled {
            self.complete(Output::plain(Cqe { operation, ..Cqe::EMPTY }));
        }
    }

    fn accept_next(&mut self, id: PeerId) {
        let Some(way) = self.peers.find(id).and_then(|peer| self.way(peer)) else { return };
        let Some(queued) = self.peers.find_mut(id).and_then(|peer| peer.queue.pop_front()) else { return };
        let message = queued.message;
        let (tag, app_ctx) = (message.tag, message.app_ctx);
        let by = match way {
            Way::Entry => match self.matching.as_mut().and_then(|matching| matching.list.take_match(tag.0)) {
                Some(entry) => self.accept_match(id, message, entry),
                None => return,
            },
            Way::Receive => self.accept_receive(id, message),
            Way::Host => self.accept_host(id, message),
        };
        self.note(Observation::Accepted { peer: id, tag, app_ctx, by });
    }

    fn accept_match(&mut self, peer: PeerId, message: SoftMessage, entry: Entry) -> Acceptance {
        let Entry { index, buffer, .. } = entry;
        let by = Acceptance::Entry(self.handle_of(index));
        if let Kind::Rendezvous { remote, broken } = message.kind {
            self.match_rendezvous(peer, &message, &entry, remote, broken);
            return by;
        }
        if message.length > buffer.length && self.config.switches.too_long == TooLong::Error {
            self.fail_length(peer);
            return by;
        }
        let info = info(&message);
        let cqe = Cqe { entry: index, source: peer, ..Cqe::EMPTY };
        if message.packets <= 1 {
            self.place(buffer, &message);
            self.complete(Output::plain(Cqe {
                operation: CqeOperation::ConsumedMessage(info),
                byte_count: message.length,
                immediate: message.immediate,
                ..cqe
            }));
        } else {
            self.complete_consumed(cqe, &message);
            self.begin(peer, message, Into::Entry { index, buffer });
        }
        by
    }

    fn match_rendezvous(
        &mut self,
        peer: PeerId,
        message: &SoftMessage,
        entry: &Entry,
        remote: Remote,
        broken: bool,
    ) {
        let switches = self.config.switches;
        let (index, buffer) = (entry.index, entry.buffer);
        let cqe = Cqe { entry: index, source: peer, ..Cqe::EMPTY };
        let empty = remote.length == 0 && switches.empty_rendezvous == EmptyRendezvous::HandedBack;
        if self.config.rendezvous && remote.length <= buffer.length && !empty {
            self.complete_consumed(cqe, message);
            self.reads.push(PendingRead {
                peer,
                tag: message.tag,
                app_ctx: message.app_ctx,
                remote,
                buffer,
                immediate: message.immediate,
                broken,
                target: ReadTarget::Entry(index),
            });
            return;
        }
        let headers = message.rendezvous_request(remote);
        let fitting = usize::try_from(buffer.length).unwrap_or(usize::MAX).min(headers.len());
        let headers = headers.get(..fitting).unwrap_or_default();
        self.write_memory(buffer, headers);
        let info = info(message);
        let (first, second) = match switches.hand_back {
            HandBack::One => (CqeOperation::ConsumedMessageSoftwareRendezvous(info), None),
            HandBack::ThenExpected => {
                (CqeOperation::ConsumedSoftwareRendezvous(info), Some(CqeOperation::Expected))
            }
            HandBack::ThenCanceled => {
                (CqeOperation::ConsumedSoftwareRendezvous(info), Some(CqeOperation::Canceled(info)))
            }
        };
        let first =
            Cqe { operation: first, byte_count: message.wire_length(), immediate: message.immediate, ..cqe };
        self.complete(Output::Completion { cqe: first, message: Some(message.clone()), broken: false });
        if let Some(operation) = second {
            self.complete(Output::plain(Cqe { operation, ..cqe }));
        }
    }

    fn accept_receive(&mut self, peer: PeerId, message: SoftMessage) -> Acceptance {
        let switches = self.config.switches;
        let too_long = message.kind == Kind::Eager && message.length > self.config.eager_limit;
        let Some(matching) = &mut self.matching else { return Acceptance::Untagged };
        let Some(receive) = matching.driver.receives.take() else { return Acceptance::Untagged };
        let counted = message.is_tagged()
            || (message.kind == Kind::Malformed && switches.malformed == Malformed::Unexpected);
        let whole = message.packets <= 1 || message.remote().is_some();
        if counted && (whole || switches.count_at == CountAt::FirstPacket) {
            matching.list.count_unexpected();
        }
        let by = if counted { Acceptance::Unexpected } else { Acceptance::Untagged };
        if too_long {
            self.fail_length(peer);
        } else if whole {
            self.complete(received(peer, message, receive, counted, false));
        } else {
            if switches.completion_order == CompletionOrder::Arrival {
                self.serial.push_back(Serial::Waiting(peer));
            }
            let counted = counted && switches.count_at == CountAt::FirstPacket;
            let into = if by == Acceptance::Unexpected {
                Into::Unexpected { receive, counted }
            } else {
                Into::NoTag { receive }
            };
            self.begin(peer, message, into);
        }
        by
    }

    fn accept_host(&mut self, peer: PeerId, message: SoftMessage) -> Acceptance {
        if !message.is_tagged() {
            let (token, length) = (super::host::UNTAGGED, message.wire_length());
            let counted = false;
            self.write(Output::Told(Event::Untagged { source: peer, message: token, length, counted }));
            return Acceptance::Untagged;
        }
        let (payload, telling) = if message.remote().is_some() {
            (Payload::Remote, Telling::Nothing)
        } else if message.packets > 1 {
            (Payload::Coming, Telling::Data)
        } else {
            (Payload::Here, Telling::Nothing)
        };
        let coming = payload == Payload::Coming;
        let held = Held {
            source: peer,
            message: message.clone(),
            counted: false,
            payload,
            fate: Fate::Undecided,
            telling,
        };
        let token = self.held.insert(held);
        self.write(Output::Arrived(token));
        if coming {
            self.begin(peer, message, Into::Held(token));
        }
        Acceptance::Host
    }

    fn begin(&mut self, peer: PeerId, message: SoftMessage, into: Into) {
        let remaining = message.packets.saturating_sub(1);
        self.peers.entry(peer).receiving = Some(Receiving { message, remaining, into });
    }

    fn receive_packet(&mut self, id: PeerId) {
        let Some(peer) = self.peers.find_mut(id) else { return };
        let Some(receiving) = &mut peer.receiving else { return };
        receiving.remaining = receiving.remaining.saturating_sub(1);
        if receiving.remaining > 0 {
            return;
        }
        let Some(Receiving { message, into, .. }) = peer.receiving.take() else { return };
        match into {
            Into::Entry { index, buffer } => {
                self.place(buffer, &message);
                self.complete_data(index, id, message.length, message.immediate);
            }
            Into::Unexpected { receive, counted } => {
                if let Some(matching) = self.matching.as_mut().filter(|_| !counted) {
                    matching.list.count_unexpected();
                }
                self.resolve(id, Some(received(id, message, receive, true, false)));
            }
            Into::NoTag { receive } => self.resolve(id, Some(received(id, message, receive, false, false))),
            Into::Held(token) => self.host_data_arrived(token),
        }
    }

    /// The place among the reads under way of that for an entry.
    pub(crate) fn read_place(&self, handle: TagHandle) -> Option<usize> {
        let is_it = |read: &PendingRead| matches!(read.target, ReadTarget::Entry(index) if self.handle_of(index) == handle);
        self.reads.iter().position(is_it)
    }

    fn finish_read(&mut self, place: usize) {
        let Some(&read) = self.reads.get(place) else { return };
        if read.broken {
            match self.config.switches.read_failure {
                ReadFailure::QpError => self.fail_path(read.peer),
                ReadFailure::DeviceError => self.fail(DeviceError::Completion {
                    status: status::REMOTE_ACCESS_ERROR,
                    vendor_error: 0,
                    wr_id: 0,
                }),
            }
            return;
        }
        self.reads.remove(place);
        let length = read.remote.length.min(read.buffer.length);
        let source = Buffer { key: read.remote.key, ..Buffer::new(read.remote.address, read.remote.length) };
        if !self.memory.copy(source, read.buffer, length) {
            return self.fail(no_memory(read.buffer));
        }
        let fin = Observation::Fin { peer: read.peer, app_ctx: read.app_ctx };
        let first = self.config.switches.fin_order == FinOrder::BeforeExpected;
        if first {
            self.note(fin);
        }
        match read.target {
            ReadTarget::Entry(index) => {
                self.complete_data(index, read.peer, read.remote.length, read.immediate);
            }
            ReadTarget::Message(token) => self.host_data_arrived(token),
            ReadTarget::Transfer(id) => {
                let target = DataTarget::Transfer(id);
                let data = Data { target, length: read.remote.length, immediate: None, error: None };
                self.write(Output::Told(Event::Data(data)));
            }
        }
        if !first {
            self.note(fin);
        }
    }

    fn complete_consumed(&mut self, cqe: Cqe, message: &SoftMessage) {
        let switches = self.config.switches;
        let byte_count = match switches.consumed_length {
            ConsumedLength::Zero => 0,
            ConsumedLength::Arbitrary => message.wire_length().wrapping_add(1),
        };
        let immediate = message.immediate.filter(|_| switches.immediate_on == ImmediateOn::Consumed);
        let operation = CqeOperation::Consumed(info(message));
        self.expecting.push_back(cqe.entry);
        self.complete(Output::plain(Cqe { operation, byte_count, immediate, ..cqe }));
    }

    fn complete_data(&mut self, index: u16, source: PeerId, byte_count: u64, immediate: Option<u32>) {
        let immediate = immediate.filter(|_| self.config.switches.immediate_on == ImmediateOn::Expected);
        let operation = CqeOperation::Expected;
        self.note(Observation::Expected { handle: self.handle_of(index) });
        let cqe = Cqe { operation, entry: index, byte_count, source, immediate, ..Cqe::EMPTY };
        self.complete_behind_match(index, Output::plain(cqe));
    }

    /// The last completion of an entry overtakes others, but not its own match.
    pub(crate) fn complete_behind_match(&mut self, index: u16, output: Output) {
        if let Some(place) = self.expecting.iter().position(|expected| *expected == index) {
            self.expecting.remove(place);
        }
        let waits = self.serial.iter().any(|serial| match serial {
            Serial::Ready(Output::Completion { cqe, .. }) => {
                cqe.entry == index && cqe.operation.is_consumed()
            }
            Serial::Ready(_) | Serial::Waiting(_) => false,
        });
        if waits { self.serial.push_back(Serial::Ready(output)) } else { self.write(output) }
    }

    /// In its turn (TM-CONTRACT 10).
    pub(crate) fn complete(&mut self, output: Output) {
        if self.serial.is_empty() {
            self.write(output);
        } else {
            self.serial.push_back(Serial::Ready(output));
        }
    }

    /// The message coming in from that sender is complete, or gone without a completion.
    pub(crate) fn resolve(&mut self, peer: PeerId, output: Option<Output>) {
        let place = self.serial.iter().position(|serial| *serial == Serial::Waiting(peer));
        match (place.and_then(|place| self.serial.get_mut(place)), output) {
            (Some(serial), Some(output)) => *serial = Serial::Ready(output),
            (Some(_), None) => {
                place.and_then(|place| self.serial.remove(place));
            }
            (None, Some(output)) => self.complete(output),
            (None, None) => {}
        }
        while let Some(Serial::Ready(_)) = self.serial.front() {
            if let Some(Serial::Ready(output)) = self.serial.pop_front() {
                self.write(output);
            }
        }
    }

    /// Now. An entry too many in the completion queue is fatal.
    pub(crate) fn write(&mut self, output: Output) {
        if self.failure.is_some() {
            return;
        }
        if matches!(output, Output::Completion { .. }) {
            if self.completions_used >= self.config.completions {
                let entries = self.config.completions;
                return self.fail(DeviceError::Contract(format!(
                    "the completion queue of {entries} entries was overrun"
                )));
            }
            self.completions_used += 1;
        }
        self.outputs.push_back(output);
    }

    pub(crate) fn place(&mut self, buffer: Buffer, message: &SoftMessage) {
        self.write_memory(buffer, message.bytes(buffer.length));
    }

    fn write_memory(&mut self, buffer: Buffer, bytes: &[u8]) {
        if !bytes.is_empty() && !self.memory.write(buffer, 0, bytes) {
            self.fail(no_memory(buffer));
        }
    }

    pub(crate) fn handle_of(&self, index: u16) -> TagHandle {
        let name = self.matching.as_ref().and_then(|matching| matching.name(index));
        name.map_or(TagHandle { index: u32::from(index), generation: u32::MAX }, |named| named.handle)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Entry,
    Receive,
    Host,
}

impl Output {
    pub(crate) const fn plain(cqe: Cqe) -> Self {
        Self::Completion { cqe, message: None, broken: false }
    }
}

/// The completion of a message in a buffer for unexpected ones.
pub(crate) fn received(
    peer: PeerId,
    message: SoftMessage,
    receive: u64,
    unexpected: bool,
    broken: bool,
) -> Output {
    let operation = if unexpected { CqeOperation::Unexpected } else { CqeOperation::NoTag };
    let cqe = Cqe {
        operation,
        byte_count: message.wire_length(),
        source: peer,
        immediate: message.immediate,
        receive,
        ..Cqe::EMPTY
    };
    Output::Completion { cqe, message: Some(message), broken }
}

pub(crate) fn no_memory(buffer: Buffer) -> DeviceError {
    let Buffer { address, length, .. } = buffer;
    DeviceError::Contract(format!("by the host: no memory at {address:#x}, {length} bytes"))
}

pub(crate) const fn info(message: &SoftMessage) -> TmInfo {
    TmInfo { tag: message.tag.0, app_ctx: message.app_ctx }
}
