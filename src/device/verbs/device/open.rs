//! Opening: which device, which port, with tag matching or without.

use std::collections::VecDeque;
use std::time::Instant;

use slab::Slab as Table;

use super::super::channel::Channel;
use super::super::completion::{CompletionQueue, TagMatchingQueue};
use super::super::context::{Context, Limits, LinkLayer, Port, TagMatchingLimits};
use super::super::error::{Errno, TagMatchingRefusal, VerbsError};
use super::super::memory::ProtectionDomain;
use super::super::receives::{SharedReceives, Slab};
use super::super::tag_matching::TagMatchingSrq;
use super::config::{Sizes, TagMatching, VerbsConfig};
use super::held::HeldMessages;
use super::peers::Peers;
use super::regions::{HostMemory, Regions};
use super::side::{Buffers, Matching, Plain, ReceiveSide};
use super::{Scratch, VerbsDevice, gid};
use crate::seam::Capabilities;

impl VerbsDevice {
    /// Open a device.
    ///
    /// Where it cannot match, it is opened without, and [`Self::refusal`] says why, unless matching is required.
    ///
    /// # Errors
    /// There is no such device or port, matching is required and not there, or the device has too little of something.
    pub fn open(config: VerbsConfig, memory: HostMemory) -> Result<Self, VerbsError> {
        let context = Context::open(config.device.as_deref())?;
        let limits = context.limits()?;
        let port = choose_port(&context, config.port)?;
        let gid = gid::choose(&context, &port, &config)?;
        let config = checked(config, &context, &limits)?;
        let domain = ProtectionDomain::new(&context)?;
        // Without one the device works, and nobody can wait for it.
        let channel = Channel::new(&context).ok();
        let (side, sizes, refusal) = receive_side(&config, &limits, &port, &domain, channel.as_ref())?;
        let entries = config.peers.saturating_mul(config.sends_per_peer).clamp(64, SEND_COMPLETIONS_MAX);
        let send_queue =
            CompletionQueue::with_channel(&context, entries.min(limits.completions), channel.as_ref())?;
        let send_slab = Slab::new(&domain, config.send_buffers, buffer_length(&config))?;
        let capabilities = capabilities(&config, &limits, &sizes);
        let mut device = Self {
            peers: Peers::default(),
            buffers: Buffers::new(side.slab_count(), config.spare_buffers),
            side,
            send_queue,
            jobs: Table::new(),
            outgoing: Table::new(),
            send_free: (0..send_slab.count()).rev().collect(),
            send_slab,
            regions: Regions::new(memory),
            domain,
            channel,
            context,
            limits,
            port,
            gid,
            events_in: config.events_every.max(1),
            config,
            capabilities,
            refusal,
            held: HeldMessages::default(),
            untagged: VecDeque::new(),
            causes: VecDeque::new(),
            untagged_count: 0,
            pending: VecDeque::new(),
            sent: VecDeque::new(),
            failure: None,
            failure_told: false,
            polls: 0,
            may_be_failing: false,
            checked: Instant::now(),
            scratch: Scratch::default(),
        };
        device.refill_plain().map_err(|errno| device.context.returned("ibv_post_srq_recv", errno.0))?;
        Ok(device)
    }
}

fn choose_port(context: &Context, wanted: Option<u8>) -> Result<Port, VerbsError> {
    let Some(wanted) = wanted else { return context.active_port() };
    let port = context.port(wanted)?;
    if port.is_active() { Ok(port) } else { Err(context.port_down(&port)) }
}

/// The configuration, cut to what the device has where that is no harm.
fn checked(config: VerbsConfig, context: &Context, limits: &Limits) -> Result<VerbsConfig, VerbsError> {
    let too_small = |what, offered: u32, needed: u32| VerbsError::TooSmall {
        device: context.name().to_owned(),
        what,
        offered: offered.into(),
        needed: needed.into(),
    };
    if config.eager_limit > EAGER_MAX {
        let limit = config.eager_limit;
        return Err(VerbsError::Caller(format!("{limit} bytes are sent eagerly, and {EAGER_MAX} may be")));
    }
    if let Some(fault) = config.patience.fault() {
        return Err(VerbsError::Caller(format!("the patience of queue pairs cannot be used: {fault}")));
    }
    // Each of them may put two errors into a queue for each of its two queue pairs, beside what is received.
    let peers = config.peers.min(limits.queue_pairs / 2).min(limits.completions / 8);
    if peers == 0 {
        return Err(too_small("peers (queue pairs, two for each)", limits.queue_pairs, 2));
    }
    let sends_per_peer = config.sends_per_peer.max(SENDS_MIN).min(limits.work_requests);
    if sends_per_peer < SENDS_MIN {
        return Err(too_small("requests in a send queue", limits.work_requests, SENDS_MIN));
    }
    let reads = config.reads.clamp(1, limits.reads.0.min(limits.reads.1).max(1));
    let send_buffers = config.send_buffers.max(SEND_BUFFERS_MIN);
    Ok(VerbsConfig { peers, sends_per_peer, reads, send_buffers, ..config })
}

