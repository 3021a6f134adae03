//! Bytes that arrive: SEND, WRITE, READ, atomics.

use super::{Bench, Check, Pair, Problem, same};
use crate::script::{pattern, status};
use crate::verbs::{Request, Wr};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "rc.send_arrives_with_its_bytes", source: "ibv_post_send, ibv_post_recv", check: send },
    Check { name: "rc.send_of_several_segments_is_one_message", source: "ibv_post_send", check: segments },
    Check { name: "rc.inline_data_is_taken_at_once", source: "ibv_post_send", check: inline },
    Check { name: "rc.immediate_data_arrives", source: "ibv_post_send", check: immediate },
    Check { name: "rc.write_arrives_unseen", source: "ibv_post_send", check: write },
    Check { name: "rc.read_fetches", source: "ibv_post_send", check: read },
    Check { name: "rc.atomics_add_and_swap", source: "ibv_post_send", check: atomics },
    Check { name: "rc.requests_of_one_qp_keep_their_order", source: "ibv_post_send", check: order },
];

const OK: u32 = status::SUCCESS;

fn send(bench: &mut Bench<'_>) -> Result<(), Problem> {
    // 256 and the multiples of every path MTU, one less and one more.
    let lengths = [0, 1, 255, 256, 257, 511, 513, 1023, 1024, 1025, 4095, 4096, 4097, 65_537];
    for mtu in [1, 3] {
        let (a, b) = bench.pair(&Pair { mtu, memory: 70_000, ..Pair::default() })?;
        for (wr_id, length) in (0..).zip(lengths) {
            let bytes = pattern(length.into(), length);
            a.memory.write(0, &bytes);
            b.memory.write(0, &vec![0; bytes.len() + 8]);
            b.receive(wr_id, b.memory.part(0, bytes.len() + 8))?;
            a.simple_send(wr_id, bytes.len())?;
            let received = bench.completes(&b.recv_cq, wr_id, OK)?;
            same("byte_len", &length, &received.byte_len)?;
            same("qp_num", &b.qp.number(), &received.qp_num)?;
            same("bytes", &[bytes.as_slice(), &[0; 8]].concat(), &b.memory.read(0, bytes.len() + 8))?;
            bench.completes(&a.send_cq, wr_id, OK)?;
        }
        bench.quiet(&b.recv_cq)?;
    }
    Ok(())
}

fn segments(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (a, b) = bench.pair(&Pair::default())?;
    let bytes = pattern(1, 60);
    for (from, to, at) in [(0, 10, 0), (10, 30, 1000), (30, 60, 2000)] {
        a.memory.write(at, &bytes[from..to]);
    }
    let parts = vec![a.memory.part(0, 10), a.memory.part(1000, 20), a.memory.part(2000, 30)];
    b.receive(1, b.memory.part(0, 100))?;
    a.send(&Wr::new(1, Request::Send(None), parts))?;
    same("byte_len", &60, &bench.completes(&b.recv_cq, 1, OK)?.byte_len)?;
    same("bytes", &bytes, &b.memory.read(0, 60))?;
    // And scattered at the other end.
    let parts = [b.memory.part(100, 7), b.memory.part(200, 50), b.memory.part(300, 100)];
    b.qp.post_recv(2, &parts).map_err(|errno| format!("ibv_post_recv failed with errno {errno}"))?;
    a.memory.write(0, &bytes);
    a.simple_send(2, 60)?;
    bench.completes(&b.recv_cq, 2, OK)?;
    let seen = [b.memory.read(100, 7), b.memory.read(200, 50), b.memory.read(300, 3)].concat();
    same("scattered bytes", &bytes, &seen)?;
    Ok(())
}

fn inline(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (a, b) = bench.pair(&Pair { inline: 64, ..Pair::default() })?;
    let bytes = pattern(2, 64);
    a.memory.write(0, &bytes);
    b.receive(1, b.memory.part(0, 64))?;
    let parts = vec![a.memory.part(0, 30), a.memory.part(30, 34)];
    a.send(&Wr { inline: true, ..Wr::new(1, Request::Send(None), parts) })?;
    // What was inline is no longer needed.
    a.memory.write(0, &[0; 64]);
    bench.completes(&b.recv_cq, 1, OK)?;
    same("bytes", &bytes, &b.memory.read(0, 64))?;
    let parts = vec![a.memory.part(0, 4000)];
    let refused = a.qp.post_send(&Wr { inline: true, ..Wr::new(2, Request::Send(None), parts) });
    same("more than fits", &true, &refused.is_err_and(|errno| errno > 0))?;
    Ok(())
}

