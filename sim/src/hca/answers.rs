//! What comes back to a requester: acknowledgements, NAKs, read data; and its timers.

use super::device::Hca;
use super::layout::Syndrome;
use super::memory::HostMemory;
use super::packet::{MASK_24, Operation, Refusal, Response, psn_after, psn_distance};
use super::qp::{Kind, Origin, Qp, Timer, Work};
use super::regions::{Piece, Segment};
use super::requester::mtu_bytes;
use super::verbs::state;

impl<M: HostMemory> Hca<M> {
    pub(crate) fn handle_response(&mut self, qpn: u32, source: u32, response: Response) {
        let Some(qp) = self.qps.get_mut(&qpn) else { return };
        let live = matches!(qp.attributes.state, state::RTS | state::SQD);
        if !live || qp.kind != Kind::Reliable || qp.attributes.dest_qpn != source {
            return;
        }
        match response {
            Response::Acknowledge { psn } => acknowledge(qp, psn),
            Response::NotReady { psn, timer } => {
                handle_not_ready(qp, psn, timer, self.now);
                // A FIN that waits for a receive holds no entry.
                let waiting = find(qp, psn).and_then(|work| match &mut work.origin {
                    Origin::Fin(fin) => fin.expected.take(),
                    Origin::Queue { .. } | Origin::Rendezvous(_) => None,
                });
                if let Some(expected) = waiting {
                    self.complete_expected(expected);
                }
            }
            Response::OutOfSequence { psn } => {
                acknowledge(qp, psn_before(psn));
                retry(qp, psn);
            }
            Response::Refused { psn, reason } => {
                acknowledge(qp, psn_before(psn));
                let syndrome = match reason {
                    Refusal::InvalidRequest => Syndrome::RemoteInvalidRequest,
                    Refusal::Access => Syndrome::RemoteAccess,
                    Refusal::Operation => Syndrome::RemoteOperation,
                };
                if let Some(work) = find(qp, psn) {
                    work.error = Some(syndrome);
                }
            }
            Response::ReadData { psn, payload } => self.handle_read_data(qpn, psn, &payload),
            Response::AtomicResult { psn, value } => self.handle_atomic(qpn, psn, value),
            Response::Dropped { psn, attempt } => {
                if attempt == qp.requester.attempt && qp.requester.timer.is_none() && find(qp, psn).is_some()
                {
                    let timeout = qp.attributes.timeout;
                    // A timeout of 0 waits for ever.
                    let due = match timeout {
                        0 => u64::MAX,
                        timeout => self.now.saturating_add(ACK_TIMEOUT_UNIT << timeout.min(31)),
                    };
                    qp.requester.timer = Some(Timer { due, lost: true });
                }
            }
        }
        self.retire(qpn);
    }

    fn handle_read_data(&mut self, qpn: u32, psn: u32, payload: &[u8]) {
        let Some(qp) = self.qps.get_mut(&qpn) else { return };
        acknowledge(qp, psn_before(psn));
        let (pd, mtu) = (qp.pd, mtu_bytes(qp));
        let Some(work) = find(qp, psn).filter(|work| matches!(work.operation, Some(Operation::Read(_))))
        else {
            return;
        };
        if psn_after(work.first_psn, work.received) != psn || work.sent == 0 {
            return;
        }
        let offset = u64::from(work.received) * u64::from(mtu);
        let expected = u64::from(work.length).saturating_sub(offset).min(u64::from(mtu));
        if payload.len() as u64 != expected {
            work.error = Some(Syndrome::LocalLength);
            return;
        }
        let placed = self.regions.scatter(&mut self.memory, pd, segments(&work.pieces), offset, payload);
        if placed.is_err() {
            work.error = Some(Syndrome::LocalProtection);
            return;
        }
        work.received += 1;
        work.acknowledged = work.received >= work.psns;
        progress(qp);
    }

    fn handle_atomic(&mut self, qpn: u32, psn: u32, value: u64) {
        let Some(qp) = self.qps.get_mut(&qpn) else { return };
        acknowledge(qp, psn_before(psn));
        let pd = qp.pd;
        let Some(work) =
            find(qp, psn).filter(|work| work.is_answered() && work.sent > 0 && !work.acknowledged)
        else {
            return;
        };
        // The original value comes in the order of the host (IBV_ATOMIC_HCA on this machine).
        let bytes = value.to_ne_bytes();
        let placed = self.regions.scatter(&mut self.memory, pd, segments(&work.pieces), 0, &bytes);
        if placed.is_err() {
            work.error = Some(Syndrome::LocalProtection);
            return;
        }
        work.received = 1;
        work.acknowledged = true;
        progress(qp);
    }

