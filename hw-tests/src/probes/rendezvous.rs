//! A9, A10, A12, A13 and A16: rendezvous, and the order in which data is told.

use super::asking::{Asking, matched, unexpected};
use super::{Answer, Probe, ask};
use crate::port::TmDevice;
use crate::script::{Advance, Completion, Message, Operation, Setup, flags, status};

pub(super) const PROBES: &[Probe] = &[
    Probe {
        point: "A9",
        question: "what does a rendezvous request on a QP that has a send queue do?",
        readings: &[
            ("software-rendezvous", "it is matched and handed back"),
            ("unexpected", "it is not matched, and counts as unexpected"),
            ("offloaded", "it is offloaded all the same"),
            ("other", "something else: see below"),
        ],
        ask: no_offload,
    },
    Probe {
        point: "A10",
        question: "which completions does a rendezvous longer than its buffer have?",
        readings: &[
            ("one", "one: CONSUMED_MSG_SW_RNDV"),
            ("then-expected", "two: CONSUMED_SW_RNDV, then EXPECTED"),
            ("then-canceled", "two: CONSUMED_SW_RNDV, then MSG_COMPLETION_CANCELED"),
            ("other", "something else: see below"),
        ],
        ask: hand_back,
    },
    Probe {
        point: "A12",
        question: "can the data of a later match be told before that of an earlier one?",
        readings: &[("any", "it can"), ("as-matched", "that was not seen")],
        ask: expected_order,
    },
    Probe {
        point: "A12-FIN",
        question: "is the sender of a rendezvous told (FIN) before or after its receiver (EXPECTED)?",
        readings: &[("fin-before", "the sender first"), ("fin-after", "the receiver first")],
        ask: fin_order,
    },
    Probe {
        point: "A13",
        question: "what fails when the device's own READ fails?",
        readings: &[
            ("qp-error", "its QP; other senders go on"),
            ("device-error", "the whole SRQ: other senders do not go on"),
        ],
        ask: read_failure,
    },
    Probe {
        point: "A16",
        question: "what does a matched rendezvous of no bytes do?",
        readings: &[
            ("completes", "it completes with 0 bytes"),
            ("handed-back", "it is handed back"),
            ("other", "something else: see below"),
        ],
        ask: empty,
    },
];

fn needs_offload(device: &mut dyn TmDevice) -> Option<Answer> {
    let offloads = device.abilities().rendezvous;
    (!offloads).then(|| Answer::not_asked("no rendezvous offload: IBV_TM_CAP_RC is clear"))
}

fn is_handed_back(completion: &Completion) -> bool {
    completion.status == status::TM_RENDEZVOUS_INCOMPLETE && completion.flags & flags::MATCH != 0
}

fn is_data(completion: &Completion) -> bool {
    let both = flags::MATCH | flags::DATA_VALID;
    completion.status == status::SUCCESS && completion.flags & both == flags::DATA_VALID
}

fn no_offload(device: &mut dyn TmDevice) -> Result<Answer, String> {
    let setup = Setup { senders: 0, ..Setup::default() };
    let mut told = None;
    let answer = ask(device, &setup, |it| {
        if let Err(why) = it.connect_with_send_queue(0) {
            told = Some(why);
            return Ok("other");
        }
        it.drain_posted(&[Operation::add(1, 1)])?;
        let seen = it.drain_after(&Message::rendezvous(1, 100))?;
        Ok(match seen.as_slice() {
            [first, ..] if is_handed_back(first) => "software-rendezvous",
            seen if unexpected(seen) == 1 => "unexpected",
            [_, second] if is_data(second) => "offloaded",
            _ => "other",
        })
    })?;
    Ok(told.map_or(answer, |why| Answer::not_asked(&why)))
}

