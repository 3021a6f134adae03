//! Queues: SRQs, completion channels, extended CQs, work requests without completions.

use std::rc::Rc;

use super::{Bench, Check, Pair, Problem, same};
use crate::script::{pattern, status};
use crate::verbs::{Channel, Connection, Cq, CqEx, Qp, QpForm, Request, Srq, SrqForm, SrqRequest, Wr};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "srq.receives_are_shared_in_order",
        source: "ibv_create_srq, ibv_post_srq_recv",
        check: shared,
    },
    Check { name: "srq.without_receives_senders_wait", source: "ibv_post_srq_recv", check: shared_rnr },
    Check {
        name: "queue.unsignalled_requests_complete_silently",
        source: "ibv_post_send",
        check: unsignalled,
    },
    Check { name: "queue.full_send_queue_refuses", source: "ibv_post_send", check: full },
    Check {
        name: "channel.an_armed_queue_tells_once",
        source: "ibv_req_notify_cq, ibv_get_cq_event",
        check: channel,
    },
    Check {
        name: "channel.solicited_only_waits_for_a_solicited_send",
        source: "ibv_req_notify_cq",
        check: solicited,
    },
    Check {
        name: "cq_ex.next_poll_invents_nothing",
        source: "ibv_create_cq_ex, ibv_next_poll",
        check: extended,
    },
];

const OK: u32 = status::SUCCESS;

fn srq(bench: &Bench<'_>) -> Result<Rc<Srq>, String> {
    let request = SrqRequest { receives: 31, segments: 1, form: SrqForm::Basic };
    Srq::new(&bench.pd, &request).map_err(|errno| format!("ibv_create_srq failed with errno {errno}"))
}

fn post(srq: &Srq, wr_id: u64, part: crate::verbs::Part) -> Result<(), String> {
    srq.post_recv(wr_id, part).map_err(|errno| format!("ibv_post_srq_recv failed with errno {errno}"))
}

fn shared(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let srq = srq(bench)?;
    let cq = bench.cq()?;
    let pair = Pair { srq: Some(Rc::clone(&srq)), recv_cq: Some(Rc::clone(&cq)), ..Pair::default() };
    let pairs = [bench.pair(&pair)?, bench.pair(&pair)?];
    let memory = bench.region(8192, pair.access)?;
    for wr_id in 0..8_u32 {
        post(&srq, wr_id.into(), memory.part(wr_id as usize * 1024, 1024))?;
    }
    for wr_id in 0..8_u32 {
        let (a, b) = &pairs[(wr_id % 2) as usize];
        let length = 100 * (wr_id + 1);
        let bytes = pattern(wr_id.into(), length);
        a.memory.write(0, &bytes);
        a.simple_send(wr_id.into(), bytes.len())?;
        let received = bench.completes(&cq, wr_id.into(), OK)?;
        same("qp_num", &b.qp.number(), &received.qp_num)?;
        same("byte_len", &length, &received.byte_len)?;
        same("bytes", &bytes, &memory.read(wr_id as usize * 1024, bytes.len()))?;
        bench.completes(&a.send_cq, wr_id.into(), OK)?;
    }
    Ok(())
}

fn shared_rnr(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let srq = srq(bench)?;
    let cq = bench.cq()?;
    let pair = Pair { srq: Some(Rc::clone(&srq)), recv_cq: Some(Rc::clone(&cq)), ..Pair::default() };
    let (a, b) = bench.pair(&pair)?;
    a.simple_send(1, 300)?;
    bench.quiet(&a.send_cq)?;
    bench.quiet(&cq)?;
    post(&srq, 7, b.memory.part(0, 1000))?;
    bench.completes(&cq, 7, OK)?;
    bench.completes(&a.send_cq, 1, OK)?;
    Ok(())
}

fn unsignalled(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (a, b) = bench.pair(&Pair::default())?;
    for wr_id in 0..6 {
        b.receive(wr_id, b.memory.part(0, 64))?;
        let send = Wr::new(wr_id, Request::Send(None), vec![a.memory.part(0, 64)]);
        a.send(&Wr { signalled: wr_id == 5, ..send })?;
    }
    for wr_id in 0..6 {
        bench.completes(&b.recv_cq, wr_id, OK)?;
    }
    bench.completes(&a.send_cq, 5, OK)?;
    bench.quiet(&a.send_cq)?;
    Ok(())
}

fn full(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (a, b) = bench.pair(&Pair { sends: 4, ..Pair::default() })?;
    let mut taken = 0;
    let send = |wr_id| a.qp.post_send(&Wr::new(wr_id, Request::Send(None), vec![a.memory.part(0, 8)]));
    let errno = loop {
        match send(taken) {
            Ok(()) if taken < 10_000 => taken += 1,
            Ok(()) => return Err(Problem::Failed("10,000 requests fit into a queue of 4".to_owned())),
            Err(errno) => break errno,
        }
    };
    same("errno is positive", &true, &(errno > 0))?;
    same("at least as many as asked for", &true, &(taken >= 4))?;
    // As many again once they are done: each receive lets one through.
    for wr_id in 0..taken {
        b.receive(wr_id, b.memory.part(0, 8))?;
        bench.completes(&b.recv_cq, wr_id, OK)?;
        bench.completes(&a.send_cq, wr_id, OK)?;
    }
    send(taken).map_err(|errno| format!("ibv_post_send failed with errno {errno} on an empty queue"))?;
    Ok(())
}

