//! Random messages over connections of sockets, cut anywhere.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;

use super::raw::Raw;
use crate::device::tcp::TcpConfig;
use crate::device::tests::streamed::{EAGER_LIMIT, Line, run};
use crate::device::tests::{RECEIVED_FROM, Recorder};
use crate::device::transport::Transport;

fn line() -> Raw {
    let config = TcpConfig { eager_limit: EAGER_LIMIT, ..TcpConfig::loopback() };
    let mut raw = Raw::connect(Raw::open(config), Recorder::default());
    raw.transport.bind(raw.link, RECEIVED_FROM).expect("it is not bound");
    raw.stream.set_nonblocking(true).expect("it is a stream");
    raw
}

impl Line for Raw {
    fn transport(&mut self) -> &mut dyn Transport {
        &mut self.transport
    }

    fn give(&mut self, bytes: &[u8]) -> usize {
        match self.stream.write(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            written => written.expect("the transport listens"),
        }
    }

    fn end(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("it has not ended");
    }

    fn written(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut bytes = [0; 4096];
        while let Ok(count) = self.stream.read(&mut bytes)
            && count > 0
        {
            all.extend_from_slice(&bytes[..count]);
        }
        all
    }
}

#[test]
fn messages_are_whole_however_the_stream_is_cut() {
    (0..20).for_each(|seed| run(&mut line(), seed, false));
}

#[test]
fn a_stream_that_ends_anywhere_ends_what_is_under_way_once() {
    (1000..1040).for_each(|seed| run(&mut line(), seed, true));
}
