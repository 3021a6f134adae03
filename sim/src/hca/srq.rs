//! Shared receive queues: their life, and taking a receive off the linked list.

use std::collections::VecDeque;

use tagmatch::device::soft::list::MatchingList;
use zerocopy::FromBytes;

use super::device::Hca;
use super::errno::Errno;
use super::layout::NextSegment;
use super::memory::HostMemory;
use super::regions::Segment;
use super::requests::{
    AsyncEvent, ContextId, CreateSrq, Element, Handle, SrqAttributes, SrqCreated, SrqKind,
};
use super::tm::TagMatching;
use super::verbs::{event, srq_attribute};
use super::wqe::receive_segments;

#[derive(Clone, Debug)]
pub(crate) struct Srq {
    pub context: ContextId,
    user_handle: u64,
    pub pd: u32,
    buffer: u64,
    doorbell: u64,
    pub uidx: u32,
    /// Work requests: a power of two.
    count: u32,
    shift: u32,
    max_sge: u32,
    limit: u32,
    /// The next work request on the list.
    next: u16,
    consumed: u16,
    /// Taken, but not used up after all.
    returned: VecDeque<u16>,
    pub failed: bool,
    pub tm: Option<TagMatching>,
}

/// A receive that was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    /// `wqe_counter` of its completion.
    pub counter: u16,
    pub segments: Vec<Segment>,
}

impl<M: HostMemory> Hca<M> {
    /// CREATE_SRQ and CREATE_XSRQ (TM).
    ///
    /// # Errors
    /// EINVAL: sizes, number of tags, no tag matching. EFAULT: not memory. ENOMEM: too many.
    pub fn create_srq(&mut self, context: ContextId, request: &CreateSrq) -> Result<SrqCreated, Errno> {
        self.find_pd(context, request.pd)?;
        let limits = self.config.limits;
        if request.max_wr == 0
            || request.max_wr > limits.srq_work_requests
            || request.max_sge > limits.srq_segments
            || request.uidx > UIDX_MAX
            || !request.doorbell.is_multiple_of(8)
        {
            return Err(Errno::INVALID);
        }
        let tm = match request.kind {
            SrqKind::Basic => None,
            SrqKind::TagMatching { tags, cq } => Some(self.new_tag_matching(context, tags, cq)?),
        };
        if self.srqs.len() >= limits.srqs as usize {
            return Err(Errno::NO_MEMORY);
        }
        // mlx5_ib rounds as the driver did: a header and the segments, at least 32 bytes.
        let count = (request.max_wr + 1).next_power_of_two();
        let stride = (16 + 16 * request.max_sge).next_power_of_two().max(32);
        let length = u64::from(count) * u64::from(stride);
        if !self.memory.is_mapped(request.buffer, length) || !self.memory.is_mapped(request.doorbell, 8) {
            return Err(Errno::FAULT);
        }
        let srqn = self.numbers.srq(&self.srqs);
        let srq = Srq {
            context,
            user_handle: request.user_handle,
            pd: request.pd.0,
            buffer: request.buffer,
            doorbell: request.doorbell,
            uidx: request.uidx,
            count,
            shift: stride.trailing_zeros(),
            max_sge: request.max_sge,
            // Not armed by creation (mlx5_ib), only by MODIFY_SRQ.
            limit: 0,
            next: 0,
            consumed: 0,
            returned: VecDeque::new(),
            failed: false,
            tm,
        };
        self.srqs.insert(srqn, srq);
        Ok(SrqCreated { handle: Handle(srqn), srqn, max_wr: count - 1, max_sge: request.max_sge })
    }

    /// The kernel rounds the list: `ilog2(max_num_tags) + 1` bits (TM-CONTRACT 5).
    fn new_tag_matching(&self, context: ContextId, tags: u32, cq: Handle) -> Result<TagMatching, Errno> {
        self.find_cq(context, cq)?;
        let log = tags.checked_ilog2().ok_or(Errno::INVALID)? + 1;
        if log > u32::from(self.config.log_tag_list.min(15)) {
            return Err(Errno::INVALID);
        }
        let list = MatchingList::new(1 << log, self.config.initial_phase, self.config.switches);
        Ok(TagMatching::new(list, cq.0))
    }

