//! An endpoint as the provider sees it: what it is bound to, its options, and the endpoint itself once it is enabled.

use std::net::SocketAddr;
use std::sync::Arc;

use super::events::{Event, Events, Failed, Fid};
use crate::endpoint::{Address, ConnectionEvent, ConnectionRequest, Endpoint, Failure, PEER};
use crate::provider::abi;
use crate::provider::error::{Outcome, code, fail};

/// What one direction of an endpoint is bound to.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::provider) struct Side {
    pub(in crate::provider) queue: Option<usize>,
    /// `FI_SELECTIVE_COMPLETION`: success is reported only where it is asked for.
    pub(in crate::provider) is_selective: bool,
    pub(in crate::provider) counter: Option<usize>,
    /// The flags of calls that take none.
    pub(in crate::provider) op_flags: u64,
    /// The endpoint is not for this direction (`FI_SEND` or `FI_RECV` alone among its capabilities).
    pub(in crate::provider) is_shut: bool,
}

impl Side {
    /// # Errors
    /// `FI_EOPNOTSUPP`: the endpoint is not for this direction.
    #[inline]
    pub(in crate::provider) const fn open(&self) -> Outcome<()> {
        if self.is_shut { fail(abi::FI_EOPNOTSUPP) } else { Ok(()) }
    }

    /// Whether completions of this direction could be seen, or none are made.
    pub(in crate::provider) const fn is_bound(&self) -> bool {
        self.is_shut || self.queue.is_some() || self.counter.is_some()
    }

    /// Whether success of an operation with these flags is reported.
    #[inline]
    pub(in crate::provider) const fn reports(&self, flags: u64) -> bool {
        !self.is_selective || flags & abi::FI_COMPLETION != 0
    }
}

/// The counters of remote memory access.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::provider) struct RemoteCounters {
    /// `FI_READ`: reads of this side's.
    pub(in crate::provider) read: Option<usize>,
    /// `FI_WRITE`.
    pub(in crate::provider) write: Option<usize>,
    /// `FI_REMOTE_READ`: reads of peers'.
    pub(in crate::provider) remote_read: Option<usize>,
    /// `FI_REMOTE_WRITE`.
    pub(in crate::provider) remote_write: Option<usize>,
}

impl RemoteCounters {
    /// Whether accesses of peers are counted.
    pub(in crate::provider) const fn counts_peers(&self) -> bool {
        self.remote_read.is_some() || self.remote_write.is_some()
    }
}

/// What a connected endpoint (`FI_EP_MSG`) has beside the endpoint.
#[derive(Debug)]
pub(in crate::provider) struct Connection {
    /// Where its events go.
    pub(in crate::provider) events: Option<Arc<Events>>,
    /// As whom the application knows it.
    pub(in crate::provider) of: Fid,
    pub(in crate::provider) context: usize,
    /// For whom it was made, until it is enabled.
    pub(in crate::provider) request: Option<ConnectionRequest>,
}

/// See the file.
#[derive(Debug)]
pub(in crate::provider) struct EndpointState {
    /// Of a connected one.
    pub(in crate::provider) connection: Option<Box<Connection>>,
    /// Once enabled.
    pub(in crate::provider) endpoint: Option<Endpoint>,
    pub(in crate::provider) vector: Option<usize>,
    pub(in crate::provider) transmit: Side,
    pub(in crate::provider) receive: Side,
    /// What is bound of remote memory access.
    pub(in crate::provider) remote: RemoteCounters,
    /// Accesses of peers are told (`FI_RMA_EVENT`).
    pub(in crate::provider) tells_peers: bool,
    /// `FI_OPT_MIN_MULTI_RECV`.
    pub(in crate::provider) multi_receive_least: u64,
    pub(in crate::provider) inject_size: usize,
    /// Whether remote CQ data is offered.
    pub(in crate::provider) has_cq_data: bool,
    /// Whether the source of a receive says anything, of messages with a tag and of those without.
    pub(in crate::provider) is_directed: [bool; 2],
    /// Where it listens, or shall; the port may be 0 until it is enabled.
    pub(in crate::provider) source: SocketAddr,
    pub(in crate::provider) tx_size: usize,
    pub(in crate::provider) rx_size: usize,
}

impl EndpointState {
    /// The endpoint, to be used.
    ///
    /// # Errors
    /// `FI_EOPBADSTATE`: it is not enabled.
    #[inline]
    pub(in crate::provider) fn enabled(&mut self) -> Outcome<&mut Endpoint> {
        match &mut self.endpoint {
            Some(endpoint) => Ok(endpoint),
            None => fail(abi::FI_EOPBADSTATE),
        }
    }

    /// Who is meant by an address of a call (`fi_addr_t`): a connected endpoint looks at none.
    #[inline]
    pub(in crate::provider) fn peer(&self, address: u64) -> Address {
        if self.connection.is_some() { PEER } else { Address(address) }
    }

    /// Tell what became of the connection.
    pub(in crate::provider) fn report_connection(&mut self) {
        let (Some(connection), Some(endpoint)) = (&self.connection, &mut self.endpoint) else { return };
        let Some(events) = &connection.events else { return };
        let of = connection.of;
        while let Some(event) = endpoint.poll_connection() {
            let (kind, data) = match event {
                ConnectionEvent::Connected { data } => (abi::FI_CONNECTED, data),
                ConnectionEvent::Shutdown => (abi::FI_SHUTDOWN, Vec::new()),
                ConnectionEvent::Refused { failure, data } => {
                    // Of a connection that was asked for a time has run out, not a way to a host.
                    let error =
                        if failure == Failure::TimedOut { code(abi::FI_ETIMEDOUT) } else { failure.into() };
                    events.fail(Failed { of, context: connection.context, error: error.0, data });
                    continue;
                }
            };
            let kind = u32::try_from(kind).unwrap_or_default();
            events.push(Event::Connection { kind, of, info: None, data });
        }
    }

    /// Counters and queues, each once.
    pub(in crate::provider) fn queues(&self) -> impl Iterator<Item = usize> {
        let second = self.receive.queue.filter(|queue| Some(*queue) != self.transmit.queue);
        self.transmit.queue.into_iter().chain(second)
    }

    pub(in crate::provider) fn counters(&self) -> impl Iterator<Item = usize> + use<> {
        let RemoteCounters { read, write, remote_read, remote_write } = self.remote;
        let all = [self.transmit.counter, self.receive.counter, read, write, remote_read, remote_write];
        (0..all.len()).filter_map(move |at| all[at].filter(|_| !all[..at].contains(&all[at])))
    }
}
