//! A1 to A4, A7, A17 and A19: the list and its counts.

use super::asking::{matched, phase, unexpected};
use super::{Answer, Probe, ask, spin};
use crate::port::TmDevice;
use crate::script::{Advance, Count, Message, Operation, Setup, opcode, status};
use std::time::Duration;

pub(super) const PROBES: &[Probe] = &[
    Probe {
        point: "A1",
        question: "do entries appended while out of sync become active on the next equal report?",
        readings: &[
            ("on-equal-report", "they become active"),
            ("only-at-append", "they stay inactive, and must be added again: ORDER BREAKS"),
        ],
        ask: activation,
    },
    Probe {
        point: "A2",
        question: "are active entries still matched while out of sync?",
        readings: &[("active-match", "they are"), ("nothing-matches", "they are not")],
        ask: out_of_sync,
    },
    Probe {
        point: "A3",
        question: "is a command that carries a count one piece, or can a message come between count and change?",
        readings: &[
            ("in-one-piece", "no message came between"),
            ("not-atomic", "a message came between: a DEL that carries the count lost its entry"),
        ],
        ask: count_order,
    },
    Probe {
        point: "A4",
        question: "does an ADD with an equal count activate earlier entries before its own?",
        readings: &[
            ("all", "all, in list order"),
            ("itself", "only its own: ORDER BREAKS unless a SYNC comes first"),
            ("none", "none at all"),
        ],
        ask: append_activates,
    },
    Probe {
        point: "A7",
        question: "does an entry match whose tag has bits outside its mask?",
        readings: &[("never-matches", "never"), ("masked", "the device masks it")],
        ask: unmasked,
    },
    Probe {
        point: "A17",
        question: "may two entries have the same buffer?",
        readings: &[("allowed", "they may"), ("refused", "the second entry, or the device, fails")],
        ask: shared_buffer,
    },
    Probe {
        point: "A19",
        question: "is an unexpected message of several packets counted at its first packet or at its last?",
        readings: &[
            ("first-packet", "at the first: no newer receive overtook"),
            ("last-packet", "at the last: a newer receive overtook: ORDER BREAKS"),
        ],
        ask: count_at,
    },
];

fn activation(device: &mut dyn TmDevice) -> Result<Answer, String> {
    ask(device, &Setup::default(), |it| {
        it.drain_after(&Message::eager(9, 8))?;
        it.drain_posted(&[Operation::add(1, 1).counting(0)])?;
        it.drain_posted(&[Operation::sync(1)])?;
        let seen = it.drain_after(&Message::eager(1, 8))?;
        Ok(if matched(&seen, 1) { "on-equal-report" } else { "only-at-append" })
    })
}

fn out_of_sync(device: &mut dyn TmDevice) -> Result<Answer, String> {
    ask(device, &Setup::default(), |it| {
        it.drain_posted(&[Operation::add(1, 1)])?;
        it.drain_after(&Message::eager(9, 8))?;
        let seen = it.drain_after(&Message::eager(1, 8))?;
        Ok(if matched(&seen, 1) { "active-match" } else { "nothing-matches" })
    })
}

/// TM-CONTRACT 11.4: a message came before its ADD, and the DEL carries the count that would wake the entry. A second
/// message of the same tag tries to come in between.
fn count_order(device: &mut dyn TmDevice) -> Result<Answer, String> {
    let setup = Setup { senders: 2, ..Setup::default() };
    ask(device, &setup, |it| {
        let rounds = if it.is_stepping() { 1 } else { RACES };
        for round in 0..rounds {
            it.send(&Message::eager(1, 8))?;
            it.drain_some(1)?;
            it.post(&[Operation::add(1, 1).counting(0)])?;
            it.drain_some(1)?;
            let other = Message::eager(1, 8).from(1);
            let del = Operation::del(1).with(Count::Polled);
            if it.is_stepping() {
                it.post(&[del])?;
                it.advance(Advance::Command)?;
                it.send(&other)?;
                it.advance(Advance::Packet(1))?;
            } else {
                it.send(&other)?;
                spin(Duration::from_nanos(u64::from(round % 100) * 50));
                it.post(&[del])?;
            }
            let seen = it.drain_some(2)?;
            if seen.iter().any(|it| it.opcode == opcode::DEL && it.status == status::TM_ERROR) {
                return Ok("not-atomic");
            }
            it.receives(2)?;
            it.post(&[Operation::sync(0).with(Count::Polled)])?;
            it.drain_some(1)?;
        }
        Ok("in-one-piece")
    })
}

