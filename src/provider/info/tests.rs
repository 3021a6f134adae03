//! What applications ask for and get. The hints of the MPIs are those that they pass.

use std::ptr;

use super::hints::Hints;
use super::offer::{Offer, Reason, all_caps, offers, order, rma_iov_limit};
use super::*;
use crate::provider::abi::{
    FI_COMPLETION, FI_DELIVERY_COMPLETE, FI_DIRECTED_RECV, FI_HMEM, FI_LOCAL_COMM, FI_MR_ALLOCATED,
    FI_MR_ENDPOINT, FI_MR_HMEM, FI_MSG, FI_MULTI_RECV, FI_ORDER_SAS, FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL,
    FI_RECV, FI_REMOTE_COMM, FI_RMA, FI_SEND, FI_SOURCE, FI_TAGGED, FI_TAGGED_DIRECTED_RECV,
    FI_THREAD_DOMAIN, FI_THREAD_SAFE, fi_domain_attr, fi_ep_attr, fi_fabric_attr, fi_info, fi_rx_attr,
    fi_tx_attr,
};

fn parameters() -> Parameters {
    Parameters::read(|_| None).unwrap()
}

/// The first offer: of endpoints that are not connected, unless these alone are asked for.
fn offer(api: u32, hints: Option<&Hints>, parameters: &Parameters) -> Result<Offer, Reason> {
    offers(api, hints, parameters, true).map(|all| all[0])
}

fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap()
}

/// Zeros: nothing is asked for.
fn blank<T>() -> T {
    // SAFETY: attribute structures are integers and pointers, for which zeros are valid.
    unsafe { std::mem::zeroed() }
}

