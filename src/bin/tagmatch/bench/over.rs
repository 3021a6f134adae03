//! A trace over endpoints: every sender of it an endpoint of its own, one message at a time.
//!
//! A message says its number as remote CQ data; payloads are short, as who matches what is all that is asked. Not here: what
//! messages go over (`ends`).

use super::ends::{Ends, Matcher, Wire, text};
use super::memory::Pool;
use crate::offload::Over;
use std::collections::{BTreeSet, HashMap};
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{Address, Completed, Level, Peek, PeekAction, Post, Send, SendRefused, Space};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, PeerId, Source, Tag};
use tagmatch::matching::{Envelope, Pattern};
use tagmatch::offload::Statistics;
use tagmatch::replay::{Fault, Target};
use tagmatch::seam::Buffer;
use tagmatch::traces::{Event, MessageNumber, PeekNumber, ReceiveNumber, Trace};

/// See the module.
#[derive(Debug)]
pub(super) struct Endpoints {
    ends: Ends,
    /// By the place of its endpoint among the senders.
    sources: Vec<PeerId>,
    pool: Pool,
    free: Vec<Buffer>,
    message: Buffer,
    /// Of receives that are posted.
    buffers: HashMap<u64, Buffer>,
    /// Claims that nobody has taken yet.
    claims: BTreeSet<u64>,
    /// By context: the message that came of it, if it has ended.
    ended: HashMap<u64, Option<u32>>,
    /// The receive that ended last.
    last: Option<u64>,
    matches: u64,
}

impl Endpoints {
    /// For this trace.
    pub(super) fn new(wire: &Wire, matcher: Matcher, trace: &Trace) -> Result<Self, Fault> {
        let sources: BTreeSet<PeerId> = trace.steps.iter().filter_map(|step| named(&step.event)).collect();
        let sources: Vec<PeerId> = sources.into_iter().collect();
        let ends = Ends::open(wire, matcher, sources.len()).map_err(Fault::new)?;
        let mut pool = Pool::new((trace.depths().posted_max + 16) * POOL_OF_ONE);
        let message = pool.take(LENGTH_MAX).map_err(Fault::new)?;
        Ok(Self {
            ends,
            sources,
            pool,
            free: Vec::new(),
            message,
            buffers: HashMap::new(),
            claims: BTreeSet::new(),
            ended: HashMap::new(),
            last: None,
            matches: 0,
        })
    }

    fn sender(&self, source: PeerId) -> Result<usize, Fault> {
        self.sources.binary_search(&source).map_err(|_| Fault::new(format!("{source:?} was not foreseen")))
    }

    /// A source as an address; senders come behind the receiver.
    fn source(&self, pattern: &Pattern) -> Result<Option<Address>, Fault> {
        match pattern.source {
            Source::Any => Ok(None),
            Source::Peer(peer) => Ok(Some(Ends::address(self.sender(peer)?))),
            Source::Group(_) => Err(Fault::new("an endpoint has no groups")),
        }
    }

    fn buffer(&mut self, length: u64) -> Result<Buffer, Fault> {
        let buffer = match self.free.pop() {
            Some(buffer) => buffer,
            None => self.pool.take(LENGTH_MAX).map_err(Fault::new)?,
        };
        Ok(Buffer { length: length.min(LENGTH_MAX), ..buffer })
    }

    /// Both sides move on until something has ended or `is_so`.
    fn until(&mut self, sender: usize, is_so: impl Fn(&Self) -> bool) -> Result<(), Fault> {
        for _ in 0..STEPS_MAX {
            if is_so(self) {
                return Ok(());
            }
            self.ends.carry_of(sender).map_err(Fault::new)?;
            self.ends.receive().map_err(Fault::new)?;
            self.take()?;
        }
        Err(Fault::new("nothing happens any more"))
    }

    fn take(&mut self) -> Result<(), Fault> {
        while let Some(completion) = self.ends.receiver.poll_completion() {
            let context = completion.context;
            let end = match completion.what {
                Completed::Sent => continue,
                Completed::Received { message, .. } | Completed::Peeked(message) => message.cq_data,
                Completed::NoMessage | Completed::Cancelled => None,
                other @ (Completed::Released
                | Completed::Written
                | Completed::Read
                | Completed::WrittenByPeer { .. }
                | Completed::OperatedByPeer { .. }
                | Completed::ReadByPeer { .. }
                | Completed::Failed(_)) => {
                    return Err(Fault::new(format!("{context} ended with {other:?}")));
                }
            };
            self.ended.insert(context, end);
            self.last = Some(context);
            self.free.extend(self.buffers.remove(&context));
        }
        Ok(())
    }

    /// What came of an operation that has ended.
    fn end(&mut self, context: u64) -> Option<u32> {
        self.ended.get(&context).copied().flatten()
    }

    fn unexpected(&self) -> usize {
        self.ends.receiver.depths(Space::Tagged).1
    }

    fn look(&mut self, context: u64, pattern: &Pattern, action: PeekAction) -> Result<Option<u32>, Fault> {
        let source = self.source(pattern)?;
        let Pattern { tag, ignore, .. } = *pattern;
        let space = Space::Tagged;
        self.ended.remove(&context);
        self.ends.receiver.peek(&Peek { space, source, tag, ignore, action, context, flags: 0 });
        self.until(0, |all| all.ended.contains_key(&context))?;
        Ok(self.end(context))
    }
}

/// Whom an event names.
fn named(event: &Event) -> Option<PeerId> {
    match event {
        Event::Arrive { envelope, .. } => Some(envelope.source),
        Event::Post { pattern, .. } | Event::Peek { pattern, .. } => match pattern.source {
            Source::Peer(peer) => Some(peer),
            Source::Any | Source::Group(_) => None,
        },
        Event::Claim { .. } | Event::Cancel { .. } => None,
    }
}