fn immediate(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (a, b) = bench.pair(&Pair::default())?;
    for (wr_id, length) in [(1, 0), (2, 8), (3, 700)] {
        b.receive(wr_id, b.memory.part(0, 1000))?;
        let value = 0x0102_0304 + length;
        let parts = vec![a.memory.part(0, length as usize)];
        a.send(&Wr::new(wr_id, Request::Send(Some(value)), parts))?;
        let received = bench.completes(&b.recv_cq, wr_id, OK)?;
        same("IBV_WC_WITH_IMM", &2, &(received.wc_flags & 2))?;
        same("imm_data", &value, &u32::from_be(received.imm_data))?;
        // A WRITE with immediate data uses up a receive, and writes elsewhere.
        let target = b.memory.part(4096, 1000);
        let bytes = pattern(9, length);
        a.memory.write(2000, &bytes);
        b.receive(10 + wr_id, b.memory.part(0, 0))?;
        let request = Request::Write(target.address, target.rkey, Some(!value));
        a.send(&Wr::new(10 + wr_id, request, vec![a.memory.part(2000, length as usize)]))?;
        let received = bench.completes(&b.recv_cq, 10 + wr_id, OK)?;
        same("opcode", &129, &received.opcode)?;
        same("imm_data", &!value, &u32::from_be(received.imm_data))?;
        same("bytes", &bytes, &b.memory.read(4096, length as usize))?;
    }
    Ok(())
}

fn write(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (a, b) = bench.pair(&Pair::default())?;
    for (wr_id, length) in [(1, 1), (2, 256), (3, 257), (4, 3000)] {
        let bytes = pattern(wr_id, length);
        a.memory.write(0, &bytes);
        let target = b.memory.part(64, bytes.len());
        let request = Request::Write(target.address, target.rkey, None);
        a.send(&Wr::new(wr_id, request, vec![a.memory.part(0, bytes.len())]))?;
        same("opcode", &1, &bench.completes(&a.send_cq, wr_id, OK)?.opcode)?;
        same("bytes", &bytes, &b.memory.read(64, bytes.len()))?;
        bench.quiet(&b.recv_cq)?;
    }
    Ok(())
}

fn read(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (a, b) = bench.pair(&Pair::default())?;
    for (wr_id, length) in [(1, 1), (2, 256), (3, 257), (4, 3000)] {
        let bytes = pattern(wr_id, length);
        b.memory.write(100, &bytes);
        let source = b.memory.part(100, bytes.len());
        let request = Request::Read(source.address, source.rkey);
        let half = bytes.len() / 2;
        let parts = vec![a.memory.part(0, half), a.memory.part(half, bytes.len() - half)];
        a.send(&Wr::new(wr_id, request, parts))?;
        let completion = bench.completes(&a.send_cq, wr_id, OK)?;
        same("opcode", &2, &completion.opcode)?;
        same("bytes", &bytes, &a.memory.read(0, bytes.len()))?;
    }
    Ok(())
}

fn atomics(bench: &mut Bench<'_>) -> Result<(), Problem> {
    if bench.device().attributes().orig_attr.atomic_cap == 0 {
        return Err(Problem::Skipped("no atomics: atomic_cap is 0".to_owned()));
    }
    let (a, b) = bench.pair(&Pair::default())?;
    let word = |bytes: Vec<u8>| bytes.try_into().map(u64::from_ne_bytes).unwrap_or_default();
    let start = 0x0123_4567_89ab_cdef_u64;
    b.memory.write(8, &start.to_ne_bytes());
    let target = b.memory.part(8, 8);
    let (address, key) = (target.address, target.rkey);
    let steps = [
        (Request::FetchAndAdd(address, key, 5), start, start + 5),
        (Request::CompareAndSwap(address, key, start, 1), start + 5, start + 5),
        (Request::CompareAndSwap(address, key, start + 5, 77), start + 5, 77),
        (Request::FetchAndAdd(address, key, u64::MAX), 77, 76),
    ];
    for (wr_id, (request, before, after)) in (1..).zip(steps) {
        a.send(&Wr::new(wr_id, request, vec![a.memory.part(0, 8)]))?;
        bench.completes(&a.send_cq, wr_id, OK)?;
        same("what was there", &before, &word(a.memory.read(0, 8)))?;
        same("what is there", &after, &word(b.memory.read(8, 8)))?;
    }
    Ok(())
}

fn order(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (a, b) = bench.pair(&Pair { sends: 64, ..Pair::default() })?;
    for wr_id in 0..20_u32 {
        b.receive(wr_id.into(), b.memory.part(4096 + wr_id as usize * 8, 8))?;
    }
    for wr_id in 0..20_u32 {
        a.memory.write(wr_id as usize * 8, &u64::from(wr_id).to_ne_bytes());
        let target = b.memory.part(0, 8);
        let part = a.memory.part(wr_id as usize * 8, 8);
        let write = Wr::new(wr_id.into(), Request::Write(target.address, target.rkey, None), vec![part]);
        a.send(&Wr { signalled: false, ..write })?;
        let send = Wr::new(wr_id.into(), Request::Send(None), vec![part]);
        a.send(&Wr { signalled: wr_id % 5 == 4, ..send })?;
    }
    for wr_id in 0..20 {
        bench.completes(&b.recv_cq, wr_id, OK)?;
        same(
            "bytes",
            &wr_id,
            &u64::from_ne_bytes(
                b.memory
                    .read(4096 + usize::try_from(wr_id).unwrap_or_default() * 8, 8)
                    .try_into()
                    .unwrap_or_default(),
            ),
        )?;
    }
    same("the last write", &19_u64.to_ne_bytes().to_vec(), &b.memory.read(0, 8))?;
    for wr_id in [4, 9, 14, 19] {
        bench.completes(&a.send_cq, wr_id, OK)?;
    }
    bench.quiet(&a.send_cq)?;
    Ok(())
}
