//! A5, A6, A8, A11, A14, A15 and A18: lengths, buffers, malformed messages, ports, immediate data.

use super::asking::{Asking, phase, unexpected, untagged};
use super::{Answer, Probe, ask};
use crate::port::TmDevice;
use crate::script::{Creation, Message, Operation, Setup, flags, opcode, status};

pub(super) const PROBES: &[Probe] = &[
    Probe {
        point: "A5",
        question: "what does an eager payload longer than its tagged buffer do?",
        readings: &[
            ("error", "an error completion; its QP is dead"),
            ("truncate", "what fits is written, and the completion is a success"),
            ("other", "something else: see below"),
        ],
        ask: too_long,
    },
    Probe {
        point: "A6",
        question: "does a TM-SRQ take messages with fewer than 33 receives posted?",
        readings: &[
            ("wait-at-start", "not before 33 were posted at once; later with fewer"),
            ("wait-always", "never with fewer than 33"),
            ("work", "it does"),
            ("never", "not even with 33"),
        ],
        ask: few_buffers,
    },
    Probe {
        point: "A8",
        question: "what becomes of messages that are too short for their opcode, or of unknown opcode?",
        readings: &[
            ("no-tag", "delivered as NO_TAG, not counted"),
            ("unexpected", "delivered as unexpected, and counted"),
            ("other", "some so, some otherwise, or not at all: see below"),
        ],
        ask: malformed,
    },
    Probe {
        point: "A11",
        question: "what is the byte count of CONSUMED?",
        readings: &[
            ("zero", "0"),
            ("payload", "the length of the payload"),
            ("whole", "the length of the message with its header"),
            ("arbitrary", "something else"),
        ],
        ask: consumed_length,
    },
    Probe {
        point: "A14",
        question: "do data QPs work on another port than 1, where the command QP is?",
        readings: &[("works", "they do"), ("refused", "they do not")],
        ask: other_port,
    },
    Probe {
        point: "A15",
        question: "can a TM-SRQ be created on RoCE?",
        readings: &[("refused", "it cannot"), ("works", "it can")],
        ask: roce,
    },
    Probe {
        point: "A18",
        question: "which completion carries the immediate data of a matched message of several packets?",
        readings: &[
            ("expected", "EXPECTED, with the data"),
            ("consumed", "CONSUMED, with the match"),
            ("both", "both"),
            ("neither", "neither: libmlx5 shows none on CONSUMED, since its CQE is a NO_PACKET"),
        ],
        ask: immediate_on,
    },
];

fn too_long(device: &mut dyn TmDevice) -> Result<Answer, String> {
    let setup = Setup { senders: 2, ..Setup::default() };
    ask(device, &setup, |it| {
        it.drain_posted(&[Operation::add(1, 1).of_length(64)])?;
        let message = Message::eager(1, 128);
        let seen = it.drain_after(&message)?;
        it.sent(0)?;
        let is_written = it.buffer(1, 64) == message.payload()[..64];
        let is_error = |status| !matches!(status, status::SUCCESS | status::TM_RENDEZVOUS_INCOMPLETE);
        Ok(match seen.as_slice() {
            [first, ..] if is_error(first.status) => "error",
            [first] if first.status == status::SUCCESS && first.flags & flags::MATCH != 0 && is_written => {
                "truncate"
            }
            _ => "other",
        })
    })
}

fn few_buffers(device: &mut dyn TmDevice) -> Result<Answer, String> {
    let setup = Setup { posted: 10, ..Setup::default() };
    ask(device, &setup, |it| {
        let message = Message::eager(9, 8);
        if unexpected(&it.drain_after(&message)?) == 1 {
            return Ok("work");
        }
        it.receives(23)?;
        if unexpected(&drain_patiently(it)?) != 1 {
            return Ok("never");
        }
        let seen = it.drain_after(&message)?;
        Ok(if unexpected(&seen) == 1 { "wait-at-start" } else { "wait-always" })
    })
}

