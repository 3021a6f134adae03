//! What is offered, and whether it fits what an application asks for: `fi_getinfo(3)` without addresses and memory.
//!
//! Bits 44 to 48 of capabilities mean one thing in API 1 and another in API 2; nothing that they mean in API 1 is
//! offered.

use crate::provider::abi::{self, fi_domain_attr, fi_ep_attr, fi_rx_attr, fi_tx_attr, version};
use crate::provider::info::hints::Hints;
use crate::provider::parameters::Parameters;

/// Why an application is not served: words for a trace.
pub(super) type Reason = &'static str;

/// What an application gets: numbers only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Offer {
    pub(super) kind: Kind,
    pub(super) caps: u64,
    pub(super) tx: TxOffer,
    pub(super) rx: RxOffer,
    pub(super) domain: DomainOffer,
}

/// What endpoints are offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// `FI_EP_RDM`.
    Datagram,
    /// `FI_EP_MSG`.
    Connected,
}

impl Kind {
    /// Its number.
    pub(super) const fn number(self) -> u64 {
        match self {
            Self::Datagram => abi::FI_EP_RDM,
            Self::Connected => abi::FI_EP_MSG,
        }
    }

    /// What of all capabilities is offered with it. Whoever has one peer is told of none.
    const fn caps(self) -> u64 {
        match self {
            Self::Datagram => u64::MAX,
            Self::Connected => !(DIRECTED | abi::FI_SOURCE),
        }
    }
}

/// Of `struct fi_tx_attr`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TxOffer {
    pub(super) caps: u64,
    pub(super) op_flags: u64,
    pub(super) size: usize,
    pub(super) inject_size: usize,
    pub(super) iov_limit: usize,
    pub(super) tclass: u32,
}

/// Of `struct fi_rx_attr`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RxOffer {
    pub(super) caps: u64,
    pub(super) op_flags: u64,
    pub(super) size: usize,
    pub(super) iov_limit: usize,
}

/// Of `struct fi_domain_attr`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DomainOffer {
    pub(super) caps: u64,
    pub(super) threading: u32,
    pub(super) control_progress: u32,
    pub(super) data_progress: u32,
    pub(super) av_type: u32,
    pub(super) mr_mode: i32,
    pub(super) tclass: u32,
    pub(super) cq_data_size: usize,
}

/// Find the offers for these hints of an application of this API: of endpoints that are not connected first. Connected ones
/// where there are such.
pub(super) fn offers(
    api: u32,
    hints: Option<&Hints>,
    parameters: &Parameters,
    has_connected: bool,
) -> Result<Vec<Offer>, Reason> {
    let datagram = offer_of(Kind::Datagram, api, hints, parameters);
    let connected = offer_of(Kind::Connected, api, hints, parameters);
    let connected = connected.and_then(|offer| {
        check(has_connected, "connected endpoints over verbs, or for another provider").map(|()| offer)
    });
    match (datagram, connected) {
        (Err(reason), Err(_)) => Err(reason),
        (datagram, connected) => Ok(datagram.into_iter().chain(connected).collect()),
    }
}

/// Find the offer of such endpoints.
pub(super) fn offer_of(
    kind: Kind,
    api: u32,
    hints: Option<&Hints>,
    parameters: &Parameters,
) -> Result<Offer, Reason> {
    let ours = all_caps(api) & kind.caps() & if parameters.directed_recv { u64::MAX } else { !DIRECTED };
    let none = Hints::default();
    let hints = hints.unwrap_or(&none);
    check_names(hints)?;
    check(hints.caps & !ours == 0, "capabilities that are not offered")?;
    // Remote memory access is for who asks for it alone, unless everybody is to have it.
    let unasked = if parameters.list_rma { u64::MAX } else { !(REMOTE | abi::FI_ATOMIC) };
    let caps = if hints.caps == 0 { ours & unasked } else { filled(hints.caps) | SECONDARY };
    if let Some(ep) = &hints.ep {
        check_endpoint(kind, ep, caps)?;
    }
    Ok(Offer {
        kind,
        caps,
        tx: tx_offer(caps, hints.tx.as_ref(), parameters)?,
        rx: rx_offer(caps, hints.rx.as_ref(), parameters)?,
        domain: domain_offer(kind, api, hints.domain.as_ref(), parameters)?,
    })
}

