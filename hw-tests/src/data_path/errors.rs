//! What goes wrong, and how it is told: access, lengths, flushes, receivers that are not ready or not there.

use tagmatch::device::verbs::sys::{
    IBV_ACCESS_LOCAL_WRITE, IBV_QPS_ERR, IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR,
    IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR, IBV_WC_RETRY_EXC_ERR,
    IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR,
};

use super::{Bench, Check, End, Pair, Problem, same};
use crate::script::{pattern, status};
use crate::verbs::{Part, Request, Wr};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "error.flushes_everything_in_order", source: "ibv_modify_qp to IBV_QPS_ERR", check: flush },
    Check {
        name: "error.wrong_key_of_the_other_side_is_an_access_error",
        source: "ibv_post_send",
        check: wrong_rkey,
    },
    Check {
        name: "error.memory_without_the_right_is_an_access_error",
        source: "ibv_reg_mr",
        check: no_right,
    },
    Check {
        name: "error.beyond_the_end_of_a_region_is_an_access_error",
        source: "ibv_reg_mr",
        check: beyond,
    },
    Check {
        name: "error.wrong_key_of_our_own_is_a_protection_error",
        source: "ibv_post_send",
        check: wrong_lkey,
    },
    Check {
        name: "error.message_too_long_for_its_receive_fails_both",
        source: "ibv_post_recv",
        check: too_long,
    },
    Check { name: "rnr.the_sender_waits_for_a_receive", source: "ibv_modify_qp rnr_retry 7", check: waits },
    Check {
        name: "rnr.the_sender_gives_up_after_its_retries",
        source: "ibv_modify_qp rnr_retry 1",
        check: gives_up,
    },
    Check {
        name: "error.nobody_there_is_told_after_the_retries",
        source: "ibv_modify_qp retry_cnt",
        check: nobody,
    },
];

const OK: u32 = status::SUCCESS;

fn flush(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (a, _b) = bench.pair(&Pair::default())?;
    for wr_id in 0..5 {
        a.receive(wr_id, a.memory.part(0, 64))?;
    }
    a.qp.fail().map_err(|errno| format!("ibv_modify_qp to ERR failed with errno {errno}"))?;
    for wr_id in 0..5 {
        bench.completes(&a.recv_cq, wr_id, IBV_WC_WR_FLUSH_ERR)?;
    }
    // What is posted afterwards is flushed too, signalled or not. (On soft-RoCE posting a receive is no call of the
    // kernel, which does not see it.)
    if !bench.is_soft_roce() {
        a.receive(9, a.memory.part(0, 64))?;
        bench.completes(&a.recv_cq, 9, IBV_WC_WR_FLUSH_ERR)?;
    }
    a.simple_send(10, 8)?;
    let send = Wr::new(11, Request::Send(None), vec![a.memory.part(0, 8)]);
    a.send(&Wr { signalled: false, ..send })?;
    bench.completes(&a.send_cq, 10, IBV_WC_WR_FLUSH_ERR)?;
    bench.completes(&a.send_cq, 11, IBV_WC_WR_FLUSH_ERR)?;
    bench.quiet(&a.send_cq)?;
    Ok(())
}

/// A request that fails takes its QP along: what is behind it is flushed.
fn fails(bench: &mut Bench<'_>, a: &End, wr: &Wr, expected: u32) -> Result<(), Problem> {
    a.send(wr)?;
    let behind = Wr::new(99, Request::Send(None), vec![a.memory.part(0, 1)]);
    a.send(&Wr { signalled: false, ..behind })?;
    bench.completes(&a.send_cq, wr.wr_id, expected)?;
    bench.completes(&a.send_cq, 99, IBV_WC_WR_FLUSH_ERR)?;
    let state = a.qp.state().map_err(|errno| format!("ibv_query_qp failed with errno {errno}"))?;
    same("the state of the QP", &IBV_QPS_ERR, &state)?;
    Ok(())
}

fn wrong_rkey(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let write = |part: Part| Request::Write(part.address, !part.rkey, None);
    let read = |part: Part| Request::Read(part.address, !part.rkey);
    for request in [&write as &dyn Fn(Part) -> Request, &read] {
        let (a, b) = bench.pair(&Pair::default())?;
        let before = b.memory.read(0, 600);
        let wr = Wr::new(1, request(b.memory.part(0, 600)), vec![a.memory.part(0, 600)]);
        fails(bench, &a, &wr, IBV_WC_REM_ACCESS_ERR)?;
        same("the other side's memory", &before, &b.memory.read(0, 600))?;
    }
    Ok(())
}

