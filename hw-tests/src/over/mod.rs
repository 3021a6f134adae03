//! The description's TM-SRQ with its senders at the other end of a verbs device: scripts on soft-RoCE and on any NIC that
//! matches no tags, with nothing skipped.
//!
//! ```text
//!  script ─▶ soft port ─▶ description (driver, list, completions)
//!               │  ▲ messages, in the order in which they were sent
//!               ▼  │
//!             SRQ of this device ◀═ SEND ═ senders (of another device here, or of another machine's)
//!             READ ═▶ their memory, FIN ═▶ their receive queues
//! ```
//!
//! Real QPs carry every byte, in packets of 256; what a card would do with them the description does, step by step if
//! asked to. A SEND is taken off the ordinary SRQ at once, so that the description alone decides how long its sender
//! waits: a sender's SENDs are told to be complete when both say so.
//!
//! Not here: the senders' side ([`senders`]), and how it is spoken to on another machine ([`remote`]).

pub mod remote;
pub mod senders;

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tagmatch::device::verbs::sys::IBV_ACCESS_LOCAL_WRITE;
use tagmatch::device::verbs::sys::IBV_WC_WITH_IMM;

use crate::port::{Abilities, PortError, TmDevice, TmPort};
use crate::soft_port::{SoftPort, SoftTm, abilities};
use crate::verbs::{Connection, Cq, Device, Pd, Qp, QpForm, Region, Request, Srq, SrqForm, SrqRequest, Wr};
use crate::wire::{Arrived, Wire};
use senders::{Place, SEND_LENGTH, SENDS};

/// Senders, wherever they are.
pub trait Senders {
    /// What to call them in a report.
    fn name(&self) -> String;

    /// A sender with a QP, and where that is.
    ///
    /// # Errors
    /// Something is broken.
    fn add(&mut self, sender: u8) -> Result<Place, PortError>;

    /// Connect it with a receive QP.
    ///
    /// # Errors
    /// Something is broken.
    fn connect(&mut self, sender: u8, to: Place) -> Result<(), PortError>;

    /// Post a signalled SEND.
    ///
    /// # Errors
    /// Something is broken.
    fn send(&mut self, sender: u8, bytes: &[u8], immediate: Option<u32>) -> Result<(), PortError>;

    /// How many SENDs have completed.
    ///
    /// # Errors
    /// One failed.
    fn sent(&mut self, sender: u8) -> Result<usize, PortError>;

    /// Put these bytes where they can be read: their address.
    ///
    /// # Errors
    /// Something is broken.
    fn source(&mut self, sender: u8, bytes: &[u8]) -> Result<u64, PortError>;

    /// What has come to its own receive queue.
    ///
    /// # Errors
    /// Something is broken.
    fn received(&mut self, sender: u8) -> Result<Vec<Vec<u8>>, PortError>;

    /// All of them go.
    ///
    /// # Errors
    /// Something is broken.
    fn clear(&mut self) -> Result<(), PortError>;
}

/// The description behind a verbs device.
pub struct SoftOverVerbs {
    device: Rc<Device>,
    senders: Box<dyn Senders>,
}

impl std::fmt::Debug for SoftOverVerbs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SoftOverVerbs").field("device", &self.device).finish_non_exhaustive()
    }
}

impl SoftOverVerbs {
    /// Messages come to this device, from these senders.
    #[must_use]
    pub fn new(device: Rc<Device>, senders: Box<dyn Senders>) -> Self {
        Self { device, senders }
    }
}

impl TmDevice for SoftOverVerbs {
    fn name(&self) -> String {
        format!("soft (the executable description) over {}, from {}", self.device.name(), self.senders.name())
    }

    fn abilities(&self) -> Abilities {
        Abilities { port: self.device.port(), ..abilities(true) }
    }

    fn open(&mut self) -> Result<Box<dyn TmPort + '_>, PortError> {
        self.senders.clear()?;
        let wire = VerbsWire::new(&self.device, self.senders.as_mut())?;
        Ok(Box::new(SoftPort::new(SoftTm::default(), wire)))
    }
}

/// Fields are dropped in this order.
struct VerbsWire<'a> {
    joined: Vec<Joined>,
    srq: Rc<Srq>,
    cq: Rc<Cq>,
    buffers: Rc<Region>,
    pd: Rc<Pd>,
    device: Rc<Device>,
    senders: &'a mut dyn Senders,
    /// Of which senders the messages are that were sent and not handed over.
    order: VecDeque<u8>,
}