/// Everything that is offered to applications of this API.
pub(super) fn all_caps(api: u32) -> u64 {
    let later = if api >= version(2, 0) {
        abi::FI_TAGGED_DIRECTED_RECV | abi::FI_TAGGED_MULTI_RECV | abi::FI_EXACT_DIRECTED_RECV
    } else {
        0
    };
    SPACES | DIRECTIONS | REMOTE | abi::FI_ATOMIC | abi::FI_DIRECTED_RECV | abi::FI_SOURCE | SECONDARY | later
}

/// Without a direction both are meant (`fi_getinfo(3)`).
fn filled(caps: u64) -> u64 {
    let messages = if caps & DIRECTIONS == 0 && caps & SPACES != 0 { DIRECTIONS } else { 0 };
    let remote = if caps & REMOTE_DIRECTIONS == 0 && caps & (abi::FI_RMA | abi::FI_ATOMIC) != 0 {
        REMOTE_DIRECTIONS
    } else {
        0
    };
    caps | messages | remote
}

/// The order that holds with these capabilities.
pub(super) const fn order(caps: u64) -> u64 {
    let remote = if caps & abi::FI_RMA == 0 { 0 } else { REMOTE_ORDER };
    let atomic = if caps & abi::FI_ATOMIC == 0 { 0 } else { ATOMIC_ORDER };
    abi::FI_ORDER_SAS | remote | atomic
}

fn check(holds: bool, reason: Reason) -> Result<(), Reason> {
    if holds { Ok(()) } else { Err(reason) }
}

/// `prov_name` is one name, or several with a `;` between them, or excludes those behind a `^`.
fn check_names(hints: &Hints) -> Result<(), Reason> {
    if let Some(names) = &hints.provider_name {
        let is_ours = |name: &str| name.trim().eq_ignore_ascii_case("tagmatch");
        let serves = match names.strip_prefix('^') {
            Some(excluded) => !excluded.split([';', ',']).any(is_ours),
            None => names.split([';', ',']).any(is_ours),
        };
        check(serves, "another provider is asked for")?;
    }
    if let Some(fabric) = &hints.fabric {
        check(fabric.prov_version <= super::PROVIDER_VERSION, "a newer provider is asked for")?;
        check(fabric.api_version <= super::FI_VERSION, "a newer interface is asked for")?;
    }
    check(!hints.has_strange_address, "an address that is not one of IP")
}

