//! The device: its control path, its events, and how it is driven.

use super::*;

/// What the device can do next, in one piece.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// Fetch or go on with a work request of this QP: one packet, or one list operation.
    Send(u32),
    /// Send the next acknowledgement or packet of read data.
    Respond(u32),
    /// Take the oldest packet between these two QPs.
    Deliver {
        /// Its source.
        from: u32,
        /// Its destination.
        to: u32,
    },
    /// The RNR or retransmission timer of this QP expires.
    Timer(u32),
    /// Flush one work request of this QP, which is in ERR.
    Flush(u32),
}

/// A simulated HCA in one process.
#[derive(Debug)]
pub struct Hca<M> {
    config: HcaConfig,
    memory: M,
}

/// # The control path
///
/// Errors are those of the kernel for the same mistake. A handle that does not exist or belongs to another context
/// is EINVAL.
impl<M: HostMemory> Hca<M> {
    /// A device without objects.
    #[must_use]
    pub fn new(config: HcaConfig, memory: M) -> Self {
        Self { config, memory }
    }

    /// What it was made as.
    #[must_use]
    pub const fn config(&self) -> &HcaConfig {
        &self.config
    }

    /// The host's memory.
    pub fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    /// QUERY_DEVICE.
    #[must_use]
    pub fn query_device(&self) -> DeviceAttributes {
        todo!()
    }

    /// QUERY_PORT.
    ///
    /// # Errors
    /// EINVAL: no such port.
    pub fn query_port(&self, _port: u8) -> Result<PortAttributes, Errno> {
        todo!()
    }

    /// An entry of the GID table.
    ///
    /// # Errors
    /// EINVAL: no such port or entry.
    pub fn gid(&self, _port: u8, _index: u32) -> Result<[u8; 16], Errno> {
        todo!()
    }

    /// An entry of the P_Key table.
    ///
    /// # Errors
    /// EINVAL: no such port or entry.
    pub fn pkey(&self, _port: u8, _index: u32) -> Result<u16, Errno> {
        todo!()
    }

    /// `open` of the device node.
    pub fn open_context(&mut self) -> ContextId {
        todo!()
    }

    /// Its last `close`: destroys all objects of the context, in the right order, and drops its events.
    pub fn close_context(&mut self, _context: ContextId) {
        todo!()
    }

    /// ALLOC_PD.
    ///
    /// # Errors
    /// ENOMEM: too many.
    pub fn alloc_pd(&mut self, _context: ContextId) -> Result<PdCreated, Errno> {
        todo!()
    }

    /// DEALLOC_PD.
    ///
    /// # Errors
    /// EINVAL: no such PD. EBUSY: in use.
    pub fn dealloc_pd(&mut self, _context: ContextId, _pd: Handle) -> Result<(), Errno> {
        todo!()
    }

    /// REG_MR.
    ///
    /// # Errors
    /// EINVAL: flags, a length of 0, an end beyond the address space, an `hca_va` of another page offset. EFAULT:
    /// not memory. ENOMEM: too many.
    pub fn register_memory(
        &mut self,
        _context: ContextId,
        _request: &RegisterMemory,
    ) -> Result<MemoryRegistered, Errno> {
        todo!()
    }

    /// DEREG_MR.
    ///
    /// # Errors
    /// EINVAL: no such MR.
    pub fn deregister_memory(&mut self, _context: ContextId, _mr: Handle) -> Result<(), Errno> {
        todo!()
    }

    /// CREATE_CQ. Writes all-ones into the arm word, so that a first arming by 0 is seen.
    ///
    /// # Errors
    /// EINVAL: sizes, alignment. EFAULT: the buffer or the record is not memory. ENOMEM: too many.
    pub fn create_cq(&mut self, _context: ContextId, _request: &CreateCq) -> Result<CqCreated, Errno> {
        todo!()
    }

    /// RESIZE_CQ is not offered: EOPNOTSUPP.
    ///
    /// # Errors
    /// Always.
    pub fn resize_cq(&mut self, _context: ContextId, _cq: Handle) -> Result<(), Errno> {
        Err(Errno::NOT_SUPPORTED)
    }

    /// DESTROY_CQ. Events of it that were not polled are dropped; those that were are the caller's to count.
    ///
    /// # Errors
    /// EINVAL: no such CQ. EBUSY: a QP or SRQ uses it.
    pub fn destroy_cq(&mut self, _context: ContextId, _cq: Handle) -> Result<(), Errno> {
        todo!()
    }

    /// CREATE_SRQ and CREATE_XSRQ (TM).
    ///
    /// # Errors
    /// EINVAL: sizes, number of tags, no tag matching. EFAULT: not memory. ENOMEM: too many.
    pub fn create_srq(&mut self, _context: ContextId, _request: &CreateSrq) -> Result<SrqCreated, Errno> {
        todo!()
    }

