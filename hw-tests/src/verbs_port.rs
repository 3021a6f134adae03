//! Scripts on a verbs device: the driver, and whatever stands behind it.
//!
//! All QPs are on one port of one device, connected to each other. A sender has a send QP and, as TM-CONTRACT 4
//! wants, a receive QP without a send queue on the SRQ.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tagmatch::device::verbs::sys::{
    IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ, IBV_SRQ_INIT_ATTR_CQ, IBV_SRQ_INIT_ATTR_TM, IBV_TM_CAP_RC,
};

use crate::port::{Abilities, PortError, Posted, Posting, PostingKind, TmDevice, TmPort, sizes};
use crate::script::{Advance, Completion, Created, Creation, Form, flags};
use crate::verbs::{
    Connection, Cq, CqEx, Device, Operation, OperationKind, Part, Pd, Qp, QpForm, Raw, Region, Request, Srq,
    SrqForm, SrqRequest, Wr,
};

/// Who moves the device on.
pub trait Drive {
    /// Whether the device moves on by its own and never waits for anybody.
    fn is_free(&self) -> bool;

    /// Whether it is a model that reads the doubtful points of TM-CONTRACT 14 as we do.
    fn is_model(&self) -> bool;

    /// Let it do all it can.
    fn settle(&mut self);

    /// Let it do one thing. The QPs of senders are (send, receive). False: it was not possible.
    fn advance(&mut self, step: Advance, qps: &[(u32, u32)]) -> bool;
}

/// A device that runs by itself: a card, or a model with a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Free {
    /// See [`Drive::is_model`].
    pub is_model: bool,
    /// How long nothing must come until nothing will.
    pub quiet: Duration,
}

impl Drive for Free {
    fn is_free(&self) -> bool {
        true
    }

    fn is_model(&self) -> bool {
        self.is_model
    }

    fn settle(&mut self) {
        let start = Instant::now();
        while start.elapsed() < self.quiet {
            std::hint::spin_loop();
        }
    }

    fn advance(&mut self, _step: Advance, _qps: &[(u32, u32)]) -> bool {
        false
    }
}

/// A verbs device to run scripts on.
pub struct VerbsTm {
    device: Rc<Device>,
    drive: Box<dyn Drive>,
    quiet: Duration,
}

impl std::fmt::Debug for VerbsTm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VerbsTm").field("device", &self.device).finish_non_exhaustive()
    }
}

impl VerbsTm {
    /// A device that is driven so; `quiet`: see [`Abilities::quiet`].
    #[must_use]
    pub fn new(device: Rc<Device>, drive: Box<dyn Drive>, quiet: Duration) -> Self {
        Self { device, drive, quiet }
    }

    /// The device.
    #[must_use]
    pub const fn device(&self) -> &Rc<Device> {
        &self.device
    }
}

impl TmDevice for VerbsTm {
    fn name(&self) -> String {
        format!("{} (firmware {}, port {})", self.device.name(), self.device.firmware(), self.device.port())
    }

    fn abilities(&self) -> Abilities {
        let attributes = self.device.attributes();
        let (tm, basic) = (attributes.tm_caps, &attributes.orig_attr);
        let free = self.drive.is_free();
        Abilities {
            tags: tm.max_num_tags,
            receives: u32::try_from(basic.max_srq_wr).unwrap_or_default(),
            segments: u32::try_from(basic.max_srq_sge).unwrap_or_default(),
            rendezvous: tm.flags & IBV_TM_CAP_RC != 0,
            stepping: !free,
            is_model: self.drive.is_model(),
            port: self.device.port(),
            roce: self.device.is_ethernet(),
            patience: if free { PATIENCE } else { Duration::ZERO },
            quiet: if free { self.quiet } else { Duration::ZERO },
        }
    }

    fn open(&mut self) -> Result<Box<dyn TmPort + '_>, PortError> {
        let pd = Pd::new(&self.device).map_err(|errno| PortError::call("ibv_alloc_pd", errno))?;
        let cq = CqEx::new(&self.device, CQ_ENTRIES);
        let cq = cq.map_err(|errno| PortError::call("ibv_create_cq_ex", errno))?;
        let tagged = region(&pd, sizes::TAGGED_BUFFERS * sizes::TAGGED_STRIDE, IBV_ACCESS_LOCAL_WRITE)?;
        let unexpected = region(&pd, sizes::UNEXPECTED_BUFFERS * sizes::UNEXPECTED, IBV_ACCESS_LOCAL_WRITE)?;
        let device = Rc::clone(&self.device);
        let drive = self.drive.as_mut();
        Ok(Box::new(VerbsPort {
            senders: Vec::new(),
            srq: None,
            cq: Some(cq),
            plain: None,
            tagged,
            unexpected,
            pd,
            device,
            drive,
        }))
    }
}