    /// MODIFY_SRQ: `mask` of [`super::verbs::srq_attribute`].
    ///
    /// # Errors
    /// EINVAL: no such SRQ, resizing, a limit not below the number of work requests.
    pub fn modify_srq(
        &mut self,
        context: ContextId,
        srq: Handle,
        mask: u32,
        limit: u32,
    ) -> Result<(), Errno> {
        self.find_srq(context, srq)?;
        let Some(found) = self.srqs.get_mut(&srq.0) else { return Err(Errno::INVALID) };
        if mask & srq_attribute::MAX_WR != 0 {
            return Err(Errno::INVALID);
        }
        if mask & srq_attribute::LIMIT != 0 {
            if limit >= found.count {
                return Err(Errno::INVALID);
            }
            found.limit = limit;
            self.check_srq_limit(srq.0);
        }
        Ok(())
    }

    /// QUERY_SRQ.
    ///
    /// # Errors
    /// EINVAL: no such SRQ.
    pub fn query_srq(&self, context: ContextId, srq: Handle) -> Result<SrqAttributes, Errno> {
        let found = self.find_srq(context, srq)?;
        Ok(SrqAttributes { max_wr: found.count - 1, max_sge: found.max_sge, limit: found.limit })
    }

    /// DESTROY_SRQ.
    ///
    /// # Errors
    /// EINVAL: no such SRQ. EBUSY: a QP uses it.
    pub fn destroy_srq(&mut self, context: ContextId, srq: Handle) -> Result<(), Errno> {
        self.find_srq(context, srq)?;
        if self.qps.values().any(|qp| qp.srq == Some(srq.0)) {
            return Err(Errno::BUSY);
        }
        self.srqs.remove(&srq.0);
        self.drop_async_events(Element::Srq(srq));
        Ok(())
    }

    pub(crate) fn find_srq(&self, context: ContextId, srq: Handle) -> Result<&Srq, Errno> {
        self.srqs.get(&srq.0).filter(|found| found.context == context).ok_or(Errno::INVALID)
    }

    /// Receives that can be taken now.
    pub(crate) fn srq_posted(&self, srqn: u32) -> u32 {
        let Some(srq) = self.srqs.get(&srqn) else { return 0 };
        let counter = self.memory.load_acquire(srq.doorbell).unwrap_or_default();
        let listed = u16::try_from(counter & 0xffff).unwrap_or_default().wrapping_sub(srq.consumed);
        let returned = u32::try_from(srq.returned.len()).unwrap_or(u32::MAX);
        u32::from(listed).min(srq.count).saturating_add(returned)
    }

    /// The next receive of the list.
    pub(crate) fn take_srq_receive(&mut self, srqn: u32) -> Option<Taken> {
        if self.srq_posted(srqn) == 0 {
            return None;
        }
        let srq = self.srqs.get_mut(&srqn)?;
        let returned = srq.returned.pop_front();
        let index = returned.unwrap_or(srq.next);
        let address = srq.buffer.wrapping_add(u64::from(index) << srq.shift);
        let mut wqe = vec![0; 1 << srq.shift];
        if u32::from(index) >= srq.count || self.memory.read(address, &mut wqe).is_err() {
            self.fail_srq(srqn);
            return None;
        }
        let (next, data) = NextSegment::read_from_prefix(&wqe).ok()?;
        if returned.is_none() {
            srq.next = next.next_wqe_index.get();
            srq.consumed = srq.consumed.wrapping_add(1);
        }
        let segments = receive_segments(data);
        self.check_srq_limit(srqn);
        Some(Taken { counter: index, segments })
    }

    pub(crate) fn return_srq_receive(&mut self, srqn: u32, counter: u16) {
        if let Some(srq) = self.srqs.get_mut(&srqn) {
            srq.returned.push_back(counter);
        }
    }

    fn check_srq_limit(&mut self, srqn: u32) {
        let posted = self.srq_posted(srqn);
        let Some(srq) = self.srqs.get_mut(&srqn) else { return };
        if srq.limit > 0 && posted < srq.limit {
            srq.limit = 0;
            self.tell_srq(srqn, event::SRQ_LIMIT_REACHED);
        }
    }

    /// The queue is of no more use; told once.
    pub(crate) fn fail_srq(&mut self, srqn: u32) {
        let Some(srq) = self.srqs.get_mut(&srqn) else { return };
        if !std::mem::replace(&mut srq.failed, true) {
            self.tell_srq(srqn, event::SRQ_ERROR);
        }
    }

    fn tell_srq(&mut self, srqn: u32, event_type: u32) {
        let Some(srq) = self.srqs.get(&srqn) else { return };
        let element = Element::Srq(Handle(srqn));
        let event = AsyncEvent { context: srq.context, event_type, element, user_handle: srq.user_handle };
        self.async_events.push_back(event);
    }
}

/// User indices have 24 bits.
pub(crate) const UIDX_MAX: u32 = 0x00ff_ffff;