    /// MODIFY_SRQ: `mask` of [`verbs::srq_attribute`].
    ///
    /// # Errors
    /// EINVAL: resizing, a limit not below `max_wr`.
    pub fn modify_srq(
        &mut self,
        _context: ContextId,
        _srq: Handle,
        _mask: u32,
        _limit: u32,
    ) -> Result<(), Errno> {
        todo!()
    }

    /// QUERY_SRQ.
    ///
    /// # Errors
    /// EINVAL: no such SRQ.
    pub fn query_srq(&self, _context: ContextId, _srq: Handle) -> Result<SrqAttributes, Errno> {
        todo!()
    }

    /// DESTROY_SRQ.
    ///
    /// # Errors
    /// EINVAL: no such SRQ. EBUSY: a QP uses it.
    pub fn destroy_srq(&mut self, _context: ContextId, _srq: Handle) -> Result<(), Errno> {
        todo!()
    }

    /// CREATE_QP: RC and UD.
    ///
    /// # Errors
    /// EOPNOTSUPP: another type. EINVAL: sizes, CQs, SRQ. EFAULT: not memory. ENOMEM: too many.
    pub fn create_qp(&mut self, _context: ContextId, _request: &CreateQp) -> Result<QpCreated, Errno> {
        todo!()
    }

    /// MODIFY_QP: `mask` of [`verbs::attribute`] says which attributes count.
    ///
    /// # Errors
    /// EINVAL: an attribute that is missing, not allowed or out of range in this transition.
    pub fn modify_qp(
        &mut self,
        _context: ContextId,
        _qp: Handle,
        _mask: u32,
        _attributes: &QpAttributes,
    ) -> Result<(), Errno> {
        todo!()
    }

    /// QUERY_QP.
    ///
    /// # Errors
    /// EINVAL: no such QP.
    pub fn query_qp(&self, _context: ContextId, _qp: Handle) -> Result<QpQueried, Errno> {
        todo!()
    }

    /// DESTROY_QP.
    ///
    /// # Errors
    /// EINVAL: no such QP.
    pub fn destroy_qp(&mut self, _context: ContextId, _qp: Handle) -> Result<(), Errno> {
        todo!()
    }

    /// ATTACH_MCAST and DETACH_MCAST are not offered.
    ///
    /// # Errors
    /// EINVAL: no such QP, or not a UD QP. EOPNOTSUPP otherwise.
    pub fn attach_multicast(&mut self, _context: ContextId, _qp: Handle) -> Result<(), Errno> {
        todo!()
    }
}

/// # Events
impl<M: HostMemory> Hca<M> {
    /// The oldest event for a completion channel.
    pub fn poll_completion_event(&mut self) -> Option<CompletionEvent> {
        todo!()
    }

    /// The oldest asynchronous event.
    pub fn poll_async_event(&mut self) -> Option<AsyncEvent> {
        todo!()
    }
}

/// # The fabric
impl<M: HostMemory> Hca<M> {
    /// The oldest packet for another process.
    pub fn poll_packet(&mut self) -> Option<Packet> {
        todo!()
    }

    /// A packet from another process. Packets of one pair of QPs keep their order.
    pub fn handle_packet(&mut self, _packet: Packet) {
        todo!()
    }

    /// A packet of [`Self::poll_packet`] whose process is not there.
    pub fn handle_undeliverable(&mut self, _packet: Packet) {
        todo!()
    }

    /// A process is gone: nothing that was sent to it will be answered.
    pub fn handle_process_lost(&mut self, _process: u8) {
        todo!()
    }
}

/// # Drives
impl<M: HostMemory> Hca<M> {
    /// Everything that is possible now. Reads doorbell records, and may queue completion events.
    #[must_use]
    pub fn steps(&mut self) -> Vec<Step> {
        todo!()
    }

    /// Do one step. False: it is not possible now, and nothing has happened.
    pub fn step(&mut self, _step: Step) -> bool {
        todo!()
    }

    /// Do steps until none but timers is possible, at most `limit`. How many were done: 0 means idle.
    pub fn run(&mut self, _limit: usize) -> usize {
        todo!()
    }

    /// [`Self::run`] without a limit, timers included: they expire as soon as nothing else is possible. For tests
    /// and for worlds without a clock. An endless RNR retry would never end, so each timer expires at most 16 times.
    pub fn run_until_idle(&mut self) {
        todo!()
    }

    /// The time, in nanoseconds from any beginning: timers that are due expire.
    pub fn advance_clock(&mut self, _now: u64) {
        todo!()
    }

    /// When the next timer is due.
    #[must_use]
    pub fn next_timer(&self) -> Option<u64> {
        todo!()
    }
}
