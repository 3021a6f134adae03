//! UD: addresses, headers, keys.

use zerocopy::IntoBytes;

use super::host::{Cq, Host, QKEY, Qp, Wqe, opcodes, syndrome};
use crate::hca::layout::{AddressSegment, GlobalAddressSegment, Syndrome, cqe_opcode, wqe_opcode};
use crate::hca::verbs::{attribute, state};
use crate::hca::{HcaConfig, QpAttributes};

fn world() -> (Host, Cq, Qp, Qp) {
    let mut host = Host::new();
    let cq = host.cq(64);
    let (a, b) = (host.datagram_qp(&cq), host.datagram_qp(&cq));
    (host, cq, a, b)
}

fn address(qpn: u32, qkey: u32, lid: u16, extended: bool) -> Vec<u8> {
    let segment = AddressSegment {
        qkey: qkey.into(),
        reserved: 0.into(),
        dqp: (qpn | if extended { 1 << 31 } else { 0 }).into(),
        stat_rate_sl: 3,
        fl_mlid: 0,
        rlid: lid.into(),
    };
    segment.as_bytes().to_vec()
}

fn global(grh_gid_fl: u32, gid: [u8; 16]) -> Vec<u8> {
    let segment = GlobalAddressSegment {
        reserved: [0; 4],
        rmac: [0; 6],
        tclass: 0x12,
        hop_limit: 64,
        grh_gid_fl: grh_gid_fl.into(),
        rgid: gid,
    };
    segment.as_bytes().to_vec()
}

fn to(qp: &Qp) -> Vec<u8> {
    [address(qp.qpn, QKEY, 1, true), global(0, [0; 16])].concat()
}

fn send(host: &mut Host, from: &mut Qp, address: &[u8], payload: &[u8]) {
    let wqe = Wqe::new(wqe_opcode::SEND_IMMEDIATE).immediate([1, 2, 3, 4]);
    host.post(from, &wqe.raw(address).inline(payload));
    host.run();
}

#[test]
fn datagram_lands_behind_the_place_of_the_header() {
    let (mut host, mut cq, mut a, mut b) = world();
    let place = host.receive_into(&mut b, 100);
    let to = to(&b);
    send(&mut host, &mut a, &to, b"datagram");
    let cqes = host.poll_all(&mut cq);
    assert_eq!(opcodes(&cqes), [cqe_opcode::REQUESTER, cqe_opcode::RECEIVED_SEND_IMMEDIATE]);
    let received = cqes[1];
    assert_eq!((received.byte_count.get(), received.slid.get()), (48, 1));
    assert_eq!(received.flags_rqpn.get(), 3 << 24 | a.qpn, "no GRH, service level 3");
    assert_eq!(received.immediate, [1, 2, 3, 4]);
    assert_eq!(host.bytes(place, 48), [&[0; 40][..], b"datagram"].concat());
}

#[test]
fn short_address_is_understood() {
    let (mut host, mut cq, mut a, mut b) = world();
    host.receive_into(&mut b, 100);
    let short = address(b.qpn, QKEY, 1, false);
    send(&mut host, &mut a, &short, b"x");
    assert_eq!(host.poll_all(&mut cq).len(), 2);
}

#[test]
fn global_header_is_written_in_front() {
    let (mut host, mut cq, mut a, mut b) = world();
    let gid = HcaConfig::default().gid;
    let place = host.receive_into(&mut b, 100);
    let to = [address(b.qpn, QKEY, 1, true), global(1 << 30 | 0x54321, gid)].concat();
    send(&mut host, &mut a, &to, b"grh");
    let received = host.poll_all(&mut cq)[1];
    assert_eq!(received.flags_rqpn.get() >> 28, 1);
    let header = host.bytes(place, 43);
    assert_eq!(header[..4], (6_u32 << 28 | 0x12 << 20 | 0x54321).to_be_bytes());
    assert_eq!(header[4..8], [0, 27, 0x1b, 64]);
    assert_eq!((&header[8..24], &header[24..40], &header[40..]), (&gid[..], &gid[..], &b"grh"[..]));
}

#[test]
fn datagrams_that_nobody_takes_are_lost_and_complete_at_the_sender() {
    let (mut host, mut cq, mut a, mut b) = world();
    let to_b = to(&b);
    send(&mut host, &mut a, &to_b, b"no receive");
    host.receive_into(&mut b, 100);
    let wrong_key = [address(b.qpn, QKEY + 1, 1, true), global(0, [0; 16])].concat();
    let wrong_lid = [address(b.qpn, QKEY, 9, true), global(0, [0; 16])].concat();
    let nobody = [address(b.qpn + 100, QKEY, 1, true), global(0, [0; 16])].concat();
    for address in [wrong_key, wrong_lid, nobody] {
        send(&mut host, &mut a, &address, b"x");
    }
    assert_eq!(opcodes(&host.poll_all(&mut cq)), [cqe_opcode::REQUESTER; 4]);
    let own_key = [address(b.qpn, 1 << 31, 1, true), global(0, [0; 16])].concat();
    send(&mut host, &mut a, &own_key, b"the key of the QP");
    assert_eq!(host.poll_all(&mut cq).len(), 2);
}

#[test]
fn too_long_at_the_sender_leaves_its_receive_side_working() {
    let (mut host, mut cq, mut a, mut b) = world();
    let wqe = Wqe::new(wqe_opcode::SEND).raw(&to(&b)).data(host.key, super::host::BASE, 4097);
    host.post(&mut a, &wqe);
    host.post(&mut a, &Wqe::new(wqe_opcode::NOP));
    host.run();
    let syndromes: Vec<_> = host.poll_all(&mut cq).iter().map(syndrome).collect();
    assert_eq!(syndromes, [Syndrome::LocalLength as u8, Syndrome::Flushed as u8]);
    assert_eq!(host.state(&a), state::SQE);
    host.receive_into(&mut a, 100);
    let to_a = to(&a);
    send(&mut host, &mut b, &to_a, b"x");
    assert_eq!(host.poll_all(&mut cq).len(), 2);
    let rts = QpAttributes { state: state::RTS, ..QpAttributes::default() };
    host.modify(&a, attribute::STATE, rts).unwrap();
    host.post(&mut a, &Wqe::new(wqe_opcode::NOP));
    host.run();
    assert_eq!(opcodes(&host.poll_all(&mut cq)), [cqe_opcode::REQUESTER]);
}

#[test]
fn too_long_for_the_receive_fails_the_receiver() {
    let (mut host, mut cq, mut a, mut b) = world();
    host.receive_into(&mut b, 47);
    let to = to(&b);
    send(&mut host, &mut a, &to, b"datagram");
    let cqes = host.poll_all(&mut cq);
    assert_eq!(syndrome(&cqes[1]), Syndrome::LocalLength as u8);
    assert_eq!((host.state(&a), host.state(&b)), (state::RTS, state::ERR));
}

#[test]
fn other_operations_are_refused() {
    for opcode in [wqe_opcode::RDMA_WRITE, wqe_opcode::RDMA_READ, wqe_opcode::TAG_MATCHING] {
        let (mut host, mut cq, mut a, b) = world();
        host.post(&mut a, &Wqe::new(opcode).raw(&to(&b)).raw(&[0; 32]));
        host.run();
        assert_eq!(syndrome(&host.poll(&mut cq).unwrap()), Syndrome::LocalQpOperation as u8);
    }
}
