//! What goes wrong on a RC QP: the completions of both sides, their states, their events.

use super::host::{Cq, Host, Qp, QpOptions, Wqe, attributes, opcodes, syndrome};
use crate::hca::layout::{Cqe, Syndrome, cqe_opcode, wqe_opcode};
use crate::hca::verbs::{access, attribute, event, state};
use crate::hca::{Errno, QpAttributes, RegisterMemory, Step};

fn world() -> (Host, Cq, Qp, Qp) {
    let mut host = Host::new();
    let cq = host.cq(64);
    let (a, b) = host.pair(&cq);
    (host, cq, a, b)
}

/// What the two QPs completed, as (QP number, syndrome).
fn errors(cqes: &[Cqe]) -> Vec<(u32, u8)> {
    cqes.iter().map(|cqe| (cqe.sop_drop_qpn.get() & 0x00ff_ffff, syndrome(cqe))).collect()
}

fn events(host: &mut Host) -> Vec<u32> {
    std::iter::from_fn(|| host.hca.poll_async_event()).map(|event| event.event_type).collect()
}

#[test]
fn message_longer_than_the_receive_fails_both_sides() {
    let (mut host, mut cq, mut a, mut b) = world();
    host.receive_into(&mut b, 10);
    host.receive_into(&mut b, 10);
    let from = host.alloc(600);
    host.post(&mut a, &Wqe::send(host.key, from, 600));
    host.run();
    let cqes = host.poll_all(&mut cq);
    let flushed = (b.qpn, Syndrome::Flushed as u8);
    let mut found = errors(&cqes);
    found.sort_unstable();
    let mut expected =
        [(b.qpn, Syndrome::LocalLength as u8), flushed, (a.qpn, Syndrome::RemoteInvalidRequest as u8)];
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!((host.state(&a), host.state(&b)), (state::ERR, state::ERR));
}

#[test]
fn receive_with_a_wrong_key_fails_with_protection_error_and_the_sender_with_operation_error() {
    let (mut host, mut cq, mut a, mut b) = world();
    let place = host.alloc(64);
    host.receive(&mut b, &[(0xdead_be00, place, 64)]);
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    host.run();
    let found = errors(&host.poll_all(&mut cq));
    assert_eq!(found, [(b.qpn, Syndrome::LocalProtection as u8), (a.qpn, Syndrome::RemoteOperation as u8)]);
}

#[test]
fn receive_into_memory_that_may_not_be_written_is_a_protection_error() {
    let (mut host, mut cq, mut a, mut b) = world();
    let place = host.alloc(64);
    let read_only = host.register(place, 64, 0).unwrap();
    host.receive(&mut b, &[(read_only, place, 64)]);
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    host.run();
    assert_eq!(syndrome(&host.poll(&mut cq).unwrap()), Syndrome::LocalProtection as u8);
}

