//! Completion queues, plain and extended, and completion channels.

use std::cell::Cell;
use std::ptr;
use std::rc::Rc;

use tagmatch::device::verbs::sys::types::{
    ibv_comp_channel, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_wc, ibv_wc_tm_info,
};
use tagmatch::device::verbs::sys::{
    self, IBV_WC_EX_WITH_BYTE_LEN, IBV_WC_EX_WITH_IMM, IBV_WC_EX_WITH_QP_NUM, IBV_WC_EX_WITH_SRC_QP,
    IBV_WC_EX_WITH_TM_INFO, IBV_WC_WITH_IMM,
};

use super::device::Device;

/// `ibv_create_cq`
#[derive(Debug)]
pub struct Cq {
    device: Rc<Device>,
    channel: Option<Rc<Channel>>,
    pub(super) raw: *mut ibv_cq,
}

impl Cq {
    /// For so many completions.
    ///
    /// # Errors
    /// errno
    pub fn new(device: &Rc<Device>, entries: u32, channel: Option<&Rc<Channel>>) -> Result<Rc<Self>, i32> {
        let entries = i32::try_from(entries).unwrap_or(i32::MAX);
        let raw_channel = channel.map_or(ptr::null_mut(), |channel| channel.raw);
        // SAFETY: context and channel are open.
        let raw = unsafe {
            (device.library.ibv_create_cq)(device.context, entries, ptr::null_mut(), raw_channel, 0)
        };
        if raw.is_null() {
            return Err(super::errno());
        }
        Ok(Rc::new(Self { device: Rc::clone(device), channel: channel.cloned(), raw }))
    }

    /// `ibv_poll_cq` of one completion.
    ///
    /// # Errors
    /// What it returned.
    pub fn poll(&self) -> Result<Option<ibv_wc>, i32> {
        let mut completions = [ibv_wc::default()];
        // SAFETY: the queue exists.
        match unsafe { sys::inline::poll_cq(self.raw, &mut completions) } {
            0 => Ok(None),
            1 => Ok(Some(completions[0])),
            other => Err(other),
        }
    }

    /// `ibv_req_notify_cq`
    ///
    /// # Errors
    /// errno
    pub fn arm(&self, solicited_only: bool) -> Result<(), i32> {
        // SAFETY: the queue exists.
        result(unsafe { sys::inline::req_notify_cq(self.raw, solicited_only) })
    }

    /// `ibv_get_cq_event` and `ibv_ack_cq_events`: blocks until there is one. Whether it was about this queue.
    ///
    /// # Errors
    /// errno, or -1 without a channel.
    pub fn wait_for_event(&self) -> Result<bool, i32> {
        let Some(channel) = &self.channel else { return Err(-1) };
        let (mut cq, mut context) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the channel is open, and there is room for both.
        let failed =
            unsafe { (self.device.library.ibv_get_cq_event)(channel.raw, &raw mut cq, &raw mut context) };
        if failed != 0 {
            return Err(super::errno());
        }
        // SAFETY: the queue of an event that was got and not acknowledged exists.
        unsafe { (self.device.library.ibv_ack_cq_events)(cq, 1) };
        Ok(cq == self.raw)
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        // SAFETY: created here; every object that uses it holds it.
        unsafe { (self.device.library.ibv_destroy_cq)(self.raw) };
    }
}

/// `ibv_create_comp_channel`
#[derive(Debug)]
pub struct Channel {
    device: Rc<Device>,
    raw: *mut ibv_comp_channel,
}

impl Channel {
    /// A channel.
    ///
    /// # Errors
    /// errno
    pub fn new(device: &Rc<Device>) -> Result<Rc<Self>, i32> {
        // SAFETY: the context is open.
        let raw = unsafe { (device.library.ibv_create_comp_channel)(device.context) };
        if raw.is_null() { Err(super::errno()) } else { Ok(Rc::new(Self { device: Rc::clone(device), raw })) }
    }
}

impl Channel {
    /// Whether an event waits, or comes within so many milliseconds.
    #[must_use]
    pub fn is_readable(&self, milliseconds: i32) -> bool {
        // SAFETY: the channel is open.
        let fd = unsafe { (*self.raw).fd };
        let mut look = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure.
        unsafe { libc::poll(&raw mut look, 1, milliseconds) > 0 }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: created here; every queue on it holds it.
        unsafe { (self.device.library.ibv_destroy_comp_channel)(self.raw) };
    }
}

/// `ibv_create_cq_ex` with TM information.
#[derive(Debug)]
pub struct CqEx {
    device: Rc<Device>,
    pub(super) raw: *mut ibv_cq_ex,
    is_open: Cell<bool>,
}

