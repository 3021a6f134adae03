//! Completion queues: writing completions, arming, overrun.

use zerocopy::IntoBytes;
use zerocopy::big_endian::U64;

use super::device::Hca;
use super::errno::Errno;
use super::layout::Cqe;
use super::memory::HostMemory;
use super::packet::psn_distance;
use super::requests::{
    AsyncEvent, ChannelId, CompletionEvent, ContextId, CqCreated, CreateCq, Element, Handle,
};
use super::verbs::event;

#[derive(Clone, Debug)]
pub(crate) struct Cq {
    pub context: ContextId,
    user_handle: u64,
    channel: Option<ChannelId>,
    buffer: u64,
    doorbell: u64,
    /// Entries: a power of two.
    size: u32,
    cqe_size: u32,
    /// Completions written, ever.
    produced: u32,
    /// As `produced`, just behind the last completion that answers an arming for solicited ones.
    produced_solicited: u32,
    arm_word: u32,
    armed: Option<Arm>,
    /// The sequence number of the arming that was answered last: the driver counts it up when the event is read,
    /// and until then arming again does nothing.
    answered: Option<u32>,
    failed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Arm {
    sequence: u32,
    solicited_only: bool,
    consumer: u32,
}

impl Arm {
    const fn from_word(word: u32) -> Self {
        Self { sequence: word >> 28 & 3, solicited_only: word & SOLICITED_ONLY != 0, consumer: word }
    }
}

impl<M: HostMemory> Hca<M> {
    /// CREATE_CQ. Writes all-ones into the arm word, so that a first arming by 0 is seen.
    ///
    /// # Errors
    /// EINVAL: sizes, alignment. EFAULT: the buffer or the record is not memory. ENOMEM: too many.
    pub fn create_cq(&mut self, context: ContextId, request: &CreateCq) -> Result<CqCreated, Errno> {
        self.check_context(context)?;
        let limits = self.config.limits;
        if request.entries > limits.cq_entries
            || !matches!(request.cqe_size, 64 | 128)
            || request.vector >= limits.completion_vectors
            || !request.doorbell.is_multiple_of(8)
        {
            return Err(Errno::INVALID);
        }
        if self.cqs.len() >= limits.cqs as usize {
            return Err(Errno::NO_MEMORY);
        }
        let size = (request.entries + 1).next_power_of_two();
        let length = u64::from(size) * u64::from(request.cqe_size);
        if !self.memory.is_mapped(request.buffer, length) || !self.memory.is_mapped(request.doorbell, 8) {
            return Err(Errno::FAULT);
        }
        let arm = request.doorbell.wrapping_add(4);
        self.memory.store_release(arm, NOT_ARMED).map_err(|_| Errno::FAULT)?;
        let cqn = self.numbers.cq(&self.cqs);
        let cq = Cq {
            context,
            user_handle: request.user_handle,
            channel: request.channel,
            buffer: request.buffer,
            doorbell: request.doorbell,
            size,
            cqe_size: request.cqe_size,
            produced: 0,
            produced_solicited: 0,
            arm_word: NOT_ARMED,
            armed: None,
            answered: None,
            failed: false,
        };
        self.cqs.insert(cqn, cq);
        Ok(CqCreated { handle: Handle(cqn), entries: size - 1, cqn })
    }

    /// RESIZE_CQ is not offered.
    ///
    /// # Errors
    /// EINVAL: no such CQ. EOPNOTSUPP otherwise.
    pub fn resize_cq(&mut self, context: ContextId, cq: Handle) -> Result<(), Errno> {
        self.find_cq(context, cq)?;
        Err(Errno::NOT_SUPPORTED)
    }

    /// DESTROY_CQ. Events of it that were not polled are dropped; those that were are the caller's to count.
    ///
    /// # Errors
    /// EINVAL: no such CQ. EBUSY: a QP or SRQ uses it.
    pub fn destroy_cq(&mut self, context: ContextId, cq: Handle) -> Result<(), Errno> {
        self.find_cq(context, cq)?;
        let by_qp = self.qps.values().any(|qp| qp.send_cq == cq.0 || qp.receive_cq == cq.0);
        let by_srq = self.srqs.values().any(|srq| srq.tm.as_ref().is_some_and(|tm| tm.cq == cq.0));
        if by_qp || by_srq {
            return Err(Errno::BUSY);
        }
        self.cqs.remove(&cq.0);
        self.completion_events.retain(|event| event.cq != cq);
        self.drop_async_events(Element::Cq(cq));
        Ok(())
    }

