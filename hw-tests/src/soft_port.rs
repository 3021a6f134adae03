//! Scripts on the executable description of the device: `tagmatch::device::soft`.
//!
//! The driver and the device are the description's; bytes and keys are put on here. Where the senders are, and how
//! what they send comes here, is a `Wire`'s: in this process, or over verbs (`over`).

use std::cell::{RefCell, RefMut};
use std::collections::HashMap;
use std::rc::Rc;

use tagmatch::device::soft::completion::{Completion as SoftCompletion, Opcode};
use tagmatch::device::soft::driver::receive_slots;
use tagmatch::device::soft::request::{AddRequest, Limits, PostError, Refusal, Request, RequestOperation};
use tagmatch::device::soft::{
    Arena, Kind, Memory, Observation, SoftConfig, SoftDevice, SoftMessage, Step, Switches,
};
use tagmatch::ids::{PeerId, Tag};
use tagmatch::seam::{Buffer, DeviceError, Remote};

use crate::port::{Abilities, PortError, Posted, Posting, PostingKind, TmDevice, TmPort, sizes};
use crate::script::{Advance, Completion, Created, Creation, Form, flags, opcode};
use crate::wire::{Direct, Wire};

/// The description, as a device to run scripts on.
#[derive(Clone, Copy, Debug, Default)]
pub struct SoftTm {
    /// Readings of the doubtful points.
    pub switches: Switches,
    /// Whether it does everything as soon as it can, as a card does; else only when a script lets it.
    pub eager: bool,
}

impl TmDevice for SoftTm {
    fn name(&self) -> String {
        "soft (the executable description)".to_owned()
    }

    fn abilities(&self) -> Abilities {
        abilities(!self.eager)
    }

    fn open(&mut self) -> Result<Box<dyn TmPort + '_>, PortError> {
        Ok(Box::new(SoftPort::new(*self, Direct::default())))
    }
}

/// What the description can do, wherever its senders are.
pub(crate) fn abilities(stepping: bool) -> Abilities {
    let limits = Limits::default();
    Abilities {
        tags: limits.tags,
        receives: limits.receives,
        segments: limits.receive_segments,
        rendezvous: true,
        stepping,
        is_model: true,
        port: 1,
        roce: false,
        patience: std::time::Duration::ZERO,
        quiet: std::time::Duration::ZERO,
    }
}

/// One TM-SRQ of the description, with its senders at the other end of a wire.
pub(crate) struct SoftPort<W: Wire> {
    config: SoftTm,
    srq: Srq<W>,
    senders: Vec<Sender>,
    wire: Rc<RefCell<W>>,
}

/// What `ibv_create_srq_ex` made.
enum Srq<W: Wire> {
    None,
    Basic,
    Tm(Box<Tm<W>>),
}

struct Tm<W: Wire> {
    device: SoftDevice<PortMemory<W>>,
    unexpected: Vec<Vec<u8>>,
    attached: usize,
}

/// The tagged buffers; what is read from is at the other end.
struct PortMemory<W> {
    tagged: Arena,
    wire: Rc<RefCell<W>>,
}

impl<W> Clone for PortMemory<W> {
    fn clone(&self) -> Self {
        Self { tagged: self.tagged.clone(), wire: Rc::clone(&self.wire) }
    }
}

impl<W: Wire> Memory for PortMemory<W> {
    fn write(&mut self, to: Buffer, offset: u64, bytes: &[u8]) -> bool {
        self.tagged.write(to, offset, bytes)
    }

    fn copy(&mut self, from: Buffer, to: Buffer, length: u64) -> bool {
        let read = self.wire.borrow_mut().read(from.address, from.key, length);
        read.is_some_and(|bytes| self.tagged.write(to, 0, &bytes))
    }
}

#[derive(Default)]
struct Sender {
    posted: usize,
    told: usize,
    /// Tagged messages as they were sent, by tag and word.
    sent: HashMap<(u64, u32), Vec<u8>>,
    /// FINs that went to it, and those that it was asked for.
    finished: usize,
    gone: bool,
}

impl<W: Wire> SoftPort<W> {
    pub(crate) fn new(config: SoftTm, wire: W) -> Self {
        let wire = Rc::new(RefCell::new(wire));
        Self { config, srq: Srq::None, senders: Vec::new(), wire }
    }

