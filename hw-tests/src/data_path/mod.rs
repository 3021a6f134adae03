//! Checks of a verbs device that have nothing to do with tag matching: what any program on any device relies on.
//!
//! All QPs are on one port, connected to each other. Not here: TM-SRQs; those are in `scripts`.

mod errors;
mod queues;
mod transfers;

use std::rc::Rc;
use std::time::{Duration, Instant};

use tagmatch::device::verbs::sys::types::ibv_wc;
use tagmatch::device::verbs::sys::{
    IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE,
};

use crate::runner::Verdict;
use crate::verbs::{Connection, Cq, Device, Part, Pd, Qp, QpForm, Region, Request, Srq, Wr};
use crate::verbs_port::Drive;

/// One check.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Its name, unique.
    pub name: &'static str,
    /// The calls that it is about.
    pub source: &'static str,
    check: fn(&mut Bench<'_>) -> Result<(), Problem>,
}

/// All of them.
#[must_use]
pub fn checks() -> Vec<Check> {
    [transfers::CHECKS, queues::CHECKS, errors::CHECKS].concat()
}

/// Run one check from nothing to nothing.
pub fn run(check: &Check, device: &Rc<Device>, drive: &mut dyn Drive) -> Verdict {
    let pd = match Pd::new(device) {
        Ok(pd) => pd,
        Err(errno) => return Verdict::Failed(format!("ibv_alloc_pd failed with errno {errno}")),
    };
    match (check.check)(&mut Bench { pd, drive }) {
        Ok(()) => Verdict::Passed,
        Err(Problem::Failed(what)) => Verdict::Failed(what),
        Err(Problem::Skipped(why)) => Verdict::Skipped(why),
    }
}

/// Why a check did not pass.
enum Problem {
    Failed(String),
    Skipped(String),
}

impl From<String> for Problem {
    fn from(what: String) -> Self {
        Self::Failed(what)
    }
}

/// What a check works with.
struct Bench<'a> {
    pd: Rc<Pd>,
    drive: &'a mut dyn Drive,
}

/// One end of a connection, with memory of its own.
struct End {
    qp: Qp,
    send_cq: Rc<Cq>,
    recv_cq: Rc<Cq>,
    memory: Rc<Region>,
}

/// How a pair is made.
#[derive(Clone)]
struct Pair {
    mtu: u32,
    rnr_retries: u8,
    retries: u8,
    sends: u32,
    inline: u32,
    memory: usize,
    /// Of the memory of the second end.
    access: u32,
    srq: Option<Rc<Srq>>,
    recv_cq: Option<Rc<Cq>>,
}

impl Default for Pair {
    fn default() -> Self {
        let access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
        Self {
            mtu: 1,
            rnr_retries: 7,
            retries: 7,
            sends: 16,
            inline: 0,
            memory: 8192,
            access: access | IBV_ACCESS_REMOTE_ATOMIC,
            srq: None,
            recv_cq: None,
        }
    }
}

