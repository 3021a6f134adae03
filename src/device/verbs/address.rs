//! What two sides exchange before they can be connected: the way to a pair of queue pairs, as a value and as bytes.
//!
//! The bytes come from a peer and are hostile until decoded. Not here: how they are carried.

use super::context::LinkLayer;

/// Where one side of a connection can be reached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConnectInfo {
    /// The kind of network.
    pub link: LinkLayer,
    /// The port's LID; 0 on Ethernet.
    pub lid: u16,
    /// The port's GID, where addresses need one.
    pub gid: Option<[u8; 16]>,
    /// `enum ibv_mtu` of the port, 1 to 5.
    pub mtu: u8,
    /// READs that this side answers at a time, on each of its queue pairs.
    pub reads: u8,
    /// The queue pair that receives, and where its packet numbers start.
    pub receive: Side,
    /// The queue pair that sends, and where its packet numbers start.
    pub send: Side,
    /// The longest payload that may be sent to this side eagerly.
    pub eager_limit: u32,
    /// Whether a device matches there: messages with a tag must not be segmented.
    pub is_matching: bool,
}

/// A queue pair of one side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Side {
    /// 24 bits; not 0.
    pub number: u32,
    /// 24 bits.
    pub sequence: u32,
}

/// Bytes that are no address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Another length.
    #[error("an address has {expected} bytes, and these are {length}")]
    Length {
        /// Bytes of an address.
        expected: usize,
        /// Bytes there were.
        length: usize,
    },
    /// Not an address at all, or of another version.
    #[error("an address begins with \"TMvb\" and version 1")]
    Magic,
    /// A field with a value that it cannot have.
    #[error("{field} of the address cannot be {value}")]
    Value {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
}

impl ConnectInfo {
    /// Bytes of an address: they fit into what libfabric's users have for a name.
    pub const LENGTH: usize = 48;

    /// As bytes, in network order.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        let mut put = |offset: usize, field: &[u8]| {
            for (place, byte) in bytes.iter_mut().skip(offset).zip(field) {
                *place = *byte;
            }
        };
        let flags =
            (if self.gid.is_some() { HAS_GID } else { 0 }) | if self.is_matching { MATCHES } else { 0 };
        put(0, &MAGIC);
        put(5, &[link_code(self.link), flags, self.mtu]);
        put(8, &self.lid.to_be_bytes());
        put(10, &[self.reads, 0]);
        put(12, &self.receive.number.to_be_bytes());
        put(16, &self.receive.sequence.to_be_bytes());
        put(20, &self.send.number.to_be_bytes());
        put(24, &self.send.sequence.to_be_bytes());
        put(28, &self.eager_limit.to_be_bytes());
        put(32, &self.gid.unwrap_or_default());
        bytes
    }

    /// From bytes of a peer's.
    ///
    /// # Errors
    /// They are no address.
    pub fn decode(bytes: &[u8]) -> Result<Self, AddressError> {
        let wrong_length = AddressError::Length { expected: Self::LENGTH, length: bytes.len() };
        let bytes: &[u8; Self::LENGTH] = bytes.try_into().map_err(|_| wrong_length)?;
        let [m0, m1, m2, m3, version, link, flags, mtu, l0, l1, reads, zero, rest @ ..] = *bytes;
        if [m0, m1, m2, m3, version] != MAGIC {
            return Err(AddressError::Magic);
        }
        let word = |offset: usize| {
            let mut word = [0; 4];
            word.iter_mut().zip(rest.iter().skip(offset - 12)).for_each(|(to, from)| *to = *from);
            u32::from_be_bytes(word)
        };
        let value = |field, value: u32| AddressError::Value { field, value };
        let link = match link {
            1 => LinkLayer::InfiniBand,
            2 => LinkLayer::Ethernet,
            code => return Err(value("the link layer", code.into())),
        };
        if flags & !(HAS_GID | MATCHES) != 0 {
            return Err(value("a flag", flags.into()));
        }
        if !(1..=5).contains(&mtu) {
            return Err(value("the MTU", mtu.into()));
        }
        if zero != 0 {
            return Err(value("a reserved byte", zero.into()));
        }
        let mut gid = [0; 16];
        gid.iter_mut().zip(rest.iter().skip(20)).for_each(|(to, from)| *to = *from);
        let has_gid = flags & HAS_GID != 0;
        if !has_gid && gid != [0; 16] {
            return Err(value("the GID, of which there is none,", 1));
        }
        let lid = u16::from_be_bytes([l0, l1]);
        if !has_gid && (link == LinkLayer::Ethernet || lid == 0) {
            return Err(value("the LID, without a GID,", lid.into()));
        }
        let side = |offset, field| {
            let (number, sequence) = (word(offset), word(offset + 4));
            if number == 0 || number > MASK_24 {
                return Err(value(field, number));
            }
            if sequence > MASK_24 {
                return Err(value("a packet number", sequence));
            }
            Ok(Side { number, sequence })
        };
        Ok(Self {
            link,
            lid,
            gid: has_gid.then_some(gid),
            mtu,
            reads,
            receive: side(12, "the number of the receiving QP")?,
            send: side(20, "the number of the sending QP")?,
            eager_limit: word(28),
            is_matching: flags & MATCHES != 0,
        })
    }
}