    fn wire(&self) -> RefMut<'_, W> {
        self.wire.borrow_mut()
    }

    /// Hand over what has come, which is all that was sent.
    fn take_arrived(&mut self) -> Result<(), PortError> {
        let arrived = self.wire().arrived()?;
        for (sender, bytes, immediate) in arrived {
            let key = self.wire().key(sender);
            let message = message(&bytes, immediate, key);
            let Some(known) = self.senders.get_mut(usize::from(sender)).filter(|known| !known.gone) else {
                continue;
            };
            known.sent.insert((message.tag.0, message.app_ctx), bytes);
            let sent = self.tm()?.device.send(peer(sender), message);
            sent.map_err(|_| PortError(format!("the path to sender {sender} is lost")))?;
            self.after();
        }
        Ok(())
    }

    fn tm(&mut self) -> Result<&mut Tm<W>, PortError> {
        match &mut self.srq {
            Srq::Tm(tm) => Ok(tm),
            Srq::Basic | Srq::None => Err(PortError("a script must create a TM-SRQ first".to_owned())),
        }
    }

    fn after(&mut self) {
        if let (true, Srq::Tm(tm)) = (self.config.eager, &mut self.srq) {
            tm.device.run();
        }
    }

    fn sender(&mut self, sender: u8) -> Result<&mut Sender, PortError> {
        let known = self.senders.get_mut(usize::from(sender));
        known.ok_or_else(|| PortError(format!("sender {sender} is not connected")))
    }

    fn next(&mut self) -> Result<Option<Completion>, PortError> {
        self.take_arrived()?;
        let Srq::Tm(tm) = &mut self.srq else { return Ok(None) };
        let polled = tm.device.next_completion().map_err(|error| PortError(error.to_string()))?;
        let Some((completion, message)) = polled else { return Ok(None) };
        if let Some(message) = message {
            let sender = usize::try_from(completion.source.0).ok().and_then(|at| self.senders.get(at));
            let raw = match message.kind {
                Kind::NoTag | Kind::Malformed => message.payload.as_deref().unwrap_or_default().to_vec(),
                Kind::Eager | Kind::Rendezvous { .. } | Kind::Fin => sender
                    .and_then(|sender| sender.sent.get(&(message.tag.0, message.app_ctx)).cloned())
                    .unwrap_or_default(),
            };
            let number = completion.wr_id.wrapping_sub(sizes::UNEXPECTED_WR_ID);
            let buffer = usize::try_from(number).ok().and_then(|at| tm.unexpected.get_mut(at));
            if let Some(buffer) = buffer {
                *buffer = raw;
            }
        }
        Ok(Some(translate(&completion)))
    }

    fn completed(&self, sender: u8) -> usize {
        let Some(known) = self.senders.get(usize::from(sender)) else { return 0 };
        let Srq::Tm(tm) = &self.srq else { return known.told };
        if known.gone {
            return known.told;
        }
        known.posted - tm.device.messages_under_way(peer(sender))
    }

    /// Send the FINs of what was read.
    fn finish(&mut self) -> Result<(), PortError> {
        let Srq::Tm(tm) = &mut self.srq else { return Ok(()) };
        for observation in tm.device.take_observations() {
            let Observation::Fin { peer, app_ctx } = observation else { continue };
            let sender = usize::try_from(peer.0).ok().and_then(|at| self.senders.get_mut(at));
            let Some(sender) = sender else { continue };
            let request = sender.sent.iter().find(|(_, sent)| {
                sent.first() == Some(&1) && sent.get(4..8) == Some(&app_ctx.to_be_bytes()[..])
            });
            if let Some(fin) = request.and_then(|(_, sent)| sent.get(..32)) {
                let mut fin = fin.to_vec();
                fin[0] = 2;
                sender.finished += 1;
                let number = u8::try_from(peer.0).unwrap_or(u8::MAX);
                self.wire.borrow_mut().finish(number, &fin)?;
            }
        }
        Ok(())
    }
}

