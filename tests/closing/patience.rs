//! Closing waits for slow readers as long as they read.

use std::time::Duration;

use tagmatch::device::host_memory::HostMemory;
use tagmatch::device::tcp::{TcpConfig, TcpTransport};
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{Address, Config, Endpoint, Level, Send, Space};
use tagmatch::ids::Tag;
use tagmatch::wire::Credits;

fn open_with(tcp: TcpConfig, config: Config) -> Endpoint {
    // SAFETY: every buffer of this test is copied.
    let host = unsafe { HostMemory::trusted() };
    let tcp = TcpTransport::open(tcp, host).unwrap();
    Endpoint::new(config, vec![Box::new(tcp)]).unwrap()
}

const fn message(payload: &[u8]) -> Send<'_> {
    Send {
        space: Space::Tagged,
        to: Address(0),
        tag: Tag(1),
        payload: Payload::Copied(payload),
        cq_data: None,
        level: Level::Inject,
        more: false,
        context: 0,
        flags: 0,
    }
}

#[test]
fn patience_with_slow_readers_is_counted_from_what_they_took_last() {
    // Far more waits than buffers of the kernel hold.
    let tcp = TcpConfig { queue_bytes: 32 << 20, ..TcpConfig::loopback() };
    let credits = Credits { headers: 1 << 20, eager_messages: 1 << 20, eager_bytes: 1 << 30 };
    let open = || open_with(tcp, Config { credits, ..Config::default() });
    let (mut own, mut peer) = (open(), open());
    own.set_address(Address(0), peer.name()).unwrap();
    let mut now = Duration::ZERO;
    let payload = [7; 16_000];
    loop {
        now += Duration::from_micros(10);
        own.progress(now).unwrap();
        if own.statistics().sent_eager == 0 {
            peer.progress(now).unwrap();
        }
        if own.send(&message(&payload)).is_err() && own.statistics().sent_eager > 0 {
            break;
        }
    }
    own.close(now);
    // It takes some every three seconds, which is often enough. The kernel tells of room in steps of its own, of a
    // sixteenth of a buffer that may grow to 32 MiB.
    let began = now;
    let mut last = now;
    for turn in 0..500 {
        now += Duration::from_millis(30);
        own.progress(now).unwrap();
        assert!(!own.is_closed(), "it takes it slowly: turn {turn}");
        if turn % 100 == 0 {
            let some = peer.statistics().unexpected + 200;
            while peer.statistics().unexpected < some {
                peer.progress(now).unwrap();
                own.progress(now).unwrap();
            }
            last = now;
        }
    }
    assert!(now - began > Config::default().close_timeout * 2);
    // Then nothing.
    while !own.is_closed() {
        now += Duration::from_millis(30);
        own.progress(now).unwrap();
        assert!(now - last < Config::default().close_timeout * 3, "nobody waits for ever");
    }
    assert!(now - last > Config::default().close_timeout / 2);
}