fn no_right(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let write = |part: Part| Request::Write(part.address, part.rkey, None);
    let read = |part: Part| Request::Read(part.address, part.rkey);
    for request in [&write as &dyn Fn(Part) -> Request, &read] {
        let (a, b) = bench.pair(&Pair { access: IBV_ACCESS_LOCAL_WRITE, ..Pair::default() })?;
        a.memory.write(0, &pattern(1, 64));
        let wr = Wr::new(1, request(b.memory.part(0, 64)), vec![a.memory.part(0, 64)]);
        fails(bench, &a, &wr, IBV_WC_REM_ACCESS_ERR)?;
        same("the other side's memory", &vec![0; 64], &b.memory.read(0, 64))?;
    }
    Ok(())
}

fn beyond(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (a, b) = bench.pair(&Pair { memory: 8192, ..Pair::default() })?;
    let last = b.memory.part(8192 - 32, 32);
    let wr = Wr::new(1, Request::Write(last.address, last.rkey, None), vec![a.memory.part(0, 32)]);
    a.send(&wr)?;
    bench.completes(&a.send_cq, 1, OK)?;
    let wr = Wr::new(2, Request::Write(last.address, last.rkey, None), vec![a.memory.part(0, 33)]);
    fails(bench, &a, &wr, IBV_WC_REM_ACCESS_ERR)
}

fn wrong_lkey(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (a, b) = bench.pair(&Pair::default())?;
    b.receive(1, b.memory.part(0, 64))?;
    let part = Part { lkey: !a.memory.part(0, 8).lkey, ..a.memory.part(0, 8) };
    // Seen with rxe of Linux 6.1.
    let told = if bench.is_soft_roce() { IBV_WC_LOC_QP_OP_ERR } else { IBV_WC_LOC_PROT_ERR };
    fails(bench, &a, &Wr::new(1, Request::Send(None), vec![part]), told)?;
    bench.quiet(&b.recv_cq)?;
    Ok(())
}

fn too_long(bench: &mut Bench<'_>) -> Result<(), Problem> {
    for length in [65, 600] {
        let (a, b) = bench.pair(&Pair::default())?;
        b.receive(1, b.memory.part(0, 64))?;
        b.receive(2, b.memory.part(0, 64))?;
        let wr = Wr::new(1, Request::Send(None), vec![a.memory.part(0, length)]);
        // rxe takes bytes that find no room in the receive for a fault of the receive (Linux 6.1, rxe_resp.c,
        // send_data_in: only ENOSPC is a matter of length, and copy_data says EINVAL), and says so to both.
        let (sender, receiver) = if bench.is_soft_roce() {
            (IBV_WC_REM_OP_ERR, IBV_WC_LOC_QP_OP_ERR)
        } else {
            (IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR)
        };
        fails(bench, &a, &wr, sender)?;
        bench.completes(&b.recv_cq, 1, receiver)?;
        bench.completes(&b.recv_cq, 2, IBV_WC_WR_FLUSH_ERR)?;
        same("memory behind the receive", &vec![0; 64], &b.memory.read(64, 64))?;
    }
    Ok(())
}

fn waits(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (a, b) = bench.pair(&Pair::default())?;
    let bytes = pattern(1, 700);
    a.memory.write(0, &bytes);
    a.simple_send(1, 700)?;
    bench.quiet(&a.send_cq)?;
    bench.quiet(&b.recv_cq)?;
    b.receive(7, b.memory.part(0, 1000))?;
    bench.completes(&b.recv_cq, 7, OK)?;
    bench.completes(&a.send_cq, 1, OK)?;
    same("bytes", &bytes, &b.memory.read(0, 700))?;
    Ok(())
}

fn gives_up(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (a, b) = bench.pair(&Pair { rnr_retries: 1, ..Pair::default() })?;
    let wr = Wr::new(1, Request::Send(None), vec![a.memory.part(0, 8)]);
    fails(bench, &a, &wr, IBV_WC_RNR_RETRY_EXC_ERR)?;
    bench.quiet(&b.recv_cq)?;
    Ok(())
}

fn nobody(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (a, b) = bench.pair(&Pair { retries: 1, ..Pair::default() })?;
    drop(b);
    let wr = Wr::new(1, Request::Send(None), vec![a.memory.part(0, 8)]);
    fails(bench, &a, &wr, IBV_WC_RETRY_EXC_ERR)
}
