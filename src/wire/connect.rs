//! Connect and reject: how connected endpoints (`FI_EP_MSG`) begin. What is asked for, or answered, is what a hello says,
//! with data of the user's in the place of a name: who is called so knows its caller by the connection alone.
//!
//! Not here: what becomes of a request.

use super::control::{Head, Kind, SECOND_OFFSET};
use super::cursor::{Reader, Writer};
use super::{EndpointName, Expected, Hello, WireError};

/// A connection is asked for, or accepted: the role in the hello says which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connect<'a> {
    /// Who speaks. Its name is empty and is not said.
    pub hello: Hello<'static>,
    /// What the user says with it.
    pub data: ConnectData<'a>,
}

/// No connection comes of what was asked for: who was called does not want one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reject<'a> {
    /// What the user says with it.
    pub data: ConnectData<'a>,
}

/// Bytes that users exchange as they connect (`fi_cm(3)`), at most 64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ConnectData<'a>(&'a [u8]);

impl<'a> ConnectData<'a> {
    /// Bytes at most: as many as make a message of no more than the longest hello (`FI_OPT_CM_DATA_SIZE`).
    pub const LENGTH_MAX: usize = EndpointName::LENGTH_MAX;

    /// The first of these bytes, as many as there is room for.
    #[must_use]
    pub const fn cut(bytes: &'a [u8]) -> Self {
        match bytes.first_chunk::<{ EndpointName::LENGTH_MAX }>() {
            Some(first) => Self(first),
            None => Self(bytes),
        }
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// All that is left of the message, and as long as its header says.
    fn read(length: u8, reader: &Reader<'a>) -> Result<Self, WireError> {
        let (length, total) = (usize::from(length), reader.total());
        let (field, most) = ("data of a connection", Self::LENGTH_MAX as u64);
        let expected = Expected::AtMost(most);
        WireError::unless(length <= Self::LENGTH_MAX, field, length as u64, expected, SECOND_OFFSET)?;
        let expected = u64::from(reader.offset()) + length as u64;
        match reader.rest() {
            rest if total == expected && rest.len() == length => Ok(Self(rest)),
            _ if total < expected => Err(WireError::Short { field, needed: expected, length: total }),
            _ => Err(WireError::Long { field, expected, length: total }),
        }
    }
}

impl<'a> Connect<'a> {
    /// Bytes of the longest.
    pub const LENGTH_MAX: usize = Hello::HEADER_LENGTH + ConnectData::LENGTH_MAX;

    /// Writes the message, and says how long it is.
    ///
    /// # Errors
    /// No room, versions that make no sense, or a name.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let name = self.hello.name.bytes().len();
        WireError::unless(name == 0, "name of a connection", name as u64, Expected::Zero, SECOND_OFFSET)?;
        self.hello.encode_as(Kind::Connect, self.data.0, out)
    }

    pub(super) fn read(head: Head, mut reader: Reader<'a>) -> Result<Self, WireError> {
        let hello = Hello::read_front(head, &mut reader)?;
        let data = ConnectData::read(head.second, &reader)?;
        Ok(Self { hello, data })
    }
}

impl<'a> Reject<'a> {
    /// Bytes of the longest.
    pub const LENGTH_MAX: usize = Head::LENGTH + ConnectData::LENGTH_MAX;

    /// Writes the message, and says how long it is.
    ///
    /// # Errors
    /// No room.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let data = self.data.0;
        let mut writer = Writer::new(out, Head::LENGTH + data.len())?;
        writer.bytes(&Head::bytes(Kind::Reject, 0, u8::try_from(data.len()).unwrap_or(u8::MAX)))?;
        writer.bytes(data)?;
        Ok(writer.finish())
    }

    pub(super) fn read(head: Head, reader: &Reader<'a>) -> Result<Self, WireError> {
        head.no_first_code()?;
        Ok(Self { data: ConnectData::read(head.second, reader)? })
    }
}