fn check_endpoint(kind: Kind, ep: &fi_ep_attr, caps: u64) -> Result<(), Reason> {
    check([abi::FI_EP_UNSPEC, kind.number()].contains(&ep.r#type.into()), "another type of endpoints")?;
    check(ep.protocol == 0 || ep.protocol == PROTOCOL, "another protocol")?;
    check(ep.protocol_version <= PROTOCOL_VERSION, "a newer protocol")?;
    check(ep.max_msg_size <= MESSAGE_MAX, "longer messages")?;
    check(
        ep.max_order_war_size == 0
            && (caps & abi::FI_RMA != 0 || ep.max_order_raw_size == 0 && ep.max_order_waw_size == 0),
        "order of remote memory access",
    )?;
    check(ep.msg_prefix_size == 0, "a prefix of messages")?;
    check(ep.tx_ctx_cnt <= 1 && ep.rx_ctx_cnt <= 1, "several or shared contexts")?;
    check(ep.auth_key_size == 0, "authorization keys")
}

fn tx_offer(caps: u64, hints: Option<&fi_tx_attr>, parameters: &Parameters) -> Result<TxOffer, Reason> {
    let ours = caps & (SPACES | abi::FI_SEND | abi::FI_RMA | abi::FI_ATOMIC | abi::FI_READ | abi::FI_WRITE);
    let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let mut offer = TxOffer {
        caps: ours,
        op_flags: 0,
        size: size(parameters.tx_size),
        inject_size: size(parameters.inject_size),
        iov_limit: IOV_LIMIT,
        tclass: 0,
    };
    let Some(hints) = hints else { return Ok(offer) };
    check(hints.caps & !all_caps(super::FI_VERSION) == 0, "transmit capabilities that are not offered")?;
    check(hints.op_flags & !TX_FLAGS == 0, "transmit flags that are not offered")?;
    check(hints.msg_order & !order(caps) == 0, "an order of transmits that is not offered")?;
    check(hints.comp_order == 0, "ordered completions")?;
    check(hints.inject_size <= offer.inject_size, "a larger inject size")?;
    check(hints.size <= CONTEXT_SIZE_MAX, "a larger transmit context")?;
    check(hints.iov_limit <= IOV_LIMIT && hints.rma_iov_limit <= rma_iov_limit(caps), "longer io vectors")?;
    offer.op_flags = hints.op_flags;
    offer.tclass = hints.tclass;
    if hints.size != 0 {
        offer.size = hints.size;
    }
    if hints.caps != 0 {
        offer.caps = filled(hints.caps) & ours;
    }
    Ok(offer)
}

fn rx_offer(caps: u64, hints: Option<&fi_rx_attr>, parameters: &Parameters) -> Result<RxOffer, Reason> {
    let ours =
        caps & !(abi::FI_SEND | abi::FI_READ | abi::FI_WRITE | abi::FI_LOCAL_COMM | abi::FI_REMOTE_COMM);
    let mut offer = RxOffer {
        caps: ours,
        op_flags: 0,
        size: usize::try_from(parameters.rx_size).unwrap_or(usize::MAX),
        iov_limit: IOV_LIMIT,
    };
    let Some(hints) = hints else { return Ok(offer) };
    check(hints.caps & !all_caps(super::FI_VERSION) == 0, "receive capabilities that are not offered")?;
    check(hints.op_flags & !RX_FLAGS == 0, "receive flags that are not offered")?;
    check(hints.msg_order & !order(caps) == 0, "an order of receives that is not offered")?;
    check(hints.comp_order == 0, "ordered completions")?;
    check(hints.total_buffered_recv == 0, "buffered receives")?;
    check(hints.size <= CONTEXT_SIZE_MAX, "a larger receive context")?;
    check(hints.iov_limit <= IOV_LIMIT, "longer io vectors")?;
    offer.op_flags = hints.op_flags;
    if hints.size != 0 {
        offer.size = hints.size;
    }
    if hints.caps != 0 {
        offer.caps = filled(hints.caps) & ours;
    }
    Ok(offer)
}

fn domain_offer(
    kind: Kind,
    api: u32,
    hints: Option<&fi_domain_attr>,
    parameters: &Parameters,
) -> Result<DomainOffer, Reason> {
    let manual = if parameters.data_auto_progress { abi::FI_PROGRESS_AUTO } else { abi::FI_PROGRESS_MANUAL };
    let mut offer = DomainOffer {
        caps: abi::FI_LOCAL_COMM | abi::FI_REMOTE_COMM,
        threading: narrow(abi::FI_THREAD_SAFE),
        // What becomes of connections is done by whoever asks for it.
        control_progress: if kind == Kind::Connected {
            narrow(manual)
        } else {
            narrow(abi::FI_PROGRESS_AUTO)
        },
        data_progress: narrow(manual),
        av_type: 0,
        // Before API 1.5 there are FI_MR_BASIC and FI_MR_SCALABLE alone; who asks for neither chooses keys himself.
        mr_mode: if api < version(1, 5) { MR_SCALABLE } else { 0 },
        tclass: 0,
        cq_data_size: if parameters.cq_data { CQ_DATA_SIZE } else { 0 },
    };
    let Some(hints) = hints else { return Ok(offer) };
    check(u64::from(hints.threading) <= abi::FI_THREAD_ENDPOINT, "an unknown threading level")?;
    let progress_max =
        if api >= version(1, 20) { abi::FI_PROGRESS_CONTROL_UNIFIED } else { abi::FI_PROGRESS_MANUAL };
    for progress in [hints.control_progress, hints.data_progress] {
        check(u64::from(progress) <= progress_max, "an unknown model of progress")?;
    }
    check(u64::from(hints.resource_mgmt) <= abi::FI_RM_ENABLED, "an unknown resource management")?;
    check(u64::from(hints.av_type) <= abi::FI_AV_TABLE, "an unknown address vector")?;
    check(hints.cq_data_size <= offer.cq_data_size, "more completion data")?;
    check(hints.mr_key_size <= MR_KEY_SIZE, "longer keys")?;
    check(hints.auth_key_size == 0, "authorization keys")?;
    check(hints.max_err_data == 0, "error data")?;
    check(hints.caps & !offer.caps == 0, "domain capabilities that are not offered")?;
    check(hints.max_ep_tx_ctx <= 1 && hints.max_ep_rx_ctx <= 1, "scalable endpoints")?;
    check(hints.max_ep_stx_ctx == 0 && hints.max_ep_srx_ctx == 0, "shared contexts")?;
    for count in [hints.cq_cnt, hints.ep_cnt, hints.tx_ctx_cnt, hints.rx_ctx_cnt, hints.cntr_cnt] {
        check(count <= OBJECTS_MAX, "more objects")?;
    }
    if hints.threading != 0 {
        offer.threading = hints.threading;
    }
    if hints.control_progress != 0 {
        offer.control_progress = hints.control_progress;
    }
    if hints.data_progress != 0 && !parameters.data_auto_progress {
        offer.data_progress = hints.data_progress;
    }
    offer.av_type = hints.av_type;
    offer.tclass = hints.tclass;
    // Either of them, by whichever API it is asked for.
    if hints.mr_mode == MR_BASIC || hints.mr_mode == MR_SCALABLE {
        offer.mr_mode = hints.mr_mode;
    }
    Ok(offer)
}

#[expect(clippy::cast_possible_truncation, reason = "small")]
const MR_BASIC: i32 = abi::FI_MR_BASIC as i32;
#[expect(clippy::cast_possible_truncation, reason = "small")]
const MR_SCALABLE: i32 = abi::FI_MR_SCALABLE as i32;

#[expect(clippy::cast_possible_truncation, reason = "enumerations are small")]
const fn narrow(value: u64) -> u32 {
    value as u32
}

const SPACES: u64 = abi::FI_MSG | abi::FI_TAGGED;
const DIRECTIONS: u64 = abi::FI_SEND | abi::FI_RECV;
/// Capabilities that cost nothing: everybody gets them.
const SECONDARY: u64 = abi::FI_MULTI_RECV | abi::FI_LOCAL_COMM | abi::FI_REMOTE_COMM;
/// What goes with `FI_DIRECTED_RECV`.
const DIRECTED: u64 = abi::FI_DIRECTED_RECV | abi::FI_TAGGED_DIRECTED_RECV | abi::FI_EXACT_DIRECTED_RECV;
const TX_FLAGS: u64 = abi::FI_COMPLETION
    | abi::FI_INJECT
    | abi::FI_INJECT_COMPLETE
    | abi::FI_TRANSMIT_COMPLETE
    | abi::FI_DELIVERY_COMPLETE
    | abi::FI_MATCH_COMPLETE;
const RX_FLAGS: u64 = abi::FI_COMPLETION | abi::FI_MULTI_RECV;
const REMOTE_DIRECTIONS: u64 = abi::FI_READ | abi::FI_WRITE | abi::FI_REMOTE_READ | abi::FI_REMOTE_WRITE;
/// All of remote memory access.
const REMOTE: u64 = abi::FI_RMA | REMOTE_DIRECTIONS | abi::FI_RMA_EVENT;
/// What is asked of one endpoint by another is done in order, beside sends of one to another; but a write or a send behind a
/// read may overtake its data.
const REMOTE_ORDER: u64 = abi::FI_ORDER_RAR
    | abi::FI_ORDER_RAW
    | abi::FI_ORDER_RAS
    | abi::FI_ORDER_WAW
    | abi::FI_ORDER_WAS
    | abi::FI_ORDER_SAW
    | abi::FI_ORDER_RMA_RAR
    | abi::FI_ORDER_RMA_RAW
    | abi::FI_ORDER_RMA_WAW;
/// Each operation on values is done when it comes, in order, and what was there is kept then.
const ATOMIC_ORDER: u64 =
    abi::FI_ORDER_ATOMIC_RAR | abi::FI_ORDER_ATOMIC_RAW | abi::FI_ORDER_ATOMIC_WAR | abi::FI_ORDER_ATOMIC_WAW;
/// Of this project alone: the highest bit says so.
pub(super) const PROTOCOL: u32 = 0x8000_746d;
pub(super) const PROTOCOL_VERSION: u32 = 1;
pub(super) const MESSAGE_MAX: usize = usize::MAX >> 1;
const _: () = assert!(MESSAGE_MAX as u64 == crate::endpoint::MESSAGE_MAX, "longer ones are refused");
const CQ_DATA_SIZE: usize = 4;
pub(super) const MR_KEY_SIZE: usize = 8;
/// What an io vector of a message may have. The kernel takes 1,024 at once.
pub(in crate::provider) const IOV_LIMIT: usize = 8;
/// Stretches of a peer's memory in one call.
pub(in crate::provider) const RMA_IOV_LIMIT: usize = 8;

/// The same, with these capabilities.
pub(super) const fn rma_iov_limit(caps: u64) -> usize {
    if caps & (abi::FI_RMA | abi::FI_ATOMIC) == 0 { 0 } else { RMA_IOV_LIMIT }
}
/// Of completion queues, endpoints and so on; nothing limits them but memory and descriptors.
pub(super) const OBJECTS_MAX: usize = 1 << 16;
const CONTEXT_SIZE_MAX: usize = 1 << 20;