fn hand_back(device: &mut dyn TmDevice) -> Result<Answer, String> {
    ask(device, &Setup::default(), |it| {
        it.drain_posted(&[Operation::add(1, 1)])?;
        let seen = it.drain_after(&Message::rendezvous(1, 5_000))?;
        let whole = |it: &Completion| it.flags & flags::DATA_VALID != 0;
        Ok(match seen.as_slice() {
            [one] if is_handed_back(one) && whole(one) => "one",
            [one, two] if is_handed_back(one) && !whole(one) && is_data(two) => "then-expected",
            [one, two] if is_handed_back(one) && !whole(one) && is_handed_back(two) => "then-canceled",
            _ => "other",
        })
    })
}

fn expected_order(device: &mut dyn TmDevice) -> Result<Answer, String> {
    let setup = Setup { senders: 2, ..Setup::default() };
    ask(device, &setup, |it| {
        let rounds = if it.is_stepping() { 1 } else { 500 };
        for _ in 0..rounds {
            if overtakes(it)? {
                return Ok("any");
            }
        }
        Ok("as-matched")
    })
}

/// Whether the data of a short message overtook that of a long one which was matched before.
fn overtakes(it: &mut Asking<'_>) -> Result<bool, String> {
    let (long, short) = (Message::eager(1, 2_000), Message::eager(2, 300).from(1));
    it.post(&[Operation::add(1, 1), Operation::add(2, 2)])?;
    it.drain_some(2)?;
    it.send(&long)?;
    if it.is_stepping() {
        it.advance(Advance::Packet(0))?;
    }
    it.send(&short)?;
    if it.is_stepping() {
        it.advance(Advance::Packet(1))?;
        it.advance(Advance::Packet(1))?;
    }
    let seen = it.drain_some(4)?;
    let place = |receive: u64, flag| seen.iter().position(|it| it.wr_id == receive && it.flags & flag != 0);
    Ok(place(1, flags::MATCH) < place(2, flags::MATCH)
        && place(2, flags::DATA_VALID) < place(1, flags::DATA_VALID))
}

fn fin_order(device: &mut dyn TmDevice) -> Result<Answer, String> {
    if let Some(answer) = needs_offload(device) {
        return Ok(answer);
    }
    ask(device, &Setup::default(), |it| {
        it.drain_posted(&[Operation::add(1, 1)])?;
        it.send(&Message::rendezvous(1, 600))?;
        let start = std::time::Instant::now();
        loop {
            let told = it.take()?.is_some_and(|completion| is_data(&completion));
            let finished = it.is_finished(0)?;
            match (finished, told) {
                (true, false) => return Ok("fin-before"),
                (_, true) => return Ok("fin-after"),
                (false, false) => {}
            }
            let moved = it.is_stepping() && it.advance(Advance::Any)?;
            if !moved && start.elapsed().as_secs() > 10 {
                return Err("neither came".to_owned());
            }
        }
    })
}

fn read_failure(device: &mut dyn TmDevice) -> Result<Answer, String> {
    if let Some(answer) = needs_offload(device) {
        return Ok(answer);
    }
    let setup = Setup { senders: 2, ..Setup::default() };
    ask(device, &setup, |it| {
        it.drain_posted(&[Operation::add(1, 1), Operation::add(2, 2)])?;
        it.send(&Message::rendezvous(1, 600).with_wrong_key())?;
        if it.drain().is_err() {
            return Ok("device-error");
        }
        let seen = it.send(&Message::eager(2, 8).from(1)).and_then(|()| it.drain());
        Ok(if seen.is_ok_and(|seen| matched(&seen, 2)) { "qp-error" } else { "device-error" })
    })
}

fn empty(device: &mut dyn TmDevice) -> Result<Answer, String> {
    ask(device, &Setup::default(), |it| {
        it.drain_posted(&[Operation::add(1, 1)])?;
        let seen = it.drain_after(&Message::rendezvous(1, 0))?;
        Ok(match seen.as_slice() {
            [one, ..] if is_handed_back(one) => "handed-back",
            [one] if one.flags & flags::DATA_VALID != 0 => "completes",
            [_, two] if is_data(two) && two.byte_len == 0 => "completes",
            _ => "other",
        })
    })
}