/// The receiving half of a sender.
struct Joined {
    qp: Qp,
    /// Of what this half sends.
    cq: Rc<Cq>,
    /// What is read comes here, and FINs go from here.
    scratch: Rc<Region>,
    key: u32,
    came: VecDeque<(Vec<u8>, Option<u32>)>,
    is_failed: bool,
}

impl<'a> VerbsWire<'a> {
    fn new(device: &Rc<Device>, senders: &'a mut dyn Senders) -> Result<Self, PortError> {
        let pd = Pd::new(device).map_err(|errno| PortError::call("ibv_alloc_pd", errno))?;
        let cq = Cq::new(device, RECEIVES, None).map_err(|errno| PortError::call("ibv_create_cq", errno))?;
        let buffers = region(&pd, RECEIVES as usize * SEND_LENGTH)?;
        let request = SrqRequest { receives: RECEIVES, segments: 1, form: SrqForm::Basic };
        let srq = Srq::new(&pd, &request).map_err(|errno| PortError::call("ibv_create_srq", errno))?;
        let wire = Self {
            joined: Vec::new(),
            srq,
            cq,
            buffers,
            pd,
            device: Rc::clone(device),
            senders,
            order: VecDeque::new(),
        };
        (0..u64::from(RECEIVES)).try_for_each(|number| wire.post(number)).map(|()| wire)
    }

    fn post(&self, number: u64) -> Result<(), PortError> {
        let place = usize::try_from(number).unwrap_or_default() * SEND_LENGTH;
        let posted = self.srq.post_recv(number, self.buffers.part(place, SEND_LENGTH));
        posted.map_err(|errno| PortError::call("ibv_post_srq_recv", errno))
    }

    fn sender(&mut self, sender: u8) -> Result<&mut Joined, PortError> {
        let known = self.joined.get_mut(usize::from(sender));
        known.ok_or_else(|| PortError(format!("sender {sender} is not connected")))
    }

    /// What has come until now.
    fn take(&mut self) -> Result<(), PortError> {
        while let Some(completion) = self.cq.poll().map_err(|errno| PortError::call("ibv_poll_cq", errno))? {
            if completion.status != 0 {
                return Err(PortError(format!("a receive failed: status {}", completion.status)));
            }
            let place = usize::try_from(completion.wr_id).unwrap_or_default() * SEND_LENGTH;
            let bytes = self.buffers.read(place, completion.byte_len as usize);
            self.post(completion.wr_id)?;
            let has_immediate = completion.wc_flags & IBV_WC_WITH_IMM != 0;
            let immediate = has_immediate.then(|| u32::from_be(completion.imm_data));
            let from = self.joined.iter_mut().find(|joined| joined.qp.number() == completion.qp_num);
            let from = from.ok_or_else(|| PortError("a message of nobody came".to_owned()))?;
            from.came.push_back((bytes, immediate));
        }
        Ok(())
    }
}

impl Joined {
    /// Do one thing, and wait for its end: whether that was good.
    fn request(&self, request: Request, length: usize) -> Result<bool, PortError> {
        let wr = Wr::new(0, request, vec![self.scratch.part(0, length)]);
        self.qp.post_send(&wr).map_err(|errno| PortError::call("ibv_post_send", errno))?;
        let completion = wait("what the receiver asked for", || {
            self.cq.poll().map_err(|errno| PortError::call("ibv_poll_cq", errno))
        })?;
        Ok(completion.status == 0)
    }
}

