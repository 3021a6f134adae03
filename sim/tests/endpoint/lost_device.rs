//! The card goes away under endpoints, or its port does for a while.

use std::collections::HashMap;
use std::time::Instant;

use super::card::matching_on;
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{
    Address, Completed, Config, Endpoint, Failure, Level, Post, Send, SendRefused, Space,
};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, Tag};
use tagmatch::seam::Buffer;
use tagmatch_sim::hca::HcaConfig;
use tagmatch_sim::hca::verbs::event;
use tagmatch_sim::hca_abi::{Drive, HcaControl};

fn memory(length: usize) -> Buffer {
    let memory: &'static mut [u8] = vec![1; length].leak();
    Buffer::new(memory.as_mut_ptr().expose_provenance() as u64, length as u64)
}

/// Two endpoints on a card, and what they were told.
struct World {
    card: HcaControl,
    both: [Endpoint; 2],
    ends: [HashMap<u64, Vec<Completed>>; 2],
    failed: [bool; 2],
    began: Instant,
}

impl World {
    /// Connected.
    fn new() -> Self {
        let card = HcaControl::new(HcaConfig::default(), Drive::Thread).unwrap();
        let mut both = [matching_on(&card, Config::default()), matching_on(&card, Config::default())];
        let name = both[0].name().to_vec();
        both[1].set_address(Address(0), &name).unwrap();
        let ends = [HashMap::new(), HashMap::new()];
        let mut world = Self { card, both, ends, failed: [false; 2], began: Instant::now() };
        world.post(0, 1, 100);
        world.send(1, memory(10), Level::Delivery, 1);
        world.until(|world| world.ends[0].contains_key(&100) && world.ends[1].contains_key(&1));
        world
    }

    fn post(&mut self, at: usize, tag: u64, context: u64) {
        let (space, ignore, kind, buffer) = (Space::Tagged, Ignore::NONE, Kind::Once, memory(100_000));
        let post = Post { space, source: None, tag: Tag(tag), ignore, buffer, kind, context, flags: 0 };
        self.both[at].post(&post).unwrap();
    }

    /// From the second to the first.
    fn send(&mut self, tag: u64, buffer: Buffer, level: Level, context: u64) {
        let send = Send {
            space: Space::Tagged,
            to: Address(0),
            tag: Tag(tag),
            payload: Payload::Memory(buffer),
            cq_data: None,
            level,
            more: false,
            context,
            flags: 0,
        };
        self.until(|world| match world.both[1].send(&send) {
            Ok(()) => true,
            Err(SendRefused::Again) => false,
            Err(other) => panic!("{other}"),
        });
    }

    fn until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        for _ in 0..2_000_000 {
            if is_so(self) {
                return;
            }
            for at in 0..2 {
                self.failed[at] |= self.both[at].progress(self.began.elapsed()).is_err();
                while let Some(done) = self.both[at].poll_completion() {
                    self.ends[at].entry(done.context).or_default().push(done.what);
                }
            }
            std::thread::yield_now();
        }
        panic!("it never comes about: {:?}", self.ends);
    }
}

#[test]
fn with_the_device_every_operation_ends_in_one_error() {
    for fatal in [true, false] {
        let mut world = World::new();
        for context in 101..110 {
            world.post(0, context, context);
            world.post(1, context, context);
        }
        // Nobody receives these: one is to be read, the other was taken and is to be matched.
        world.send(50, memory(100_000), Level::Match, 2);
        world.send(51, memory(100), Level::Match, 3);
        world.card.with(|card| {
            if fatal {
                card.tell_all(event::DEVICE_FATAL);
            } else {
                card.break_receive_queues();
            }
        });
        world.until(|world| world.failed == [true; 2]);
        world.until(|world| world.ends[0].len() == 10 && world.ends[1].len() == 12);
        for (context, ends) in world.ends.iter().flatten().filter(|(context, _)| ![1, 100].contains(*context))
        {
            // That the other side went may be known first.
            let [Completed::Failed(Failure::Device | Failure::Lost)] = ends[..] else {
                panic!("{context} ends so: {ends:?}")
            };
        }
    }
}

#[test]
fn who_waits_is_woken_when_the_device_goes() {
    let mut world = World::new();
    world.until(|world| world.both[0].may_wait());
    let descriptors: Vec<i32> = world.both[0].wait_descriptors().collect();
    let mut asked: Vec<libc::pollfd> =
        descriptors.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    world.card.with(|card| card.tell_all(event::DEVICE_FATAL));
    // SAFETY: there is room for each answer.
    let ready = unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as u64, 60_000) };
    assert!(ready > 0, "nobody is told");
    world.until(|world| world.failed[0]);
}

#[test]
fn a_port_that_is_away_for_a_moment_costs_nothing() {
    let mut world = World::new();
    for context in 101..110 {
        world.card.with(|card| card.tell_all(event::PORT_ERROR));
        world.post(0, 1, context);
        world.card.with(|card| card.tell_all(event::PORT_ACTIVE));
        world.send(1, memory(100_000), Level::Delivery, context);
    }
    world.until(|world| world.ends[0].len() == 10 && world.ends[1].len() == 10);
    let failed = |ends: &Vec<Completed>| ends.iter().any(|end| matches!(end, Completed::Failed(_)));
    assert!(!world.ends.iter().flat_map(HashMap::values).any(failed), "{:?}", world.ends);
}
