//! Two processes: two devices, and the packets between them as bytes.

use super::host::{Host, QpOptions, Wqe, attributes, opcodes, pattern, syndrome};
use crate::hca::layout::{Syndrome, cqe_opcode, wqe_opcode};
use crate::hca::verbs::state;
use crate::hca::{HcaConfig, Packet, QpAttributes};

fn process(process: u8) -> Host {
    Host::with(HcaConfig { process, ..HcaConfig::default() })
}

/// Carries packets until both are idle.
fn carry(hosts: &mut [Host; 2]) {
    loop {
        let mut moved = 0;
        for host in hosts.iter_mut() {
            moved += host.hca.run(1000);
        }
        for from in 0..2 {
            while let Some(packet) = hosts[from].hca.poll_packet() {
                assert_eq!(usize::from(packet.process()), 1 - from);
                let mut bytes = Vec::new();
                packet.encode(&mut bytes);
                hosts[1 - from].hca.handle_packet(Packet::decode(&bytes).unwrap());
                moved += 1;
            }
        }
        if moved == 0 {
            return;
        }
    }
}

#[test]
fn processes_send_write_read_and_name_themselves_in_their_qp_numbers() {
    let mut hosts = [process(0), process(1)];
    let mut cqs = [hosts[0].cq(64), hosts[1].cq(64)];
    let mut a = hosts[0].qp(&cqs[0], QpOptions::default());
    let mut b = hosts[1].qp(&cqs[1], QpOptions::default());
    assert_eq!((a.qpn >> 16, b.qpn >> 16), (0, 1));
    hosts[0].to_rts(&a, b.qpn, attributes());
    hosts[1].to_rts(&b, a.qpn, attributes());
    let bytes = pattern(2000);
    let from = hosts[0].data(&bytes);
    let to = hosts[1].receive_into(&mut b, 2000);
    let key = hosts[0].key;
    hosts[0].post(&mut a, &Wqe::send(key, from, 2000));
    carry(&mut hosts);
    assert_eq!(hosts[1].bytes(to, 2000), bytes);
    let back = hosts[0].alloc(2000);
    let read = Wqe::new(wqe_opcode::RDMA_READ).remote(hosts[1].key, to).data(key, back, 2000);
    hosts[0].post(&mut a, &read);
    let word = hosts[1].data(&7_u64.to_ne_bytes());
    let add =
        Wqe::new(wqe_opcode::FETCH_ADD).remote(hosts[1].key, word).atomic(3, 0).data(key, back + 1992, 8);
    hosts[0].post(&mut a, &add.fence());
    carry(&mut hosts);
    assert_eq!(hosts[0].bytes(back, 1992), bytes[..1992]);
    assert_eq!(hosts[0].bytes(back + 1992, 8), 7_u64.to_ne_bytes());
    assert_eq!(opcodes(&hosts[0].poll_all(&mut cqs[0])), [cqe_opcode::REQUESTER; 3]);
    assert_eq!(opcodes(&hosts[1].poll_all(&mut cqs[1])), [cqe_opcode::RECEIVED_SEND]);
}

#[test]
fn process_that_is_not_there_is_a_peer_that_does_not_answer() {
    let mut host = process(0);
    let mut cq = host.cq(16);
    let mut a = host.qp(&cq, QpOptions::default());
    host.to_rts(&a, 5 << 16 | 0x40, QpAttributes { retry_count: 1, ..attributes() });
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    for _ in 0..10 {
        while host.hca.run(100) > 0 {}
        while let Some(packet) = host.hca.poll_packet() {
            host.hca.handle_undeliverable(packet);
        }
        if let Some(due) = host.hca.next_timer() {
            host.hca.advance_clock(due);
        }
    }
    assert_eq!(syndrome(&host.poll(&mut cq).unwrap()), Syndrome::TransportRetry as u8);
}

#[test]
fn process_that_goes_leaves_nobody_waiting() {
    let mut hosts = [process(0), process(1)];
    let mut cq = hosts[0].cq(16);
    let other = hosts[1].cq(16);
    let mut a = hosts[0].qp(&cq, QpOptions::default());
    let b = hosts[1].qp(&other, QpOptions::default());
    hosts[0].to_rts(&a, b.qpn, QpAttributes { retry_count: 0, ..attributes() });
    let place = hosts[0].alloc(64);
    let key = hosts[0].key;
    hosts[0].post(&mut a, &Wqe::send(key, place, 64));
    while hosts[0].hca.run(100) > 0 {}
    // It took the packet, and died before it answered.
    assert!(hosts[0].hca.poll_packet().is_some());
    hosts[0].hca.handle_process_lost(1);
    hosts[0].run();
    assert_eq!(syndrome(&hosts[0].poll(&mut cq).unwrap()), Syndrome::TransportRetry as u8);
    assert_eq!(hosts[0].state(&a), state::ERR);
}

#[test]
fn packet_for_another_process_is_not_taken() {
    let mut hosts = [process(0), process(1)];
    let cq = hosts[0].cq(16);
    let mut a = hosts[0].qp(&cq, QpOptions::default());
    hosts[0].to_rts(&a, 1 << 16 | 0x40, attributes());
    hosts[0].post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    while hosts[0].hca.run(100) > 0 {}
    let packet = hosts[0].hca.poll_packet().unwrap();
    hosts[0].hca.handle_packet(packet);
    assert!(hosts[0].hca.steps().is_empty());
}
