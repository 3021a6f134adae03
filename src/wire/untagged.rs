//! Messages without a tag (`fi_msg(3)`): with their payload, or with the place where it waits.

use super::control::{Head, Kind};
use super::cursor::{Reader, Writer, join};
use super::{AppContext, Expected, Payload, RemoteMemory, SendFlags, WireError};

/// A message without a tag, with its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Untagged<'a> {
    /// The sender's word.
    pub context: AppContext,
    /// Remote CQ data: with [`SendFlags::CQ_DATA`], and only then.
    pub cq_data: Option<u32>,
    /// The rest of the message; may be empty.
    pub payload: Payload<'a>,
}

impl Untagged<'_> {
    /// Bytes before the payload.
    pub const HEADER_LENGTH: usize = HEADER_LENGTH;

    /// What goes before the payload, for those who send from two places.
    ///
    /// # Errors
    /// CQ data and flag do not agree.
    pub fn header(&self) -> Result<[u8; HEADER_LENGTH], WireError> {
        header(Kind::Untagged, self.context, self.cq_data)
    }

    /// Writes the whole message, and says how long it is.
    ///
    /// # Errors
    /// No room, the payload is not whole, or CQ data and flag do not agree.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let payload = self.payload.whole()?;
        let header = self.header()?;
        join(out, &header, payload)
    }
}

impl<'a> Untagged<'a> {
    pub(super) fn read(head: Head, mut reader: Reader<'a>) -> Result<Self, WireError> {
        let (context, cq_data) = read_header(head, &mut reader)?;
        Ok(Self { context, cq_data, payload: reader.payload() })
    }
}

/// A request, without a tag, to read the payload. [`super::Control::RendezvousDone`] ends it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UntaggedRendezvous {
    /// The sender's word.
    pub context: AppContext,
    /// Remote CQ data: with [`SendFlags::CQ_DATA`], and only then.
    pub cq_data: Option<u32>,
    /// Where the payload waits.
    pub memory: RemoteMemory,
}

impl UntaggedRendezvous {
    /// Bytes on the wire.
    pub const LENGTH: usize = 40;

    /// Writes the message, and says how long it is.
    ///
    /// # Errors
    /// No room, CQ data and flag do not agree, or the payload would end outside the address space.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        self.memory.check(ADDRESS_OFFSET)?;
        let header = header(Kind::UntaggedRendezvous, self.context, self.cq_data)?;
        let mut writer = Writer::new(out, Self::LENGTH)?;
        writer.bytes(&header)?;
        writer.bytes(&self.memory.address.to_be_bytes())?;
        writer.bytes(&self.memory.length.to_be_bytes())?;
        writer.bytes(&self.memory.key.to_be_bytes())?;
        writer.bytes(&[0; 4])?;
        Ok(writer.finish())
    }

    pub(super) fn read(head: Head, mut reader: Reader<'_>) -> Result<Self, WireError> {
        let (context, cq_data) = read_header(head, &mut reader)?;
        let address = reader.u64("address")?;
        let length = reader.u64("length")?;
        let key = reader.u32("key")?;
        reader.zero::<4>("reserved bytes behind the key")?;
        reader.finish("untagged rendezvous")?;
        let memory = RemoteMemory { address, key, length };
        memory.check(ADDRESS_OFFSET)?;
        Ok(Self { context, cq_data, memory })
    }
}

fn header(kind: Kind, context: AppContext, cq_data: Option<u32>) -> Result<[u8; HEADER_LENGTH], WireError> {
    check_cq_data(context, cq_data, CQ_DATA_OFFSET)?;
    let mut bytes = [0; HEADER_LENGTH];
    bytes[..4].copy_from_slice(&Head::bytes(kind, 0, 0));
    bytes[4..8].copy_from_slice(&context.to_bits().to_be_bytes());
    bytes[8..12].copy_from_slice(&cq_data.unwrap_or(0).to_be_bytes());
    Ok(bytes)
}

fn read_header(head: Head, reader: &mut Reader<'_>) -> Result<(AppContext, Option<u32>), WireError> {
    head.no_codes()?;
    let context = AppContext::from_bits(reader.u32("app_ctx")?)?;
    let cq_data = read_cq_data(context, reader)?;
    reader.zero::<4>("reserved bytes behind the CQ data")?;
    Ok((context, cq_data))
}

/// The field is 0 where the flag says that there is none.
pub(super) fn read_cq_data(context: AppContext, reader: &mut Reader<'_>) -> Result<Option<u32>, WireError> {
    let offset = reader.offset();
    let value = reader.u32("CQ data")?;
    if context.flags.contains(SendFlags::CQ_DATA) {
        return Ok(Some(value));
    }
    WireError::unless(value == 0, "CQ data", value.into(), Expected::Zero, offset)?;
    Ok(None)
}

/// Data and flag come together or not at all.
pub(super) fn check_cq_data(context: AppContext, cq_data: Option<u32>, offset: u16) -> Result<(), WireError> {
    let flagged = context.flags.contains(SendFlags::CQ_DATA);
    let value = u64::from(cq_data.unwrap_or(0));
    let expected = Expected::OneOf("there if and only if the flag for it is set");
    WireError::unless(flagged == cq_data.is_some(), "CQ data", value, expected, offset)
}

/// Tagless messages begin alike, up to here.
const HEADER_LENGTH: usize = 16;
const CQ_DATA_OFFSET: u16 = 8;
const ADDRESS_OFFSET: u16 = 16;