type Chosen = (ReceiveSide, Sizes, Option<TagMatchingRefusal>);

fn receive_side(
    config: &VerbsConfig,
    limits: &Limits,
    port: &Port,
    domain: &ProtectionDomain,
    channel: Option<&Channel>,
) -> Result<Chosen, VerbsError> {
    let refusal = match (config.tag_matching, &limits.tag_matching) {
        (TagMatching::Off, _) => TagMatchingRefusal::NotWanted,
        (_, None) => TagMatchingRefusal::NotReported,
        (_, Some(tm)) => match matching_side(config, limits, tm, domain, channel) {
            Ok((side, sizes)) => return Ok((side, sizes, None)),
            Err(error) if port.link == LinkLayer::Ethernet => TagMatchingRefusal::RoCe(error),
            Err(error) => TagMatchingRefusal::Refused(error),
        },
    };
    if config.tag_matching == TagMatching::Required {
        let device = domain.context().name().to_owned();
        return Err(VerbsError::NoTagMatching { device, reason: Box::new(refusal) });
    }
    let sizes = Sizes::plain(config, limits);
    let slab = Slab::new(domain, sizes.unexpected, buffer_length(config))?;
    let queue = CompletionQueue::with_channel(domain.context(), sizes.completions, channel)?;
    let srq = SharedReceives::new(domain, slab)?;
    Ok((ReceiveSide::Plain(Plain { srq, queue }), sizes, Some(refusal)))
}

fn matching_side(
    config: &VerbsConfig,
    limits: &Limits,
    tm: &TagMatchingLimits,
    domain: &ProtectionDomain,
    channel: Option<&Channel>,
) -> Result<(ReceiveSide, Sizes), VerbsError> {
    let sizes = Sizes::matching(config, limits, tm).ok_or_else(|| VerbsError::TooSmall {
        device: domain.context().name().to_owned(),
        what: "a completion queue or a shared receive queue",
        offered: limits.completions.min(limits.shared_receives).into(),
        needed: u64::from(Capabilities::UNEXPECTED_BUFFERS_MIN)
            + u64::from(config.spare_buffers)
            + u64::from(config.peers) * 4,
    })?;
    let mut sizes = sizes;
    loop {
        let queue = TagMatchingQueue::with_channel(domain.context(), sizes.completions, channel)?;
        let slab = Slab::new(domain, sizes.unexpected + config.spare_buffers, buffer_length(config))?;
        match TagMatchingSrq::new(domain, queue, slab, sizes.tags, sizes.slots) {
            Ok(srq) => return Ok((ReceiveSide::Matching(Box::new(Matching::new(srq))), sizes)),
            // More command slots than the driver's queue of them holds are refused like everything else.
            Err(VerbsError::Call { cause: Errno(libc::EINVAL | libc::ENOMEM), .. })
                if sizes.slots > SLOTS_WITHOUT_DOUBT =>
            {
                sizes = sizes.with_slots(sizes.slots / 2);
            }
            Err(error) => return Err(error),
        }
    }
}

fn capabilities(config: &VerbsConfig, limits: &Limits, sizes: &Sizes) -> Capabilities {
    let is_matching = sizes.tags > 0;
    let rendezvous = limits.tag_matching.is_some_and(|tm| tm.rendezvous && tm.rendezvous_header >= REQUEST);
    Capabilities {
        tags: sizes.tags,
        command_slots: sizes.slots,
        completions: sizes.counted,
        unexpected_buffers: if is_matching { sizes.unexpected } else { 0 },
        eager_limit: config.eager_limit.into(),
        buffer_length_max: BUFFER_MAX.min(limits.region),
        registration: is_matching,
        rendezvous: is_matching && rendezvous,
    }
}

/// A payload and the longest header before it.
fn buffer_length(config: &VerbsConfig) -> u32 {
    config.eager_limit.saturating_add(HEADERS).max(BUFFER_MIN)
}

/// So many command slots every driver has room for: that they are refused has another reason.
const SLOTS_WITHOUT_DOUBT: u32 = 1024;
/// Bytes of TMH and RVH.
const REQUEST: u32 = 32;
/// Room for the headers of messages with and without a tag (`wire`).
const HEADERS: u32 = 64;
/// The longest message of connection control (`wire`), and some more.
const BUFFER_MIN: u32 = 128;
/// A segment's length has 31 bits, and 0 stands for 2^31.
const BUFFER_MAX: u64 = (1 << 31) - 1;
/// The longest eager payload: what a buffer of the slab can be asked for, headers included.
const EAGER_MAX: u32 = 1 << 30;
const SENDS_MIN: u32 = 8;
const SEND_BUFFERS_MIN: u32 = 8;
const SEND_COMPLETIONS_MAX: u32 = 1 << 16;
