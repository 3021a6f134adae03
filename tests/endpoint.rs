//! Endpoints over real TCP on this host, and each to itself: the scenarios that `endpoint` runs over a simulated network,
//! with an operating system in between. And: once warm, nothing is allocated from send and post to their completions.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

#[path = "common/counting.rs"]
mod counting;
#[path = "endpoint/over_tcp.rs"]
mod over;
#[path = "endpoint/scenarios.rs"]
mod scenarios;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use scenarios::{Net, bytes, memory, message, read};
use tagmatch::device::host_memory::HostMemory;
use tagmatch::device::loopback::LoopbackTransport;
use tagmatch::device::tcp::{TcpConfig, TcpTransport};
use tagmatch::device::transport::{Payload, Transport as _};
use tagmatch::endpoint::{
    Address, Completed, Config, Endpoint, Failure, Level, Post, Send, SendRefused, Space,
};
use tagmatch::engine::Kind;
use tagmatch::ids::{DeviceId, Ignore, Tag};
use tagmatch::seam::{Buffer, Segment};

/// Five GiB in as many stretches as need no memory of their own; received as far as there is room.
#[test]
fn a_message_of_more_than_four_gib_goes_and_says_its_length() {
    const STRETCH: usize = 64 << 20;
    let mut net = Net::new(2, Config::default());
    let text = memory(&bytes(1, STRETCH));
    let stretch = Segment { address: text.address, length: text.length, key: 0 };
    let stretches: &'static mut [Segment] = vec![stretch; 80].leak();
    let address = stretches.as_mut_ptr().expose_provenance() as u64;
    let whole = Buffer { address, length: 80 * text.length, key: 0, segments: 80 };
    let mut context = 0;
    for (to, space) in [(0, Space::Tagged), (1, Space::Tagged), (1, Space::Untagged)] {
        for room in [0, 1000, STRETCH + 1000] {
            context += 1;
            net.post(to, space, Some(0), 5, room, context);
            net.send(0, &Send { space, ..message(to, 5, whole, 1000 + context) });
            let ended = net.ended(to, context);
            let Completed::Received { message, address, placed, .. } = ended else { panic!("{ended:?}") };
            assert_eq!((message.length, placed), (5 << 30, room as u64));
            let (got, text) = (read(address, placed), read(text.address, text.length));
            let first = room.min(STRETCH);
            assert!(got[..first] == text[..first] && got[first..] == text[..room - first]);
            assert_eq!(net.ended(0, 1000 + context), Completed::Sent);
        }
    }
}

/// Listening at every address of this host.
fn everywhere() -> Endpoint {
    // SAFETY: every buffer of these tests is one of `memory`, or is copied.
    let host = unsafe { HostMemory::trusted() };
    let listen = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let tcp = TcpTransport::open(TcpConfig { id: DeviceId(1), ..TcpConfig::new(listen) }, host).unwrap();
    let own = LoopbackTransport::new(DeviceId(0), tcp.name(), 64 << 10, host).unwrap();
    Endpoint::new(Config::default(), vec![Box::new(own), Box::new(tcp)]).unwrap()
}

/// Whether it is taken, or why not, while both move on.
fn said(from: &mut Endpoint, to: u64, other: &mut Endpoint) -> Result<(), SendRefused> {
    let send = Send { payload: Payload::Copied(b"hello"), ..message(0, 1, Buffer::default(), 1) };
    let mut now = Duration::ZERO;
    while now < Duration::from_secs(10) {
        match from.send(&Send { to: Address(to), ..send }) {
            Err(SendRefused::Again) => now += Duration::from_micros(20),
            other => return other,
        }
        from.progress(now).unwrap();
        other.progress(now).unwrap();
        std::thread::yield_now();
    }
    panic!("neither taken nor refused");
}

#[test]
fn who_listens_at_every_address_goes_by_one_name_and_is_refused_under_others_also_by_itself() {
    let (mut here, mut there) = (everywhere(), everywhere());
    let names = [here.name(), there.name()].map(<[u8]>::to_vec);
    for (number, name) in (0..).zip(&names) {
        here.set_address(Address(number), name).unwrap();
        let mut alias = name.clone();
        alias[4..8].copy_from_slice(&[127, 0, 0, 2]);
        here.set_address(Address(10 + number), &alias).unwrap();
    }
    for number in [0, 1, 0] {
        let refused = said(&mut here, 10 + number, &mut there);
        assert_eq!(refused, Err(SendRefused::Unreachable(Failure::NotAccepted)), "{number}");
        assert_eq!(said(&mut here, number, &mut there), Ok(()), "{number}");
    }
    assert_eq!(here.statistics().lost, 0);
}

#[test]
fn once_warm_nothing_is_allocated_between_send_and_completion() {
    let mut net = Net::new(2, Config::default());
    let (here, there) = (memory(&bytes(1, 4000)), memory(&[0; 4000]));
    let round = |net: &mut Net, number: u64| {
        for from in 0..2 {
            let post = Post {
                space: Space::Tagged,
                source: None,
                tag: Tag(number),
                ignore: Ignore::NONE,
                buffer: there,
                kind: Kind::Once,
                context: number,
                flags: 0,
            };
            net.at(1 - from).post(&post).unwrap();
            let length = [8, 1000, 4000][usize::try_from(number % 3).unwrap()];
            let level = [Level::Inject, Level::Match][usize::try_from(number % 2).unwrap()];
            let send = Send { level, ..message(1 - from, number, Buffer { length, ..here }, number) };
            net.send(from, &send);
            net.until("both are told", |net| net.said[from].len() + net.said[1 - from].len() == 2);
            net.said[from].clear();
            net.said[1 - from].clear();
        }
    };
    (0..500).for_each(|number| round(&mut net, number));
    assert_eq!(counting::allocations_of(|| (500..1000).for_each(|number| round(&mut net, number))), 0);
}
