//! Scripts: what is said to a TM-SRQ and its senders at the level of verbs, and what must come of it.
//!
//! A script is plain data, written once and run on every device through [`TmPort`](crate::port::TmPort). Nothing in
//! it depends on how fast a device is, but for steps that advance it by hand.
//!
//! Not here: how a script is run (`runner`), and the scripts themselves (`scripts`).

mod expected;
mod message;
mod operation;

pub use expected::{Bytes, Completion, Expected, flags, opcode, status};
pub use message::{Message, MessageKind, pattern};
pub use operation::{Count, Operation, OperationKind, Target};

use std::borrow::Cow;

/// One script.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its name, unique: `area.situation_and_outcome`.
    pub name: Cow<'static, str>,
    /// The section of TM-CONTRACT that says so.
    pub contract: &'static str,
    /// What is made before the first step; `None`: nothing.
    pub setup: Option<Setup>,
    /// What a device must have.
    pub needs: Needs,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

impl Script {
    /// A script on the usual set-up.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>, contract: &'static str, steps: Vec<Step>) -> Self {
        let setup = Some(Setup::default());
        Self { name: name.into(), contract, setup, needs: Needs::default(), steps }
    }

    /// Another set-up.
    #[must_use]
    pub fn on(self, setup: Setup) -> Self {
        Self { setup: Some(setup), ..self }
    }

    /// Nothing is made beforehand.
    #[must_use]
    pub fn bare(self) -> Self {
        Self { setup: None, ..self }
    }

    /// Only on a device that can be advanced by hand.
    #[must_use]
    pub fn stepped(mut self) -> Self {
        self.needs.stepping = true;
        self
    }

    /// Only on a device that reads the data of a rendezvous itself.
    #[must_use]
    pub fn with_rendezvous(mut self) -> Self {
        self.needs.rendezvous = true;
        self
    }

    /// Messages that it sends.
    #[must_use]
    pub fn messages(&self) -> u64 {
        messages(&self.steps)
    }

    /// Holds only on a device that reads this point of TM-CONTRACT 14 as we do.
    #[must_use]
    pub fn assuming(mut self, point: &'static str) -> Self {
        self.needs.assumption = Some(point);
        self
    }
}

/// What a device must have for a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// It can be advanced by hand.
    pub stepping: bool,
    /// It offloads rendezvous.
    pub rendezvous: bool,
    /// It reads this point of TM-CONTRACT 14 as we do. Not known of a card: there, a probe asks.
    pub assumption: Option<&'static str>,
}

/// What is made before a script begins: a TM-SRQ, receives, senders with a QP pair each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// `max_num_tags`
    pub tags: u32,
    /// `max_ops`
    pub operations: u32,
    /// `attr.max_wr`
    pub receives: u32,
    /// Receives posted: at least 33 (TM-CONTRACT 5).
    pub posted: u32,
    /// Senders, named from 0.
    pub senders: u8,
}

impl Default for Setup {
    fn default() -> Self {
        Self { tags: 8, operations: 32, receives: 100, posted: 100, senders: 1 }
    }
}

/// `ibv_create_srq_ex`, with what can be wrong about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Creation {
    /// `tm_cap.max_num_tags`
    pub tags: Limit,
    /// `tm_cap.max_ops`
    pub operations: u32,
    /// `attr.max_wr`
    pub receives: Limit,
    /// `attr.max_sge`
    pub segments: Limit,
    /// What else.
    pub form: Form,
}

impl Default for Creation {
    fn default() -> Self {
        let setup = Setup::default();
        Self {
            tags: Limit::Exactly(setup.tags),
            operations: setup.operations,
            receives: Limit::Exactly(setup.receives),
            segments: Limit::Exactly(1),
            form: Form::Whole,
        }
    }
}

/// A number, or one that depends on what the device allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// This many.
    Exactly(u32),
    /// As many as the device says.
    Most,
    /// One more than the device says.
    TooMany,
}

impl Limit {
    /// The number, on a device that allows `most`.
    #[must_use]
    pub const fn of(self, most: u32) -> u32 {
        match self {
            Self::Exactly(number) => number,
            Self::Most => most,
            Self::TooMany => most.saturating_add(1),
        }
    }
}

/// How a creation request is formed (TM-CONTRACT 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// As it should be: `comp_mask` 0x1b and a CQ of `ibv_create_cq_ex`.
    #[default]
    Whole,
    /// CQ is missing in `comp_mask`.
    NoCq,
    /// TM is missing in `comp_mask`.
    NoTm,
    /// `comp_mask` has TYPE and PD only.
    TypeAndPdOnly,
    /// The CQ was made with `ibv_create_cq`.
    PlainCq,
    /// Not a TM-SRQ at all: `IBV_SRQT_BASIC`.
    BasicSrq,
}

