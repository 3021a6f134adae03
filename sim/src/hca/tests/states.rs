//! QP states: the transitions, what each needs and takes, and ranges.

use super::host::{Host, Qp, QpOptions, attributes};
use crate::hca::verbs::attribute as mask;
use crate::hca::verbs::{qp_type, state};
use crate::hca::{AddressVector, Errno, HcaConfig, LinkLayer, QpAttributes};

const RC_INIT: u32 = mask::PKEY_INDEX | mask::PORT | mask::ACCESS_FLAGS;
const RC_RTR: u32 = mask::AV
    | mask::PATH_MTU
    | mask::DEST_QPN
    | mask::RQ_PSN
    | mask::MAX_DEST_RD_ATOMIC
    | mask::MIN_RNR_TIMER;
const RC_RTS: u32 = mask::TIMEOUT | mask::RETRY_CNT | mask::RNR_RETRY | mask::SQ_PSN | mask::MAX_QP_RD_ATOMIC;

fn in_state(to: u8) -> (Host, Qp) {
    in_state_of(qp_type::RC, to)
}

fn in_state_of(qp_type: u8, to: u8) -> (Host, Qp) {
    let mut host = Host::new();
    let cq = host.cq(16);
    let qp = host.qp(&cq, QpOptions { qp_type, ..QpOptions::default() });
    let path: &[u8] = match to {
        state::RESET => &[],
        state::INIT => &[state::INIT],
        state::RTR => &[state::INIT, state::RTR],
        state::RTS => &[state::INIT, state::RTR, state::RTS],
        state::SQD => &[state::INIT, state::RTR, state::RTS, state::SQD],
        _ => &[state::ERR],
    };
    for step in path {
        change(&mut host, &qp, *step, needed(qp_type, *step)).unwrap();
    }
    assert_eq!(host.state(&qp), to);
    (host, qp)
}

/// What the way from the state before needs.
fn needed(qp_type: u8, to: u8) -> u32 {
    match (qp_type, to) {
        (qp_type::UD, state::INIT) => mask::PKEY_INDEX | mask::PORT | mask::QKEY,
        (qp_type::UD, state::RTS) => mask::SQ_PSN,
        (qp_type::RC, state::INIT) => RC_INIT,
        (qp_type::RC, state::RTR) => RC_RTR,
        (qp_type::RC, state::RTS) => RC_RTS,
        _ => 0,
    }
}

fn change(host: &mut Host, qp: &Qp, to: u8, mask: u32) -> Result<(), Errno> {
    let attributes = QpAttributes { state: to, dest_qpn: 5, ..attributes() };
    host.modify(qp, mask::STATE | mask, attributes)
}

#[test]
fn table_of_transitions() {
    let states = [state::RESET, state::INIT, state::RTR, state::RTS, state::SQD, state::ERR];
    let mut table = String::new();
    for qp_type in [qp_type::RC, qp_type::UD] {
        for from in states {
            for to in [state::RESET, state::INIT, state::RTR, state::RTS, state::SQD, state::SQE, state::ERR]
            {
                let (mut host, qp) = in_state_of(qp_type, from);
                let forward = to == from + 1 && to <= state::RTS;
                let mask = if forward { needed(qp_type, to) } else { 0 };
                table.push(if change(&mut host, &qp, to, mask).is_ok() { 'x' } else { '.' });
            }
            table.push('\n');
        }
    }
    // To:      RESET INIT RTR RTS SQD SQE ERR
    let reliable = "xx....x\nxxx...x\nx..x..x\nx..xx.x\nx..xx.x\nx.....x\n";
    assert_eq!(table, [reliable, reliable].concat());
}

#[test]
fn each_attribute_that_a_transition_needs_is_missed() {
    for (from, to) in [(state::RESET, state::INIT), (state::INIT, state::RTR), (state::RTR, state::RTS)] {
        let needed = needed(qp_type::RC, to);
        for bit in (0..32).map(|bit| 1_u32 << bit).filter(|bit| needed & bit != 0) {
            let (mut host, qp) = in_state(from);
            assert_eq!(change(&mut host, &qp, to, needed & !bit), Err(Errno::INVALID), "{bit:#x}");
            assert_eq!(host.state(&qp), from);
            change(&mut host, &qp, to, needed).unwrap();
        }
    }
}

#[test]
fn attribute_that_does_not_belong_is_refused() {
    let (mut host, qp) = in_state(state::RESET);
    assert_eq!(change(&mut host, &qp, state::INIT, RC_INIT | mask::QKEY), Err(Errno::INVALID));
    assert_eq!(change(&mut host, &qp, state::INIT, RC_INIT | mask::RATE_LIMIT), Err(Errno::INVALID));
    let (mut host, qp) = in_state(state::RTS);
    assert_eq!(change(&mut host, &qp, state::RTS, mask::SQ_PSN), Err(Errno::INVALID));
    assert_eq!(change(&mut host, &qp, state::RTS, mask::MIN_RNR_TIMER), Ok(()));
}