impl<W: Wire> TmPort for SoftPort<W> {
    fn create(&mut self, creation: &Creation) -> Result<Result<Created, i32>, PortError> {
        let limits = Limits::default();
        match creation.form {
            Form::Whole => {}
            // The driver looks for both in comp_mask, and takes no CQ that is not extended (TM-CONTRACT 5).
            Form::NoCq | Form::NoTm | Form::TypeAndPdOnly | Form::PlainCq => {
                return Ok(Err(crate::script::EINVAL));
            }
            Form::BasicSrq => {
                self.srq = Srq::Basic;
                let receives = receive_slots(creation.receives.of(limits.receives));
                return Ok(Ok(Created { receives }));
            }
        }
        let (tags, receives) = (creation.tags.of(limits.tags), creation.receives.of(limits.receives));
        if tags == 0 || creation.segments.of(limits.receive_segments) > limits.receive_segments {
            return Ok(Err(crate::script::EINVAL));
        }
        let config = SoftConfig {
            operations: creation.operations,
            completions: u32::MAX,
            unexpected_buffers: receives,
            eager_limit: u64::from(sizes::UNEXPECTED) - 16,
            step_mode: true,
            switches: self.config.switches,
            ..SoftConfig::matching(tags)
        };
        let tagged = Arena::new((sizes::TAGGED_BUFFERS * sizes::TAGGED_STRIDE) as usize);
        let memory = PortMemory { tagged, wire: Rc::clone(&self.wire) };
        let mut device = match SoftDevice::new(config, memory) {
            Ok(device) => device,
            Err(DeviceError::System { errno, .. }) => return Ok(Err(errno)),
            Err(error) => return Err(PortError(error.to_string())),
        };
        device.observe();
        let created = device.driver().map_or(0, |driver| driver.receives.slots());
        let unexpected = vec![Vec::new(); sizes::UNEXPECTED_BUFFERS as usize];
        self.srq = Srq::Tm(Box::new(Tm { device, unexpected, attached: 0 }));
        Ok(Ok(Created { receives: created }))
    }

    fn connect(&mut self, sender: u8, with_send_queue: bool) -> Result<(), PortError> {
        if with_send_queue {
            return Err(PortError("the description is not told of send queues".to_owned()));
        }
        self.tm()?.attached += 1;
        self.wire().connect(sender)?;
        if usize::from(sender) < self.senders.len() {
            *self.sender(sender)? = Sender::default();
            self.tm()?.device.restore_path(peer(sender));
        } else {
            self.senders.push(Sender::default());
        }
        Ok(())
    }

    fn post_srq_ops(&mut self, list: &[Posting]) -> Result<Posted, PortError> {
        self.take_arrived()?;
        let mut requests: Vec<_> = list.iter().map(request).collect();
        let result = match &mut self.srq {
            Srq::Tm(tm) => tm.device.post_srq_ops(&mut requests),
            Srq::Basic | Srq::None => {
                return Ok(Posted { refused: Some((crate::script::EINVAL, 0)), ..Posted::default() });
            }
        };
        self.after();
        let refused = match result {
            Ok(()) => None,
            Err(PostError { refusal: Refusal::Errno(errno), bad }) => Some((errno.number(), bad)),
            Err(error @ PostError { refusal: Refusal::Violation(_), .. }) => {
                return Err(PortError(error.to_string()));
            }
        };
        let taken = refused.map_or(requests.len(), |(_, bad)| bad);
        let added = requests.iter().take(taken);
        let added = added.filter(|request| matches!(request.operation, RequestOperation::Add(_)));
        Ok(Posted { handles: added.map(|request| request.handle).collect(), refused })
    }

    fn post_srq_recv(&mut self, number: u32) -> Result<i32, PortError> {
        self.take_arrived()?;
        let posted = self.tm()?.device.post_srq_recv(sizes::UNEXPECTED_WR_ID + u64::from(number));
        self.after();
        Ok(posted.err().map_or(0, |errno| errno.number()))
    }

    fn start_poll(&mut self) -> Result<Option<Completion>, PortError> {
        self.next()
    }

    fn next_poll(&mut self) -> Result<Option<Completion>, PortError> {
        self.next()
    }

    fn end_poll(&mut self) {}

    fn send(&mut self, sender: u8, bytes: &[u8], immediate: Option<u32>) -> Result<(), PortError> {
        if self.sender(sender)?.gone {
            return Err(PortError(format!("the path to sender {sender} is lost")));
        }
        self.wire().send(sender, bytes, immediate)?;
        self.sender(sender)?.posted += 1;
        Ok(())
    }

