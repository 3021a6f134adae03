//! The device as a whole: its parts, its numbers, its events.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::config::HcaConfig;
use super::cq::Cq;
use super::memory::HostMemory;
use super::packet::Packet;
use super::qp::Qp;
use super::regions::Regions;
use super::requests::{AsyncEvent, CompletionEvent, ContextId};
use super::srq::Srq;

/// A simulated HCA in one process.
///
/// Control path: errors are those of the kernel for the same mistake. A handle that does not exist or belongs to
/// another context is EINVAL.
#[derive(Debug)]
pub struct Hca<M> {
    pub(crate) config: HcaConfig,
    pub(crate) memory: M,
    pub(crate) contexts: BTreeSet<ContextId>,
    /// With their owners.
    pub(crate) pds: BTreeMap<u32, ContextId>,
    pub(crate) regions: Regions,
    pub(crate) cqs: BTreeMap<u32, Cq>,
    pub(crate) srqs: BTreeMap<u32, Srq>,
    pub(crate) qps: BTreeMap<u32, Qp>,
    pub(crate) numbers: Numbers,
    pub(crate) completion_events: VecDeque<CompletionEvent>,
    pub(crate) async_events: VecDeque<AsyncEvent>,
    /// Packets to this process, by source and destination.
    pub(crate) flows: BTreeMap<(u32, u32), VecDeque<Packet>>,
    /// Packets to other processes.
    pub(crate) outgoing: VecDeque<Packet>,
    pub(crate) now: u64,
    /// Room for the numbers of the QPs that [`Self::run`] goes through.
    pub(crate) round: Vec<u32>,
}

impl<M> Hca<M> {
    /// The objects of all contexts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            contexts: self.contexts.len(),
            protection_domains: self.pds.len(),
            cqs: self.cqs.len(),
            srqs: self.srqs.len(),
            qps: self.qps.len(),
        }
    }
}

/// How many objects of each kind a device has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Counts {
    /// Open contexts.
    pub contexts: usize,
    /// Protection domains.
    pub protection_domains: usize,
    /// Completion queues.
    pub cqs: usize,
    /// Shared receive queues.
    pub srqs: usize,
    /// QPs; a TM-SRQ has one of its own.
    pub qps: usize,
}

impl<M: HostMemory> Hca<M> {
    /// A device without objects.
    #[must_use]
    pub fn new(config: HcaConfig, memory: M) -> Self {
        Self {
            config,
            memory,
            contexts: BTreeSet::new(),
            pds: BTreeMap::new(),
            regions: Regions::default(),
            cqs: BTreeMap::new(),
            srqs: BTreeMap::new(),
            qps: BTreeMap::new(),
            numbers: Numbers::default(),
            completion_events: VecDeque::new(),
            async_events: VecDeque::new(),
            flows: BTreeMap::new(),
            outgoing: VecDeque::new(),
            now: 0,
            round: Vec::new(),
        }
    }

    /// What it was made as.
    #[must_use]
    pub const fn config(&self) -> &HcaConfig {
        &self.config
    }

    /// The host's memory.
    #[must_use]
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    /// The host's memory.
    pub const fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    /// The oldest event for a completion channel.
    pub fn poll_completion_event(&mut self) -> Option<CompletionEvent> {
        self.completion_events.pop_front()
    }

    /// The oldest asynchronous event.
    pub fn poll_async_event(&mut self) -> Option<AsyncEvent> {
        self.async_events.pop_front()
    }
}

/// The last number given to an object of each kind. Numbers are not used again soon, so that a late packet or a
/// stale handle finds nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    pub context: u32,
    pd: u32,
    cq: u32,
    srq: u32,
    qp: u16,
}

impl Numbers {
    pub(crate) fn pd<T>(&mut self, used: &BTreeMap<u32, T>) -> u32 {
        next(&mut self.pd, used)
    }

    pub(crate) fn cq<T>(&mut self, used: &BTreeMap<u32, T>) -> u32 {
        next(&mut self.cq, used)
    }

    pub(crate) fn srq<T>(&mut self, used: &BTreeMap<u32, T>) -> u32 {
        next(&mut self.srq, used)
    }

    /// 24 bits: the process, then a number of its own. `None`: all are in use.
    pub(crate) fn qp<T>(&mut self, used: &BTreeMap<u32, T>, process: u8) -> Option<u32> {
        for _ in 0..=u16::MAX {
            self.qp = self.qp.wrapping_add(1).max(FIRST_QP);
            let qpn = u32::from(process) << 16 | u32::from(self.qp);
            if !used.contains_key(&qpn) {
                return Some(qpn);
            }
        }
        None
    }
}

fn next<T>(last: &mut u32, used: &BTreeMap<u32, T>) -> u32 {
    loop {
        *last = (*last % NUMBER_MAX) + 1;
        if !used.contains_key(last) {
            return *last;
        }
    }
}

/// 0 and 1 are those of subnet management; a device has some more of its own.
const FIRST_QP: u16 = 0x40;
const NUMBER_MAX: u32 = 0x00ff_ffff;