#[test]
fn values_out_of_range_are_refused() {
    let bad: [(u8, QpAttributes); 13] = [
        (state::INIT, QpAttributes { port: 0, ..attributes() }),
        (state::INIT, QpAttributes { port: 2, ..attributes() }),
        (state::INIT, QpAttributes { pkey_index: 1, ..attributes() }),
        (state::INIT, QpAttributes { access: 1 << 15, ..attributes() }),
        (state::RTR, QpAttributes { path_mtu: 0, ..attributes() }),
        (state::RTR, QpAttributes { path_mtu: 6, ..attributes() }),
        (state::RTR, QpAttributes { max_dest_rd_atomic: 17, ..attributes() }),
        (state::RTR, QpAttributes { min_rnr_timer: 32, ..attributes() }),
        (state::RTR, QpAttributes { dest_qpn: 1 << 24, ..attributes() }),
        (state::RTS, QpAttributes { timeout: 32, ..attributes() }),
        (state::RTS, QpAttributes { retry_count: 8, ..attributes() }),
        (state::RTS, QpAttributes { rnr_retry: 8, ..attributes() }),
        (state::RTS, QpAttributes { max_rd_atomic: 17, ..attributes() }),
    ];
    for (to, attributes) in bad {
        let (mut host, qp) = in_state(to - 1);
        let mask = mask::STATE | needed(qp_type::RC, to);
        assert_eq!(host.modify(&qp, mask, QpAttributes { state: to, ..attributes }), Err(Errno::INVALID));
    }
    let mut host = Host::with(HcaConfig { mtu: 3, ..HcaConfig::default() });
    let cq = host.cq(16);
    let qp = host.qp(&cq, QpOptions::default());
    change(&mut host, &qp, state::INIT, RC_INIT).unwrap();
    let too_large = QpAttributes { state: state::RTR, path_mtu: 4, ..attributes() };
    assert_eq!(host.modify(&qp, mask::STATE | RC_RTR, too_large), Err(Errno::INVALID));
}

#[test]
fn address_is_checked_against_port_gid_table_and_link_layer() {
    let path = attributes().path;
    let cases = [
        (path, true),
        (AddressVector { port: 2, ..path }, false),
        (AddressVector { port: 0, ..path }, false),
        (AddressVector { is_global: true, ..path }, true),
        (AddressVector { is_global: true, sgid_index: 1, ..path }, false),
    ];
    for (path, works) in cases {
        let (mut host, qp) = in_state(state::INIT);
        let to = QpAttributes { state: state::RTR, path, ..attributes() };
        assert_eq!(host.modify(&qp, mask::STATE | RC_RTR, to).is_ok(), works, "{path:?}");
    }
    for is_global in [false, true] {
        let config = HcaConfig { link_layer: LinkLayer::Ethernet, ..HcaConfig::default() };
        let mut host = Host::with(config);
        let cq = host.cq(16);
        let qp = host.qp(&cq, QpOptions::default());
        change(&mut host, &qp, state::INIT, RC_INIT).unwrap();
        let path = AddressVector { is_global, dgid: config.gid, ..path };
        let to = QpAttributes { state: state::RTR, path, ..attributes() };
        assert_eq!(host.modify(&qp, mask::STATE | RC_RTR, to).is_ok(), is_global);
    }
}

#[test]
fn current_state_must_be_the_current_one() {
    let (mut host, qp) = in_state(state::RTS);
    let to = |current_state| QpAttributes { state: state::RTS, current_state, ..attributes() };
    let mask = mask::STATE | mask::CUR_STATE;
    assert_eq!(host.modify(&qp, mask, to(state::RTR)), Err(Errno::INVALID));
    assert_eq!(host.modify(&qp, mask, to(state::RTS)), Ok(()));
}

#[test]
fn query_gives_back_what_was_set_and_reset_forgets_it() {
    let (mut host, qp) = in_state(state::RTS);
    let queried = host.hca.query_qp(host.context, qp.handle).unwrap();
    assert_eq!(queried.attributes.path_mtu, 1);
    assert_eq!((queried.attributes.dest_qpn, queried.attributes.retry_count), (5, 7));
    assert_eq!(queried.attributes.current_state, state::RTS);
    assert_eq!(queried.caps.max_send_wr, 64);
    change(&mut host, &qp, state::RESET, 0).unwrap();
    let queried = host.hca.query_qp(host.context, qp.handle).unwrap();
    assert_eq!(queried.attributes, QpAttributes::default());
}

#[test]
fn qp_works_again_after_reset() {
    use super::host::Wqe;
    let mut host = Host::new();
    let mut cq = host.cq(64);
    let options = QpOptions::default();
    let (mut a, mut b) = (host.qp(&cq, options), host.qp(&cq, options));
    for round in 0..3 {
        host.connect(&a, &b, QpAttributes { sq_psn: round * 100, rq_psn: round * 100, ..attributes() });
        host.receive_into(&mut b, 8);
        host.post(&mut a, &Wqe::new(crate::hca::layout::wqe_opcode::SEND).inline(b"x"));
        host.run();
        assert_eq!(host.poll_all(&mut cq).len(), 2);
        for qp in [&mut a, &mut b] {
            change(&mut host, qp, state::RESET, 0).unwrap();
            qp.reset();
            host.store(qp.doorbell, 0);
            host.store(qp.doorbell + 4, 0);
        }
    }
}