    fn sent(&mut self, sender: u8) -> Result<Vec<u32>, PortError> {
        self.take_arrived()?;
        let completed = self.completed(sender);
        if !self.sender(sender)?.gone {
            self.wire().await_sent(sender, completed)?;
        }
        let known = self.sender(sender)?;
        let new = completed - known.told;
        known.told = completed;
        Ok(vec![crate::script::status::SUCCESS; new])
    }

    fn received(&mut self, sender: u8) -> Result<Vec<Vec<u8>>, PortError> {
        self.finish()?;
        let count = std::mem::take(&mut self.sender(sender)?.finished);
        self.wire().finished(sender, count)
    }

    fn source(&mut self, sender: u8, bytes: &[u8]) -> Result<(u64, u32), PortError> {
        self.wire().source(sender, bytes)
    }

    fn clear_tagged_buffer(&mut self, number: u32) {
        if let Srq::Tm(tm) = &mut self.srq {
            let buffer = tagged(number, sizes::TAGGED_STRIDE);
            let cleared =
                write(&mut tm.device.memory.tagged, buffer, &[sizes::FILL; sizes::TAGGED_STRIDE as usize]);
            debug_assert_eq!(cleared, Ok(()), "tagged buffers are in the arena");
        }
    }

    fn tagged_buffer(&self, number: u32, length: u32) -> Vec<u8> {
        let Srq::Tm(tm) = &self.srq else { return Vec::new() };
        tm.device.memory.tagged.bytes(tagged(number, length)).unwrap_or_default().to_vec()
    }

    fn unexpected_buffer(&self, number: u32, length: u32) -> Vec<u8> {
        let Srq::Tm(tm) = &self.srq else { return Vec::new() };
        let buffer = tm.unexpected.get(number as usize);
        buffer.and_then(|buffer| buffer.get(..length as usize)).unwrap_or_default().to_vec()
    }

    fn advance(&mut self, step: Advance) -> Result<bool, PortError> {
        self.take_arrived()?;
        let device = &mut self.tm()?.device;
        Ok(match step {
            Advance::Command => device.step(Step::Command),
            Advance::Packet(sender) => {
                device.step(Step::Packet(peer(sender))) || device.step(Step::Accept(peer(sender)))
            }
            Advance::Read => device.step(Step::Read(0)),
            Advance::Any => device.steps().first().is_some_and(|step| device.step(*step)),
        })
    }

    fn settle(&mut self) -> Result<(), PortError> {
        self.take_arrived()?;
        if let Srq::Tm(tm) = &mut self.srq {
            tm.device.run();
        }
        Ok(())
    }

    fn fail_qp(&mut self, sender: u8) -> Result<(), PortError> {
        self.take_arrived()?;
        let told = self.completed(sender);
        let known = self.sender(sender)?;
        (known.told, known.gone) = (told, true);
        self.tm()?.device.fail_path(peer(sender));
        self.wire().fail(sender)
    }

    fn destroy_qp(&mut self, sender: u8) -> Result<(), PortError> {
        self.fail_qp(sender)?;
        let tm = self.tm()?;
        tm.attached = tm.attached.saturating_sub(1);
        Ok(())
    }

    fn destroy_srq(&mut self) -> Result<i32, PortError> {
        let tm = self.tm()?;
        match tm.device.destroy_srq(tm.attached) {
            Ok(()) => {
                self.srq = Srq::None;
                Ok(0)
            }
            Err(errno) => Ok(errno.number()),
        }
    }

    fn tear_down(&mut self) -> Result<(), PortError> {
        self.srq = Srq::None;
        Ok(())
    }
}

fn request(posting: &Posting) -> Request {
    let (operation, handle) = match &posting.kind {
        PostingKind::Add { receive, segments, tag, mask } => {
            let (number, length) = segments.first().copied().unwrap_or_default();
            let buffer = tagged(number, length);
            let segments = u32::try_from(segments.len()).unwrap_or(u32::MAX);
            let add = AddRequest { receive_wr_id: *receive, buffer, segments, tag: *tag, mask: *mask };
            (RequestOperation::Add(add), 0)
        }
        PostingKind::Del(handle) => (RequestOperation::Del, *handle),
        PostingKind::Sync => (RequestOperation::Sync, 0),
        PostingKind::Unknown(opcode) => (RequestOperation::Unknown(*opcode), 0),
    };
    let unexpected_count = posting.count_valid.then_some(posting.count);
    Request { wr_id: posting.wr_id, operation, signalled: posting.signalled, unexpected_count, handle }
}

