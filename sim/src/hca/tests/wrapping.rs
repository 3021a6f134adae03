//! Every counter past its end.

use super::host::{Host, QpOptions, Wqe, attributes, pattern};
use super::tag_host::{Count, NO_COUNT, Tags, eager, operations, summary};
use crate::hca::layout::wqe_opcode;
use crate::hca::tm::app_op::{APPEND, CONSUMED_MSG, NOOP, UNEXPECTED};
use crate::hca::{HcaConfig, QpAttributes};

#[test]
fn psns_wrap_within_messages_reads_and_retries() {
    let mut host = Host::new();
    let mut cq = host.cq(64);
    let options = QpOptions::default();
    let (mut a, mut b) = (host.qp(&cq, options), host.qp(&cq, options));
    let psn = 0x00ff_fffe;
    host.connect(&a, &b, QpAttributes { sq_psn: psn, rq_psn: psn, ..attributes() });
    let bytes = pattern(1200);
    let (from, to) = (host.data(&bytes), host.alloc(1200));
    let key = host.key;
    host.post(&mut a, &Wqe::send(key, from, 1200));
    host.post(&mut a, &Wqe::new(wqe_opcode::RDMA_READ).remote(key, from).data(key, to, 1200));
    while host.hca.run(1000) > 0 {}
    let place = host.receive_into(&mut b, 1200);
    host.run();
    assert_eq!(host.poll_all(&mut cq).len(), 3);
    assert_eq!((host.bytes(place, 1200), host.bytes(to, 1200)), (bytes.clone(), bytes));
}

#[test]
fn ring_counters_wrap_at_16_bits() {
    let mut host = Host::new();
    let mut cq = host.cq(64);
    let (mut a, mut b) = host.pair(&cq);
    let place = host.alloc(8);
    for number in 0..70_000_u32 {
        host.receive(&mut b, &[(host.key, place, 8)]);
        host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(&number.to_be_bytes()).unsignalled());
        host.run();
        let cqe = host.poll(&mut cq).unwrap();
        assert_eq!(cqe.byte_count.get(), 4);
        assert_eq!(host.bytes(place, 4), number.to_be_bytes());
    }
}

#[test]
fn srq_counter_wraps_at_16_bits() {
    let mut host = Host::new();
    let mut cq = host.cq(64);
    let mut srq = host.srq(3);
    let options = QpOptions { srq: Some(srq.handle), receive: 0, ..QpOptions::default() };
    let mut qp = host.qp(&cq, options);
    host.to_rts(&qp, qp.qpn, attributes());
    let place = host.alloc(8);
    for _ in 0..70_000 {
        let index = host.srq_receive(&mut srq, (host.key, place, 8));
        host.post(&mut qp, &Wqe::new(wqe_opcode::SEND).inline(b"x").unsignalled());
        host.run();
        assert_eq!(host.poll(&mut cq).unwrap().wqe_counter.get(), index);
        host.srq_free(&mut srq, index);
    }
}

#[test]
fn phase_wraps_wherever_it_starts() {
    for initial_phase in [0xfffd, 0xffff, 0] {
        let mut tags = Tags::with(HcaConfig { initial_phase, ..HcaConfig::default() });
        let mut handled = initial_phase;
        for round in 0..6_u16 {
            tags.send(&eager(9, b"unexpected"));
            tags.run();
            let cqe = tags.poll()[0];
            assert_eq!(cqe.app_op, UNEXPECTED);
            tags.host.srq_free(&mut tags.srq, cqe.wqe_counter.get());
            handled = handled.wrapping_add(1);
            let address = tags.host.alloc(8);
            let stale = tags.add(1, (address, 8), NO_COUNT);
            let entry = tags.add(2, (address, 8), Count(Some(handled)));
            tags.run();
            let phase = initial_phase.wrapping_add(round + 1);
            assert_eq!(operations(&tags.poll()), [(APPEND, true, phase), (APPEND, true, phase)]);
            tags.send(&eager(2, b"x"));
            tags.send(&eager(1, b"x"));
            assert_eq!(tags.outcome(), [(CONSUMED_MSG, entry, 1), (CONSUMED_MSG, stale, 1)]);
            tags.give_back(entry);
            tags.give_back(stale);
        }
        tags.sync(handled);
        assert_eq!(
            summary(&{
                tags.run();
                tags.poll()
            })[0]
                .0,
            NOOP
        );
    }
}

#[test]
fn more_than_2_16_unexpected_messages_are_counted_mod_2_16() {
    let mut tags = Tags::new();
    let message = tags.host.data(&eager(9, b""));
    for _ in 0..65_541 {
        let wqe = Wqe::send(tags.host.key, message, 16).unsignalled();
        tags.host.post(&mut tags.sender, &wqe);
        tags.run();
        let cqe = tags.poll()[0];
        tags.host.srq_free(&mut tags.srq, cqe.wqe_counter.get());
        tags.host.srq_receive(&mut tags.srq, (tags.host.key, message + 64, 16));
    }
    let address = tags.host.alloc(8);
    let entry = tags.add(1, (address, 8), Count(Some(5)));
    tags.run();
    assert_eq!(operations(&tags.poll()), [(APPEND, true, 5)]);
    tags.send(&eager(1, b"x"));
    assert_eq!(tags.outcome(), [(CONSUMED_MSG, entry, 1)]);
}
