//! Remote memory access: from what a call says to what the endpoint is asked.

use super::State;
use super::marks::Marks;
use super::transfer::{Flags, Memory, SEND_FLAGS};
use crate::atomics::{AtomicOp, AtomicType};
use crate::endpoint::{AtomicAccess, Endpoint, Local, RemoteAccess, SendRefused};
use crate::provider::abi;
use crate::provider::clock::now;
use crate::provider::error::{Outcome, code, fail};
use crate::seam::Segment;
use crate::wire::RemoteStretch;

/// A write or a read, as a call says it.
#[derive(Clone, Copy)]
pub(in crate::provider) struct RemoteCall<'a> {
    pub(in crate::provider) is_read: bool,
    pub(in crate::provider) to: u64,
    pub(in crate::provider) memory: Memory<'a>,
    pub(in crate::provider) stretches: &'a [RemoteStretch],
    /// Remote CQ data.
    pub(in crate::provider) data: Option<u64>,
    pub(in crate::provider) context: u64,
    pub(in crate::provider) flags: Flags,
}

impl State {
    /// Access a peer's memory. What was asked for with `FI_MORE` before goes out if this is refused.
    pub(in crate::provider) fn access(&mut self, index: usize, call: &RemoteCall<'_>) -> Outcome<usize> {
        let asked = self.try_access(index, call);
        self.end_call(index, asked)
    }

    fn try_access(&mut self, index: usize, call: &RemoteCall<'_>) -> Outcome<()> {
        let state = self.endpoint(index)?;
        let (flags, is_reported) = call.flags.resolve(&state.transmit);
        if flags & !SEND_FLAGS != 0 {
            return fail(abi::FI_EBADFLAGS);
        }
        let cq_data = match call.data {
            Some(_) if !state.has_cq_data => return fail(abi::FI_EINVAL),
            Some(data) => Some(u32::try_from(data).map_err(|_| code(abi::FI_EINVAL))?),
            None => None,
        };
        if let Memory::Bytes(bytes) = call.memory
            && bytes.len() > state.inject_size
        {
            return fail(abi::FI_EMSGSIZE);
        }
        let one;
        let local = match call.memory {
            Memory::Bytes(bytes) => Local::Copied(bytes),
            Memory::One(buffer) => {
                one = [Segment { address: buffer.address, length: buffer.length, key: 0 }];
                Local::Memory(&one)
            }
            Memory::Many(segments) => Local::Memory(segments),
        };
        let access = RemoteAccess {
            to: state.peer(call.to),
            local,
            remote: call.stretches,
            cq_data,
            more: flags & abi::FI_MORE != 0,
            context: call.context,
            flags: Marks::remote(call.is_read, is_reported).0,
        };
        self.ask(
            index,
            |endpoint| if call.is_read { endpoint.read(&access) } else { endpoint.write(&access) },
        )
    }

    /// Ask an endpoint, and once more behind a progress where it says that there is a way forward, which may be here already.
    fn ask(&mut self, index: usize, ask: impl Fn(&mut Endpoint) -> Result<(), SendRefused>) -> Outcome<()> {
        let endpoint = self.endpoint(index)?.enabled()?;
        endpoint.tell_time(now());
        match ask(endpoint) {
            Err(SendRefused::Again) => {
                self.progress(index, now());
                Ok(ask(self.endpoint(index)?.enabled()?)?)
            }
            asked => Ok(asked?),
        }
    }

    /// What was asked for with `FI_MORE` before a call that is refused goes out.
    fn end_call(&mut self, index: usize, asked: Outcome<()>) -> Outcome<usize> {
        if asked.is_err() {
            self.flush(index);
        }
        self.tell_waiting(index);
        asked.map(|()| 0)
    }
}

/// An operation on values of a peer's memory, as a call says it.
#[derive(Clone, Copy)]
pub(in crate::provider) struct AtomicRequest<'a> {
    pub(in crate::provider) op: AtomicOp,
    pub(in crate::provider) of: AtomicType,
    pub(in crate::provider) to: u64,
    pub(in crate::provider) operands: &'a [u8],
    pub(in crate::provider) compares: &'a [u8],
    /// Where what was there goes.
    pub(in crate::provider) fetched: Option<&'a [Segment]>,
    pub(in crate::provider) remote: &'a [RemoteStretch],
    pub(in crate::provider) context: u64,
    pub(in crate::provider) flags: Flags,
}

impl State {
    /// Do an operation on values of a peer's memory. What was asked for with `FI_MORE` before goes out if this is refused.
    pub(in crate::provider) fn operate(
        &mut self,
        index: usize,
        request: &AtomicRequest<'_>,
    ) -> Outcome<usize> {
        let asked = self.try_operate(index, request);
        self.end_call(index, asked)
    }

    fn try_operate(&mut self, index: usize, request: &AtomicRequest<'_>) -> Outcome<()> {
        let state = self.endpoint(index)?;
        let (flags, is_reported) = request.flags.resolve(&state.transmit);
        // Remote CQ data goes with none.
        if flags & !(SEND_FLAGS & !abi::FI_REMOTE_CQ_DATA) != 0 {
            return fail(abi::FI_EBADFLAGS);
        }
        let AtomicRequest { op, of, to, operands, compares, fetched, remote, context, .. } = *request;
        let access = AtomicAccess {
            to: state.peer(to),
            op,
            of,
            operands,
            compares,
            fetched,
            remote,
            more: flags & abi::FI_MORE != 0,
            context,
            flags: Marks::atomic(fetched.is_some(), is_reported).0,
        };
        self.ask(index, |endpoint| endpoint.operate(&access))
    }
}
