//! Who sends: contexts of their own, in this process or another.

use std::fmt;

use super::super::Fault;
use super::memory::{Payload, real_length};
use crate::device::Device as _;
use crate::device::verbs::VerbsDevice;
use crate::device::verbs::address::ConnectInfo;
use crate::device::verbs::device::{HostMemory, Message, Registered, Sending};
use crate::device::verbs::device::{TagMatching, VerbsConfig};
use crate::device::verbs::memory::RemoteAccess;
use crate::ids::{DeviceId, PeerId, Tag};
use crate::seam::{Answer, Event, EventSink};
use crate::traces::MessageNumber;
use crate::wire::{self, AppContext, OperationId, RemoteMemory, Rendezvous};

/// Who sends. A sender of the trace has a connection of its own, so that its messages stay in order and the
/// receiver knows from the connection who sent.
pub trait Senders: fmt::Debug {
    /// Make a sender's side of its connection.
    ///
    /// # Errors
    /// It cannot be made.
    fn prepare(&mut self, sender: PeerId) -> Result<ConnectInfo, Fault>;

    /// Connect it with the receiver's side.
    ///
    /// # Errors
    /// It cannot be connected.
    fn connect(&mut self, sender: PeerId, receiver: &ConnectInfo) -> Result<(), Fault>;

    /// Send a message. False: there is no room for it now.
    ///
    /// # Errors
    /// It cannot be sent.
    fn send(&mut self, sender: PeerId, message: MessageNumber, tag: Tag, length: u64) -> Result<bool, Fault>;

    /// Look after what is under way. Whether anything was done.
    ///
    /// # Errors
    /// A send failed.
    fn progress(&mut self) -> Result<bool, Fault>;

    /// Rendezvous requests that were not answered by a FIN yet.
    ///
    /// # Errors
    /// A sender is gone.
    fn outstanding(&mut self) -> Result<u64, Fault>;

    /// End all connections, and be ready for others.
    ///
    /// # Errors
    /// The devices cannot be opened again.
    fn reset(&mut self) -> Result<(), Fault>;
}

/// How senders are set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SenderSettings {
    /// The device, by name; `None`: the first.
    pub device: Option<String>,
    /// Contexts that senders are dealt to in turn.
    pub contexts: u32,
    /// Senders in all.
    pub senders: u32,
    /// The longest payload that goes eagerly.
    pub eager_limit: u32,
    /// The longest message of the trace.
    pub length_max: u64,
}

/// Senders in contexts of this process.
#[derive(Debug)]
pub struct Contexts {
    settings: SenderSettings,
    payload: Payload,
    contexts: Vec<Context>,
    /// Of each sender, which context has it.
    dealt: Vec<(PeerId, usize)>,
}

#[derive(Debug)]
struct Context {
    device: VerbsDevice,
    /// What rendezvous payloads are read from.
    region: Registered,
    requests: u64,
    answered: u64,
}

impl Contexts {
    /// Open them.
    ///
    /// # Errors
    /// There is no such device, or it has too little of something.
    pub fn open(settings: SenderSettings) -> Result<Self, Fault> {
        let payload = Payload::new(settings.length_max);
        let contexts = open_all(&settings, &payload)?;
        Ok(Self { settings, payload, contexts, dealt: Vec::new() })
    }

    fn of(&mut self, sender: PeerId) -> Result<&mut Context, Fault> {
        let dealt = self.dealt.binary_search_by_key(&sender, |dealt| dealt.0).ok();
        let context = dealt.and_then(|place| self.contexts.get_mut(self.dealt.get(place)?.1));
        context.ok_or_else(|| Fault::new(format!("sender {} has no connection", sender.0)))
    }
}

fn open_all(settings: &SenderSettings, payload: &Payload) -> Result<Vec<Context>, Fault> {
    (0..settings.contexts.max(1)).map(|_| Context::open(settings, payload)).collect()
}

impl Senders for Contexts {
    fn prepare(&mut self, sender: PeerId) -> Result<ConnectInfo, Fault> {
        let context = self.dealt.len() % self.contexts.len().max(1);
        let place = self.dealt.partition_point(|dealt| dealt.0 < sender);
        self.dealt.insert(place, (sender, context));
        self.of(sender)?.device.prepare(sender).map_err(Fault::new)
    }

    fn connect(&mut self, sender: PeerId, receiver: &ConnectInfo) -> Result<(), Fault> {
        self.of(sender)?.device.connect(sender, receiver).map_err(Fault::new)
    }

