//! The senders' side, on a device: a QP each, memory to send from, to be read from, and to receive into.

use std::rc::Rc;

use tagmatch::device::verbs::sys::{IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ};

use super::{Senders, wait};
use crate::port::{PortError, sizes};
use crate::verbs::{Connection, Cq, Device, Pd, Qp, QpForm, Region, Request, Wr};

/// Where a QP is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its number.
    pub qp: u32,
    /// The GID of its port.
    pub gid: [u8; 16],
    /// The key of the memory that goes with it, if there is some.
    pub key: u32,
}

/// Senders of a device of this machine.
#[derive(Debug)]
pub struct LocalSenders {
    senders: Vec<Option<Sender>>,
    device: Rc<Device>,
}

impl LocalSenders {
    /// None yet.
    #[must_use]
    pub const fn new(device: Rc<Device>) -> Self {
        Self { senders: Vec::new(), device }
    }

    fn sender(&mut self, sender: u8) -> Result<&mut Sender, PortError> {
        let known = self.senders.get_mut(usize::from(sender)).and_then(Option::as_mut);
        known.ok_or_else(|| PortError(format!("sender {sender} is not there")))
    }
}

/// Fields are dropped in this order.
#[derive(Debug)]
struct Sender {
    qp: Qp,
    send_cq: Rc<Cq>,
    recv_cq: Rc<Cq>,
    memory: Rc<Region>,
    posted: usize,
    completed: usize,
    sources: u32,
}

impl Sender {
    fn new(device: &Rc<Device>) -> Result<Self, PortError> {
        let pd = Pd::new(device).map_err(|errno| PortError::call("ibv_alloc_pd", errno))?;
        let cq =
            |entries| Cq::new(device, entries, None).map_err(|errno| PortError::call("ibv_create_cq", errno));
        let (send_cq, recv_cq) = (cq(SENDS)?, cq(FINS)?);
        let access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
        let memory = Region::new(&pd, SOURCE_START + sizes::SOURCE as usize, access);
        let memory = memory.map_err(|errno| PortError::call("ibv_reg_mr", errno))?;
        let form = QpForm {
            send_cq: Rc::clone(&send_cq),
            recv_cq: Rc::clone(&recv_cq),
            srq: None,
            sends: SENDS,
            receives: FINS,
            segments: 1,
            inline: 0,
        };
        let qp = Qp::new(&pd, form).map_err(|(call, errno)| PortError::call(call, errno))?;
        let sender = Self { qp, send_cq, recv_cq, memory, posted: 0, completed: 0, sources: 0 };
        (0..u64::from(FINS)).try_for_each(|number| sender.post_receive(number)).map(|()| sender)
    }

    fn post_receive(&self, number: u64) -> Result<(), PortError> {
        let place = FIN_START + usize::try_from(number).unwrap_or_default() * FIN_LENGTH;
        let posted = self.qp.post_recv(number, &[self.memory.part(place, FIN_LENGTH)]);
        posted.map_err(|errno| PortError::call("ibv_post_recv", errno))
    }

    fn reap(&mut self) -> Result<(), PortError> {
        while let Some(completion) =
            self.send_cq.poll().map_err(|errno| PortError::call("ibv_poll_cq", errno))?
        {
            if completion.status != 0 {
                return Err(PortError(format!("a SEND failed: status {}", completion.status)));
            }
            self.completed += 1;
        }
        Ok(())
    }
}

impl Senders for LocalSenders {
    fn name(&self) -> String {
        self.device.name().to_owned()
    }

    fn add(&mut self, sender: u8) -> Result<Place, PortError> {
        let new = Sender::new(&self.device)?;
        let place = Place { qp: new.qp.number(), gid: self.device.gid(), key: new.memory.part(0, 0).rkey };
        let at = usize::from(sender);
        if self.senders.len() <= at {
            self.senders.resize_with(at + 1, || None);
        }
        self.senders[at] = Some(new);
        Ok(place)
    }

    fn connect(&mut self, sender: u8, to: Place) -> Result<(), PortError> {
        let connected = self.sender(sender)?.qp.connect(&Connection::over(to.qp, to.gid));
        connected.map_err(|(call, errno)| PortError::call(call, errno))
    }

    fn send(&mut self, sender: u8, bytes: &[u8], immediate: Option<u32>) -> Result<(), PortError> {
        let known = self.sender(sender)?;
        wait("room for a SEND", || {
            known.reap()?;
            Ok((known.posted - known.completed < SENDS as usize).then_some(()))
        })?;
        let place = known.posted % SENDS as usize * SEND_LENGTH;
        known.memory.write(place, bytes);
        let part = known.memory.part(place, bytes.len());
        let parts = if bytes.is_empty() { Vec::new() } else { vec![part] };
        let posted = known.qp.post_send(&Wr::new(known.posted as u64, Request::Send(immediate), parts));
        posted.map_err(|errno| PortError::call("ibv_post_send", errno))?;
        known.posted += 1;
        Ok(())
    }

    fn sent(&mut self, sender: u8) -> Result<usize, PortError> {
        let known = self.sender(sender)?;
        known.reap()?;
        Ok(known.completed)
    }

    fn source(&mut self, sender: u8, bytes: &[u8]) -> Result<u64, PortError> {
        let known = self.sender(sender)?;
        let place = SOURCE_START + (known.sources * sizes::SOURCE_STRIDE % sizes::SOURCE) as usize;
        known.sources += 1;
        known.memory.write(place, bytes);
        Ok(known.memory.part(place, bytes.len()).address)
    }

    fn received(&mut self, sender: u8) -> Result<Vec<Vec<u8>>, PortError> {
        let known = self.sender(sender)?;
        let mut received = Vec::new();
        while let Some(completion) =
            known.recv_cq.poll().map_err(|errno| PortError::call("ibv_poll_cq", errno))?
        {
            if completion.status != 0 {
                return Err(PortError(format!("a receive of a sender failed: status {}", completion.status)));
            }
            let place = FIN_START + usize::try_from(completion.wr_id).unwrap_or_default() * FIN_LENGTH;
            received.push(known.memory.read(place, completion.byte_len as usize));
            known.post_receive(completion.wr_id)?;
        }
        Ok(received)
    }

    fn clear(&mut self) -> Result<(), PortError> {
        self.senders.clear();
        Ok(())
    }
}

/// SENDs under way of a sender.
pub(super) const SENDS: u32 = 128;
/// Room for one message.
pub(super) const SEND_LENGTH: usize = 32_768;
const FINS: u32 = 32;
const FIN_LENGTH: usize = 128;
const FIN_START: usize = SENDS as usize * SEND_LENGTH;
const SOURCE_START: usize = FIN_START + FINS as usize * FIN_LENGTH;