/// Fields are dropped in this order.
struct VerbsPort<'a> {
    senders: Vec<Sender>,
    srq: Option<Rc<Srq>>,
    cq: Option<Rc<CqEx>>,
    plain: Option<Rc<Cq>>,
    tagged: Rc<Region>,
    unexpected: Rc<Region>,
    pd: Rc<Pd>,
    device: Rc<Device>,
    drive: &'a mut dyn Drive,
}

struct Sender {
    qps: Option<(Qp, Qp)>,
    numbers: (u32, u32),
    send_cq: Rc<Cq>,
    recv_cq: Rc<Cq>,
    /// What is sent from, what is received into, what is read from.
    memory: Rc<Region>,
    posted: u64,
    completed: u64,
    told: VecDeque<u32>,
    sources: u32,
}

impl VerbsPort<'_> {
    fn srq(&self) -> Result<&Rc<Srq>, PortError> {
        self.srq.as_ref().ok_or_else(|| PortError("a script must create an SRQ first".to_owned()))
    }

    fn cq(&self) -> Result<&Rc<CqEx>, PortError> {
        self.cq.as_ref().ok_or_else(|| PortError("everything was taken down".to_owned()))
    }

    fn sender(&mut self, sender: u8) -> Result<&mut Sender, PortError> {
        let known = self.senders.get_mut(usize::from(sender));
        known.ok_or_else(|| PortError(format!("sender {sender} is not connected")))
    }

    fn numbers(&self) -> Vec<(u32, u32)> {
        self.senders.iter().map(|sender| sender.numbers).collect()
    }

    fn operation(&self, posting: &Posting) -> Operation {
        let kind = match &posting.kind {
            PostingKind::Add { receive, segments, tag, mask } => OperationKind::Add {
                receive: *receive,
                segments: segments
                    .iter()
                    .map(|(number, length)| self.tagged_part(*number, *length))
                    .collect(),
                tag: *tag,
                mask: *mask,
            },
            PostingKind::Del(handle) => OperationKind::Del(*handle),
            PostingKind::Sync => OperationKind::Sync,
            PostingKind::Unknown(opcode) => OperationKind::Unknown(*opcode),
        };
        let Posting { wr_id, signalled, count, count_valid, .. } = *posting;
        Operation { wr_id, kind, signalled, count, count_valid }
    }

    fn tagged_part(&self, number: u32, length: u32) -> Part {
        self.tagged.part((number * sizes::TAGGED_STRIDE) as usize, length as usize)
    }

    fn translate(&self, raw: &Raw) -> Completion {
        let sender = self.senders.iter().position(|sender| sender.numbers.1 == raw.qp_num);
        Completion {
            status: raw.status,
            wr_id: raw.wr_id,
            opcode: raw.opcode,
            flags: raw.flags & flags::LOOKED_AT,
            byte_len: raw.byte_len,
            tag: raw.tag,
            word: raw.word,
            immediate: raw.immediate,
            sender: sender.and_then(|sender| u8::try_from(sender).ok()),
            vendor_error: raw.vendor_error,
        }
    }

    fn make_qps(
        &self,
        send_cq: &Rc<Cq>,
        recv_cq: &Rc<Cq>,
        with_send_queue: bool,
    ) -> Result<(Qp, Qp), PortError> {
        let failed = |(call, errno)| PortError::call(call, errno);
        let form = QpForm {
            send_cq: Rc::clone(send_cq),
            recv_cq: Rc::clone(recv_cq),
            srq: None,
            sends: SENDS,
            receives: FINS,
            segments: 1,
            inline: 0,
        };
        let on_srq = QpForm {
            srq: Some(Rc::clone(self.srq()?)),
            sends: u32::from(with_send_queue),
            receives: 0,
            ..form.clone()
        };
        let send = Qp::new(&self.pd, form).map_err(failed)?;
        let receive = Qp::new(&self.pd, on_srq).map_err(failed)?;
        receive.connect(&Connection::to(send.number())).map_err(failed)?;
        send.connect(&Connection::to(receive.number())).map_err(failed)?;
        Ok((send, receive))
    }
}

impl Sender {
    fn post_fin_buffer(&self, number: u32) -> Result<(), PortError> {
        let Some((send, _)) = &self.qps else { return Ok(()) };
        let part = self.memory.part(FIN_START + number as usize * FIN_LENGTH, FIN_LENGTH);
        send.post_recv(number.into(), &[part]).map_err(|errno| PortError::call("ibv_post_recv", errno))
    }

    fn reap(&mut self) -> Result<(), PortError> {
        while let Some(completion) =
            self.send_cq.poll().map_err(|errno| PortError::call("ibv_poll_cq", errno))?
        {
            self.completed += 1;
            self.told.push_back(completion.status);
        }
        Ok(())
    }
}

