//! What scripts run on: a TM-SRQ with its senders, at the level of verbs.
//!
//! Not here: how. [`soft_port`](crate::soft_port) runs the executable description, `verbs_port` a verbs device.

use std::time::Duration;

use crate::script::{Advance, Completion, Created, Creation};

/// A device on which ports can be opened, one at a time.
pub trait TmDevice {
    /// What to call it in a report.
    fn name(&self) -> String;

    /// What it can do.
    fn abilities(&self) -> Abilities;

    /// Everything that a script needs, still without a TM-SRQ.
    ///
    /// # Errors
    /// Something beside the subject of any script is broken.
    fn open(&mut self) -> Result<Box<dyn TmPort + '_>, PortError>;
}

/// What a device can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Abilities {
    /// `tm_caps.max_num_tags`; 0: no tag matching.
    pub tags: u32,
    /// Largest `max_wr` of an SRQ.
    pub receives: u32,
    /// Largest `max_sge` of an SRQ.
    pub segments: u32,
    /// Whether it offloads rendezvous (`IBV_TM_CAP_RC`).
    pub rendezvous: bool,
    /// Whether it can be advanced by hand.
    pub stepping: bool,
    /// Whether it is a model that reads the doubtful points of TM-CONTRACT 14 as we do.
    pub is_model: bool,
    /// The port of the QPs, from 1.
    pub port: u8,
    /// Whether that port is RoCE.
    pub roce: bool,
    /// How long something that must come is waited for. Zero on a device that does everything when told to settle.
    pub patience: Duration,
    /// How long nothing must come until nothing will.
    pub quiet: Duration,
}

/// One TM-SRQ, its CQ, its senders, and memory for all of them.
pub trait TmPort {
    /// `ibv_create_srq_ex`.
    ///
    /// # Errors
    /// Inside: errno.
    fn create(&mut self, creation: &Creation) -> Result<Result<Created, i32>, PortError>;

    /// A sender: its send QP, connected to a receive QP on the SRQ. That has a send queue only if asked for, and then
    /// no rendezvous offload (TM-CONTRACT 4).
    ///
    /// # Errors
    /// Something is broken, or the device is not told of send queues.
    fn connect(&mut self, sender: u8, with_send_queue: bool) -> Result<(), PortError>;

    /// `ibv_post_srq_ops` of one list. The handles of the ADDs that were taken, and what was refused.
    ///
    /// # Errors
    /// The client broke the contract in a way that a driver would not notice.
    fn post_srq_ops(&mut self, list: &[Posting]) -> Result<Posted, PortError>;

    /// `ibv_post_srq_recv` of the unexpected buffer of this number; wr_id: [`sizes::UNEXPECTED_WR_ID`] more. 0 or errno.
    ///
    /// # Errors
    /// Something is broken.
    fn post_srq_recv(&mut self, number: u32) -> Result<i32, PortError>;

    /// `ibv_start_poll` and the accessors. `None`: ENOENT, and no poll section is open.
    ///
    /// # Errors
    /// The device or the driver can go on no more.
    fn start_poll(&mut self) -> Result<Option<Completion>, PortError>;

    /// `ibv_next_poll` and the accessors. `None`: ENOENT; the poll section stays open.
    ///
    /// # Errors
    /// As [`Self::start_poll`].
    fn next_poll(&mut self) -> Result<Option<Completion>, PortError>;

    /// `ibv_end_poll`.
    fn end_poll(&mut self);

    /// A sender posts a signalled SEND of these bytes.
    ///
    /// # Errors
    /// Something is broken.
    fn send(&mut self, sender: u8, bytes: &[u8], immediate: Option<u32>) -> Result<(), PortError>;

    /// The statuses of a sender's SENDs that have completed since the last call. Waits for none.
    ///
    /// # Errors
    /// Something is broken.
    fn sent(&mut self, sender: u8) -> Result<Vec<u32>, PortError>;

    /// What has reached a sender's own receive queue since the last call. Waits for nothing.
    ///
    /// # Errors
    /// Something is broken.
    fn received(&mut self, sender: u8) -> Result<Vec<Vec<u8>>, PortError>;

    /// Puts the data of a rendezvous into memory of a sender that was not used lately: its address and key.
    ///
    /// # Errors
    /// Something is broken.
    fn source(&mut self, sender: u8, bytes: &[u8]) -> Result<(u64, u32), PortError>;

