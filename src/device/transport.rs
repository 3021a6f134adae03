//! What a device does that also carries messages between endpoints: connections, sending, serving reads.
//!
//! [`Device`] is the receiving half, the one that the engine knows. [`Transport`] adds the half that only an endpoint
//! knows. It is told everything in one call, in the order in which it happened: what is for the engine of messages
//! with a tag, what is for that of messages without, control messages, and what became of connections and sends.
//!
//! Not here: who may connect, what a hello says, which of two connections survives, who may send how much. That is the
//! endpoint's. A transport frames, moves bytes, and puts segments together.

use super::Device;
use crate::ids::{DeviceId, LinkId, PeerId};
use crate::seam::{Answer, Buffer, Data, DeviceError, Event, EventSink, Remote};
use crate::wire::{Control, RemoteAtomic};

/// A device that carries messages between endpoints.
///
/// A connection (link) begins in one of two ways: [`Self::open`] makes one, or [`Notice::Incoming`] tells of one. Until
/// it is bound to a peer ([`Self::bind`], [`Reaction::Bind`]) only control messages pass on it, and anything else ends
/// it; from then on all that comes through it is that peer's. When it has ended, everything that had come was told, then
/// [`Event::PathLost`] if it was bound (to both spaces), then [`Notice::Closed`], and its id names nothing any more.
pub trait Transport: Device {
    /// The address under which others reach this: a `sockaddr` as `fi_getname(3)` gives it, at most 64 bytes.
    fn name(&self) -> &[u8];

    /// Whether it goes through memory that processes of one host share.
    fn is_shared_memory(&self) -> bool {
        false
    }

    /// Begin to connect to an address. [`Notice::Open`] or [`Notice::Closed`] tells how it ended.
    ///
    /// # Errors
    /// Nothing was begun.
    fn open(&mut self, address: &[u8]) -> Result<LinkId, LinkError>;

    /// Call from this address the next time; [`Self::name`] is that from now on, with a port that is free where it has none.
    ///
    /// # Errors
    /// It is none of this transport's, or another's; nothing has changed but that calls are from any address.
    fn set_source(&mut self, _name: &[u8]) -> Result<(), LinkError> {
        Err(LinkError::Address("calls over this transport come from no address".into()))
    }

    /// This end's address and the other's of a link that is there, where they have some.
    fn addresses(&self, _link: LinkId) -> Option<(Vec<u8>, Vec<u8>)> {
        None
    }

    /// What comes through this link is this peer's from now on. A peer has one bound link at a time: the one before
    /// must have been told closed.
    ///
    /// # Errors
    /// There is no such link, or it or the peer is bound already.
    fn bind(&mut self, link: LinkId, peer: PeerId) -> Result<(), LinkError>;

    /// End a link. With `flush` what was given to send goes out first, and [`Notice::Closed`] comes when the other side's
    /// host has it, or the other side is gone, however long that takes ([`Self::untaken`]); without, nothing more goes out.
    /// Sends that are not done fail ([`Notice::Sent`]). Of an id that names nothing: nothing.
    fn close(&mut self, link: LinkId, flush: bool);

    /// Bytes given to send on a link that the other side's host is not known to have: whether a link that is being
    /// closed gets on.
    fn untaken(&self, _link: LinkId) -> u64 {
        0
    }

    /// Tell [`Notice::Sent`] with this context when the other side's host has all that was given to send on a link so far:
    /// nothing of it depends on this process any longer. False: it has it already, and nothing will be told.
    fn tell_taken(&mut self, _link: LinkId, _context: u64) -> bool {
        false
    }