/// What the accessors of one completion say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raw {
    /// The field.
    pub status: u32,
    /// The field.
    pub wr_id: u64,
    /// `ibv_wc_read_opcode`
    pub opcode: u32,
    /// `ibv_wc_read_wc_flags`
    pub flags: u32,
    /// `ibv_wc_read_byte_len`
    pub byte_len: u32,
    /// `ibv_wc_read_imm_data` in host order, where the flag is set.
    pub immediate: Option<u32>,
    /// `ibv_wc_read_qp_num`
    pub qp_num: u32,
    /// `ibv_wc_read_vendor_err`
    pub vendor_error: u32,
    /// `ibv_wc_read_tm_info`
    pub tag: u64,
    /// `ibv_wc_read_tm_info`
    pub word: u32,
}

impl CqEx {
    /// For so many completions.
    ///
    /// # Errors
    /// errno
    pub fn new(device: &Rc<Device>, entries: u32) -> Result<Rc<Self>, i32> {
        let fields = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM;
        let fields = fields | IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_TM_INFO;
        let mut attributes = ibv_cq_init_attr_ex {
            cqe: entries,
            cq_context: ptr::null_mut(),
            channel: ptr::null_mut(),
            comp_vector: 0,
            wc_flags: fields.into(),
            comp_mask: 0,
            flags: 0,
            parent_domain: ptr::null_mut(),
        };
        // SAFETY: the context is open.
        let raw = unsafe { sys::inline::create_cq_ex(device.context, &mut attributes) }?;
        if raw.is_null() {
            return Err(super::errno());
        }
        Ok(Rc::new(Self { device: Rc::clone(device), raw, is_open: Cell::new(false) }))
    }

    /// `ibv_start_poll`. `None`: ENOENT, and no poll section is open.
    ///
    /// # Errors
    /// What it returned.
    pub fn start_poll(&self) -> Result<Option<Raw>, i32> {
        // SAFETY: the queue exists.
        let Some(call) = (unsafe { (*self.raw).start_poll }) else { return Err(-1) };
        let mut attributes = 0_u32;
        // SAFETY: the queue exists, and no poll section is open.
        match unsafe { call(self.raw, &raw mut attributes) } {
            0 => {
                self.is_open.set(true);
                Ok(Some(self.accessors()))
            }
            ENOENT => Ok(None),
            other => Err(other),
        }
    }

    /// `ibv_next_poll`. `None`: ENOENT; the section stays open.
    ///
    /// # Errors
    /// What it returned.
    pub fn next_poll(&self) -> Result<Option<Raw>, i32> {
        // SAFETY: the queue exists.
        let Some(call) = (unsafe { (*self.raw).next_poll }).filter(|_| self.is_open.get()) else {
            return Err(-1);
        };
        // SAFETY: the queue exists, and a poll section is open.
        match unsafe { call(self.raw) } {
            0 => Ok(Some(self.accessors())),
            ENOENT => Ok(None),
            other => Err(other),
        }
    }

    /// `ibv_end_poll`, if a section is open.
    pub fn end_poll(&self) {
        // SAFETY: the queue exists.
        let call = unsafe { (*self.raw).end_poll };
        if let Some(call) = call.filter(|_| self.is_open.replace(false)) {
            // SAFETY: the queue exists, and a poll section is open.
            unsafe { call(self.raw) };
        }
    }

    fn accessors(&self) -> Raw {
        macro_rules! read {
            ($accessor:ident) => {{
                // SAFETY: the queue exists.
                let call = unsafe { (*self.raw).$accessor };
                // SAFETY: a poll section is open on a completion.
                call.map_or(0, |call| unsafe { call(self.raw) })
            }};
        }
        let mut info = ibv_wc_tm_info::default();
        // SAFETY: the queue exists.
        if let Some(call) = unsafe { (*self.raw).read_tm_info } {
            // SAFETY: a poll section is open on a completion.
            unsafe { call(self.raw, &raw mut info) };
        }
        let flags = read!(read_wc_flags);
        Raw {
            // SAFETY: the queue exists.
            status: unsafe { (*self.raw).status },
            // SAFETY: the queue exists.
            wr_id: unsafe { (*self.raw).wr_id },
            opcode: read!(read_opcode),
            flags,
            byte_len: read!(read_byte_len),
            immediate: (flags & IBV_WC_WITH_IMM != 0).then(|| u32::from_be(read!(read_imm_data))),
            qp_num: read!(read_qp_num),
            vendor_error: read!(read_vendor_err),
            tag: info.tag,
            word: info.r#priv,
        }
    }
}

impl Drop for CqEx {
    fn drop(&mut self) {
        self.end_poll();
        // SAFETY: created here; every object that uses it holds it. `ibv_cq_ex_to_cq` is a cast.
        unsafe { (self.device.library.ibv_destroy_cq)(self.raw.cast()) };
    }
}

pub(super) const fn result(errno: i32) -> Result<(), i32> {
    if errno == 0 { Ok(()) } else { Err(errno) }
}

const ENOENT: i32 = 2;
