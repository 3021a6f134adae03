//! A peer that is a bare stream: it can stop anywhere and say anything.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::device::Device;
use crate::device::sockets::address;
use crate::device::tcp::{TcpConfig, TcpTransport};
use crate::device::tests::{Heard, RECEIVED_FROM, Recorder, trusted};
use crate::device::transport::{CloseReason, Notice, Transport};
use crate::ids::LinkId;

/// A transport and a stream that is connected to it.
pub(super) struct Raw {
    pub(super) transport: TcpTransport,
    pub(super) ear: Recorder,
    pub(super) stream: TcpStream,
    pub(super) link: LinkId,
}

impl Raw {
    pub(super) fn open(config: TcpConfig) -> TcpTransport {
        TcpTransport::open(config, trusted()).expect("a port is free")
    }

    /// Connected and bound.
    pub(super) fn bound() -> Self {
        let mut raw = Self::unbound();
        raw.transport.bind(raw.link, RECEIVED_FROM).expect("it is not bound");
        raw
    }

    pub(super) fn unbound() -> Self {
        Self::connect(Self::open(TcpConfig::loopback()), Recorder::default())
    }

    /// Connect a stream to a transport.
    pub(super) fn connect(mut transport: TcpTransport, mut ear: Recorder) -> Self {
        let to = address::from_bytes(transport.name()).expect("it is an address");
        let stream = TcpStream::connect(to).expect("it listens");
        stream.set_nodelay(true).expect("it is a stream");
        let incoming = |ear: &Recorder| {
            ear.notices().iter().rev().find_map(|notice| match notice {
                Notice::Incoming { link } => Some(*link),
                _ => None,
            })
        };
        ear.heard.clear();
        let link = loop {
            transport.progress(100, &mut ear).expect("it works");
            if let Some(link) = incoming(&ear) {
                break link;
            }
        };
        Self { transport, ear, stream, link }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        // It may be closed from the other side.
        let _written = self.stream.write_all(bytes);
    }

    pub(super) fn step(&mut self) {
        self.transport.flush().expect("it works");
        self.transport.progress(100, &mut self.ear).expect("it works");
    }

    pub(super) fn until(&mut self, is_so: impl Fn(&mut Self) -> bool) {
        for _ in 0..2_000_000 {
            if is_so(self) {
                return;
            }
            self.step();
            std::thread::yield_now();
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
        self.closed().expect("it was heard")
    }

    /// The other side hears nothing more.
    pub(super) fn until_end_of_stream(&mut self) {
        let mut bytes = [0; 1000];
        while self.stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
    }
}

/// An eager message of these bytes.
pub(super) fn eager(tag: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, tag];
    bytes.extend_from_slice(payload);
    bytes
}