    /// Send a message. The order of sends on a link is the order of arrival.
    ///
    /// # Errors
    /// It cannot be sent at all; nothing was done.
    fn send(&mut self, link: LinkId, message: &Outgoing<'_>) -> Result<Sending, SendError>;

    /// Send a message if that is over when this returns ([`Sending::Done`]). False: nothing was done, and [`Self::send`] takes
    /// it or says why not.
    fn send_at_once(&mut self, _link: LinkId, _message: &Outgoing<'_>) -> bool {
        false
    }

    /// Let the peer at the other end of a link read this memory. What comes back stands in the rendezvous request.
    ///
    /// # Errors
    /// The memory cannot be read by others.
    fn expose(&mut self, link: LinkId, memory: Buffer) -> Result<Remote, SendError>;

    /// The peer may read it no more, and when this returns the transport does not either.
    fn withdraw(&mut self, remote: &Remote);

    /// What of a peer's eager messages is kept here, unexpected: for credits.
    fn kept(&self, peer: PeerId) -> Kept;

    /// Move on: read, write, accept, and tell at most about `max` things. Like [`Device::poll`], which of such a device
    /// is not called.
    ///
    /// # Errors
    /// The device failed; what was told before that stands.
    fn progress(&mut self, max: usize, ear: &mut dyn Ear) -> Result<usize, DeviceError>;

    /// Buffers of its own, each of its eager limit, for receives in its list that are shorter.
    fn bounces(&self) -> Vec<Buffer> {
        Vec::new()
    }

    /// A file descriptor that is readable when [`Self::progress`] would find something, if there is one.
    fn wait_descriptor(&self) -> Option<i32> {
        None
    }

    /// Something is to be expected that the descriptor does not show: [`Self::progress`] is to be called every few
    /// milliseconds.
    fn is_unseen(&self) -> bool {
        false
    }

    /// The owner comes to look after a while: the next [`Self::progress`] finds all that the descriptor would show, however
    /// seldom it asks for that when it is called again and again.
    fn look_around(&mut self) {}

    /// Before waiting for the descriptor: false if there is something to do already.
    fn may_wait(&mut self) -> bool {
        false
    }
}

/// A transport at which others call, and of which each link can become a transport of its own: what a passive endpoint
/// (`fi_passive_ep`) listens with.
pub trait Listening: Transport {
    /// Take out a link that is open, is not bound, and on which nothing is under way.
    ///
    /// # Errors
    /// [`LinkError::System`]: the operating system has nothing for it now, and nothing has changed. Else it is not so, and
    /// nothing can be done with that link but to close it.
    fn take_out(&mut self, link: LinkId) -> Result<Taken, LinkError>;

    /// So many connections may wait to be accepted from now on, as far as the system allows.
    ///
    /// # Errors
    /// The operating system refuses.
    fn set_backlog(&mut self, backlog: u32) -> Result<(), LinkError>;
}

/// A link that was taken out of where it began.
pub struct Taken {
    /// The transport that has this link alone, set up as the one that it comes from.
    pub transport: Box<dyn Transport + Send>,
    /// Its name there. It is open and not bound.
    pub link: LinkId,
    /// This end's address.
    pub name: Vec<u8>,
    /// The other's.
    pub peer: Vec<u8>,
}

impl std::fmt::Debug for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { link, name, peer, .. } = self;
        f.debug_struct("Taken")
            .field("link", link)
            .field("name", name)
            .field("peer", peer)
            .finish_non_exhaustive()
    }
}

/// What an endpoint hears with. Messages with a tag come to [`EventSink::handle_event`].
pub trait Ear: EventSink {
    /// The same of messages without a tag (`fi_msg(3)`): their arrivals (the tag says nothing), and what follows of
    /// these. [`Event::PathLost`] and [`Event::DeviceFailed`] come to both.
    fn handle_untagged_event(&mut self, device: DeviceId, event: &Event) -> Answer;

    /// Whether messages with a tag may come in segments. Not where a device matches them, which has no room for the
    /// length of the whole: a peer that sends such segments breaks the protocol, and its link ends.
    fn takes_segments_with_a_tag(&self) -> bool {
        true
    }

    /// A piece of remote memory access with its payload: [`Control::RemoteWrite`] or [`Control::RemoteData`], as far as it
    /// is here. The answer says where it goes, now: never [`Answer::Hold`]. An accepted one that was `in_hand` is placed
    /// before anything else is told; of the others [`Self::handle_remote_data`] tells the end.
    fn handle_remote(
        &mut self,
        _device: DeviceId,
        _source: PeerId,
        _message: &Control<'_>,
        _in_hand: bool,
    ) -> Answer {
        Answer::Discard
    }

    /// The payload of such a piece is in place, or never will be.
    fn handle_remote_data(&mut self, _device: DeviceId, _data: &Data) {}

    /// An operation on values of this side's memory, with all its operands. The values it is done on are there; `None`: it is
    /// not done. [`Self::handle_remote_atomic_done`] follows at once where it is.
    fn handle_remote_atomic(
        &mut self,
        _device: DeviceId,
        _source: PeerId,
        _atomic: &RemoteAtomic<'_>,
    ) -> Option<Buffer> {
        None
    }

    /// The operation is done, and this was there before, in the order of bytes of whoever asked for it.
    fn handle_remote_atomic_done(
        &mut self,
        _device: DeviceId,
        _source: PeerId,
        _atomic: &RemoteAtomic<'_>,
        _before: &[u8],
    ) {
    }

    /// A message that nobody matches: any `wire` message but those of the two spaces, and those above. Of segments the endpoint hears
    /// as of one message.
    fn handle_control(&mut self, device: DeviceId, link: LinkId, message: &[u8]) -> Reaction;

