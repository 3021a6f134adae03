//! List operations: TAG_MATCHING work requests of a command QP (TM-CONTRACT 7 and 8).

use tagmatch::device::soft::list::{Append, Reporter};
use tagmatch::device::soft::switches::CountOrder;
use tagmatch::seam::Buffer;

use super::device::Hca;
use super::layout::{Cqe, Syndrome, cqe_opcode};
use super::memory::HostMemory;
use super::tm::app_op;
use super::wqe::{TagCommand, TagOperation};

impl<M: HostMemory> Hca<M> {
    /// Executes one. False: its count has been applied, and the rest is another step (A3 not atomic).
    ///
    /// Which QP is a command QP is known by nothing else than this work request: its SRQ is the one meant.
    pub(crate) fn execute_tag_command(&mut self, qpn: u32, command: &TagCommand) -> Result<bool, Syndrome> {
        let in_two = self.config.switches.count_order == CountOrder::BeforeChangeNotAtomic
            && command.operation != TagOperation::Noop
            && command.count.is_some();
        let Some(qp) = self.qps.get_mut(&qpn) else { return Ok(true) };
        let srqn = qp.srq.ok_or(Syndrome::LocalQpOperation)?;
        let applied = std::mem::replace(&mut qp.requester.count_applied, in_two);
        let srq = self.srqs.get_mut(&srqn).filter(|srq| !srq.failed).ok_or(Syndrome::LocalQpOperation)?;
        let tm = srq.tm.as_mut().ok_or(Syndrome::LocalQpOperation)?;
        if in_two && !applied {
            let reporter = match command.operation {
                TagOperation::Append { .. } => Reporter::Append,
                TagOperation::Remove { .. } | TagOperation::Noop => Reporter::Other,
            };
            tm.list.report(reporter, command.count);
            return Ok(false);
        }
        qp.requester.count_applied = false;
        let count = command.count.filter(|_| !in_two);
        let mut success = true;
        let app_op = match command.operation {
            TagOperation::Append { next_index, tag, mask, buffer } => {
                let buffer =
                    Buffer { address: buffer.address, length: buffer.length, key: buffer.key, segments: 1 };
                if tm.list.append(Append { next_index, tag, mask, buffer }, count).is_err() {
                    self.fail_srq(srqn);
                    return Err(Syndrome::LocalQpOperation);
                }
                app_op::APPEND
            }
            TagOperation::Remove { index } => {
                success = tm.list.remove(index, count);
                app_op::REMOVE
            }
            TagOperation::Noop => {
                tm.list.noop(count);
                app_op::NOOP
            }
        };
        let phase = tm.list.hardware_phase();
        if command.signalled {
            let cqe = Cqe {
                head: operation_head(success, phase),
                ..self.tag_cqe(srqn, qpn, cqe_opcode::NO_PACKET, app_op)
            };
            self.complete_tag(srqn, cqe, false);
        }
        Ok(true)
    }
}

/// `mlx5_tm_cqe`: `success`, `hw_phase_cnt`.
fn operation_head(success: bool, phase: u16) -> [u8; 16] {
    let mut head = [0; 16];
    let [high, low] = phase.to_be_bytes();
    let start = [if success { SUCCESS } else { 0 }, 0, 0, 0, high, low];
    for (to, from) in head.iter_mut().zip(start) {
        *to = from;
    }
    head
}

/// The first byte of `MLX5_TMC_SUCCESS`.
const SUCCESS: u8 = 0x80;