const fn link_code(link: LinkLayer) -> u8 {
    match link {
        LinkLayer::InfiniBand => 1,
        LinkLayer::Ethernet => 2,
    }
}

/// Numbers of QPs and packets have 24 bits.
pub(super) const MASK_24: u32 = 0x00FF_FFFF;
const MAGIC: [u8; 5] = *b"TMvb\x01";
const HAS_GID: u8 = 1;
const MATCHES: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INFO: ConnectInfo = ConnectInfo {
        link: LinkLayer::InfiniBand,
        lid: 0x0102,
        gid: None,
        mtu: 5,
        reads: 16,
        receive: Side { number: 0x0011_2233, sequence: 0x0044_5566 },
        send: Side { number: 0x0001_0203, sequence: 0 },
        eager_limit: 8192,
        is_matching: true,
    };

    #[test]
    fn an_address_has_these_bytes() {
        let bytes = INFO.to_bytes();
        let start = b"TMvb\x01\x01\x02\x05\x01\x02\x10\x00\x00\x11\x22\x33\x00\x44\x55\x66\x00\x01\x02\x03";
        assert_eq!(&bytes[..24], start);
        assert_eq!(&bytes[24..32], b"\0\0\0\0\0\0\x20\0");
        assert_eq!(bytes[32..], [0; 16]);
        assert_eq!(ConnectInfo::decode(&bytes), Ok(INFO));
    }

    #[test]
    fn an_address_with_a_gid_comes_back() {
        let info = ConnectInfo { gid: Some([7; 16]), link: LinkLayer::Ethernet, lid: 0, ..INFO };
        assert_eq!(ConnectInfo::decode(&info.to_bytes()), Ok(info));
    }

    #[test]
    fn bytes_that_cannot_be_are_refused() {
        let good = INFO.to_bytes();
        for (offset, byte) in
            [(0, 0), (4, 2), (5, 0), (5, 3), (6, 8), (7, 0), (7, 6), (11, 1), (12, 1), (16, 1), (32, 1)]
        {
            let mut bytes = good;
            bytes[offset] = byte;
            assert!(ConnectInfo::decode(&bytes).is_err(), "{byte} at {offset}");
        }
        let mut without_lid = good;
        without_lid[8..10].fill(0);
        assert!(ConnectInfo::decode(&without_lid).is_err());
        let mut without_number = good;
        without_number[12..16].fill(0);
        assert!(ConnectInfo::decode(&without_number).is_err());
        assert!(matches!(ConnectInfo::decode(&good[1..]), Err(AddressError::Length { length: 47, .. })));
    }

    proptest! {
        #[test]
        fn whatever_decodes_encodes_to_the_same_bytes(mut bytes in prop::array::uniform32(any::<u8>()), is_ours: bool) {
            let mut all = [0; ConnectInfo::LENGTH];
            if is_ours {
                bytes[..8].copy_from_slice(b"TMvb\x01\x01\x03\x01");
                (bytes[11], bytes[12], bytes[16], bytes[20], bytes[24]) = (0, 0, 0, 0, 0);
            }
            all[..32].copy_from_slice(&bytes);
            if let Ok(info) = ConnectInfo::decode(&all) {
                prop_assert_eq!(info.to_bytes(), all);
            }
        }
    }
}