    pub(crate) fn find_cq(&self, context: ContextId, cq: Handle) -> Result<&Cq, Errno> {
        self.cqs.get(&cq.0).filter(|found| found.context == context).ok_or(Errno::INVALID)
    }

    /// Write a completion. False: it could not be, and the queue has failed.
    pub(crate) fn complete(&mut self, cqn: u32, mut cqe: Cqe, solicited: bool) -> bool {
        let now = self.now;
        let Some(cq) = self.cqs.get_mut(&cqn) else { return false };
        if cq.failed {
            return false;
        }
        let consumer = self.memory.load_acquire(cq.doorbell).unwrap_or_default();
        let waiting = cq.produced.wrapping_sub(consumer) & CONSUMER_MASK;
        if waiting >= cq.size {
            return self.fail_cq(cqn);
        }
        if !is_error(&cqe) {
            cqe.timestamp = U64::new(now).to_bytes();
        }
        let slot = u64::from(cq.produced & (cq.size - 1)) * u64::from(cq.cqe_size);
        let place = cq.buffer.wrapping_add(slot).wrapping_add(u64::from(cq.cqe_size - 64));
        let owner = u8::from(cq.produced & cq.size != 0);
        let last = cqe.op_own & !(OWNER | SOLICITED) | owner | if solicited { SOLICITED } else { 0 };
        let bytes = cqe.as_bytes();
        let front = bytes.get(..Cqe::LENGTH - 1).unwrap_or_default();
        let written = self.memory.write(place, front).is_ok()
            && self.memory.store_byte_release(place.wrapping_add(Cqe::LENGTH as u64 - 1), last).is_ok();
        if !written {
            return self.fail_cq(cqn);
        }
        cq.produced = cq.produced.wrapping_add(1);
        if solicited || is_error(&cqe) {
            cq.produced_solicited = cq.produced;
        }
        self.check_arm(cqn);
        true
    }

    fn fail_cq(&mut self, cqn: u32) -> bool {
        if let Some(cq) = self.cqs.get_mut(&cqn) {
            cq.failed = true;
            let event = AsyncEvent {
                context: cq.context,
                event_type: event::CQ_ERROR,
                element: Element::Cq(Handle(cqn)),
                user_handle: cq.user_handle,
            };
            self.async_events.push_back(event);
        }
        false
    }

    /// Look at the arm word, and answer it with an event if there is something to tell.
    pub(crate) fn check_arm(&mut self, cqn: u32) {
        let Some(cq) = self.cqs.get_mut(&cqn) else { return };
        let Some(channel) = cq.channel else { return };
        let word = self.memory.load_acquire(cq.doorbell.wrapping_add(4)).unwrap_or(NOT_ARMED);
        if word != cq.arm_word {
            cq.arm_word = word;
            let arm = Arm::from_word(word);
            cq.armed = Some(arm).filter(|arm| word != NOT_ARMED && cq.answered != Some(arm.sequence));
        }
        let Some(arm) = cq.armed else { return };
        let produced = if arm.solicited_only { cq.produced_solicited } else { cq.produced };
        if psn_distance(produced, arm.consumer) <= 0 {
            return;
        }
        cq.armed = None;
        cq.answered = Some(arm.sequence);
        let event =
            CompletionEvent { context: cq.context, channel, cq: Handle(cqn), user_handle: cq.user_handle };
        self.completion_events.push_back(event);
    }

    pub(crate) fn check_arms(&mut self) {
        let mut next = 0;
        while let Some((&cqn, _)) = self.cqs.range(next..).next() {
            self.check_arm(cqn);
            next = cqn.wrapping_add(1);
        }
    }
}

fn is_error(cqe: &Cqe) -> bool {
    matches!(
        cqe.opcode(),
        super::layout::cqe_opcode::REQUESTER_ERROR | super::layout::cqe_opcode::RESPONDER_ERROR
    )
}

const OWNER: u8 = 1;
const SOLICITED: u8 = 1 << 1;
/// The driver keeps 24 bits of its consumer index in the record.
const CONSUMER_MASK: u32 = 0x00ff_ffff;
/// `MLX5_CQ_DB_REQ_NOT_SOL`
const SOLICITED_ONLY: u32 = 1 << 24;
/// No driver writes it, since a sequence number has two bits.
const NOT_ARMED: u32 = u32::MAX;
