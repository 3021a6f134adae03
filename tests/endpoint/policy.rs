//! Which receives go to a device that matches what comes over the network, while peers of the same host send as well: those
//! that shared memory will serve stay in software, and are not taken back from the device once a message.

use std::time::Instant;

use crate::{over_shm, over_tcp};
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{Address, Completed, Config, Endpoint, Level, Post, Send, SendRefused, Space};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, Tag};
use tagmatch::offload::{Reason, Statistics};
use tagmatch::seam::Buffer;

/// A receiver with a device, a peer that shares memory with it, and one on the network.
struct World {
    receiver: Endpoint,
    peers: [Endpoint; 2],
    began: Instant,
    buffer: Buffer,
}

const NEAR: usize = 0;
const FAR: usize = 1;
/// Receives of two kinds, which no message both fits.
const ONE_KIND: (u64, u64) = (0x100, 0xff);
const OTHER_KIND: (u64, u64) = (0x1_0000, 0xffff);

impl World {
    fn new(kept_from: u8) -> Self {
        let receiver = over_shm::beside_a_device(Config { kept_from, ..Config::default() });
        let near = over_shm::shared(Config::default(), 0);
        let far = over_tcp::open(Config::default(), 0);
        let leaked: &'static mut [u8] = vec![0; 64 << 10].leak();
        let buffer = Buffer::new(leaked.as_mut_ptr().expose_provenance() as u64, leaked.len() as u64);
        let mut world = Self { receiver, peers: [near, far], began: Instant::now(), buffer };
        for (number, peer) in (0..).zip(&mut world.peers) {
            peer.set_address(Address(0), world.receiver.name()).unwrap();
            world.receiver.set_address(Address(number), peer.name()).unwrap();
        }
        // Connected, and nothing learned: these name their senders.
        for peer in [NEAR, FAR] {
            world.pass(Some(peer), ONE_KIND, peer);
        }
        assert_eq!(world.receiver.statistics().connected_shm, 1);
        world
    }

    fn step(&mut self) {
        let now = self.began.elapsed();
        self.receiver.progress(now).unwrap();
        for peer in &mut self.peers {
            peer.progress(now).unwrap();
            while peer.poll_completion().is_some() {}
        }
    }

    /// A receive that is posted, and wherever it goes there; then its message from this peer.
    fn pass(&mut self, source: Option<usize>, (tag, ignore): (u64, u64), from: usize) {
        let source = source.map(|source| Address(source as u64));
        let (space, tag, ignore, buffer) = (Space::Tagged, Tag(tag), Ignore(ignore), self.buffer);
        let post = Post { space, source, tag, ignore, buffer, kind: Kind::Once, context: 1, flags: 0 };
        self.receiver.post(&post).unwrap();
        (0..3).for_each(|_| self.step());
        let send = Send {
            space,
            to: Address(0),
            tag,
            payload: Payload::Copied(b"hello"),
            cq_data: None,
            level: Level::Inject,
            more: false,
            context: 2,
            flags: 0,
        };
        while self.peers[from].send(&send) == Err(SendRefused::Again) {
            self.step();
        }
        let done = loop {
            self.step();
            if let Some(done) = self.receiver.poll_completion() {
                break done;
            }
        };
        let Completed::Received { message, .. } = done.what else { panic!("{done:?}") };
        assert_eq!(message.source, Some(Address(from as u64)));
    }

    fn happened(&self) -> Statistics {
        *self.receiver.offload_statistics()
    }
}

#[test]
fn receives_that_shared_memory_serves_are_taken_back_a_few_times_and_then_stay_in_software() {
    const MESSAGES: u64 = 1000;
    // Without learning: each is.
    for (kept_from, taken_back) in [(0, MESSAGES), (4, 4)] {
        let mut world = World::new(kept_from);
        (0..MESSAGES).for_each(|_| world.pass(None, ONE_KIND, NEAR));
        let happened = world.happened();
        println!("{MESSAGES} messages, kept from {kept_from}: {} taken back", happened.taken_back);
        assert_eq!(happened.taken_back, taken_back, "{happened:?}");
        let in_software = happened.first_ended(Reason::ServedByAnotherPath);
        assert_eq!(in_software, MESSAGES - taken_back, "{happened:?}");
    }
}

#[test]
fn each_kind_of_receive_goes_where_its_messages_come_from() {
    const MESSAGES: u64 = 500;
    let mut world = World::new(4);
    for _ in 0..MESSAGES {
        world.pass(None, ONE_KIND, NEAR);
        world.pass(None, OTHER_KIND, FAR);
    }
    let happened = world.happened();
    assert_eq!((happened.taken_back, happened.matched_by_device), (4, MESSAGES), "{happened:?}");
}

#[test]
fn receives_go_to_the_device_again_when_the_network_serves_them_again() {
    let mut world = World::new(4);
    (0..100).for_each(|_| world.pass(None, ONE_KIND, NEAR));
    let before = world.happened();
    (0..1000).for_each(|_| world.pass(None, ONE_KIND, FAR));
    let happened = world.happened();
    assert_eq!((before.taken_back, happened.taken_back), (4, 4));
    // The last 15 say so.
    assert_eq!(happened.matched_by_device - before.matched_by_device, 985, "{happened:?}");
}

#[test]
fn a_receive_that_names_a_peer_which_shares_memory_never_goes_to_the_device() {
    let mut world = World::new(4);
    let before = world.happened();
    (0..100).for_each(|_| world.pass(Some(NEAR), ONE_KIND, NEAR));
    let happened = world.happened();
    assert_eq!((happened.adds, happened.taken_back), (before.adds, 0));
    let reason = Reason::ServedByAnotherPath;
    assert_eq!(happened.first_ended(reason) - before.first_ended(reason), 100, "{happened:?}");
}
