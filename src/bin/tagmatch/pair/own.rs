//! This project's own endpoint as a port.

use super::plan::{Over, Setup};
use super::port::{Done, Port, SHORT_MAX, Sending, Sent, Wanted};
use super::work::contexts;
use crate::bench::memory::trusted;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{
    Address, Completed, Config, Endpoint, Level, Post, Send as Message, SendRefused, Space,
};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, Tag};
use tagmatch::paths::{Matcher, Network, Paths};
use tagmatch::seam::Buffer;

/// See the module.
#[derive(Debug)]
pub(super) struct Own {
    endpoint: Endpoint,
    over: Over,
    begin: Instant,
    now: Duration,
    /// Until the clock is looked at.
    turns: u32,
    contexts: u64,
}

impl Own {
    /// At this address of this host.
    pub(super) fn open(over: Over, address: IpAddr, setup: &Setup) -> Result<Self, String> {
        let shares_memory = match over {
            Over::Tcp => false,
            Over::Shm => true,
            Over::Verbs => return Err("verbs is measured with --through libfabric".into()),
        };
        let paths = Paths { network: Network::Tcp, matcher: Matcher::Software, shares_memory };
        let config = Config { eager_limit: EAGER, inject_size: SHORT_MAX as u64, ..Config::default() };
        let endpoint = paths
            .open(SocketAddr::new(address, 0), config, trusted())
            .map_err(|error| format!("the endpoint cannot be opened: {error}"))?;
        let (begin, now, contexts) = (Instant::now(), Duration::ZERO, contexts(setup) as u64);
        Ok(Self { endpoint, over, begin, now, turns: 0, contexts })
    }

    fn context(&self, context: u64) -> Result<usize, String> {
        usize::try_from(context)
            .ok()
            .filter(|_| context < self.contexts)
            .ok_or_else(|| format!("a completion has the context {context:#x}, which was never given"))
    }
}

impl Port for Own {
    fn name(&self) -> Vec<u8> {
        self.endpoint.name().to_vec()
    }

    fn what(&self) -> String {
        let over = match self.over {
            Over::Shm => "shared memory",
            Over::Tcp => "tcp",
            Over::Verbs => "verbs",
        };
        format!("endpoint of the library, {over}")
    }

    fn meet(&mut self, name: &[u8]) -> Result<(), String> {
        self.endpoint.set_address(PEER, name).map_err(|error| error.to_string())
    }

    #[inline]
    fn post(&mut self, wanted: Wanted, buffer: &Buffer, context: usize) -> Result<bool, String> {
        let post = Post {
            space: Space::Tagged,
            source: if wanted.any_source { None } else { Some(PEER) },
            tag: Tag(wanted.tag),
            ignore: Ignore(wanted.ignore),
            buffer: *buffer,
            kind: Kind::Once,
            context: context as u64,
            flags: 0,
        };
        self.endpoint.post(&post).map(|()| true).map_err(|error| error.to_string())
    }

    #[inline]
    fn send(&mut self, tag: u64, memory: &Sent, length: usize, context: usize) -> Result<Sending, String> {
        let payload = match memory.short.get(..length) {
            Some(short) => Payload::Copied(short),
            None => Payload::Memory(Buffer { length: length as u64, ..memory.memory }),
        };
        let message = Message {
            space: Space::Tagged,
            to: PEER,
            tag: Tag(tag),
            payload,
            cq_data: None,
            level: Level::Inject,
            more: false,
            context: context as u64,
            flags: 0,
        };
        match self.endpoint.send(&message) {
            Ok(()) => Ok(Sending::Underway),
            Err(SendRefused::Again) => Ok(Sending::Again),
            Err(error) => Err(error.to_string()),
        }
    }

    #[inline]
    fn poll(&mut self) -> Result<Option<Done>, String> {
        let completion = match self.endpoint.poll_completion() {
            Some(completion) => completion,
            None => {
                self.turns = self.turns.wrapping_sub(1);
                // The provider looks at a clock of milliseconds, which costs next to nothing.
                if self.turns.is_multiple_of(TURNS) {
                    self.now = self.begin.elapsed();
                }
                self.endpoint.progress(self.now).map_err(|error| error.to_string())?;
                match self.endpoint.poll_completion() {
                    Some(completion) => completion,
                    None => return Ok(None),
                }
            }
        };
        let context = self.context(completion.context)?;
        match completion.what {
            Completed::Sent => Ok(Some(Done::Sent { context })),
            Completed::Received { message, placed, .. } if placed == message.length => {
                let length = usize::try_from(message.length).unwrap_or(usize::MAX);
                Ok(Some(Done::Received { context, tag: message.tag.0, length }))
            }
            other @ (Completed::Received { .. }
            | Completed::Released
            | Completed::Peeked(_)
            | Completed::NoMessage
            | Completed::Cancelled
            | Completed::Written
            | Completed::Read
            | Completed::WrittenByPeer { .. }
            | Completed::OperatedByPeer { .. }
            | Completed::ReadByPeer { .. }
            | Completed::Failed(_)) => Err(format!("operation {context} ended with {other:?}")),
        }
    }
}

/// The other half.
const PEER: Address = Address(0);
/// Looks at the transports to one look at the clock.
const TURNS: u32 = 256;
/// As the provider has it.
const EAGER: u64 = 1 << 20;