    /// Something became of a connection or of a send.
    fn handle_notice(&mut self, device: DeviceId, notice: Notice);
}

/// What is to become of a link after a control message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reaction {
    /// It goes on.
    Continue,
    /// It goes on, and is not ended to make room for others, though it is nobody's yet.
    Keep,
    /// It is this peer's, before anything more is read from it.
    Bind(PeerId),
    /// It ends: as by [`Transport::close`] without `flush`.
    Close,
}

/// What became of a connection or of a send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Somebody connected.
    Incoming {
        /// The new link.
        link: LinkId,
    },
    /// A link that [`Transport::open`] began is there.
    Open {
        /// Which.
        link: LinkId,
    },
    /// A link has ended.
    Closed {
        /// Which; it names nothing any more.
        link: LinkId,
        /// Why.
        reason: CloseReason,
    },
    /// A send that was [`Sending::Posted`] is done: its memory is the sender's again.
    Sent {
        /// As given with the message.
        context: u64,
        /// Whether all of it went out. (That the peer has it, only the peer can say.)
        result: Result<(), CloseReason>,
    },
}

/// Why a link ended.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The owner closed it.
    #[error("it was closed here")]
    Here,
    /// The other side did, between two messages.
    #[error("the peer closed the connection")]
    Peer,
    /// Nobody listens there.
    #[error("connection refused")]
    Refused,
    /// The operating system ended it.
    #[error("the connection failed with errno {errno}")]
    System {
        /// `errno`, positive.
        errno: i32,
    },
    /// The device gave the connection up.
    #[error("the connection failed with work-completion status {status}, vendor error {vendor_error:#x}")]
    Device {
        /// `ibv_wc_status`.
        status: u32,
        /// `vendor_err`.
        vendor_error: u32,
    },
    /// Memory of this side's could not be read. Of a send: it was not sent, and its link may go on.
    #[error("memory that was to be sent cannot be read")]
    Memory,
    /// The other side broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Protocol(String),
}

/// A link cannot be made or bound.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// No address of this transport's.
    #[error("the address is none of this transport's: {0}")]
    Address(String),
    /// There is no such link.
    #[error("{0:?} is no connection")]
    Unknown(LinkId),
    /// Link or peer is bound already.
    #[error("{peer:?} or {link:?} is bound already")]
    Bound {
        /// The link.
        link: LinkId,
        /// The peer.
        peer: PeerId,
    },
    /// The operating system refused.
    #[error("{call} failed with errno {errno}")]
    System {
        /// What was called.
        call: &'static str,
        /// `errno`, positive.
        errno: i32,
    },
}

impl LinkError {
    pub(in crate::device) fn of(call: &'static str, error: &std::io::Error) -> Self {
        Self::System { call, errno: error.raw_os_error().unwrap_or(libc::EIO) }
    }
}

/// A message to send.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The header (`wire`), encoded: all of the message but its payload.
    pub header: &'a [u8],
    /// The payload, if there is one.
    pub payload: Payload<'a>,
    /// Remote CQ data of a message with a tag.
    pub immediate: Option<u32>,
    /// More will follow at once: it may wait for [`Device::flush`] or for the next message without this.
    pub more: bool,
    /// What [`Notice::Sent`] shall say. `None`: nothing is to be told, whatever becomes of it.
    pub context: Option<u64>,
}

/// Where a payload lies.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// Here; it is copied if it does not go out at once.
    Copied(&'a [u8]),
    /// In memory that stays as it is until the send is done.
    Memory(Buffer),
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sending {
    /// It is out, or copied: its memory is the sender's again, and no [`Notice::Sent`] follows.
    Done,
    /// It is on its way; [`Notice::Sent`] will tell its end if there was a context.
    Posted,
    /// There is no room for it now: go on with [`Transport::progress`] and try again.
    Full,
}

/// A message cannot be sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no such link (any more).
    #[error("{0:?} is not connected")]
    NoLink(LinkId),
    /// It is longer than the transport takes at once.
    #[error("{length} bytes are more than the {limit} that can be sent at once")]
    TooLong {
        /// Bytes of the payload.
        length: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The header is no message of the protocol.
    #[error("no message of the protocol")]
    Malformed,
    /// The memory cannot be used.
    #[error("the memory cannot be sent from: {0}")]
    Memory(String),
}

/// What of a peer's eager messages waits on the unexpected list, and is kept by the transport.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Kept {
    /// Messages with a payload.
    pub messages: u64,
    /// Bytes of payload in them.
    pub bytes: u64,
    /// Requests to read, which have no payload here.
    pub requests: u64,
}