impl TmPort for VerbsPort<'_> {
    fn create(&mut self, creation: &Creation) -> Result<Result<Created, i32>, PortError> {
        let attributes = self.device.attributes();
        let tags = creation.tags.of(attributes.tm_caps.max_num_tags);
        let receives =
            creation.receives.of(u32::try_from(attributes.orig_attr.max_srq_wr).unwrap_or_default());
        let segments =
            creation.segments.of(u32::try_from(attributes.orig_attr.max_srq_sge).unwrap_or_default());
        let without = match creation.form {
            Form::NoCq => IBV_SRQ_INIT_ATTR_CQ,
            Form::NoTm => IBV_SRQ_INIT_ATTR_TM,
            Form::TypeAndPdOnly => IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
            Form::Whole | Form::PlainCq | Form::BasicSrq => 0,
        };
        if creation.form == Form::PlainCq && self.plain.is_none() {
            let plain = Cq::new(&self.device, CQ_ENTRIES, None);
            self.plain = Some(plain.map_err(|errno| PortError::call("ibv_create_cq", errno))?);
        }
        let plain = self.plain.as_ref().filter(|_| creation.form == Form::PlainCq);
        let operations = creation.operations;
        let form = if creation.form == Form::BasicSrq {
            SrqForm::Basic
        } else {
            SrqForm::Tm { tags, operations, cq: self.cq()?, without, plain }
        };
        let srq = match Srq::new(&self.pd, &SrqRequest { receives, segments, form }) {
            Ok(srq) => srq,
            Err(errno) => return Ok(Err(errno)),
        };
        if creation.form != Form::BasicSrq {
            srq.number().map_err(|errno| PortError::call("ibv_get_srq_num", errno))?;
        }
        let created = Created { receives: srq.receives() };
        self.srq = Some(srq);
        Ok(Ok(created))
    }

    fn connect(&mut self, sender: u8, with_send_queue: bool) -> Result<(), PortError> {
        if usize::from(sender) != self.senders.len() {
            return Err(PortError(format!("sender {sender} is not the next one")));
        }
        let cq = |entries| {
            Cq::new(&self.device, entries, None).map_err(|errno| PortError::call("ibv_create_cq", errno))
        };
        let (send_cq, recv_cq) = (cq(SENDS)?, cq(2 * FINS)?);
        let access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
        let length = SOURCE_START + sizes::SOURCE as usize;
        let memory = region(&self.pd, u32::try_from(length).unwrap_or(u32::MAX), access)?;
        let (send, receive) = self.make_qps(&send_cq, &recv_cq, with_send_queue)?;
        let numbers = (send.number(), receive.number());
        let sender = Sender {
            qps: Some((send, receive)),
            numbers,
            send_cq,
            recv_cq,
            memory,
            posted: 0,
            completed: 0,
            told: VecDeque::new(),
            sources: 0,
        };
        for number in 0..FINS {
            sender.post_fin_buffer(number)?;
        }
        self.senders.push(sender);
        Ok(())
    }

    fn post_srq_ops(&mut self, list: &[Posting]) -> Result<Posted, PortError> {
        let operations: Vec<_> = list.iter().map(|posting| self.operation(posting)).collect();
        let (handles, refused) = self.srq()?.post_ops(&operations);
        Ok(Posted { handles, refused })
    }

    fn post_srq_recv(&mut self, number: u32) -> Result<i32, PortError> {
        let (offset, length) = (number * sizes::UNEXPECTED, sizes::UNEXPECTED);
        let part = self.unexpected.part(offset as usize, length as usize);
        let posted = self.srq()?.post_recv(sizes::UNEXPECTED_WR_ID + u64::from(number), part);
        Ok(posted.err().unwrap_or_default())
    }

    fn start_poll(&mut self) -> Result<Option<Completion>, PortError> {
        let raw = self.cq()?.start_poll().map_err(|errno| PortError::call("ibv_start_poll", errno))?;
        Ok(raw.map(|raw| self.translate(&raw)))
    }

    fn next_poll(&mut self) -> Result<Option<Completion>, PortError> {
        let raw = self.cq()?.next_poll().map_err(|errno| PortError::call("ibv_next_poll", errno))?;
        Ok(raw.map(|raw| self.translate(&raw)))
    }

    fn end_poll(&mut self) {
        if let Some(cq) = &self.cq {
            cq.end_poll();
        }
    }

    fn send(&mut self, sender: u8, bytes: &[u8], immediate: Option<u32>) -> Result<(), PortError> {
        let known = self.sender(sender)?;
        let start = Instant::now();
        while known.posted - known.completed >= u64::from(SENDS) {
            known.reap()?;
            if start.elapsed() > PATIENCE {
                return Err(PortError(format!("no SEND of sender {sender} completes")));
            }
        }
        let slot = usize::try_from(known.posted % u64::from(SENDS)).unwrap_or_default() * SEND_LENGTH;
        known.memory.write(slot, bytes);
        let part = known.memory.part(slot, bytes.len());
        let parts = if bytes.is_empty() { Vec::new() } else { vec![part] };
        let Some((send, _)) = &known.qps else {
            return Err(PortError(format!("sender {sender} is gone")));
        };
        let wr = Wr::new(known.posted, Request::Send(immediate), parts);
        send.post_send(&wr).map_err(|errno| PortError::call("ibv_post_send", errno))?;
        known.posted += 1;
        Ok(())
    }

    fn sent(&mut self, sender: u8) -> Result<Vec<u32>, PortError> {
        let known = self.sender(sender)?;
        known.reap()?;
        Ok(known.told.drain(..).collect())
    }

    fn received(&mut self, sender: u8) -> Result<Vec<Vec<u8>>, PortError> {
        let known = self.sender(sender)?;
        let mut received = Vec::new();
        while let Some(completion) =
            known.recv_cq.poll().map_err(|errno| PortError::call("ibv_poll_cq", errno))?
        {
            if completion.status != 0 {
                return Err(PortError(format!(
                    "a receive of sender {sender} failed: status {}",
                    completion.status
                )));
            }
            let number = u32::try_from(completion.wr_id).unwrap_or_default();
            received.push(
                known.memory.read(FIN_START + number as usize * FIN_LENGTH, completion.byte_len as usize),
            );
            known.post_fin_buffer(number)?;
        }
        Ok(received)
    }

    fn source(&mut self, sender: u8, bytes: &[u8]) -> Result<(u64, u32), PortError> {
        let known = self.sender(sender)?;
        let place = SOURCE_START + (known.sources * sizes::SOURCE_STRIDE % sizes::SOURCE) as usize;
        known.sources += 1;
        known.memory.write(place, bytes);
        let part = known.memory.part(place, bytes.len());
        Ok((part.address, part.rkey))
    }

    fn clear_tagged_buffer(&mut self, number: u32) {
        let fill = [sizes::FILL; sizes::TAGGED_STRIDE as usize];
        self.tagged.write((number * sizes::TAGGED_STRIDE) as usize, &fill);
    }

    fn tagged_buffer(&self, number: u32, length: u32) -> Vec<u8> {
        self.tagged.read((number * sizes::TAGGED_STRIDE) as usize, length as usize)
    }

    fn unexpected_buffer(&self, number: u32, length: u32) -> Vec<u8> {
        self.unexpected.read((number * sizes::UNEXPECTED) as usize, length as usize)
    }

    fn advance(&mut self, step: Advance) -> Result<bool, PortError> {
        let qps = self.numbers();
        Ok(self.drive.advance(step, &qps))
    }

    fn settle(&mut self) -> Result<(), PortError> {
        self.drive.settle();
        Ok(())
    }

    fn fail_qp(&mut self, sender: u8) -> Result<(), PortError> {
        match &self.sender(sender)?.qps {
            Some((_, receive)) => {
                receive.fail().map_err(|errno| PortError::call("ibv_modify_qp to ERR", errno))
            }
            None => Err(PortError(format!("sender {sender} is gone"))),
        }
    }

    fn destroy_qp(&mut self, sender: u8) -> Result<(), PortError> {
        self.sender(sender)?.qps = None;
        Ok(())
    }

    fn destroy_srq(&mut self) -> Result<i32, PortError> {
        let errno = self.srq()?.destroy();
        if errno == 0 {
            self.srq = None;
        }
        Ok(errno)
    }

    fn tear_down(&mut self) -> Result<(), PortError> {
        self.end_poll();
        self.senders.clear();
        let srq = self.srq.take();
        match srq.map_or(0, |srq| srq.destroy()) {
            0 => Ok(()),
            errno => Err(PortError::call("ibv_destroy_srq", errno)),
        }
    }
}

fn region(pd: &Rc<Pd>, length: u32, access: u32) -> Result<Rc<Region>, PortError> {
    let region = Region::new(pd, length as usize, access);
    let region = region.map_err(|errno| PortError::call("ibv_reg_mr", errno))?;
    Ok(region)
}

/// How long something that must come is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
const CQ_ENTRIES: u32 = 2047;
const SENDS: u32 = 128;
/// Room for one message to be sent.
const SEND_LENGTH: usize = 32_768;
const FINS: u32 = 32;
const FIN_LENGTH: usize = 128;
const FIN_START: usize = SENDS as usize * SEND_LENGTH;
const SOURCE_START: usize = FIN_START + FINS as usize * FIN_LENGTH;