fn hints() -> Hints {
    Hints {
        tx: Some(blank()),
        rx: Some(blank()),
        ep: Some(fi_ep_attr { r#type: small(abi::FI_EP_RDM), ..blank() }),
        domain: Some(blank()),
        fabric: Some(blank()),
        ..Hints::default()
    }
}

/// What the ofi components of Open MPI 4.1.4 and 5.0.11 have in common.
fn open_mpi(caps: u64, mr_mode: u64, threading: u64) -> Hints {
    Hints {
        caps: FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV | caps,
        tx: Some(fi_tx_attr { op_flags: FI_COMPLETION, msg_order: FI_ORDER_SAS, ..blank() }),
        rx: Some(fi_rx_attr { op_flags: FI_COMPLETION, msg_order: FI_ORDER_SAS, ..blank() }),
        domain: Some(fi_domain_attr {
            threading: small(threading),
            av_type: small(abi::FI_AV_MAP),
            cq_data_size: 4,
            resource_mgmt: small(abi::FI_RM_ENABLED),
            mr_mode: i32::try_from(mr_mode).unwrap(),
            ..blank()
        }),
        ..hints()
    }
}

fn assert_open_mpi(got: &Offer, asked: &Hints) {
    assert_eq!(got.caps & asked.caps, asked.caps);
    assert_eq!(got.caps & FI_SOURCE, 0, "FI_SOURCE comes only where it is asked for");
    assert_eq!(got.tx.op_flags, FI_COMPLETION);
    assert_eq!(got.rx.op_flags, FI_COMPLETION);
    assert_eq!(got.domain.av_type, small(abi::FI_AV_MAP));
    assert_eq!(got.domain.data_progress, small(FI_PROGRESS_MANUAL));
    assert_eq!(got.domain.mr_mode, 0);
}

#[test]
fn the_hints_of_open_mpi_4_1_4_are_served() {
    for threading in [FI_THREAD_DOMAIN, FI_THREAD_SAFE] {
        let asked = open_mpi(0, 0, threading);
        let got = offer(version(1, 5), Some(&asked), &parameters()).unwrap();
        assert_open_mpi(&got, &asked);
        assert_eq!(got.domain.threading, small(threading));
    }
}

/// `FI_MR_UNSPEC` is 0 there, and fi_domain(3) lets the provider choose one of the two.
#[test]
fn before_api_1_5_memory_is_registered_as_asked_or_scalable_and_never_without_a_word() {
    let mode = |api, mr_mode| {
        let asked =
            Hints { caps: FI_MSG | FI_RMA, domain: Some(fi_domain_attr { mr_mode, ..blank() }), ..hints() };
        offer(api, Some(&asked), &parameters()).unwrap().domain.mr_mode
    };
    assert_eq!([0, 1, 2].map(|asked| mode(version(1, 0), asked)), [2, 1, 2]);
    assert_eq!([0, 1, 2].map(|asked| mode(version(1, 5), asked)), [0, 1, 2]);
    assert_eq!(offer(version(1, 4), None, &parameters()).unwrap().domain.mr_mode, 2);
}

#[test]
fn the_hints_of_open_mpi_5_0_11_are_served_in_its_second_try_without_accelerators() {
    let first = open_mpi(FI_MSG | FI_HMEM, FI_MR_HMEM | FI_MR_ALLOCATED, FI_THREAD_DOMAIN);
    assert!(offer(version(1, 18), Some(&first), &parameters()).is_err());
    let second = open_mpi(FI_MSG, FI_MR_ALLOCATED, FI_THREAD_DOMAIN);
    let got = offer(version(1, 18), Some(&second), &parameters()).unwrap();
    assert_open_mpi(&got, &second);
}

#[test]
fn mpich_5_0_2_gets_with_its_second_call_what_it_asks_after_everything_was_offered() {
    let all = offer(version(2, 5), None, &parameters()).unwrap();
    let asked = |order: u64| Hints {
        caps: all.caps,
        tx: Some(fi_tx_attr { op_flags: FI_COMPLETION | FI_DELIVERY_COMPLETE, msg_order: order, ..blank() }),
        rx: Some(fi_rx_attr { op_flags: FI_COMPLETION, msg_order: FI_ORDER_SAS, ..blank() }),
        ep: Some(fi_ep_attr {
            r#type: small(abi::FI_EP_RDM),
            mem_tag_format: 0x00C0_0000_7FFF_FFFF,
            ..blank()
        }),
        domain: Some(fi_domain_attr {
            threading: small(FI_THREAD_DOMAIN),
            control_progress: small(FI_PROGRESS_MANUAL),
            data_progress: small(FI_PROGRESS_MANUAL),
            resource_mgmt: small(abi::FI_RM_ENABLED),
            av_type: small(abi::FI_AV_TABLE),
            cq_data_size: 4,
            mr_mode: i32::try_from(FI_MR_ENDPOINT).unwrap(),
            ..blank()
        }),
        ..hints()
    };
    // Order among atomics is not offered; it asks again with the order that was.
    assert!(offer(version(2, 5), Some(&asked(FI_ORDER_SAS | 0xf << 36)), &parameters()).is_err());
    let got = offer(version(2, 5), Some(&asked(FI_ORDER_SAS)), &parameters()).unwrap();
    assert_eq!(got.caps, all.caps);
    assert_eq!(got.domain.threading, small(FI_THREAD_DOMAIN), "it checks that its level comes back");
    assert_eq!(got.domain.av_type, small(abi::FI_AV_TABLE));
    assert_eq!(got.tx.op_flags, FI_COMPLETION | FI_DELIVERY_COMPLETE);
    let least = FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_DIRECTED_RECV;
    assert_eq!(got.caps & least, least);
}

#[test]
fn without_hints_everything_is_offered_and_capabilities_of_api_2_to_api_2_alone() {
    let old = offer(version(1, 17), None, &parameters()).unwrap();
    let new = offer(version(2, 0), None, &parameters()).unwrap();
    let remote = abi::FI_READ | abi::FI_WRITE | abi::FI_REMOTE_READ | abi::FI_REMOTE_WRITE;
    let asked_for = FI_RMA | abi::FI_ATOMIC | remote | abi::FI_RMA_EVENT;
    assert_eq!(old.caps, all_caps(version(1, 17)) & !asked_for);
    let listing = Parameters { list_rma: true, ..parameters() };
    assert_eq!(offer(version(1, 17), None, &listing).unwrap().caps, all_caps(version(1, 17)));
    assert_eq!(old.caps & (0b1_1111 << 44), 0, "bits 44 to 48 mean something else in API 1");
    assert_ne!(new.caps & FI_TAGGED_DIRECTED_RECV, 0);
    let asked = Hints { caps: FI_TAGGED | FI_TAGGED_DIRECTED_RECV, ..hints() };
    assert!(offer(version(1, 17), Some(&asked), &parameters()).is_err());
    assert!(offer(version(2, 0), Some(&asked), &parameters()).is_ok());
}

#[test]
fn directions_are_filled_in_and_secondary_capabilities_added() {
    let both = offer(version(1, 17), Some(&Hints { caps: FI_TAGGED, ..hints() }), &parameters()).unwrap();
    assert_eq!(both.caps & (FI_SEND | FI_RECV), FI_SEND | FI_RECV);
    assert_eq!(both.caps & FI_MSG, 0);
    assert_ne!(both.caps & FI_MULTI_RECV, 0);
    let one = Hints { caps: FI_TAGGED | FI_RECV, ..hints() };
    let one = offer(version(1, 17), Some(&one), &parameters()).unwrap();
    assert_eq!(one.caps & FI_SEND, 0);
}

#[test]
fn what_is_not_offered_is_refused() {
    let refused = |change: fn(&mut Hints)| {
        let mut asked = hints();
        change(&mut asked);
        offer(version(1, 17), Some(&asked), &parameters()).is_err()
    };
    assert!(!refused(|_| {}));
    assert!(refused(|h| h.caps = FI_MSG | FI_HMEM));
    let mut asked = hints();
    asked.ep = Some(fi_ep_attr { r#type: small(abi::FI_EP_DGRAM), ..blank() });
    assert!(offers(version(1, 17), Some(&asked), &parameters(), true).is_err());
    assert!(refused(|h| h.ep = Some(fi_ep_attr { tx_ctx_cnt: 2, ..blank() })));
    assert!(refused(|h| h.ep = Some(fi_ep_attr { protocol: 1, ..blank() })));
    assert!(refused(|h| h.domain = Some(fi_domain_attr { cq_data_size: 8, ..blank() })));
    assert!(refused(|h| h.domain = Some(fi_domain_attr { auth_key_size: 4, ..blank() })));
    assert!(refused(|h| h.domain = Some(fi_domain_attr { data_progress: 3, ..blank() })));
    assert!(refused(|h| h.tx = Some(fi_tx_attr { inject_size: 1 << 20, ..blank() })));
    assert!(refused(|h| h.tx = Some(fi_tx_attr { comp_order: 1, ..blank() })));
    assert!(refused(|h| h.tx = Some(fi_tx_attr { iov_limit: 9, ..blank() })));
    assert!(refused(|h| h.rx = Some(fi_rx_attr { total_buffered_recv: 1, ..blank() })));
    assert!(refused(|h| h.has_strange_address = true));
    assert!(refused(|h| h.fabric = Some(fi_fabric_attr { prov_version: version(9, 0), ..blank() })));
}

#[test]
fn connected_endpoints_are_offered_behind_the_others_without_what_names_a_peer_and_over_tcp_alone() {
    let api = version(2, 5);
    let kinds = |hints: Option<&Hints>, is_over_tcp: bool| {
        let all = offers(api, hints, &parameters(), is_over_tcp).unwrap_or_default();
        all.iter().map(|offer| offer.kind.number()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(None, true), [abi::FI_EP_RDM, abi::FI_EP_MSG]);
    assert_eq!(kinds(None, false), [abi::FI_EP_RDM]);
    let mut asked = hints();
    assert_eq!(kinds(Some(&asked), true), [abi::FI_EP_RDM]);
    asked.ep = Some(fi_ep_attr { r#type: small(abi::FI_EP_MSG), ..blank() });
    assert_eq!(kinds(Some(&asked), true), [abi::FI_EP_MSG]);
    assert_eq!(kinds(Some(&asked), false), []);
    let got = offer(api, Some(&asked), &parameters()).unwrap();
    assert_eq!(got.caps & (FI_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV | FI_SOURCE), 0);
    assert_eq!(got.caps & (FI_MSG | FI_TAGGED), FI_MSG | FI_TAGGED);
    assert_eq!(got.domain.control_progress, small(FI_PROGRESS_MANUAL), "event queues are to be read");
    for caps in [FI_DIRECTED_RECV, FI_SOURCE] {
        asked.caps = FI_TAGGED | caps;
        assert_eq!(kinds(Some(&asked), true), []);
    }
    asked.ep = None;
    assert_eq!(kinds(Some(&asked), true), [abi::FI_EP_RDM]);
}

#[test]
fn remote_memory_access_is_listed_where_it_is_asked_for_with_the_order_that_holds() {
    let api = version(1, 17);
    let directions = abi::FI_READ | abi::FI_WRITE | abi::FI_REMOTE_READ | abi::FI_REMOTE_WRITE;
    for unasked in [None, Some(hints()), Some(Hints { caps: FI_MSG, ..hints() })] {
        let got = offer(api, unasked.as_ref(), &parameters()).unwrap();
        assert_eq!(got.caps & (FI_RMA | directions | abi::FI_RMA_EVENT), 0);
        assert_eq!((order(got.caps), rma_iov_limit(got.caps)), (FI_ORDER_SAS, 0));
    }
    let asked = |caps: u64| offer(api, Some(&Hints { caps, ..hints() }), &parameters()).unwrap();
    let got = asked(FI_MSG | FI_RMA);
    assert_eq!(got.caps & (FI_RMA | directions), FI_RMA | directions, "without a direction all are meant");
    assert_eq!(asked(FI_MSG | FI_RMA | abi::FI_READ).caps & directions, abi::FI_READ);
    assert_eq!((got.caps & abi::FI_RMA_EVENT, rma_iov_limit(got.caps)), (0, 8));
    let holds = order(got.caps);
    assert_eq!(holds & abi::FI_ORDER_WAW, abi::FI_ORDER_WAW);
    assert_eq!(holds & (abi::FI_ORDER_WAR | abi::FI_ORDER_SAR), 0, "a read's data may come later");
    let ordered = |caps: u64, msg_order: u64| {
        let tx = Some(fi_tx_attr { msg_order, rma_iov_limit: 8, ..blank() });
        let ep = Some(fi_ep_attr { max_order_waw_size: 1 << 20, ..blank() });
        offer(api, Some(&Hints { caps, tx, ep, ..hints() }), &parameters()).is_ok()
    };
    assert!(ordered(FI_RMA, holds) && !ordered(FI_RMA, holds | abi::FI_ORDER_WAR));
    assert!(!ordered(FI_MSG, 0), "what is not there has no order");
    let atomic = 0xf << 36;
    assert_eq!(
        asked(FI_MSG | abi::FI_ATOMIC).caps & (directions | FI_RMA | abi::FI_ATOMIC),
        directions | abi::FI_ATOMIC
    );
    assert_eq!((order(abi::FI_ATOMIC) & atomic, order(FI_RMA) & atomic), (atomic, 0));
}

#[test]
fn the_name_of_the_provider_is_found_among_several_and_excluded_by_a_caret() {
    let serves = |name: &str| {
        let asked = Hints { provider_name: Some(name.into()), ..hints() };
        offer(version(1, 17), Some(&asked), &parameters()).is_ok()
    };
    assert!(serves("tagmatch"));
    assert!(serves("TagMatch"));
    assert!(serves("tcp;tagmatch"));
    assert!(serves("^tcp"));
    assert!(!serves("tcp"));
    assert!(!serves("^tagmatch"));
    assert!(!serves("^tcp;tagmatch"));
}

#[test]
fn automatic_progress_is_given_to_who_asks_and_to_all_by_parameter() {
    let ask = |progress: u64, parameters: &Parameters| {
        let domain = Some(fi_domain_attr { data_progress: small(progress), ..blank() });
        offer(version(1, 17), Some(&Hints { domain, ..hints() }), parameters).unwrap().domain.data_progress
    };
    assert_eq!(ask(0, &parameters()), small(FI_PROGRESS_MANUAL));
    assert_eq!(ask(FI_PROGRESS_AUTO, &parameters()), small(FI_PROGRESS_AUTO));
    let automatic = Parameters { data_auto_progress: true, ..parameters() };
    assert_eq!(ask(0, &automatic), small(FI_PROGRESS_AUTO));
    assert_eq!(ask(FI_PROGRESS_MANUAL, &automatic), small(FI_PROGRESS_AUTO));
}

#[test]
fn hints_of_an_old_application_are_read_no_further_than_they_go() {
    // Canaries behind the parts that API 1.17 has; reading them as attributes would refuse.
    let ep = fi_ep_attr { xpu_ctx: ptr::dangling_mut(), ..blank() };
    let domain = fi_domain_attr { max_ep_auth_key: 77, max_cntr_value: 99, ..blank() };
    let (mut ep, mut domain) = (ep, domain);
    let info = fi_info { ep_attr: &raw mut ep, domain_attr: &raw mut domain, ..blank() };
    // SAFETY: whole structures.
    let read = unsafe { Hints::read(&raw const info) }.unwrap();
    assert!(read.ep.unwrap().xpu_ctx.is_null());
    assert_eq!(read.domain.unwrap().max_ep_auth_key, 0);
    assert_eq!(read.domain.unwrap().max_cntr_value, 0);
}

#[test]
fn places_are_interfaces_loopback_last_and_given_names() {
    let all = places(None, None, 0, None, None).unwrap();
    assert!(!all.is_empty());
    let first_loopback = all.iter().position(|p| p.source.ip().is_loopback() && p.source.is_ipv4());
    if let Some(first) = first_loopback {
        let others = all.iter().skip(first).filter(|p| p.source.is_ipv4());
        assert!(others.into_iter().all(|place| place.source.ip().is_loopback()));
    }
    let local = places(Some(c"127.0.0.1"), Some(c"4711"), abi::FI_SOURCE, None, None).unwrap();
    assert_eq!(local[0].source.to_string(), "127.0.0.1:4711");
    assert_eq!(local[0].destination, None);
    let remote = places(Some(c"127.0.0.1"), Some(c"4711"), 0, None, None).unwrap();
    assert_eq!(remote[0].destination.unwrap().to_string(), "127.0.0.1:4711");
    assert_eq!(remote[0].source.to_string(), "127.0.0.1:0");
    assert!(places(Some(c"no.such.host.invalid"), None, 0, None, None).is_err());
    assert_eq!(places(None, None, 0, None, Some("no-such-interface")).unwrap(), []);
}

#[test]
fn every_flag_that_sends_may_have_without_saying_so_is_taken() {
    let flags = FI_COMPLETION
        | abi::FI_INJECT
        | abi::FI_INJECT_COMPLETE
        | abi::FI_TRANSMIT_COMPLETE
        | FI_DELIVERY_COMPLETE
        | abi::FI_MATCH_COMPLETE;
    for flag in (0..u64::BITS).map(|bit| 1 << bit) {
        let tx = Some(fi_tx_attr { op_flags: flag, ..blank() });
        let asked = Hints { caps: FI_TAGGED, tx, ..hints() };
        let got = offer(version(1, 17), Some(&asked), &parameters());
        assert_eq!(got.is_ok(), flag & flags != 0, "{flag:#x}");
        assert!(got.is_err() || got.is_ok_and(|got| got.tx.op_flags == flag));
    }
}

#[test]
fn without_completion_data_none_is_offered_and_who_must_have_it_is_refused() {
    let without = Parameters { cq_data: false, ..parameters() };
    assert_eq!(offer(version(2, 5), None, &parameters()).unwrap().domain.cq_data_size, 4);
    assert_eq!(offer(version(2, 5), None, &without).unwrap().domain.cq_data_size, 0);
    let asked = Hints { domain: Some(fi_domain_attr { cq_data_size: 4, ..blank() }), ..hints() };
    assert!(offer(version(1, 5), Some(&asked), &without).is_err());
    assert!(offer(version(1, 5), Some(&hints()), &without).is_ok());
}

#[test]
fn without_directed_receives_nothing_of_them_is_offered_and_who_asks_is_refused() {
    let without = Parameters { directed_recv: false, ..parameters() };
    let all = offer(version(2, 5), None, &without).unwrap();
    assert_eq!(all.caps & (FI_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV), 0);
    assert_ne!(all.caps & FI_TAGGED, 0);
    let asked = Hints { caps: FI_TAGGED | FI_DIRECTED_RECV, ..hints() };
    assert!(offer(version(1, 5), Some(&asked), &without).is_err());
}

#[test]
fn an_interface_that_is_chosen_is_the_only_one_whatever_address_is_given() {
    let lo = interfaces().into_iter().find(|interface| interface.is_loopback && interface.address.is_ipv4());
    let lo = lo.unwrap();
    let (node, service) = (Some(c"127.0.0.1"), Some(c"9"));
    let own: SocketAddr = ([127, 0, 0, 1], 0).into();
    let from = Hints { source: Some(own), ..hints() };
    let to = Hints { destination: Some(([127, 0, 0, 1], 9).into()), ..hints() };
    let count = |node, service, flags, hints, only: &str| {
        places(node, service, flags, hints, Some(only)).unwrap().len()
    };
    for (only, found) in [(lo.name.as_str(), 1), ("127.0.0.1", 1), ("no-such-interface", 0)] {
        assert_eq!(count(node, service, abi::FI_SOURCE, None, only), found, "{only}: the own address");
        assert_eq!(count(node, service, 0, None, only), found, "{only}: another's");
        assert_eq!(count(None, None, 0, Some(&from), only), found, "{only}: the own one, by hints");
        assert_eq!(count(None, None, 0, Some(&to), only), found, "{only}: another's, by hints");
    }
}

#[test]
fn an_endpoint_goes_by_an_address_of_one_interface_whatever_it_is_given() {
    let own = |address: &str, only: Option<&str>| {
        let name = Name::new(address.parse().unwrap());
        let parameters = Parameters { iface: only.map(str::to_owned), ..parameters() };
        own_address(name.bytes(), &parameters).map(|address| address.to_string())
    };
    let first = interfaces().into_iter().find(|interface| interface.address.is_ipv4()).unwrap();
    assert_eq!(own("0.0.0.0:7", None), Ok(first.socket(7).to_string()));
    assert_eq!(own("0.0.0.0:0", Some("127.0.0.1")), Ok("127.0.0.1:0".to_owned()));
    assert_eq!(own("127.0.0.9:7", None), Ok("127.0.0.9:7".to_owned()));
    assert_eq!(own("127.0.0.9:7", Some("lo")), Ok("127.0.0.9:7".to_owned()));
    for nobody in ["224.0.0.1:7", "255.255.255.255:7", "[ff02::1]:7"] {
        assert_eq!(own(nobody, None), Err(code(abi::FI_EADDRNOTAVAIL)), "{nobody}");
    }
    for other in ["192.0.2.77:7", "0.0.0.0:0", "[::]:7"] {
        let refused = own(other, Some("no such interface"));
        assert_eq!(refused, Err(code(abi::FI_EADDRNOTAVAIL)), "{other}");
    }
    assert_eq!(own_address(&[0; 15], &parameters()), Err(code(abi::FI_EINVAL)));
}

#[test]
fn an_address_so_long_that_no_memory_has_it_is_none() {
    let mut address = [0_u8; 16];
    address[..2].copy_from_slice(&2_u16.to_ne_bytes());
    let told =
        |length| fi_info { src_addr: (&raw const address).cast_mut().cast(), src_addrlen: length, ..blank() };
    for (length, is_strange) in [(0, false), (16, false), (usize::MAX, true), (1 << (usize::BITS - 1), true)]
    {
        let info = told(length);
        // SAFETY: an info whose address is there, or said to be so long that nothing of it is read.
        let hints = unsafe { Hints::read(&raw const info) }.unwrap();
        assert_eq!(
            (hints.has_strange_address, hints.source.is_some()),
            (is_strange, length == 16),
            "{length}"
        );
    }
}