fn append_activates(device: &mut dyn TmDevice) -> Result<Answer, String> {
    ask(device, &Setup::default(), |it| {
        it.drain_after(&Message::eager(9, 8))?;
        it.drain_posted(&[Operation::add(1, 1).counting(0), Operation::add(2, 1).counting(0)])?;
        it.drain_posted(&[Operation::add(3, 1).counting(1)])?;
        let seen = it.drain_after(&Message::eager(1, 8))?;
        Ok(match (matched(&seen, 1), matched(&seen, 3)) {
            (true, _) => "all",
            (false, true) => "itself",
            (false, false) => "none",
        })
    })
}

fn unmasked(device: &mut dyn TmDevice) -> Result<Answer, String> {
    ask(device, &Setup::default(), |it| {
        it.drain_posted(&[Operation::add(1, 0x11).masked(0xf0)])?;
        let seen = it.drain_after(&Message::eager(0x10, 8))?;
        Ok(if matched(&seen, 1) { "masked" } else { "never-matches" })
    })
}

fn shared_buffer(device: &mut dyn TmDevice) -> Result<Answer, String> {
    ask(device, &Setup::default(), |it| {
        let adds = [Operation::add(1, 1), Operation::add(2, 2).into_buffer(1)];
        let refused = it.post(&adds)?;
        let Ok(added) = it.drain() else { return Ok("refused") };
        if refused.is_some() || added.len() < 2 {
            return Ok("refused");
        }
        let one = it.drain_after(&Message::eager(1, 8))?;
        let two = it.drain_after(&Message::eager(2, 8))?;
        Ok(if matched(&one, 1) && matched(&two, 2) { "allowed" } else { "refused" })
    })
}

/// A long message without a receive is coming in; a receive for it is added with the count before it; a short message
/// of another sender follows. If that one is matched, the receive has overtaken the long one.
fn count_at(device: &mut dyn TmDevice) -> Result<Answer, String> {
    let setup = Setup { senders: 2, ..Setup::default() };
    ask(device, &setup, |it| {
        let stepping = it.is_stepping();
        let length = if stepping { 600 } else { LONG };
        let (long, short) = (Message::eager(1, length), Message::eager(1, 8).from(1));
        let rounds = if stepping { 1 } else { RACES };
        for round in 0..rounds {
            it.send(&long)?;
            if stepping {
                it.advance(Advance::Packet(0))?;
            } else {
                spin(Duration::from_nanos(u64::from(round % 200) * 100));
            }
            it.post(&[Operation::add(1, 1).of_length(LONG).with(Count::Polled)])?;
            if stepping {
                it.advance(Advance::Command)?;
            }
            it.send(&short)?;
            if stepping {
                it.advance(Advance::Packet(1))?;
            }
            // The ADD, the short message, and the long one in one completion or in two.
            let mut seen = it.drain_some(3)?;
            if seen.iter().any(|it| it.sender == Some(0) && it.flags & crate::script::flags::MATCH != 0) {
                seen.extend(it.drain_some(4 - seen.len().min(4))?);
            }
            let (first, second) = (sender_matched(&seen, 0), sender_matched(&seen, 1));
            if second && !first {
                return Ok("last-packet");
            }
            let used = u32::try_from(unexpected(&seen)).unwrap_or_default();
            it.receives(used)?;
            if !first && !second {
                it.post(&[Operation::del(1).with(Count::Polled)])?;
            } else {
                it.post(&[Operation::sync(0).with(Count::Polled)])?;
            }
            it.drain_some(1)?;
            debug_assert!(phase(&seen).is_some(), "an ADD tells the count");
        }
        Ok("first-packet")
    })
}

fn sender_matched(seen: &[crate::script::Completion], sender: u8) -> bool {
    seen.iter().any(|it| it.flags & crate::script::flags::MATCH != 0 && it.sender == Some(sender))
}

/// Attempts to hit a window that cannot be seen.
const RACES: u32 = 2_000;
/// A message that takes a while at 256 bytes a packet, and fits into a tagged buffer.
const LONG: u32 = 4_000;