#[test]
fn send_with_a_wrong_key_fails_locally_and_flushes_what_is_behind() {
    let (mut host, mut cq, mut a, b) = world();
    let from = host.alloc(64);
    host.post(&mut a, &Wqe::send(0x7777_7700, from, 64).unsignalled());
    host.post(&mut a, &Wqe::send(host.key, from, 64).unsignalled());
    host.post(&mut a, &Wqe::new(wqe_opcode::NOP).unsignalled());
    host.run();
    let cqes = host.poll_all(&mut cq);
    let flushed = Syndrome::Flushed as u8;
    assert_eq!(errors(&cqes), [(a.qpn, Syndrome::LocalProtection as u8), (a.qpn, flushed), (a.qpn, flushed)]);
    assert_eq!(cqes.iter().map(|cqe| cqe.wqe_counter.get()).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((host.state(&a), host.state(&b)), (state::ERR, state::RTS));
}

#[test]
fn failing_work_completes_behind_those_before_it() {
    let (mut host, mut cq, mut a, mut b) = world();
    host.receive_into(&mut b, 64);
    let from = host.alloc(64);
    host.post(&mut a, &Wqe::send(host.key, from, 64));
    host.post(&mut a, &Wqe::send(0x7777_7700, from, 64));
    host.run();
    let cqes = host.poll_all(&mut cq);
    let expected = [cqe_opcode::RECEIVED_SEND, cqe_opcode::REQUESTER, cqe_opcode::REQUESTER_ERROR];
    assert_eq!(opcodes(&cqes), expected);
}

/// Writes, reads and atomics with a given key, address and rights of the QP; the requester's syndrome.
fn remote_access(
    opcode: u8,
    key: impl Fn(&mut Host, u64) -> u32,
    offset: u64,
    qp_access: u32,
) -> (u8, Vec<u32>) {
    let mut host = Host::new();
    let mut cq = host.cq(16);
    let options = QpOptions::default();
    let (mut a, b) = (host.qp(&cq, options), host.qp(&cq, options));
    host.connect(&a, &b, QpAttributes { access: qp_access, ..attributes() });
    let place = host.alloc(4096);
    let key = key(&mut host, place);
    let mut wqe = Wqe::new(opcode).remote(key, place + offset);
    if opcode == wqe_opcode::FETCH_ADD {
        wqe = wqe.atomic(1, 0);
    }
    let wqe = wqe.data(host.key, place, 8);
    host.post(&mut a, &wqe);
    host.run();
    assert_eq!((host.state(&a), host.state(&b)), (state::ERR, state::ERR));
    let syndrome = syndrome(&host.poll(&mut cq).unwrap());
    assert!(host.poll(&mut cq).is_none());
    (syndrome, events(&mut host))
}

const OPERATIONS: [(u8, u32); 3] = [
    (wqe_opcode::RDMA_WRITE, access::REMOTE_WRITE),
    (wqe_opcode::RDMA_READ, access::REMOTE_READ),
    (wqe_opcode::FETCH_ADD, access::REMOTE_ATOMIC),
];
const ALL: u32 = access::REMOTE_WRITE | access::REMOTE_READ | access::REMOTE_ATOMIC;

#[test]
fn wrong_remote_key_is_an_access_error_and_an_event_at_the_responder() {
    for (opcode, _) in OPERATIONS {
        let (syndrome, events) = remote_access(opcode, |_, _| 0x5555_5500, 0, ALL);
        assert_eq!(syndrome, Syndrome::RemoteAccess as u8);
        assert_eq!(events, [event::QP_ACCESS_ERROR]);
    }
}

#[test]
fn remote_key_without_the_right_is_an_access_error() {
    for (opcode, right) in OPERATIONS {
        let key =
            |host: &mut Host, place| host.register(place, 64, access::LOCAL_WRITE | ALL & !right).unwrap();
        assert_eq!(remote_access(opcode, key, 0, ALL).0, Syndrome::RemoteAccess as u8);
    }
}

#[test]
fn remote_address_beyond_the_region_is_an_access_error() {
    for (opcode, _) in OPERATIONS {
        let key = |host: &mut Host, place| host.register(place, 64, access::LOCAL_WRITE | ALL).unwrap();
        assert_eq!(remote_access(opcode, key, 64, ALL).0, Syndrome::RemoteAccess as u8);
    }
}

#[test]
fn remote_key_of_another_protection_domain_is_an_access_error() {
    let key = |host: &mut Host, start| {
        let pd = host.hca.alloc_pd(host.context).unwrap().handle;
        let access = access::LOCAL_WRITE | ALL;
        let request = RegisterMemory { pd, start, length: 64, hca_va: start, access };
        host.hca.register_memory(host.context, &request).unwrap().rkey
    };
    for (opcode, _) in OPERATIONS {
        assert_eq!(remote_access(opcode, key, 0, ALL).0, Syndrome::RemoteAccess as u8);
    }
}

#[test]
fn operation_that_the_qp_does_not_allow_is_an_invalid_request() {
    for (opcode, right) in OPERATIONS {
        let (syndrome, events) = remote_access(opcode, |host, _| host.key, 0, ALL & !right);
        assert_eq!(syndrome, Syndrome::RemoteInvalidRequest as u8);
        assert_eq!(events, [event::QP_REQUEST_ERROR]);
    }
}

#[test]
fn atomic_on_an_odd_address_is_an_invalid_request() {
    let (syndrome, _) = remote_access(wqe_opcode::FETCH_ADD, |host, _| host.key, 4, ALL);
    assert_eq!(syndrome, Syndrome::RemoteInvalidRequest as u8);
}

#[test]
fn more_reads_than_the_responder_takes_are_an_invalid_request() {
    let mut host = Host::new();
    let mut cq = host.cq(16);
    let options = QpOptions::default();
    let (mut a, b) = (host.qp(&cq, options), host.qp(&cq, options));
    host.to_rts(&a, b.qpn, QpAttributes { max_rd_atomic: 4, ..attributes() });
    host.to_rts(&b, a.qpn, QpAttributes { max_dest_rd_atomic: 1, ..attributes() });
    let (key, place) = (host.key, host.alloc(64));
    for _ in 0..2 {
        host.post(&mut a, &Wqe::new(wqe_opcode::RDMA_READ).remote(key, place).data(key, place, 8));
    }
    while host.hca.step(Step::Send(a.qpn)) {}
    while host.hca.step(Step::Deliver { from: a.qpn, to: b.qpn }) {}
    host.run();
    let cqes = host.poll_all(&mut cq);
    assert_eq!(opcodes(&cqes), [cqe_opcode::REQUESTER, cqe_opcode::REQUESTER_ERROR], "the first is answered");
    assert_eq!(syndrome(&cqes[1]), Syndrome::RemoteInvalidRequest as u8);
}

#[test]
fn read_on_a_qp_that_may_have_none_is_a_local_error() {
    let mut host = Host::new();
    let mut cq = host.cq(16);
    let (mut a, b) = (host.qp(&cq, QpOptions::default()), host.qp(&cq, QpOptions::default()));
    host.connect(&a, &b, QpAttributes { max_rd_atomic: 0, ..attributes() });
    let (key, place) = (host.key, host.alloc(64));
    host.post(&mut a, &Wqe::new(wqe_opcode::RDMA_READ).remote(key, place).data(key, place, 8));
    host.run();
    assert_eq!(syndrome(&host.poll(&mut cq).unwrap()), Syndrome::LocalQpOperation as u8);
}

#[test]
fn read_into_memory_deregistered_meanwhile_is_a_protection_error() {
    let (mut host, mut cq, mut a, b) = world();
    let (from, to) = (host.alloc(64), host.alloc(64));
    let local = host.register(to, 64, access::LOCAL_WRITE).unwrap();
    host.post(&mut a, &Wqe::new(wqe_opcode::RDMA_READ).remote(host.key, from).data(local, to, 8));
    assert!(host.hca.step(Step::Send(a.qpn)));
    host.hca.deregister_memory(host.context, crate::hca::Handle(local)).unwrap();
    host.run();
    assert_eq!(syndrome(&host.poll(&mut cq).unwrap()), Syndrome::LocalProtection as u8);
    assert_eq!(host.state(&b), state::RTS);
}

#[test]
fn unknown_and_refused_work_requests_are_local_errors() {
    const LOCAL_INVALIDATE: u8 = 0x1b;
    const UMR: u8 = 0x25;
    const MASKED: u8 = 0x14;
    for opcode in [LOCAL_INVALIDATE, UMR, MASKED, wqe_opcode::TAG_MATCHING, 0x3f] {
        let (mut host, mut cq, mut a, _b) = world();
        host.post(&mut a, &Wqe::new(opcode).raw(&[0; 48]));
        host.run();
        let cqe = host.poll(&mut cq).unwrap();
        assert_eq!(syndrome(&cqe), Syndrome::LocalQpOperation as u8);
        assert_eq!(cqe.sop_drop_qpn.get() >> 24, u32::from(opcode));
        assert_eq!(host.state(&a), state::ERR);
    }
}

#[test]
fn work_request_of_no_length_or_of_another_qp_is_a_local_error() {
    for qpn_ds in [0_u32, 0x55 << 8 | 1, 63] {
        let (mut host, mut cq, mut a, _b) = world();
        host.post(&mut a, &Wqe::new(wqe_opcode::NOP));
        let sq = host.hca.query_qp(host.context, a.handle).unwrap();
        assert_eq!(sq.attributes.state, state::RTS);
        let start = a.sq_address();
        host.fill(start + 4, &qpn_ds.to_be_bytes());
        host.run();
        assert_eq!(syndrome(&host.poll(&mut cq).unwrap()), Syndrome::LocalQpOperation as u8);
    }
}

#[test]
fn message_longer_than_the_device_sends_is_a_length_error() {
    let (mut host, mut cq, mut a, _b) = world();
    let from = host.alloc(64);
    host.post(&mut a, &Wqe::send(host.key, from, (1 << 30) + 1));
    host.run();
    assert_eq!(syndrome(&host.poll(&mut cq).unwrap()), Syndrome::LocalLength as u8);
}

#[test]
fn qp_put_into_err_flushes_both_queues_and_what_is_posted_later() {
    let (mut host, mut cq, mut a, mut b) = world();
    host.receive_into(&mut a, 8);
    host.modify(&a, attribute::STATE, QpAttributes { state: state::ERR, ..attributes() }).unwrap();
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x").unsignalled());
    host.run();
    let cqes = host.poll_all(&mut cq);
    assert_eq!(opcodes(&cqes), [cqe_opcode::REQUESTER_ERROR, cqe_opcode::RESPONDER_ERROR]);
    assert!(cqes.iter().all(|cqe| syndrome(cqe) == Syndrome::Flushed as u8));
    host.receive_into(&mut a, 8);
    host.run();
    assert_eq!(opcodes(&host.poll_all(&mut cq)), [cqe_opcode::RESPONDER_ERROR]);
    host.post(&mut b, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    host.run();
    assert_eq!(syndrome(&host.poll(&mut cq).unwrap()), Syndrome::TransportRetry as u8);
}

#[test]
fn receive_that_had_begun_is_flushed_first() {
    let (mut host, mut cq, mut a, mut b) = world();
    host.receive_into(&mut b, 600);
    let from = host.alloc(600);
    host.post(&mut a, &Wqe::send(host.key, from, 600));
    host.hca.step(Step::Send(a.qpn));
    host.hca.step(Step::Deliver { from: a.qpn, to: b.qpn });
    host.modify(&b, attribute::STATE, QpAttributes { state: state::ERR, ..attributes() }).unwrap();
    let cqe = host.poll(&mut cq).unwrap();
    assert_eq!((cqe.opcode(), syndrome(&cqe)), (cqe_opcode::RESPONDER_ERROR, Syndrome::Flushed as u8));
}

#[test]
fn invalidating_the_key_of_an_ordinary_region_is_refused() {
    let (mut host, mut cq, mut a, mut b) = world();
    host.receive_into(&mut b, 8);
    let key = host.key.to_be_bytes();
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND_INVALIDATE).immediate(key).inline(b"x"));
    host.run();
    let found = errors(&host.poll_all(&mut cq));
    assert_eq!(found, [(b.qpn, Syndrome::LocalQpOperation as u8), (a.qpn, Syndrome::RemoteAccess as u8)]);
    assert!(host.hca.deregister_memory(host.context, crate::hca::Handle(host.key)).is_ok());
    assert_eq!(host.hca.deregister_memory(host.context, crate::hca::Handle(host.key)), Err(Errno::INVALID));
}

#[test]
fn qp_on_an_srq_tells_its_last_receive_once() {
    let mut host = Host::new();
    let cq = host.cq(16);
    let srq = host.srq(7);
    let options = QpOptions { srq: Some(srq.handle), receive: 0, ..QpOptions::default() };
    let (a, b) = (host.qp(&cq, options), host.qp(&cq, QpOptions::default()));
    host.connect(&a, &b, attributes());
    for _ in 0..2 {
        host.modify(&a, attribute::STATE, QpAttributes { state: state::ERR, ..attributes() }).unwrap();
    }
    assert_eq!(events(&mut host), [event::LAST_WQE_REACHED]);
}