impl Target for Endpoints {
    fn post(
        &mut self,
        receive: ReceiveNumber,
        pattern: &Pattern,
        length: u64,
    ) -> Result<Option<MessageNumber>, Fault> {
        let (source, buffer) = (self.source(pattern)?, self.buffer(length)?);
        let context = u64::from(receive.0);
        let Pattern { tag, ignore, .. } = *pattern;
        let (space, kind) = (Space::Tagged, Kind::Once);
        let before = self.unexpected();
        self.buffers.insert(context, buffer);
        let post = Post { space, source, tag, ignore, buffer, kind, context, flags: 0 };
        self.ends.receiver.post(&post).map_err(Fault::new)?;
        if self.unexpected() == before {
            return Ok(None);
        }
        self.until(0, |all| all.ended.contains_key(&context))?;
        self.matches += 1;
        Ok(self.end(context).map(MessageNumber))
    }

    fn arrive(
        &mut self,
        message: MessageNumber,
        envelope: &Envelope,
        length: u64,
    ) -> Result<Option<ReceiveNumber>, Fault> {
        let sender = self.sender(envelope.source)?;
        let payload = Payload::Memory(Buffer { length: length.min(LENGTH_MAX), ..self.message });
        let send = Send {
            space: Space::Tagged,
            to: Address(0),
            tag: envelope.tag,
            payload,
            cq_data: Some(message.0),
            level: Level::Inject,
            more: false,
            context: 0,
            flags: 0,
        };
        (self.last, _) = (None, self.take()?);
        let before = self.unexpected();
        for attempt in 0..=STEPS_MAX {
            match self.ends.sender_of(sender).send(&send) {
                Ok(()) => break,
                Err(SendRefused::Again) if attempt < STEPS_MAX => {
                    self.ends.carry_of(sender).map_err(Fault::new)?;
                    self.ends.receive().map_err(Fault::new)?;
                }
                Err(refused) => return Err(Fault::new(text(refused))),
            }
        }
        self.until(sender, |all| all.last.is_some() || all.unexpected() > before)?;
        while self.ends.sender_of(sender).poll_completion().is_some() {}
        let Some(context) = self.last else { return Ok(None) };
        self.matches += 1;
        Ok(u32::try_from(context).ok().map(ReceiveNumber))
    }

    fn peek(
        &mut self,
        peek: PeekNumber,
        pattern: &Pattern,
        claim: bool,
    ) -> Result<Option<MessageNumber>, Fault> {
        let context = PEEK | u64::from(peek.0);
        let action = if claim { PeekAction::Claim } else { PeekAction::Look };
        let found = self.look(context, pattern, action)?;
        if claim && found.is_some() {
            self.claims.insert(context);
        }
        Ok(found.map(MessageNumber))
    }

    fn claim(
        &mut self,
        _: ReceiveNumber,
        peek: PeekNumber,
        length: u64,
    ) -> Result<Option<MessageNumber>, Fault> {
        let context = PEEK | u64::from(peek.0);
        let buffer = self.buffer(length)?;
        self.buffers.insert(context, buffer);
        self.ended.remove(&context);
        self.claims.remove(&context);
        self.ends.receiver.receive_claimed(context, buffer, 0).map_err(Fault::new)?;
        self.until(0, |all| all.ended.contains_key(&context))?;
        self.matches += 1;
        Ok(self.end(context).map(MessageNumber))
    }

    fn cancel(&mut self, receive: ReceiveNumber) -> Result<bool, Fault> {
        let context = u64::from(receive.0);
        if self.ended.contains_key(&context) {
            return Ok(false);
        }
        self.ends.receiver.cancel(context);
        self.until(0, |all| all.ended.contains_key(&context))?;
        Ok(self.end(context).is_none())
    }

    fn reset(&mut self) -> Result<(), Fault> {
        let posted: Vec<u64> = self.buffers.keys().copied().collect();
        for context in posted {
            self.ends.receiver.cancel(context);
        }
        self.until(0, |all| all.buffers.is_empty())?;
        for context in std::mem::take(&mut self.claims) {
            self.ends.receiver.discard_claimed(context, 0).map_err(Fault::new)?;
        }
        let any = Pattern { tag: Tag(0), ignore: Ignore::ALL, source: Source::Any };
        while self.unexpected() > 0 && self.look(PEEK - 1, &any, PeekAction::Discard)?.is_some() {}
        self.take()?;
        self.ended.clear();
        Ok(())
    }
}

impl Over for Endpoints {
    fn statistics(&self) -> &Statistics {
        self.ends.receiver.offload_statistics()
    }

    fn matches(&self) -> u64 {
        self.matches
    }

    fn cancelled_in_device(&self) -> u64 {
        // What ended and was not counted as anything else.
        let (all, list) = (self.ends.receiver.statistics(), self.statistics());
        let told: u64 = list.in_software.iter().sum();
        let told = told + list.matched_by_device + list.used_by_own_device + list.taken_back;
        (all.received + all.cancelled).saturating_sub(told + all.matched_unexpected)
            * u64::from(self.ends.tags > 0)
    }

    fn tags(&self) -> u32 {
        self.ends.tags
    }

    fn refusal(&self) -> Option<String> {
        None
    }

    fn begin_measuring(&mut self) {}
}

/// Bytes of a message and of a receive, at most.
const LENGTH_MAX: u64 = 64;
const POOL_OF_ONE: usize = 64;
/// Contexts of peeks: not those of receives.
const PEEK: u64 = 1 << 32;
/// After so many steps without it nothing will happen any more.
const STEPS_MAX: u32 = 5_000_000;
