//! A peer that has the socket and the memory in its hands.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use crate::device::Device as _;
use crate::device::shm::region::Region;
use crate::device::shm::ring::Rings;
use crate::device::shm::stream::Hello;
use crate::device::shm::{ShmTransport, abstract_name, socket};
use crate::device::tests::{Heard, RECEIVED_FROM, Recorder, framed, shared_memory};
use crate::device::transport::{CloseReason, Notice, Outgoing, Payload, Transport};
use crate::ids::LinkId;
use crate::wire::{Control, Keepalive};

pub(super) const RING: usize = 64 << 10;

/// A transport, and a socket that is connected to it.
pub(super) struct Raw {
    pub(super) transport: ShmTransport,
    pub(super) ear: Recorder,
    pub(super) socket: UnixStream,
    pub(super) link: LinkId,
}

impl Raw {
    /// Connected; nothing was said.
    pub(super) fn silent() -> Self {
        Self::silent_to(shared_memory())
    }

    fn silent_to(mut transport: ShmTransport) -> Self {
        let socket = socket::connect(&abstract_name(transport.name())).expect("it listens");
        let mut ear = Recorder::default();
        let link = loop {
            transport.progress(100, &mut ear).expect("it works");
            let incoming = ear.notices().iter().find_map(|notice| match notice {
                Notice::Incoming { link } => Some(*link),
                _ => None,
            });
            if let Some(link) = incoming {
                break link;
            }
        };
        transport.bind(link, RECEIVED_FROM).expect("it is not bound");
        Self { transport, ear, socket, link }
    }

    /// Connected, and the memory is there.
    pub(super) fn greeted() -> (Self, Rings) {
        Self::greeted_to(shared_memory())
    }

    pub(super) fn greeted_to(transport: ShmTransport) -> (Self, Rings) {
        let raw = Self::silent_to(transport);
        let (region, file) = Region::create(RING).expect("there is memory");
        raw.pass(RING, &file);
        (raw, Rings::new(region, true))
    }

    pub(super) fn pass(&self, ring_bytes: usize, file: &OwnedFd) {
        socket::pass(&self.socket, &Hello { ring_bytes }.to_bytes(), file).expect("there is room");
    }

    pub(super) fn step(&mut self) {
        self.transport.flush().expect("it works");
        self.transport.progress(100, &mut self.ear).expect("it works");
    }

    pub(super) fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..2_000_000 {
            if is_so(self) {
                return;
            }
            self.step();
        }
        panic!("it never comes about; heard was {:?}", self.ear.heard);
    }

    pub(super) fn closed(&self) -> Option<CloseReason> {
        self.ear.heard.iter().find_map(|heard| match heard {
            Heard::Notice(Notice::Closed { reason, .. }) => Some(reason.clone()),
            _ => None,
        })
    }

    pub(super) fn until_closed(&mut self) -> CloseReason {
        self.until(|raw| raw.closed().is_some());
        assert_eq!(self.transport.link_count(), 0);
        self.closed().expect("it was heard")
    }
}

/// The header of an eager message.
pub(super) const fn header(tag: u8) -> [u8; 16] {
    [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, tag]
}

/// A frame around an eager message of these bytes.
pub(super) fn eager(tag: u8, payload: &[u8]) -> Vec<u8> {
    framed(&[&header(tag), payload].concat())
}

/// What may be said before a link is bound.
pub(super) fn keepalive() -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let message = Control::Keepalive(Keepalive { is_answer: false, sequence: 0 });
    let length = message.encode(&mut bytes).expect("it is short");
    bytes.truncate(length);
    bytes
}

/// To send without more ado.
pub(super) const fn message<'a>(header: &'a [u8], payload: &'a [u8]) -> Outgoing<'a> {
    Outgoing { header, payload: Payload::Copied(payload), immediate: None, more: false, context: None }
}