/// What creation answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Created {
    /// `attr.max_wr`, rounded up.
    pub receives: u32,
}

/// One step of a script.
#[derive(Clone, Debug)]
pub enum Step {
    /// `ibv_create_srq_ex`; `Err`: errno. Where a number is `None`, it is not looked at.
    Create(Creation, Result<Option<u32>, i32>),
    /// `ibv_post_srq_ops` of one list.
    Post {
        /// The list.
        operations: Vec<Operation>,
        /// The handles that its ADDs get, where they matter.
        handles: Option<Vec<u32>>,
        /// errno, and the place of the operation that failed.
        refused: Option<(i32, usize)>,
    },
    /// `ibv_post_srq_recv`, one after the other: so many, of which so many are taken before ENOMEM.
    Receives {
        /// Calls.
        calls: u32,
        /// Of these succeed.
        taken: u32,
    },
    /// A sender posts a SEND. Its completion is not waited for.
    Send(Message),
    /// The device does everything it can.
    Settle,
    /// The device does one thing, which must be possible.
    Advance(Advance),
    /// So many completions are polled, and these must come, in this order. What else there is stays.
    Poll(Vec<Expected>),
    /// As [`Step::Settle`]; then these completions and no others must come, in this order.
    Completions(Vec<Expected>),
    /// As [`Step::Completions`], in any order.
    InAnyOrder(Vec<Expected>),
    /// The first of these completions is polled with `ibv_start_poll`; then the steps are done; then the others
    /// with `ibv_next_poll`; then `ibv_end_poll`.
    InsidePoll(Vec<Expected>, Vec<Step>),
    /// The sender's SENDs have completed with these statuses since it was last asked.
    Sent(u8, Vec<u32>),
    /// The FIN for this request has reached its sender.
    Finished(Message),
    /// The tagged buffer of this number begins with these bytes, and was not written behind them.
    Buffer(u32, Vec<u8>),
    /// A sender's receive QP is moved to ERR.
    FailQp(u8),
    /// `ibv_destroy_qp` of a sender's receive QP.
    DestroyQp(u8),
    /// `ibv_destroy_srq` answers this errno, or 0.
    DestroySrq(i32),
    /// The steps, so many times.
    Repeat(u32, Vec<Step>),
}

/// One thing that a device can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advance {
    /// Execute the oldest list operation.
    Command,
    /// Accept one packet of this sender: the first of its next message, or the next of the one that has begun.
    Packet(u8),
    /// Finish the oldest read of a rendezvous, FIN included.
    Read,
    /// Anything, in the smallest piece there is; no timer.
    Any,
}

fn messages(steps: &[Step]) -> u64 {
    let of = |step: &Step| match step {
        Step::Send(_) => 1,
        Step::Repeat(times, steps) => u64::from(*times) * messages(steps),
        Step::InsidePoll(_, steps) => messages(steps),
        Step::Create(..)
        | Step::Post { .. }
        | Step::Receives { .. }
        | Step::Settle
        | Step::Advance(_)
        | Step::Poll(_)
        | Step::Completions(_)
        | Step::InAnyOrder(_)
        | Step::Sent(..)
        | Step::Finished(_)
        | Step::Buffer(..)
        | Step::FailQp(_)
        | Step::DestroyQp(_)
        | Step::DestroySrq(_) => 0,
    };
    steps.iter().map(of).sum()
}

/// A list of operations that are taken.
#[must_use]
pub fn post(operations: impl Into<Vec<Operation>>) -> Step {
    Step::Post { operations: operations.into(), handles: None, refused: None }
}

/// As [`post`], with the handles that the ADDs get.
#[must_use]
pub fn post_as(operations: impl Into<Vec<Operation>>, handles: impl Into<Vec<u32>>) -> Step {
    Step::Post { operations: operations.into(), handles: Some(handles.into()), refused: None }
}

/// A list of operations of which the one at `bad` is refused.
#[must_use]
pub fn refused(operations: impl Into<Vec<Operation>>, errno: i32, bad: usize) -> Step {
    Step::Post { operations: operations.into(), handles: None, refused: Some((errno, bad)) }
}

/// `EBUSY`
pub const EBUSY: i32 = 16;
/// `EINVAL`
pub const EINVAL: i32 = 22;
/// `ENOMEM`
pub const ENOMEM: i32 = 12;