    /// The timer runs out, whenever it is due.
    pub(crate) fn step_timer(&mut self, qpn: u32) -> bool {
        let Some(qp) = self.qps.get_mut(&qpn) else { return false };
        let Some(timer) = qp.requester.timer.take_if(|timer| timer.due < u64::MAX) else { return false };
        if timer.lost {
            let psn = qp.requester.works.front().map_or(0, |work| psn_after(work.first_psn, work.received));
            retry(qp, psn);
            self.retire(qpn);
        }
        true
    }
}

/// Everything up to `psn` has arrived.
fn acknowledge(qp: &mut Qp, psn: u32) {
    let mut progressed = false;
    for work in &mut qp.requester.works {
        if work.psns == 0 {
            continue;
        }
        // How many PSNs of it are acknowledged; none of it: nothing behind it is either.
        let count = psn_distance(psn, work.first_psn).saturating_add(1);
        if count <= 0 || work.is_outstanding() || !work.is_answered() && work.sent == 0 {
            break;
        }
        if work.is_answered() {
            continue;
        }
        let count = count.cast_unsigned().min(work.sent);
        progressed |= count > work.received;
        work.received = work.received.max(count);
        work.acknowledged = work.received >= work.psns;
    }
    if progressed {
        progress(qp);
    }
}

fn progress(qp: &mut Qp) {
    qp.requester.not_ready_left = qp.attributes.rnr_retry;
    qp.requester.retries_left = qp.attributes.retry_count;
}

fn handle_not_ready(qp: &mut Qp, psn: u32, timer: u8, now: u64) {
    if qp.requester.timer.is_some() {
        return;
    }
    acknowledge(qp, psn_before(psn));
    let endless = qp.attributes.rnr_retry == ENDLESS;
    let exhausted = !endless && qp.requester.not_ready_left == 0;
    let Some(work) = find(qp, psn) else { return };
    if exhausted {
        work.error = Some(Syndrome::ReceiverNotReady);
        return;
    }
    if !endless {
        qp.requester.not_ready_left -= 1;
    }
    rewind(qp, psn);
    let wait = RNR_MICROSECONDS.get(usize::from(timer)).copied().unwrap_or(655_360) * 1000;
    qp.requester.timer = Some(Timer { due: now.saturating_add(wait), lost: false });
}

/// Send again from there, or give up.
fn retry(qp: &mut Qp, psn: u32) {
    if qp.requester.retries_left == 0 {
        if let Some(front) = qp.requester.works.front_mut() {
            front.error = Some(Syndrome::TransportRetry);
        }
        return;
    }
    qp.requester.retries_left -= 1;
    let front = qp.requester.works.front().map_or(psn, |work| psn_after(work.first_psn, work.received));
    let from = if find(qp, psn).is_some() { psn } else { front };
    rewind(qp, from);
}

/// The work that `psn` belongs to.
fn find(qp: &mut Qp, psn: u32) -> Option<&mut Work> {
    qp.requester.works.iter_mut().find(|work| contains(work, psn))
}

fn contains(work: &Work, psn: u32) -> bool {
    let distance = psn_distance(psn, work.first_psn);
    u32::try_from(distance).is_ok_and(|distance| distance < work.psns)
}

/// Everything from `psn` on is to be sent again.
fn rewind(qp: &mut Qp, psn: u32) {
    qp.requester.attempt = qp.requester.attempt.wrapping_add(1);
    for work in &mut qp.requester.works {
        let distance = psn_distance(psn, work.first_psn);
        let done = u32::try_from(distance).unwrap_or(0);
        if work.psns == 0 || work.acknowledged || done >= work.psns {
            continue;
        }
        if work.is_answered() {
            (work.sent, work.received) = (0, 0);
        } else {
            work.sent = work.sent.min(done);
            work.received = work.received.min(work.sent);
        }
    }
}

fn segments(pieces: &[Piece]) -> impl Iterator<Item = Segment> {
    pieces.iter().filter_map(|piece| match piece {
        Piece::Memory(segment) => Some(*segment),
        Piece::Inline(_) => None,
    })
}

const fn psn_before(psn: u32) -> u32 {
    psn.wrapping_sub(1) & MASK_24
}

/// An RNR retry count of 7.
const ENDLESS: u8 = 7;
/// Nanoseconds of `4.096 µs << timeout`.
const ACK_TIMEOUT_UNIT: u64 = 4096;
/// Table 45 of the InfiniBand architecture: what an encoded RNR NAK timer means.
const RNR_MICROSECONDS: [u64; 32] = [
    655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120, 7680,
    10_240, 15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760, 327_680, 491_520,
];
