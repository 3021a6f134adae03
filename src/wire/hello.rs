//! Hello: the first message on a connection, each way. Who speaks, in which versions, what it can do and how much
//! it takes.
//!
//! A hello always has the form of version 1, so that an older peer can read and refuse it; a newer version says
//! more in messages that follow. Not here: which of two connections that cross survives.

use super::control::{CODE_OFFSET, Head, Kind, SECOND_OFFSET};
use super::cursor::{Reader, Writer};
use super::{Credits, Expected, VERSION, WireError};

/// Who is at this end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hello<'a> {
    /// Who began.
    pub role: HelloRole,
    /// The oldest version that the speaker understands; at least 1.
    pub version_min: u8,
    /// The newest; at least the oldest.
    pub version_max: u8,
    /// What the speaker can do.
    pub capabilities: PeerCapabilities,
    /// Which life of the endpoint this is.
    pub instance: InstanceId,
    /// The longest payload, in bytes, that the speaker takes in one message (eager, untagged or segment).
    pub eager_limit: u64,
    /// What the other side may send before any further credit.
    pub credits: Credits,
    /// The address under which the endpoint is known to users, since a connection may come from another.
    pub name: EndpointName<'a>,
}

impl Hello<'_> {
    /// Bytes before the name.
    pub const HEADER_LENGTH: usize = 56;
    /// Bytes of the longest hello.
    pub const LENGTH_MAX: usize = Self::HEADER_LENGTH + EndpointName::LENGTH_MAX;

    /// The newest version that both the speaker and this library understand.
    #[must_use]
    pub const fn common_version(&self) -> Option<u8> {
        if self.version_min <= VERSION && VERSION <= self.version_max { Some(VERSION) } else { None }
    }

    /// Writes the message, and says how long it is.
    ///
    /// # Errors
    /// No room, or versions that make no sense.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        self.encode_as(Kind::Hello, self.name.0, out)
    }

    /// The same as a message of another kind, with other bytes in the place of the name.
    pub(super) fn encode_as(&self, kind: Kind, behind: &[u8], out: &mut [u8]) -> Result<usize, WireError> {
        check_versions(self.version_min, self.version_max)?;
        let length = u8::try_from(behind.len()).map_err(|_| name_too_long(behind.len()))?;
        let mut writer = Writer::new(out, Self::HEADER_LENGTH + behind.len())?;
        writer.bytes(&Head::bytes(kind, self.role as u8, length))?;
        writer.bytes(&[self.version_min, self.version_max, 0, 0])?;
        writer.bytes(&self.capabilities.bits().to_be_bytes())?;
        writer.bytes(&self.credits.headers.to_be_bytes())?;
        writer.bytes(&self.instance.0)?;
        writer.bytes(&self.eager_limit.to_be_bytes())?;
        writer.bytes(&self.credits.eager_bytes.to_be_bytes())?;
        writer.bytes(&self.credits.eager_messages.to_be_bytes())?;
        writer.bytes(&[0; 4])?;
        writer.bytes(behind)?;
        Ok(writer.finish())
    }
}

impl<'a> Hello<'a> {
    pub(super) fn read(head: Head, mut reader: Reader<'a>) -> Result<Self, WireError> {
        let front = Hello::read_front(head, &mut reader)?;
        let name = EndpointName::read(head.second, &reader)?;
        Ok(Self { name, ..front })
    }
}

impl Hello<'static> {
    /// All but the name, which is left to be read.
    pub(super) fn read_front(head: Head, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let role = HelloRole::from_byte(head.code)?;
        let [version_min, version_max] = reader.array("versions")?;
        check_versions(version_min, version_max)?;
        reader.zero::<2>("reserved bytes behind the versions")?;
        let offset = reader.offset();
        let capabilities = PeerCapabilities::from_bits(reader.u32("capabilities")?, offset)?;
        let headers = reader.u32("header credits")?;
        let offset = reader.offset();
        let instance = InstanceId::decode(reader.array("instance")?, offset)?;
        let eager_limit = reader.u64("eager limit")?;
        let eager_bytes = reader.u64("eager byte credits")?;
        let eager_messages = reader.u32("eager message credits")?;
        reader.zero::<4>("reserved bytes of a hello")?;
        let credits = Credits { headers, eager_messages, eager_bytes };
        let name = EndpointName::default();
        Ok(Self { role, version_min, version_max, capabilities, instance, eager_limit, credits, name })
    }
}

/// Who began a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum HelloRole {
    /// The speaker did.
    Request = 0,
    /// The other side did, and is answered.
    Answer = 1,
}

impl HelloRole {
    const fn from_byte(byte: u8) -> Result<Self, WireError> {
        match byte {
            0 => Ok(Self::Request),
            1 => Ok(Self::Answer),
            _ => Err(WireError::Value {
                field: "role of a hello",
                value: byte as u64,
                expected: Expected::OneOf("0 (request) or 1 (answer)"),
                offset: CODE_OFFSET,
            }),
        }
    }
}

/// One life of an endpoint: drawn at random when it is opened, so that a peer that was restarted under the same
/// address is told apart. Never 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InstanceId([u8; 16]);

impl InstanceId {
    /// `None` of zeros only.
    #[must_use]
    pub const fn new(id: u128) -> Option<Self> {
        if id == 0 { None } else { Some(Self(id.to_be_bytes())) }
    }