/// A sender that was told to wait tries again only after a while.
fn drain_patiently(it: &mut Asking<'_>) -> Result<Vec<crate::script::Completion>, String> {
    for _ in 0..10 {
        let seen = it.drain()?;
        if !seen.is_empty() {
            return Ok(seen);
        }
    }
    Ok(Vec::new())
}

fn malformed(device: &mut dyn TmDevice) -> Result<Answer, String> {
    let bad = [vec![3], vec![3; 15], vec![1; 16], vec![1; 31], vec![4; 40], vec![255; 40]];
    ask(device, &Setup::default(), |it| {
        it.drain_posted(&[Operation::add(1, 0).masked(0)])?;
        let (mut plain, mut counted) = (0, 0);
        for bytes in &bad {
            let seen = it.drain_after(&Message::raw(bytes.clone()))?;
            plain += untagged(&seen);
            counted += unexpected(&seen);
        }
        let hardware = phase(&it.drain_posted(&[Operation::sync(0)])?);
        Ok(match (plain, counted, hardware.map(usize::from)) {
            (plain, 0, Some(0)) if plain == bad.len() => "no-tag",
            (0, counted, Some(count)) if counted == bad.len() && count == bad.len() => "unexpected",
            _ => "other",
        })
    })
}

fn consumed_length(device: &mut dyn TmDevice) -> Result<Answer, String> {
    ask(device, &Setup::default(), |it| {
        it.drain_posted(&[Operation::add(1, 1)])?;
        let seen = it.drain_after(&Message::eager(1, 600))?;
        let consumed = seen.iter().find(|it| it.flags & (flags::MATCH | flags::DATA_VALID) == flags::MATCH);
        Ok(match consumed.ok_or("no completion with MATCH alone")?.byte_len {
            0 => "zero",
            600 => "payload",
            616 => "whole",
            _ => "arbitrary",
        })
    })
}

fn other_port(device: &mut dyn TmDevice) -> Result<Answer, String> {
    if device.abilities().port == 1 {
        return Ok(Answer::not_asked("the QPs are on port 1: ask with --port 2, on a card that has one"));
    }
    let answer = ask(device, &Setup::default(), |it| {
        let seen = it.drain_after(&Message::eager(9, 8))?;
        Ok(if unexpected(&seen) == 1 { "works" } else { "refused" })
    });
    Ok(answer.unwrap_or_else(|what| Answer { reading: Ok("refused"), seen: vec![what] }))
}

fn roce(device: &mut dyn TmDevice) -> Result<Answer, String> {
    if !device.abilities().roce {
        return Ok(Answer::not_asked("the port is not RoCE"));
    }
    let mut port = device.open().map_err(|error| error.0)?;
    let created = port.create(&Creation::default()).map_err(|error| error.0)?;
    port.tear_down().map_err(|error| error.0)?;
    let seen = vec![format!("ibv_create_srq_ex: {created:?}")];
    Ok(Answer { reading: Ok(if created.is_ok() { "works" } else { "refused" }), seen })
}

fn immediate_on(device: &mut dyn TmDevice) -> Result<Answer, String> {
    ask(device, &Setup::default(), |it| {
        it.drain_posted(&[Operation::add(1, 1)])?;
        let seen = it.drain_after(&Message::eager(1, 600).with_immediate(0x0102_0304))?;
        let carried = |flag| {
            let is_it = |it: &&crate::script::Completion| {
                it.opcode == opcode::TM_RECV && it.flags & (flags::MATCH | flags::DATA_VALID) == flag
            };
            seen.iter().filter(is_it).any(|it| it.immediate == Some(0x0102_0304))
        };
        Ok(match (carried(flags::MATCH), carried(flags::DATA_VALID)) {
            (false, true) => "expected",
            (true, false) => "consumed",
            (true, true) => "both",
            (false, false) => "neither",
        })
    })
}
