//! A peer that shares memory stops (SIGSTOP) in the midst: what it has sent is received, also what is read in its memory;
//! nobody waits for it but operations of its own, and those end as the endpoint's parameters say.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

#[path = "endpoint/over_shm.rs"]
mod over_shm;
#[allow(dead_code, reason = "a helper of other programs")]
#[path = "endpoint/over_tcp.rs"]
mod over_tcp;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{
    Address, Completed, Completion, Config, Endpoint, Failure, Level, Post, Send, SendRefused, Space,
};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, Tag};
use tagmatch::seam::Buffer;

/// Memory that stays.
fn memory(length: usize) -> Buffer {
    let leaked: &'static mut [u8] = vec![0x5A; length].leak();
    Buffer::new(leaked.as_mut_ptr().expose_provenance() as u64, leaked.len() as u64)
}

fn read(buffer: Buffer, length: u64) -> Vec<u8> {
    let from = std::ptr::with_exposed_provenance::<u8>(usize::try_from(buffer.address).unwrap());
    // SAFETY: it lies in a buffer of `memory`, and the transport is done with it.
    unsafe { std::slice::from_raw_parts(from, usize::try_from(length).unwrap()) }.to_vec()
}

const fn message(to: Address, tag: u64, payload: Payload<'_>, context: u64) -> Send<'_> {
    let (space, tag, cq_data, level) = (Space::Tagged, Tag(tag), None, Level::Transmit);
    Send { space, to, tag, payload, cq_data, level, more: false, context, flags: 0 }
}

const fn post(tag: u64, buffer: Buffer, context: u64) -> Post {
    let (space, ignore, kind) = (Space::Tagged, Ignore::NONE, Kind::Once);
    Post { space, source: None, tag: Tag(tag), ignore, buffer, kind, context, flags: 0 }
}

/// The peer: says who it is, sends short and long messages, and stops.
#[test]
fn victim() {
    let Ok(name) = std::env::var(SURVIVOR) else { return };
    let name: Vec<u8> = name.split(' ').map(|byte| byte.parse().unwrap()).collect();
    let (mut own, began) = (over_shm::shared(Config::default(), 0), Instant::now());
    own.set_address(PEER, &name).unwrap();
    let (hello, short, long) = (own.name().to_vec(), memory(SHORT), memory(LONG));
    let messages = [
        message(PEER, HELLO, Payload::Copied(&hello), 1),
        message(PEER, FIRST, Payload::Memory(short), 2),
        message(PEER, FIRST + 1, Payload::Memory(long), 3),
        message(PEER, FIRST + 2, Payload::Memory(short), 4),
    ];
    for next in &messages {
        while own.send(next) == Err(SendRefused::Again) {
            own.progress(began.elapsed()).unwrap();
        }
    }
    // All of it is in the memory that is shared by now.
    // SAFETY: no memory is passed.
    unsafe { libc::raise(libc::SIGSTOP) };
    while own.statistics().lost == 0 {
        own.progress(began.elapsed()).unwrap();
    }
}

/// The survivor, somebody that it talks to, and the peer that stops.
struct World {
    survivor: Endpoint,
    bystander: Endpoint,
    /// By the clock of this test.
    now: Duration,
    said: Vec<Completion>,
    talked: u64,
    victim: Child,
}

impl World {
    fn new(config: Config) -> Self {
        let mut survivor = over_shm::shared(config, 0);
        let bystander = over_shm::shared(Config::default(), 0);
        survivor.set_address(BYSTANDER, bystander.name()).unwrap();
        let name: Vec<String> = survivor.name().iter().map(u8::to_string).collect();
        let victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "victim"])
            .env(SURVIVOR, name.join(" "))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut world =
            Self { survivor, bystander, now: Duration::ZERO, said: Vec::new(), talked: 0, victim };
        let hello = memory(64);
        world.survivor.post(&post(HELLO, hello, HELLO)).unwrap();
        let Completed::Received { placed, .. } = world.ended(HELLO, Duration::from_micros(1)) else {
            panic!("the peer says who it is")
        };
        world.survivor.set_address(VICTIM, &read(hello, placed)).unwrap();
        let (mut status, pid) = (0, world.victim.id().cast_signed());
        // SAFETY: the place is ours.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, libc::WUNTRACED) }, pid);
        assert!(libc::WIFSTOPPED(status), "{status:#x}");
        world
    }

    /// One step of both, which talk all the while.
    fn step(&mut self, time: Duration) {
        self.now += time;
        let talk = message(BYSTANDER, TALK, Payload::Copied(b"hello"), TALK);
        if self.survivor.send(&talk).is_ok() {
            self.bystander.post(&post(TALK, memory(8), TALK)).unwrap();
        }
        self.survivor.progress(self.now).unwrap();
        self.bystander.progress(self.now).unwrap();
        while let Some(done) = self.bystander.poll_completion() {
            assert!(matches!(done.what, Completed::Received { .. }), "{done:?}");
            self.talked += 1;
        }
        while let Some(done) = self.survivor.poll_completion() {
            if done.context == TALK {
                assert_eq!(done.what, Completed::Sent);
            } else {
                self.said.push(done);
            }
        }
    }

    fn ended(&mut self, context: u64, time: Duration) -> Completed {
        loop {
            if let Some(at) = self.said.iter().position(|said| said.context == context) {
                return self.said.remove(at).what;
            }
            self.step(time);
        }
    }

    /// What the peer sent before it stopped is received, short or long.
    fn receive_all(&mut self) {
        for (tag, length) in [(FIRST, SHORT), (FIRST + 1, LONG), (FIRST + 2, SHORT)] {
            let buffer = memory(LONG);
            self.survivor.post(&post(tag, buffer, tag)).unwrap();
            let what = self.ended(tag, Duration::from_micros(1));
            let Completed::Received { placed, .. } = what else { panic!("{what:?}") };
            assert_eq!((placed, read(buffer, placed)), (length as u64, vec![0x5A; length]));
        }
    }

    /// Messages to it, until it is full, and one that it would have to read.
    fn fill(&mut self) -> u64 {
        let mut sends = 0;
        let short = memory(SHORT);
        while self.survivor.send(&message(VICTIM, 1, Payload::Memory(short), TO_VICTIM + sends)).is_ok() {
            sends += 1;
        }
        self.talked = 0;
        (0..100).for_each(|_| self.step(Duration::from_micros(1)));
        assert!(self.talked >= 50, "it waits for nobody: {}", self.talked);
        sends
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // It is stopped, or has ended.
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

#[test]
fn a_peer_that_stops_is_lost_when_it_does_not_answer_and_holds_nobody_up() {
    let mut world = World::new(Config { keepalive: Some(Duration::from_secs(1)), ..Config::default() });
    world.receive_all();
    let sends = world.fill();
    assert!(sends > 0);
    let mut lost = 0;
    for context in TO_VICTIM..TO_VICTIM + sends {
        let what = world.ended(context, Duration::from_millis(10));
        assert!(matches!(what, Completed::Sent | Completed::Failed(Failure::Lost)), "{context}: {what:?}");
        lost += u64::from(what != Completed::Sent);
    }
    assert!(lost > 0, "not all of {sends} were out");
    assert_eq!(world.bystander.statistics().lost, 0);
}

#[test]
fn closing_does_not_wait_for_a_peer_that_has_stopped_for_longer_than_it_may() {
    let mut world = World::new(Config::default());
    world.receive_all();
    world.fill();
    let began = world.now;
    world.survivor.close(world.now);
    while !world.survivor.is_closed() {
        world.now += Duration::from_millis(10);
        world.survivor.progress(world.now).unwrap();
        world.bystander.progress(world.now).unwrap();
    }
    let most = 13 * Config::default().close_timeout;
    assert!(world.now - began < most, "{:?}", world.now - began);
}

const SURVIVOR: &str = "TAGMATCH_TEST_SURVIVOR";
const PEER: Address = Address(0);
const BYSTANDER: Address = Address(0);
const VICTIM: Address = Address(1);
const HELLO: u64 = 1;
const TALK: u64 = 2;
const FIRST: u64 = 10;
const TO_VICTIM: u64 = 1000;
const SHORT: usize = 4000;
/// Is read in the memory of its sender.
const LONG: usize = 3_000_000;
