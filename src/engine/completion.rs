//! What the user is told.

use crate::ids::{DeviceId, PeerId, Tag};
use crate::seam::{Arrival, Buffer, DataError, Match};

/// One thing that the user is told. A receive gives exactly one final completion.
///
/// # When its memory may be freed
///
/// A completion says that the receive has ended; it does not say that every device has let go of the buffer. A device
/// that was given it with [`Command::Add`](crate::seam::Command::Add) says so by
/// [`Event::Released`](crate::seam::Event::Released), with the completion's event or in a later poll, by
/// [`Match::released`](crate::seam::Match::released), or by [`Event::DeviceFailed`](crate::seam::Event::DeviceFailed). So memory may be freed, or registered memory given up,
/// when its receive has ended **and** each entry made of it was released. Without a device that matches, the completion
/// is enough. [`End::Released`] is another thing: that a multi-receive buffer has taken its last message.
///
/// The engine forgets a receive with its completion ([`Engine::context_of`](super::Engine::context_of) knows it no
/// more), so the owner notes which entry is whose when it submits, and listens in front of the engine. With a
/// [`BufferTable`](crate::domain::BufferTable), note is taken by `expose`, and it ends with `release`:
///
/// ```
/// # use tagmatch::device::Device;
/// # use tagmatch::device::soft::{NoMemory, SoftConfig, SoftDevice, SoftMessage};
/// # use tagmatch::engine::{Config, Engine, Kind, Receive};
/// # use tagmatch::ids::{Ignore, PeerId, Source, Tag};
/// # use tagmatch::matching::Pattern;
/// # use tagmatch::seam::Buffer;
/// use std::collections::HashMap;
/// use tagmatch::ids::{DeviceId, TagHandle};
/// use tagmatch::seam::{Answer, Command, Event, EventSink};
///
/// /// Which receive's buffer an entry of a device has.
/// type Lent = HashMap<(DeviceId, TagHandle), u64>;
///
/// struct Ear<'a> {
///     engine: &'a mut Engine,
///     lent: &'a mut Lent,
/// }
///
/// impl EventSink for Ear<'_> {
///     fn handle_event(&mut self, device: DeviceId, event: &Event) -> Answer {
///         match event {
///             Event::Released(handle) => drop(self.lent.remove(&(device, *handle))),
///             // The match was the last of its entry: both in one.
///             Event::Matched(matched) if matched.released => drop(self.lent.remove(&(device, matched.handle))),
///             Event::DeviceFailed(_) => self.lent.retain(|&(of, _), _| of != device),
///             _ => {}
///         }
///         self.engine.handle_event(device, event)
///     }
/// }
///
/// # let mut engine = Engine::new(Config::default());
/// # let mut device = SoftDevice::new(SoftConfig::matching(16), NoMemory)?;
/// # let id = engine.add_device(device.capabilities())?;
/// # let pattern = Pattern { tag: Tag(7), ignore: Ignore(0), source: Source::Any };
/// # let buffer = Buffer::new(0x1000, 8192);
/// # engine.post(&Receive { pattern, buffer, context: 42, kind: Kind::Once });
/// # let mut was_lent = false;
/// let (mut lent, mut ended) = (Lent::new(), false);
/// while !ended || !lent.is_empty() {
///     let commands = engine.poll_commands(id).to_vec();
///     let taken = device.submit(&commands)?;
///     for command in &commands[..taken] {
///         if let Command::Add { handle, .. } = command
///             && let Some(context) = engine.context_of(id, *handle)
///         {
///             lent.insert((id, *handle), context);
/// #           was_lent = true;
///         }
///     }
///     engine.handle_submitted(id, taken);
///     device.flush()?;
/// #   if !ended && was_lent { let _ = device.send(PeerId(0), SoftMessage::eager(Tag(7), 100)); }
///     device.poll(64, &mut Ear { engine: &mut engine, lent: &mut lent })?;
///     while let Some(completion) = engine.poll_completion() {
///         ended |= completion.context == 42;
///     }
/// }
/// // Receive 42 has ended, and no device has its buffer: it may be freed.
/// # assert!(was_lent);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Completion {
    /// As given with the receive.
    pub context: u64,
    /// How it ended.
    pub end: End,
}

/// How a receive ended, or one match of a multi-receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// It holds a message.
    Received(Received),
    /// It was cancelled, and holds nothing.
    Cancelled,
    /// It took a message whose data will not come.
    Failed {
        /// Who sent it.
        source: PeerId,
        /// Its tag.
        tag: Tag,
        /// The sender's word.
        app_ctx: u32,
        /// Why.
        error: DataError,
    },
    /// A multi-receive buffer took its last message, and nothing more is written there (`FI_MULTI_RECV`). Such a buffer
    /// is in no device, so this has nothing to do with [`Event::Released`](crate::seam::Event::Released).
    Released,
}

/// A message in its receive. Its bytes are in their place; when the memory may be freed, says [`Completion`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Received {
    /// Who sent it.
    pub source: PeerId,
    /// Its tag.
    pub tag: Tag,
    /// Bytes that it had.
    pub length: u64,
    /// Bytes that were written; fewer than `length` means that it was cut (`FI_ETRUNC`, `MPI_ERR_TRUNCATE`).
    pub placed: u64,
    /// Where they were written.
    pub address: u64,
    /// The sender's word.
    pub app_ctx: u32,
    /// Remote completion-queue data.
    pub immediate: Option<u32>,
    /// The device that matched it; `None`: software.
    pub matched_by: Option<DeviceId>,
}

impl Received {
    /// Whether the message was longer than what was left of the buffer.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.placed < self.length
    }

    /// A message that a device matched with a receive of this buffer.
    pub(super) fn of_match(device: DeviceId, matched: &Match, buffer: &Buffer) -> Self {
        let mut received = Self::NOTHING;
        received.write_match(device, matched, buffer);
        received
    }

    /// The same, where it lies.
    #[inline(always)]
    pub(super) fn write_match(&mut self, device: DeviceId, matched: &Match, buffer: &Buffer) {
        self.immediate = matched.immediate;
        self.tag = matched.tag;
        self.length = matched.length;
        self.placed = matched.length.min(buffer.length);
        self.address = buffer.address;
        self.source = matched.source;
        self.app_ctx = matched.app_ctx;
        self.matched_by = Some(device);
    }

    /// A message in hand, matched in software with a receive of this buffer.
    #[inline(always)]
    pub(super) fn write_arrival(&mut self, arrival: &Arrival, buffer: &Buffer) {
        let header = &arrival.header;
        self.immediate = header.immediate;
        self.tag = header.tag;
        self.length = header.length;
        self.placed = header.length.min(buffer.length);
        self.address = buffer.address;
        self.source = arrival.source;
        self.app_ctx = header.app_ctx;
        self.matched_by = None;
    }

    /// No message.
    pub(super) const NOTHING: Self = Self {
        source: PeerId(0),
        tag: Tag(0),
        length: 0,
        placed: 0,
        address: 0,
        app_ctx: 0,
        immediate: None,
        matched_by: None,
    };
}

impl End {
    /// A message whose data will not come.
    pub(super) const fn failed(message: &Received, error: DataError) -> Self {
        Self::Failed { source: message.source, tag: message.tag, app_ctx: message.app_ctx, error }
    }
}

/// One cache line: a completion is moved twice for each message.
const _: () = assert!(size_of::<Completion>() <= 64);