    /// Fill the tagged buffer of this number with [`sizes::FILL`].
    fn clear_tagged_buffer(&mut self, number: u32);

    /// So many bytes from the start of the tagged buffer of this number.
    fn tagged_buffer(&self, number: u32, length: u32) -> Vec<u8>;

    /// So many bytes from the start of an unexpected buffer.
    fn unexpected_buffer(&self, number: u32, length: u32) -> Vec<u8>;

    /// The device does one thing. False: it was not possible.
    ///
    /// # Errors
    /// It cannot be advanced by hand.
    fn advance(&mut self, step: Advance) -> Result<bool, PortError>;

    /// The device does all it can. One that runs by itself is given time.
    ///
    /// # Errors
    /// Something is broken.
    fn settle(&mut self) -> Result<(), PortError>;

    /// A sender's receive QP goes to ERR.
    ///
    /// # Errors
    /// Something is broken.
    fn fail_qp(&mut self, sender: u8) -> Result<(), PortError>;

    /// `ibv_destroy_qp` of a sender's receive QP, with its send QP.
    ///
    /// # Errors
    /// Something is broken.
    fn destroy_qp(&mut self, sender: u8) -> Result<(), PortError>;

    /// `ibv_destroy_srq`: 0 or errno.
    ///
    /// # Errors
    /// Something is broken.
    fn destroy_srq(&mut self) -> Result<i32, PortError>;

    /// Whatever is left, in the right order: QPs, SRQ, CQs, memory.
    ///
    /// # Errors
    /// Something could not be destroyed.
    fn tear_down(&mut self) -> Result<(), PortError>;
}

/// One `ibv_ops_wr` with its numbers filled in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Posting {
    /// Comes back with its completion.
    pub wr_id: u64,
    /// What to do.
    pub kind: PostingKind,
    /// `IBV_OPS_SIGNALED`
    pub signalled: bool,
    /// `tm.unexpected_cnt`
    pub count: u32,
    /// `IBV_OPS_TM_SYNC`
    pub count_valid: bool,
}

/// Its opcode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PostingKind {
    /// `IBV_WR_TAG_ADD`
    Add {
        /// `recv_wr_id`
        receive: u64,
        /// Numbers of tagged buffers, and bytes of each: the `sg_list`.
        segments: Vec<(u32, u32)>,
        /// What to compare with.
        tag: u64,
        /// Which bits.
        mask: u64,
    },
    /// `IBV_WR_TAG_DEL` of a handle.
    Del(u32),
    /// `IBV_WR_TAG_SYNC`
    Sync,
    /// Any other.
    Unknown(u32),
}

/// What `ibv_post_srq_ops` did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Posted {
    /// Of the ADDs that were taken, in order.
    pub handles: Vec<u32>,
    /// errno and the place of the failing operation.
    pub refused: Option<(i32, usize)>,
}

/// What ends a script at once.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct PortError(pub String);

impl PortError {
    /// Says what was called and what came of it.
    #[must_use]
    pub fn call(name: &str, errno: i32) -> Self {
        Self(format!("{name} failed with errno {errno}"))
    }
}

/// Sizes that every port agrees on.
pub mod sizes {
    /// Bytes between the starts of two tagged buffers. A buffer itself is shorter, so that writing behind it shows.
    pub const TAGGED_STRIDE: u32 = 4096;
    /// Tagged buffers.
    pub const TAGGED_BUFFERS: u32 = 40;
    /// Bytes of an unexpected buffer.
    pub const UNEXPECTED: u32 = 32_768;
    /// Unexpected buffers.
    pub const UNEXPECTED_BUFFERS: u32 = 256;
    /// The wr_id of the first of them.
    pub const UNEXPECTED_WR_ID: u64 = 0x1000;
    /// Bytes of a sender's source memory.
    pub const SOURCE: u32 = 65_536;
    /// Bytes of it that one request gets.
    pub const SOURCE_STRIDE: u32 = 8192;
    /// What memory holds before anything is written.
    pub const FILL: u8 = 0xee;
    /// The path MTU of all QPs, in bytes: what is longer comes in several packets.
    pub const MTU: u32 = 256;
}
