//! The way of a packet: to a flow of this process, or to another process, or nowhere.

use super::config::LinkLayer;
use super::device::Hca;
use super::memory::HostMemory;
use super::packet::{Body, Datagram, Packet, Request, Response, process_of};
use super::qp::Kind;
use super::wqe::Address;

impl<M: HostMemory> Hca<M> {
    /// The oldest packet for another process.
    pub fn poll_packet(&mut self) -> Option<Packet> {
        self.outgoing.pop_front()
    }

    /// A packet from another process. Packets of one pair of QPs keep their order.
    pub fn handle_packet(&mut self, packet: Packet) {
        if packet.process() == self.config.process {
            self.flows.entry((packet.source, packet.destination)).or_default().push_back(packet);
        }
    }

    /// A packet of [`Self::poll_packet`] whose process is not there.
    pub fn handle_undeliverable(&mut self, packet: Packet) {
        if let Body::Request(Request { psn, attempt, .. }) = packet.body {
            let body = Body::Response(Response::Dropped { psn, attempt });
            let Packet { source, destination, .. } = packet;
            self.handle_packet(Packet { source: destination, destination: source, body });
        }
    }

    /// A process is gone: nothing that was sent to it will be answered.
    pub fn handle_process_lost(&mut self, process: u8) {
        let is_lost = |qpn: u32| process_of(qpn) == process;
        for packet in std::mem::take(&mut self.outgoing) {
            if is_lost(packet.destination) {
                self.handle_undeliverable(packet);
            } else {
                self.outgoing.push_back(packet);
            }
        }
        let waiting: Vec<_> = self
            .qps
            .iter()
            .filter(|(_, qp)| qp.kind == Kind::Reliable && is_lost(qp.attributes.dest_qpn))
            .filter_map(|(&qpn, qp)| {
                let work = qp.requester.works.front().filter(|work| work.sent > 0)?;
                Some((qpn, qp.attributes.dest_qpn, work.first_psn, qp.requester.attempt))
            })
            .collect();
        for (destination, source, psn, attempt) in waiting {
            let body = Body::Response(Response::Dropped { psn, attempt });
            self.handle_packet(Packet { source, destination, body });
        }
    }

    /// A packet to the QP at the other end.
    pub(crate) fn send(&mut self, qpn: u32, body: Body) {
        let Some(qp) = self.qps.get(&qpn) else { return };
        let attributes = &qp.attributes;
        let packet = Packet { source: qpn, destination: attributes.dest_qpn, body };
        let path = &attributes.path;
        let leads_here = match self.config.link_layer {
            LinkLayer::InfiniBand => path.dlid == self.config.lid,
            LinkLayer::Ethernet => !path.is_global || path.dgid == self.config.gid,
        };
        if leads_here { self.dispatch(packet) } else { self.handle_undeliverable(packet) }
    }

    /// A datagram; one for an address that does not exist is lost without a word.
    pub(crate) fn send_datagram(&mut self, qpn: u32, address: &Address, datagram: Datagram) {
        let leads_here = match self.config.link_layer {
            LinkLayer::InfiniBand => address.lid == self.config.lid,
            LinkLayer::Ethernet => {
                address.grh(LinkLayer::Ethernet).is_some_and(|grh| grh.gid == self.config.gid)
            }
        };
        if leads_here {
            self.dispatch(Packet { source: qpn, destination: address.qpn, body: Body::Datagram(datagram) });
        }
    }

    pub(crate) fn dispatch(&mut self, packet: Packet) {
        if packet.process() == self.config.process {
            self.handle_packet(packet);
        } else {
            self.outgoing.push_back(packet);
        }
    }

    /// Whether more can be sent now. A requester is bounded by its window as well.
    pub(crate) fn has_room(&self, from: u32, to: u32) -> bool {
        if process_of(to) == self.config.process {
            self.flows.get(&(from, to)).is_none_or(|flow| flow.len() < FLOW_MAX)
        } else {
            self.outgoing.len() < OUTGOING_MAX
        }
    }
}

/// Packets between two QPs.
const FLOW_MAX: usize = 256;
const OUTGOING_MAX: usize = 4096;