    /// The number.
    #[must_use]
    pub const fn value(self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    fn decode(bytes: [u8; 16], offset: u16) -> Result<Self, WireError> {
        let id = Self::new(u128::from_be_bytes(bytes));
        id.ok_or(WireError::Value { field: "instance", value: 0, expected: Expected::NotZero, offset })
    }
}

/// What an endpoint can do over this connection. Bits that version 1 does not know are refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PeerCapabilities(u32);

impl PeerCapabilities {
    /// Nothing beyond what everybody can.
    pub const NONE: Self = Self(0);
    /// A device matches what comes here (TM-SRQ): messages with a tag must not be segmented.
    pub const MATCHING: Self = Self(0x01);
    /// Can read the other side's memory: a rendezvous may be sent here.
    pub const READS: Self = Self(0x02);
    /// Messages carry an immediate. Where either side lacks it there is no CQ data on messages with a tag.
    pub const IMMEDIATE: Self = Self(0x04);
    /// Puts the segments of messages together.
    pub const SEGMENTS: Self = Self(0x08);
    /// All that have a meaning.
    pub const ALL: Self = Self(0x0F);

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are there.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    fn from_bits(bits: u32, offset: u16) -> Result<Self, WireError> {
        let expected = Expected::Bits(Self::ALL.0.into());
        WireError::unless(bits & !Self::ALL.0 == 0, "capabilities", bits.into(), expected, offset)?;
        Ok(Self(bits))
    }
}

/// An endpoint's address in the form that its transport uses: opaque here, at most 64 bytes, since that is what
/// users of libfabric have room for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EndpointName<'a>(&'a [u8]);

impl<'a> EndpointName<'a> {
    /// Bytes of the longest.
    pub const LENGTH_MAX: usize = 64;

    /// `None` where it is too long.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() <= Self::LENGTH_MAX { Some(Self(bytes)) } else { None }
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// All that is left of the message, and as long as the header says.
    fn read(length: u8, reader: &Reader<'a>) -> Result<Self, WireError> {
        let name = Self::new(reader.rest()).ok_or_else(|| name_too_long(reader.rest().len()))?;
        let expected = Hello::HEADER_LENGTH as u64 + u64::from(length);
        let total = reader.total();
        WireError::unless(
            usize::from(length) <= Self::LENGTH_MAX,
            "name length",
            length.into(),
            Expected::AtMost(Self::LENGTH_MAX as u64),
            SECOND_OFFSET,
        )?;
        if total < expected {
            return Err(WireError::Short { field: "name", needed: expected, length: total });
        }
        if total > expected {
            return Err(WireError::Long { field: "hello", expected, length: total });
        }
        Ok(name)
    }
}

/// The answer to a hello that leads to no connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HelloRefused {
    /// Why.
    pub reason: RefusedHello,
    /// The oldest version that the refuser understands; at least 1.
    pub version_min: u8,
    /// The newest; at least the oldest.
    pub version_max: u8,
}

/// Why a hello was refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum RefusedHello {
    /// No version in common.
    Version = 1,
    /// Two requests crossed, and the refuser's own goes on.
    Crossed = 2,
    /// There is a connection to this very instance already.
    Connected = 3,
    /// The refuser has no room for another peer now.
    Busy = 4,
    /// The refuser is being closed.
    Closing = 5,
    /// The key of the job was not proven.
    NoKey = 6,
    /// The caller has called itself, and not under its own name.
    Oneself = 7,
}

impl HelloRefused {
    /// Bytes of the message.
    pub const LENGTH: usize = 8;

    pub(super) fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        check_versions(self.version_min, self.version_max)?;
        let mut writer = Writer::new(out, Self::LENGTH)?;
        writer.bytes(&Head::bytes(Kind::HelloRefused, self.reason as u8, 0))?;
        writer.bytes(&[self.version_min, self.version_max, 0, 0])?;
        Ok(writer.finish())
    }

    pub(super) fn read(head: Head, mut reader: Reader<'_>) -> Result<Self, WireError> {
        head.no_second_code()?;
        let reason = match head.code {
            1 => RefusedHello::Version,
            2 => RefusedHello::Crossed,
            3 => RefusedHello::Connected,
            4 => RefusedHello::Busy,
            5 => RefusedHello::Closing,
            6 => RefusedHello::NoKey,
            7 => RefusedHello::Oneself,
            code => {
                return Err(WireError::Value {
                    field: "reason of a refused hello",
                    value: code.into(),
                    expected: Expected::OneOf("1 to 7"),
                    offset: CODE_OFFSET,
                });
            }
        };
        let [version_min, version_max] = reader.array("versions")?;
        check_versions(version_min, version_max)?;
        reader.zero::<2>("reserved bytes behind the versions")?;
        reader.finish("refused hello")?;
        Ok(Self { reason, version_min, version_max })
    }
}

fn check_versions(min: u8, max: u8) -> Result<(), WireError> {
    WireError::unless(min >= 1, "oldest version", min.into(), Expected::AtLeast(1), VERSIONS_OFFSET)?;
    WireError::unless(
        max >= min,
        "newest version",
        max.into(),
        Expected::AtLeast(min.into()),
        VERSIONS_OFFSET + 1,
    )
}

const fn name_too_long(length: usize) -> WireError {
    WireError::Value {
        field: "name length",
        value: length as u64,
        expected: Expected::AtMost(EndpointName::LENGTH_MAX as u64),
        offset: SECOND_OFFSET,
    }
}

const VERSIONS_OFFSET: u16 = 4;