fn with_channel(bench: &Bench<'_>) -> Result<(Rc<Channel>, Rc<Cq>), String> {
    let channel = Channel::new(bench.device());
    let channel = channel.map_err(|errno| format!("ibv_create_comp_channel failed with errno {errno}"))?;
    let cq = Cq::new(bench.device(), 31, Some(&channel));
    Ok((channel, cq.map_err(|errno| format!("ibv_create_cq failed with errno {errno}"))?))
}

fn arm(cq: &Cq, solicited_only: bool) -> Result<(), String> {
    cq.arm(solicited_only).map_err(|errno| format!("ibv_req_notify_cq failed with errno {errno}"))
}

fn told(bench: &mut Bench<'_>, channel: &Channel, cq: &Cq, expected: bool) -> Result<(), String> {
    let free = bench.drive.is_free();
    if !free {
        bench.drive.settle();
    }
    let wait = if expected { 3000 } else { 20 };
    same("an event waits", &expected, &channel.is_readable(if free { wait } else { 0 }))?;
    if expected {
        let mine =
            cq.wait_for_event().map_err(|errno| format!("ibv_get_cq_event failed with errno {errno}"))?;
        same("the event is about the queue", &true, &mine)?;
    }
    Ok(())
}

fn channel(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (channel, cq) = with_channel(bench)?;
    let (a, b) = bench.pair(&Pair { recv_cq: Some(Rc::clone(&cq)), ..Pair::default() })?;
    for wr_id in 0..4 {
        b.receive(wr_id, b.memory.part(0, 64))?;
    }
    a.simple_send(0, 8)?;
    bench.completes(&cq, 0, OK)?;
    told(bench, &channel, &cq, false)?;
    arm(&cq, false)?;
    a.simple_send(1, 8)?;
    told(bench, &channel, &cq, true)?;
    // Once: it must be armed again.
    a.simple_send(2, 8)?;
    bench.completes(&cq, 1, OK)?;
    bench.completes(&cq, 2, OK)?;
    told(bench, &channel, &cq, false)?;
    arm(&cq, false)?;
    a.simple_send(3, 8)?;
    told(bench, &channel, &cq, true)?;
    bench.completes(&cq, 3, OK)?;
    Ok(())
}

fn solicited(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let (channel, cq) = with_channel(bench)?;
    let (a, b) = bench.pair(&Pair { recv_cq: Some(Rc::clone(&cq)), ..Pair::default() })?;
    b.receive(0, b.memory.part(0, 64))?;
    b.receive(1, b.memory.part(0, 64))?;
    arm(&cq, true)?;
    a.simple_send(0, 8)?;
    bench.completes(&cq, 0, OK)?;
    told(bench, &channel, &cq, false)?;
    let send = Wr::new(1, Request::Send(None), vec![a.memory.part(0, 8)]);
    a.send(&Wr { solicited: true, ..send })?;
    told(bench, &channel, &cq, true)?;
    bench.completes(&cq, 1, OK)?;
    Ok(())
}

fn extended(bench: &mut Bench<'_>) -> Result<(), Problem> {
    let cq = match CqEx::new(bench.device(), 31) {
        Ok(cq) => cq,
        Err(errno) => return Err(Problem::Skipped(format!("no extended CQ with TM info: errno {errno}"))),
    };
    let (send_cq, recv_cq) = (bench.cq()?, bench.cq()?);
    let failed = |(call, errno)| format!("{call} failed with errno {errno}");
    let form = QpForm { send_cq, recv_cq, srq: None, sends: 4, receives: 4, segments: 1, inline: 0 };
    let a = Qp::new(&bench.pd, form.clone()).map_err(failed)?;
    let b = Qp::on_extended(&bench.pd, form, &cq).map_err(failed)?;
    a.connect(&Connection::to(b.number())).map_err(failed)?;
    b.connect(&Connection::to(a.number())).map_err(failed)?;
    let memory = bench.region(256, super::IBV_ACCESS_LOCAL_WRITE)?;
    b.post_recv(5, &[memory.part(128, 64)]).map_err(|errno| format!("ibv_post_recv: errno {errno}"))?;
    let polled = |returned| format!("ibv_start_poll or ibv_next_poll returned {returned}");
    same("start_poll of an empty queue", &None, &cq.start_poll().map_err(polled)?)?;
    a.post_send(&Wr::new(1, Request::Send(None), vec![memory.part(0, 8)]))
        .map_err(|errno| format!("ibv_post_send: errno {errno}"))?;
    bench.completes(&a.form().send_cq, 1, OK)?;
    let first = cq.start_poll().map_err(polled)?;
    same("wr_id", &Some((5, OK, 8)), &first.map(|seen| (seen.wr_id, seen.status, seen.byte_len)))?;
    same("next_poll", &None, &cq.next_poll().map_err(polled)?)?;
    cq.end_poll();
    same("start_poll afterwards", &None, &cq.start_poll().map_err(polled)?)?;
    Ok(())
}