impl Bench<'_> {
    fn device(&self) -> &Rc<Device> {
        &self.pd.device
    }

    /// Whether it is rxe, which tells some errors in other words than cards do.
    fn is_soft_roce(&self) -> bool {
        self.device().attributes().orig_attr.vendor_id == VENDOR_OF_RXE
    }

    fn cq(&self) -> Result<Rc<Cq>, String> {
        Cq::new(self.device(), 127, None).map_err(|errno| format!("ibv_create_cq failed with errno {errno}"))
    }

    fn region(&self, length: usize, access: u32) -> Result<Rc<Region>, String> {
        Region::new(&self.pd, length, access).map_err(|errno| format!("ibv_reg_mr failed with errno {errno}"))
    }

    /// Two connected ends: what the first sends, the second receives.
    fn pair(&self, pair: &Pair) -> Result<(End, End), String> {
        let all = Pair::default().access;
        let first = self.end(pair, all, None, None)?;
        let second = self.end(pair, pair.access, pair.srq.as_ref(), pair.recv_cq.as_ref())?;
        for (from, to) in [(&first, &second), (&second, &first)] {
            let connection = Connection {
                mtu: pair.mtu,
                retries: pair.retries,
                rnr_retries: pair.rnr_retries,
                ..Connection::to(to.qp.number())
            };
            from.qp
                .connect(&connection)
                .map_err(|(call, errno)| format!("{call} failed with errno {errno}"))?;
        }
        Ok((first, second))
    }

    fn end(
        &self,
        pair: &Pair,
        access: u32,
        srq: Option<&Rc<Srq>>,
        recv_cq: Option<&Rc<Cq>>,
    ) -> Result<End, String> {
        let send_cq = self.cq()?;
        let recv_cq = recv_cq.map_or_else(|| self.cq(), |cq| Ok(Rc::clone(cq)))?;
        let form = QpForm {
            send_cq: Rc::clone(&send_cq),
            recv_cq: Rc::clone(&recv_cq),
            srq: srq.cloned(),
            sends: pair.sends,
            receives: if srq.is_some() { 0 } else { 32 },
            segments: 4,
            inline: pair.inline,
        };
        let qp =
            Qp::new(&self.pd, form).map_err(|(call, errno)| format!("{call} failed with errno {errno}"))?;
        Ok(End { qp, send_cq, recv_cq, memory: self.region(pair.memory, access)? })
    }

    /// The next completion, which must come.
    fn wait(&mut self, cq: &Cq) -> Result<ibv_wc, String> {
        let start = Instant::now();
        loop {
            if let Some(completion) = self.poll(cq)? {
                return Ok(completion);
            }
            if !self.drive.is_free() || start.elapsed() > PATIENCE {
                self.drive.settle();
                return self.poll(cq)?.ok_or_else(|| "a completion did not come".to_owned());
            }
        }
    }

    fn poll(&self, cq: &Cq) -> Result<Option<ibv_wc>, String> {
        cq.poll().map_err(|returned| format!("ibv_poll_cq returned {returned}"))
    }

    /// The next completion is of this request and has this status.
    fn completes(&mut self, cq: &Cq, wr_id: u64, status: u32) -> Result<ibv_wc, String> {
        let completion = self.wait(cq)?;
        let seen = (completion.wr_id, completion.status);
        if seen == (wr_id, status) {
            Ok(completion)
        } else {
            Err(format!("expected (wr_id, status) {:?}, saw {seen:?}", (wr_id, status)))
        }
    }

    /// Nothing completes.
    fn quiet(&mut self, cq: &Cq) -> Result<(), String> {
        self.drive.settle();
        match self.poll(cq)? {
            None => Ok(()),
            Some(completion) => Err(format!("a completion too many: {completion:?}")),
        }
    }
}

impl End {
    fn send(&self, wr: &Wr) -> Result<(), String> {
        self.qp.post_send(wr).map_err(|errno| format!("ibv_post_send failed with errno {errno}"))
    }

    fn receive(&self, wr_id: u64, part: Part) -> Result<(), String> {
        self.qp.post_recv(wr_id, &[part]).map_err(|errno| format!("ibv_post_recv failed with errno {errno}"))
    }

    fn simple_send(&self, wr_id: u64, length: usize) -> Result<(), String> {
        self.send(&Wr::new(wr_id, Request::Send(None), vec![self.memory.part(0, length)]))
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: &T, seen: &T) -> Result<(), String> {
    if expected == seen { Ok(()) } else { Err(format!("{what}: expected {expected:?}, saw {seen:?}")) }
}

/// What rxe calls its vendor (drivers/infiniband/sw/rxe/rxe_param.h, RXE_VENDOR_ID).
const VENDOR_OF_RXE: u32 = 0x00ff_ffff;
const PATIENCE: Duration = Duration::from_secs(10);