/// What a SEND of these bytes is to the device, from a sender whose memory has this key.
fn message(bytes: &[u8], immediate: Option<u32>, key: u32) -> SoftMessage {
    let length = bytes.len() as u64;
    let word =
        |at: usize| bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_be_bytes);
    let wide =
        |at: usize| bytes.get(at..at + 8).and_then(|wide| wide.try_into().ok()).map(u64::from_be_bytes);
    let plain = |kind| SoftMessage { payload: Some(bytes.into()), kind, ..SoftMessage::no_tag(length) };
    let tagged = word(4).zip(wide(8));
    let message = match (bytes.first(), tagged) {
        // Of a FIN, too, the driver's side looks at the first byte alone.
        (Some(0), _) | (Some(2), None) => plain(Kind::NoTag),
        (Some(2), Some((app_ctx, tag))) => SoftMessage { app_ctx, tag: Tag(tag), ..plain(Kind::Fin) },
        (Some(3), Some((app_ctx, tag))) => {
            let payload = bytes.get(16..).unwrap_or_default();
            SoftMessage { app_ctx, ..SoftMessage::with_payload(Tag(tag), payload) }
        }
        (Some(1), Some((app_ctx, tag))) => match (wide(16), word(24), word(28)) {
            (Some(address), Some(given), Some(length)) => {
                let remote = Remote { address, key: given, length: length.into() };
                let kind = Kind::Rendezvous { remote, broken: given != key };
                let payload = bytes.get(32..).map(Into::into);
                SoftMessage { app_ctx, kind, payload, ..SoftMessage::rendezvous(Tag(tag), remote) }
            }
            _ => plain(Kind::Malformed),
        },
        _ => plain(Kind::Malformed),
    };
    let packets = u32::try_from(bytes.len()).unwrap_or(u32::MAX).div_ceil(sizes::MTU);
    SoftMessage { immediate, packets, ..message }
}

fn translate(completion: &SoftCompletion) -> Completion {
    let mut seen = 0;
    for (is_set, flag) in [
        (completion.flags.matched, flags::MATCH),
        (completion.flags.data_valid, flags::DATA_VALID),
        (completion.flags.sync_requested, flags::SYNC_REQUESTED),
        (completion.immediate.is_some(), flags::IMMEDIATE),
    ] {
        seen |= if is_set { flag } else { 0 };
    }
    let is_operation = matches!(completion.opcode, Opcode::Add | Opcode::Del | Opcode::Sync);
    Completion {
        status: completion.status,
        wr_id: completion.wr_id,
        opcode: match completion.opcode {
            Opcode::Receive => opcode::RECV,
            Opcode::Add => opcode::ADD,
            Opcode::Del => opcode::DEL,
            Opcode::Sync => opcode::SYNC,
            Opcode::TagReceive => opcode::TM_RECV,
            Opcode::NoTag => opcode::NO_TAG,
        },
        flags: seen,
        byte_len: u32::try_from(completion.byte_len).unwrap_or(u32::MAX),
        tag: completion.tm_info.tag,
        word: completion.tm_info.app_ctx,
        immediate: completion.immediate,
        sender: u8::try_from(completion.source.0).ok().filter(|_| !is_operation),
        vendor_error: completion.vendor_error,
    }
}

fn write(memory: &mut Arena, buffer: Buffer, bytes: &[u8]) -> Result<(), PortError> {
    if memory.write(buffer, 0, bytes) { Ok(()) } else { Err(PortError(format!("no memory at {buffer:?}"))) }
}

fn tagged(number: u32, length: u32) -> Buffer {
    Buffer::new(Arena::BASE + u64::from(number * sizes::TAGGED_STRIDE), length.into())
}

fn peer(sender: u8) -> PeerId {
    PeerId(sender.into())
}
