//! What goes wrong with a soft device: a lost path, a failed device, and their half-received messages
//! (TM-CONTRACT 13).

use super::completion::{Cqe, CqeOperation, TmInfo, status};
use super::device::{Output, PendingRead, ReadTarget, SoftDevice};
use super::held::{Fate, Payload, Telling};
use super::memory::Memory;
use super::peers::{Into, Receiving};
use super::steps::{info, received};
use super::switches::HalfReceived;
use crate::ids::{MessageToken, PeerId, TagHandle};
use crate::seam::{Data, DataError, DataTarget, DeviceError, Event};

impl<M: Memory> SoftDevice<M> {
    /// The QP to this peer goes to ERR. What it had sent and was not accepted is gone, what was under way is
    /// answered with an error, what is in the completion queue stands. Tags stay: they belong to the SRQ.
    pub fn fail_path(&mut self, id: PeerId) {
        let peer = self.peers.entry(id);
        if self.failure.is_some() || peer.lost {
            return;
        }
        peer.lost = true;
        peer.queue.clear();
        if let Some(receiving) = peer.receiving.take() {
            self.lose_message(id, receiving);
        }
        let (lost, kept): (Vec<_>, Vec<_>) = self.reads.iter().partition(|read| read.peer == id);
        self.reads = kept;
        for read in lost {
            self.lose_read(&read);
        }
        let at_sender: Vec<_> = self
            .held
            .iter()
            .filter(|(_, held)| {
                held.source == id && held.payload == Payload::Remote && held.fate == Fate::Undecided
            })
            .map(|(place, _)| MessageToken(place as u64))
            .collect();
        for token in at_sender {
            self.lose_held(token);
        }
        self.complete(Output::Told(Event::PathLost { peer: id }));
    }

    /// The device is of no more use. What is in the completion queue is told, then the failure.
    pub fn fail(&mut self, error: DeviceError) {
        if self.failure.is_none() {
            self.failure = Some(error);
            self.serial.clear();
            self.reads.clear();
            self.outputs.push_back(Output::Failed);
        }
    }

    /// As [`Self::fail`], but nothing that was written before is told: the driver cannot go on.
    pub(crate) fn fail_at_once(&mut self, error: DeviceError) {
        self.outputs.clear();
        self.completions_used = 0;
        self.failure = None;
        self.fail(error);
    }

    /// A5: an error completion without an entry, on a QP that is dead.
    pub(crate) fn fail_length(&mut self, id: PeerId) {
        let receive = self.matching.as_ref().and_then(|matching| matching.driver.receives.next());
        let operation = CqeOperation::Error { status: status::LOCAL_LENGTH_ERROR, vendor_error: 0 };
        let receive = receive.unwrap_or_default();
        self.complete(Output::plain(Cqe { operation, source: id, receive, ..Cqe::EMPTY }));
        self.fail_path(id);
    }

    /// The read for an entry fails, and nothing else does.
    pub(crate) fn fail_read(&mut self, handle: TagHandle) {
        if let Some(place) = self.read_place(handle) {
            let read = self.reads.remove(place);
            self.lose_read(&read);
        }
    }

    fn lose_message(&mut self, peer: PeerId, receiving: Receiving) {
        let silent = self.config.switches.half_received == HalfReceived::Silent;
        let Receiving { message, into, .. } = receiving;
        match into {
            Into::Entry { index, .. } => {
                let operation = CqeOperation::Canceled(info(&message));
                self.lose_entry(index, message.length, Cqe { operation, source: peer, ..Cqe::EMPTY });
            }
            Into::Unexpected { counted: true, .. } if silent => self.resolve(peer, None),
            Into::Unexpected { receive, counted: true } => {
                self.resolve(peer, Some(received(peer, message, receive, true, true)));
            }
            Into::Unexpected { receive, counted: false } | Into::NoTag { receive } => {
                if let Some(matching) = &mut self.matching {
                    matching.driver.receives.give_back(receive);
                }
                self.resolve(peer, None);
            }
            Into::Held(token) => self.lose_held(token),
        }
    }

    fn lose_read(&mut self, read: &PendingRead) {
        let length = read.remote.length;
        match read.target {
            ReadTarget::Entry(index) => {
                let operation = CqeOperation::Canceled(TmInfo { tag: read.tag.0, app_ctx: read.app_ctx });
                self.lose_entry(index, length, Cqe { operation, source: read.peer, ..Cqe::EMPTY });
            }
            ReadTarget::Message(token) => self.lose_held(token),
            ReadTarget::Transfer(id) => self.write(lost(DataTarget::Transfer(id), length)),
        }
    }

    fn lose_entry(&mut self, index: u16, length: u64, cqe: Cqe) {
        let output = match self.config.switches.half_received {
            HalfReceived::Canceled => Output::plain(Cqe { entry: index, byte_count: length, ..cqe }),
            // Known from the QP alone: the SRQ says nothing, and the tag never comes back.
            HalfReceived::Silent => lost(DataTarget::Entry(self.handle_of(index)), length),
        };
        self.complete_behind_match(index, output);
    }

    /// The payload of a message that the host side keeps will not come.
    pub(crate) fn lose_held(&mut self, token: MessageToken) {
        let Some(held) = self.held.find(token) else { return };
        held.payload = Payload::Lost(DataError::PathLost);
        if held.fate == Fate::Discarded {
            held.telling = Telling::Nothing;
            self.held.forget_if_done(token);
        } else {
            held.telling = Telling::Queued;
            self.write(Output::Data(token));
        }
    }
}

pub(crate) const fn lost(target: DataTarget, length: u64) -> Output {
    Output::Told(Event::Data(Data { target, length, immediate: None, error: Some(DataError::PathLost) }))
}