    fn send(&mut self, sender: PeerId, message: MessageNumber, tag: Tag, length: u64) -> Result<bool, Fault> {
        let length = real_length(length);
        let operation = OperationId::new(message.0)
            .ok_or_else(|| Fault::new("operation ids have 24 bits: the trace has more messages"))?;
        let context = AppContext { operation, ..AppContext::default() };
        let eager_limit = u64::from(self.settings.eager_limit);
        if length <= eager_limit {
            let dealt = self.dealt.binary_search_by_key(&sender, |dealt| dealt.0);
            let place =
                dealt.ok().and_then(|place| self.dealt.get(place)).map_or(usize::MAX, |dealt| dealt.1);
            let payload = self.payload.of(message.0, length);
            let Some(of) = self.contexts.get_mut(place) else {
                return Err(Fault::new(format!("sender {} has no connection", sender.0)));
            };
            return of.send(sender, &Message::Eager { context, tag, payload });
        }
        let of = self.of(sender)?;
        let address = of.region.buffer.address + Payload::offset(message.0);
        let memory = RemoteMemory { address, key: of.region.remote_key, length };
        let posted = of.send(sender, &Message::Rendezvous(Rendezvous { context, tag, memory }))?;
        of.requests += u64::from(posted);
        Ok(posted)
    }

    fn progress(&mut self) -> Result<bool, Fault> {
        let mut any = false;
        for context in &mut self.contexts {
            any |= context.progress()?;
        }
        Ok(any)
    }

    fn outstanding(&mut self) -> Result<u64, Fault> {
        Ok(self.contexts.iter().map(|context| context.requests - context.answered).sum())
    }

    fn reset(&mut self) -> Result<(), Fault> {
        self.dealt.clear();
        self.contexts.clear();
        self.contexts = open_all(&self.settings, &self.payload)?;
        Ok(())
    }
}

impl Context {
    fn open(settings: &SenderSettings, payload: &Payload) -> Result<Self, Fault> {
        let config = VerbsConfig {
            id: DeviceId(u8::MAX),
            device: settings.device.clone(),
            tag_matching: TagMatching::Off,
            eager_limit: settings.eager_limit,
            peers: settings.senders.div_ceil(settings.contexts.max(1)).max(1),
            // FINs alone come here.
            unexpected_buffers: 64,
            spare_buffers: 64,
            ..VerbsConfig::default()
        };
        let mut device = VerbsDevice::open(config, HostMemory::registered()).map_err(Fault::new)?;
        let region = device.allocate(payload.bytes().len(), RemoteAccess::READ).map_err(Fault::new)?;
        let written = device.region(region.id).is_some_and(|memory| memory.write(0, payload.bytes()));
        if !written {
            return Err(Fault::new("the payload does not fit into its region"));
        }
        Ok(Self { device, region, requests: 0, answered: 0 })
    }

    fn send(&mut self, sender: PeerId, message: &Message<'_>) -> Result<bool, Fault> {
        let sent = self.device.send(sender, message, None, 0).map_err(Fault::new)?;
        Ok(sent == Sending::Posted)
    }

    fn progress(&mut self) -> Result<bool, Fault> {
        let mut ear = Ear { wrong: None };
        let mut any = self.device.poll(EVENTS, &mut ear).map_err(Fault::new)? > 0;
        if let Some(event) = ear.wrong {
            return Err(Fault::new(format!("a sender was told {event:?}")));
        }
        let mut answered = 0;
        let mut other = 0;
        self.device.take_untagged(|_, _, bytes| match wire::decode(bytes) {
            Ok(wire::Message::Fin(_)) => answered += 1,
            _ => other += 1,
        });
        if other > 0 || self.answered + answered > self.requests {
            return Err(Fault::new("a sender got what is no answer to a request of its"));
        }
        self.answered += answered;
        while let Some(sent) = self.device.poll_sent() {
            any = true;
            sent.result
                .map_err(|failure| Fault::new(format!("a send of peer {}: {failure}", sent.peer.0)))?;
        }
        Ok(any || answered > 0)
    }
}

/// Nobody sends to a sender.
struct Ear {
    wrong: Option<Event>,
}

impl EventSink for Ear {
    fn handle_event(&mut self, _: DeviceId, event: &Event) -> Answer {
        if !matches!(event, Event::Untagged { .. }) {
            self.wrong = Some(event.clone());
        }
        Answer::Hold
    }
}

/// Events polled at a time.
const EVENTS: usize = 64;