impl Wire for VerbsWire<'_> {
    fn connect(&mut self, sender: u8) -> Result<(), PortError> {
        let failed = |(call, errno)| PortError::call(call, errno);
        let from = self.senders.add(sender)?;
        let cq = Cq::new(&self.device, REQUESTS, None);
        let cq = cq.map_err(|errno| PortError::call("ibv_create_cq", errno))?;
        let form = QpForm {
            send_cq: Rc::clone(&cq),
            recv_cq: Rc::clone(&self.cq),
            srq: Some(Rc::clone(&self.srq)),
            sends: REQUESTS,
            receives: 0,
            segments: 1,
            inline: 0,
        };
        let qp = Qp::new(&self.pd, form).map_err(failed)?;
        qp.connect(&Connection::over(from.qp, from.gid)).map_err(failed)?;
        self.senders.connect(sender, Place { qp: qp.number(), gid: self.device.gid(), key: 0 })?;
        let scratch = region(&self.pd, SEND_LENGTH)?;
        let joined = Joined { qp, cq, scratch, key: from.key, came: VecDeque::new(), is_failed: false };
        match self.joined.get_mut(usize::from(sender)) {
            Some(known) => *known = joined,
            None => self.joined.push(joined),
        }
        Ok(())
    }

    fn send(&mut self, sender: u8, bytes: &[u8], immediate: Option<u32>) -> Result<(), PortError> {
        // More than there are receives would find none.
        let room = RECEIVES as usize / 2;
        wait("a message that was sent", || {
            self.take()?;
            let came: usize = self.joined.iter().map(|joined| joined.came.len()).sum();
            Ok((self.order.len() - came < room).then_some(()))
        })?;
        self.senders.send(sender, bytes, immediate)?;
        self.order.push_back(sender);
        Ok(())
    }

    fn arrived(&mut self) -> Result<Vec<Arrived>, PortError> {
        let mut arrived = Vec::new();
        while let Some(sender) = self.order.pop_front() {
            let (bytes, immediate) = wait("a message that was sent", || {
                self.take()?;
                Ok(self.sender(sender)?.came.pop_front())
            })?;
            arrived.push((sender, bytes, immediate));
        }
        Ok(arrived)
    }

    fn await_sent(&mut self, sender: u8, count: usize) -> Result<(), PortError> {
        wait("the completion of a SEND", || Ok((self.senders.sent(sender)? >= count).then_some(())))
    }

    fn source(&mut self, sender: u8, bytes: &[u8]) -> Result<(u64, u32), PortError> {
        let address = self.senders.source(sender, bytes)?;
        Ok((address, self.key(sender)))
    }

    fn key(&self, sender: u8) -> u32 {
        self.joined.get(usize::from(sender)).map_or(0, |joined| joined.key)
    }

    fn read(&mut self, address: u64, key: u32, length: u64) -> Option<Vec<u8>> {
        let joined = self.joined.iter().find(|joined| joined.key == key && !joined.is_failed)?;
        let length = usize::try_from(length).ok()?;
        let is_read = joined.request(Request::Read(address, key), length).ok()?;
        is_read.then(|| joined.scratch.read(0, length))
    }

    fn finish(&mut self, sender: u8, fin: &[u8]) -> Result<(), PortError> {
        let joined = self.sender(sender)?;
        joined.scratch.write(0, fin);
        match joined.request(Request::Send(None), fin.len())? {
            true => Ok(()),
            false => Err(PortError(format!("the FIN to sender {sender} failed"))),
        }
    }

    fn finished(&mut self, sender: u8, count: usize) -> Result<Vec<Vec<u8>>, PortError> {
        let mut received = Vec::new();
        wait("a FIN", || {
            received.extend(self.senders.received(sender)?);
            Ok((received.len() >= count).then_some(()))
        })?;
        Ok(received)
    }

    fn fail(&mut self, sender: u8) -> Result<(), PortError> {
        let joined = self.sender(sender)?;
        joined.is_failed = true;
        joined.qp.fail().map_err(|errno| PortError::call("ibv_modify_qp to ERR", errno))
    }
}

/// Ask until there is an answer.
pub(crate) fn wait<T>(
    what: &str,
    mut ask: impl FnMut() -> Result<Option<T>, PortError>,
) -> Result<T, PortError> {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if start.elapsed() > PATIENCE {
            return Err(PortError(format!("{what} did not come")));
        }
        std::thread::yield_now();
    }
}

fn region(pd: &Rc<Pd>, length: usize) -> Result<Rc<Region>, PortError> {
    let region = Region::new(pd, length, IBV_ACCESS_LOCAL_WRITE);
    region.map_err(|errno| PortError::call("ibv_reg_mr", errno))
}

/// How long is waited for what must come: longer than any number of retries that may be had.
const PATIENCE: Duration = Duration::from_secs(60);
/// Receives of the SRQ.
const RECEIVES: u32 = 2 * SENDS;
/// Requests under way of a receiving half.
const REQUESTS: u32 = 4;
