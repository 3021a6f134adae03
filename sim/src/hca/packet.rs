//! What passes between QPs: plain data, and its bytes between processes.

/// A packet. Only devices look inside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// QP number it comes from.
    pub source: u32,
    /// QP number it goes to.
    pub destination: u32,
}

impl Packet {
    /// The process that it goes to ([`super::HcaConfig::process`]).
    #[must_use]
    pub const fn process(&self) -> u8 {
        process_of(self.destination)
    }

    /// As bytes, without a length in front.
    pub fn encode(&self, _into: &mut Vec<u8>) {
        todo!()
    }

    /// From the bytes of one packet.
    ///
    /// # Errors
    /// The bytes are not a packet.
    pub fn decode(_bytes: &[u8]) -> Result<Self, PacketError> {
        todo!()
    }
}

/// Bytes that are no packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a packet: {0}")]
pub struct PacketError(pub &'static str);

pub(crate) const fn process_of(qpn: u32) -> u8 {
    qpn.to_be_bytes()[1]
}
