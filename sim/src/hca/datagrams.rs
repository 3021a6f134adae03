//! The receiving half of a UD QP.

use super::device::Hca;
use super::layout::{Cqe, Syndrome, cqe_opcode};
use super::memory::HostMemory;
use super::packet::{Datagram, MASK_24};
use super::qp::Kind;
use super::regions::ScatterFault;
use super::verbs::state;

impl<M: HostMemory> Hca<M> {
    /// A datagram that nobody wants, or that has the wrong Q_Key, is lost without a word.
    pub(crate) fn handle_datagram(&mut self, qpn: u32, source: u32, datagram: &Datagram) {
        let Some(qp) = self.qps.get(&qpn) else { return };
        let live = matches!(qp.attributes.state, state::RTR | state::RTS | state::SQD | state::SQE);
        if !live || qp.kind != Kind::Datagram || qp.attributes.qkey != datagram.qkey {
            return;
        }
        let pd = self.receive_domain(qp);
        let Some(taken) = self.take_receive(qpn) else { return };
        // The first 40 bytes are the GRH's, whether there is one or not (ibv_post_recv).
        let segments = || taken.segments.iter().copied();
        let grh = datagram.grh.as_ref().map_or(&[][..], |grh| grh);
        let placed = self
            .regions
            .scatter(&mut self.memory, pd, segments(), 0, grh)
            .and_then(|()| self.regions.scatter(&mut self.memory, pd, segments(), GRH, &datagram.payload));
        if let Err(fault) = placed {
            let syndrome = match fault {
                ScatterFault::TooLong => Syndrome::LocalLength,
                ScatterFault::Key(_) => Syndrome::LocalProtection,
            };
            self.complete_receive_error(qpn, &taken, syndrome);
            return self.fail_qp(qpn);
        }
        let opcode = if datagram.immediate.is_some() {
            cqe_opcode::RECEIVED_SEND_IMMEDIATE
        } else {
            cqe_opcode::RECEIVED_SEND
        };
        let flags = u32::from(datagram.grh.is_some()) << 28 | u32::from(datagram.sl & 15) << 24;
        let length = u32::try_from(datagram.payload.len()).unwrap_or(u32::MAX).saturating_add(40);
        let cqe = Cqe {
            slid: datagram.slid.into(),
            flags_rqpn: (flags | source & MASK_24).into(),
            immediate: datagram.immediate.unwrap_or_default(),
            byte_count: length.into(),
            ..Cqe::new(opcode)
        };
        self.write_receive(qpn, cqe, &taken, datagram.solicited);
    }
}

const GRH: u64 = 40;
