//! A packet as bytes and back. The other process is not trusted: what is not a packet is an error.

use super::packet::{
    Body, Datagram, Extension, MASK_24, Operation, PAYLOAD_MAX, Packet, PacketError, Refusal, Remote,
    Request, Response,
};

pub(crate) fn encode(packet: &Packet, into: &mut Vec<u8>) {
    put_u32(into, packet.source);
    put_u32(into, packet.destination);
    match &packet.body {
        Body::Request(request) => encode_request(request, into),
        Body::Response(response) => encode_response(response, into),
        Body::Datagram(datagram) => encode_datagram(datagram, into),
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Packet, PacketError> {
    let mut reader = Reader(bytes);
    let source = reader.number_24()?;
    let destination = reader.number_24()?;
    let body = match reader.u8()? {
        kind::REQUEST => Body::Request(decode_request(&mut reader)?),
        kind::DATAGRAM => Body::Datagram(decode_datagram(&mut reader)?),
        other => Body::Response(decode_response(other, &mut reader)?),
    };
    if !reader.0.is_empty() {
        return Err(PacketError("bytes behind its end"));
    }
    Ok(Packet { source, destination, body })
}

mod kind {
    pub(super) const REQUEST: u8 = 0;
    pub(super) const DATAGRAM: u8 = 1;
    pub(super) const ACKNOWLEDGE: u8 = 2;
    pub(super) const NOT_READY: u8 = 3;
    pub(super) const OUT_OF_SEQUENCE: u8 = 4;
    pub(super) const REFUSED: u8 = 5;
    pub(super) const READ_DATA: u8 = 6;
    pub(super) const ATOMIC_RESULT: u8 = 7;
    pub(super) const DROPPED: u8 = 8;
}

fn encode_request(request: &Request, into: &mut Vec<u8>) {
    into.push(kind::REQUEST);
    put_u32(into, request.psn);
    into.push(request.attempt);
    into.push(u8::from(request.first) | u8::from(request.last) << 1 | u8::from(request.solicited) << 2);
    match request.operation {
        Operation::Send => into.push(0),
        Operation::Write(remote) => put_remote(into, 1, remote),
        Operation::Read(remote) => put_remote(into, 2, remote),
        Operation::CompareSwap { address, key, compare, swap } => {
            into.push(3);
            put_u64(into, address);
            put_u32(into, key);
            put_u64(into, compare);
            put_u64(into, swap);
        }
        Operation::FetchAdd { address, key, add } => {
            into.push(4);
            put_u64(into, address);
            put_u32(into, key);
            put_u64(into, add);
        }
    }
    match request.extension {
        Extension::None => into.push(0),
        Extension::Immediate(immediate) => {
            into.push(1);
            into.extend_from_slice(&immediate);
        }
        Extension::Invalidate(key) => {
            into.push(2);
            put_u32(into, key);
        }
    }
    into.extend_from_slice(&request.payload);
}

fn decode_request(reader: &mut Reader<'_>) -> Result<Request, PacketError> {
    let psn = reader.number_24()?;
    let attempt = reader.u8()?;
    let flags = reader.u8()?;
    if flags > 7 {
        return Err(PacketError("unknown flags"));
    }
    let operation = match reader.u8()? {
        0 => Operation::Send,
        1 => Operation::Write(reader.remote()?),
        2 => Operation::Read(reader.remote()?),
        3 => Operation::CompareSwap {
            address: reader.u64()?,
            key: reader.u32()?,
            compare: reader.u64()?,
            swap: reader.u64()?,
        },
        4 => Operation::FetchAdd { address: reader.u64()?, key: reader.u32()?, add: reader.u64()? },
        _ => return Err(PacketError("an unknown operation")),
    };
    let extension = match reader.u8()? {
        0 => Extension::None,
        1 => Extension::Immediate(reader.array()?),
        2 => Extension::Invalidate(reader.u32()?),
        _ => return Err(PacketError("an unknown extension")),
    };
    let payload = reader.payload()?;
    let (first, last, solicited) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
    Ok(Request { psn, attempt, operation, first, last, solicited, extension, payload })
}

fn encode_response(response: &Response, into: &mut Vec<u8>) {
    match *response {
        Response::Acknowledge { psn } => put_response(into, kind::ACKNOWLEDGE, psn),
        Response::NotReady { psn, timer } => {
            put_response(into, kind::NOT_READY, psn);
            into.push(timer);
        }
        Response::OutOfSequence { psn } => put_response(into, kind::OUT_OF_SEQUENCE, psn),
        Response::Refused { psn, reason } => {
            put_response(into, kind::REFUSED, psn);
            into.push(match reason {
                Refusal::InvalidRequest => 1,
                Refusal::Access => 2,
                Refusal::Operation => 3,
            });
        }
        Response::ReadData { psn, ref payload } => {
            put_response(into, kind::READ_DATA, psn);
            into.extend_from_slice(payload);
        }
        Response::AtomicResult { psn, value } => {
            put_response(into, kind::ATOMIC_RESULT, psn);
            put_u64(into, value);
        }
        Response::Dropped { psn, attempt } => {
            put_response(into, kind::DROPPED, psn);
            into.push(attempt);
        }
    }
}

fn decode_response(what: u8, reader: &mut Reader<'_>) -> Result<Response, PacketError> {
    if !(kind::ACKNOWLEDGE..=kind::DROPPED).contains(&what) {
        return Err(PacketError("of an unknown kind"));
    }
    let psn = reader.number_24()?;
    Ok(match what {
        kind::NOT_READY => Response::NotReady { psn, timer: reader.below(32)? },
        kind::OUT_OF_SEQUENCE => Response::OutOfSequence { psn },
        kind::REFUSED => {
            let reason = match reader.u8()? {
                1 => Refusal::InvalidRequest,
                2 => Refusal::Access,
                3 => Refusal::Operation,
                _ => return Err(PacketError("an unknown refusal")),
            };
            Response::Refused { psn, reason }
        }
        kind::READ_DATA => Response::ReadData { psn, payload: reader.payload()? },
        kind::ATOMIC_RESULT => Response::AtomicResult { psn, value: reader.u64()? },
        kind::DROPPED => Response::Dropped { psn, attempt: reader.u8()? },
        _ => Response::Acknowledge { psn },
    })
}

fn encode_datagram(datagram: &Datagram, into: &mut Vec<u8>) {
    into.push(kind::DATAGRAM);
    put_u32(into, datagram.qkey);
    into.extend_from_slice(&datagram.slid.to_be_bytes());
    into.push(datagram.sl);
    into.push(
        u8::from(datagram.solicited)
            | u8::from(datagram.immediate.is_some()) << 1
            | u8::from(datagram.grh.is_some()) << 2,
    );
    if let Some(immediate) = &datagram.immediate {
        into.extend_from_slice(immediate);
    }
    if let Some(grh) = &datagram.grh {
        into.extend_from_slice(grh);
    }
    into.extend_from_slice(&datagram.payload);
}

fn decode_datagram(reader: &mut Reader<'_>) -> Result<Datagram, PacketError> {
    let qkey = reader.u32()?;
    let slid = u16::from_be_bytes(reader.array()?);
    let sl = reader.below(16)?;
    let flags = reader.u8()?;
    if flags > 7 {
        return Err(PacketError("unknown flags"));
    }
    let immediate = if flags & 2 != 0 { Some(reader.array()?) } else { None };
    let grh = if flags & 4 != 0 { Some(reader.array()?) } else { None };
    let payload = reader.payload()?;
    Ok(Datagram { qkey, slid, sl, solicited: flags & 1 != 0, immediate, grh, payload })
}

fn put_u32(into: &mut Vec<u8>, value: u32) {
    into.extend_from_slice(&value.to_be_bytes());
}

fn put_u64(into: &mut Vec<u8>, value: u64) {
    into.extend_from_slice(&value.to_be_bytes());
}

fn put_remote(into: &mut Vec<u8>, what: u8, remote: Remote) {
    into.push(what);
    put_u64(into, remote.address);
    put_u32(into, remote.key);
    put_u32(into, remote.length);
}

fn put_response(into: &mut Vec<u8>, what: u8, psn: u32) {
    into.push(what);
    put_u32(into, psn);
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], PacketError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(PacketError("too short"))?;
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, PacketError> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    fn below(&mut self, limit: u8) -> Result<u8, PacketError> {
        self.u8().and_then(
            |value| {
                if value < limit { Ok(value) } else { Err(PacketError("a value out of range")) }
            },
        )
    }

    fn u32(&mut self) -> Result<u32, PacketError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, PacketError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    fn number_24(&mut self) -> Result<u32, PacketError> {
        self.u32().and_then(|number| {
            if number <= MASK_24 { Ok(number) } else { Err(PacketError("a number of more than 24 bits")) }
        })
    }

    fn remote(&mut self) -> Result<Remote, PacketError> {
        Ok(Remote { address: self.u64()?, key: self.u32()?, length: self.u32()? })
    }

    fn payload(&mut self) -> Result<Vec<u8>, PacketError> {
        if self.0.len() > PAYLOAD_MAX {
            return Err(PacketError("longer than the largest MTU"));
        }
        Ok(std::mem::take(&mut self.0).to_vec())
    }
}
