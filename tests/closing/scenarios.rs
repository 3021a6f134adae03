//! An endpoint is closed and its process ends, or is killed: every message whose completion said that it would arrive
//! does. Processes of their own.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::{MANY, inside, over};
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{
    Address, Completed, Config, Endpoint, EndpointError, Failure, Level, Post, Send, SendRefused, Space,
};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, Tag};
use tagmatch::seam::{Buffer, DeviceError};

fn open() -> Endpoint {
    over::open(Config::default(), 0)
}

/// Memory that stays: whatever a transport does with it, it is nobody else's.
fn memory(bytes: &[u8]) -> Buffer {
    let leaked: &'static mut [u8] = bytes.to_vec().leak();
    Buffer::new(leaked.as_mut_ptr().expose_provenance() as u64, leaked.len() as u64)
}

fn read(buffer: Buffer, length: usize) -> Vec<u8> {
    let from = std::ptr::with_exposed_provenance::<u8>(usize::try_from(buffer.address).unwrap());
    // SAFETY: it lies in a buffer of `memory`, and the transport is done with it.
    unsafe { std::slice::from_raw_parts(from, length) }.to_vec()
}

const fn message(to: Address, tag: u64, payload: Payload<'_>, level: Level) -> Send<'_> {
    let (tag, cq_data) = (Tag(tag), None);
    Send { space: Space::Tagged, to, tag, payload, cq_data, level, more: false, context: 0, flags: 0 }
}

const fn post(tag: u64, buffer: Buffer, context: u64) -> Post {
    let (tag, ignore) = (Tag(tag), Ignore::NONE);
    Post { space: Space::Tagged, source: None, tag, ignore, buffer, kind: Kind::Once, context, flags: 0 }
}

/// What one endpoint of the sending process does: nothing but send, see the completions, close, and end.
struct Sender {
    own: Endpoint,
    taken: u64,
    seen: u64,
}

/// Sends to every name that it is given, from as many endpoints as it is told, and closes them; or is killed when it was
/// told that all is out.
#[test]
fn sender() {
    let Ok(names) = std::env::var(NAMES) else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (count, length, endpoints) = (number(COUNT), number(LENGTH), number(ENDPOINTS));
    let names: Vec<Vec<u8>> =
        names.split(',').map(|name| name.split(' ').map(|byte| byte.parse().unwrap()).collect()).collect();
    let is_killed = std::env::var_os(KILLED).is_some();
    let level = if is_killed { Level::Transmit } else { Level::Inject };
    let (began, bytes) = (Instant::now(), vec![0x5A; usize::try_from(length).unwrap()]);
    let peers = names.len() as u64;
    let mut senders: Vec<Sender> =
        (0..endpoints).map(|_| Sender { own: open(), taken: 0, seen: 0 }).collect();
    for sender in &mut senders {
        for (address, name) in names.iter().enumerate() {
            sender.own.set_address(Address(address as u64), name).unwrap();
        }
    }
    let all = count * peers;
    while senders.iter().any(|sender| sender.seen < all) {
        for Sender { own, taken, seen } in &mut senders {
            while *taken < all {
                let hello = own.name().to_vec();
                let number = (*taken / peers).to_le_bytes();
                let to = Address(*taken % peers);
                let mut payload = bytes.clone();
                payload[..8].copy_from_slice(&number);
                let (tag, payload) = if *taken < peers { (HELLO, &hello) } else { (DATA, &payload) };
                match own.send(&message(to, tag, Payload::Copied(payload), level)) {
                    Ok(()) => *taken += 1,
                    Err(SendRefused::Again) => break,
                    Err(other) => panic!("{other}"),
                }
            }
            own.progress(began.elapsed()).unwrap();
            while let Some(done) = own.poll_completion() {
                assert_eq!(done.what, Completed::Sent);
                *seen += 1;
            }
        }
    }
    if is_killed {
        // SAFETY: the process ends.
        unsafe { libc::raise(libc::SIGKILL) };
    }
    for Sender { own, .. } in &mut senders {
        own.close(began.elapsed());
    }
    while senders.iter().any(|sender| !sender.own.is_closed()) {
        for Sender { own, .. } in &mut senders {
            own.progress(began.elapsed()).unwrap();
        }
    }
    drop(senders);
}

/// What one receiving endpoint knows.
struct Receiver {
    own: Endpoint,
    area: Buffer,
    /// Senders that it has heard of, to which it talks without being listened to.
    heard: u64,
    said: u64,
    received: u64,
    posted: bool,
}

impl Receiver {
    fn new() -> Self {
        let mut own = open();
        let area = memory(&[0; 16 << 10]);
        own.post(&post(HELLO, area, HELLO)).unwrap();
        Self { own, area, heard: 0, said: 0, received: 0, posted: false }
    }

    /// Talk back to whoever was heard: what is not read there must not cost what is under way from there.
    fn talk(&mut self) {
        for address in 0..self.heard {
            let _ = self.own.send(&message(Address(address), TALK, Payload::Copied(&[1; 50]), Level::Inject));
            self.said += 1;
        }
    }

    /// Until so many senders were heard of, and so many messages have come.
    fn take_all(&mut self, child: &mut Child, senders: u64, messages: u64, began: Instant, talks: bool) {
        let mut idle = 0;
        while self.heard < senders || self.received < messages {
            let before = self.received;
            self.step(began);
            if talks && self.received.is_multiple_of(50) {
                self.talk();
            }
            let is_over = child.try_wait().unwrap().is_some() && self.received == before;
            idle = if is_over { idle + 1 } else { 0 };
            assert!(idle < 100_000, "{} of {messages} arrived", self.received);
        }
    }

    fn step(&mut self, began: Instant) {
        self.own.progress(began.elapsed()).unwrap();
        while let Some(done) = self.own.poll_completion() {
            let Completed::Received { placed, .. } = done.what else { continue };
            let length = usize::try_from(placed).unwrap();
            if done.context == HELLO {
                self.own.set_address(Address(self.heard), &read(self.area, length)).unwrap();
                self.heard += 1;
                self.own.post(&post(HELLO, self.area, HELLO)).unwrap();
            } else {
                self.received += 1;
                self.posted = false;
            }
        }
        if !self.posted && self.heard > 0 {
            self.posted = true;
            self.own.post(&post(DATA, memory(&[0; 8 << 10]), DATA)).unwrap();
        }
    }
}

fn start(names: &[Vec<u8>], count: u64, length: u64, endpoints: u64) -> Child {
    command(names, count, length, endpoints).spawn().unwrap()
}

fn command(names: &[Vec<u8>], count: u64, length: u64, endpoints: u64) -> Command {
    let names: Vec<String> =
        names.iter().map(|name| name.iter().map(u8::to_string).collect::<Vec<_>>().join(" ")).collect();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "scenarios::sender"])
        .env(NAMES, names.join(","))
        .env(COUNT, count.to_string())
        .env(LENGTH, length.to_string())
        .env(ENDPOINTS, endpoints.to_string())
        .stdout(Stdio::null());
    command
}

#[test]
fn what_was_seen_to_complete_arrives_from_many_that_close_and_end_while_they_are_talked_to() {
    inside(
        "scenarios::what_was_seen_to_complete_arrives_from_many_that_close_and_end_while_they_are_talked_to",
        many_send,
    );
}

fn many_send() {
    const SENDERS: u64 = MANY as u64;
    const COUNT: u64 = 101;
    let (mut receiver, began) = (Receiver::new(), Instant::now());
    let mut child = start(&[receiver.own.name().to_vec()], COUNT, 2000, SENDERS);
    // It reads one message at a time, and talks as much as it listens.
    receiver.take_all(&mut child, SENDERS, SENDERS * (COUNT - 1), began, true);
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_was_seen_to_be_out_arrives_from_one_that_is_killed_at_once() {
    inside("scenarios::what_was_seen_to_be_out_arrives_from_one_that_is_killed_at_once", kill_when_out);
}

fn kill_when_out() {
    const COUNT: u64 = 101;
    let (mut receiver, began) = (Receiver::new(), Instant::now());
    for round in 1..=10 {
        let names = [receiver.own.name().to_vec()];
        let mut child = command(&names, COUNT, 2000, 1).env(KILLED, "").spawn().unwrap();
        receiver.take_all(&mut child, round, round * (COUNT - 1), began, false);
        assert_eq!(child.wait().unwrap().code(), None, "it was killed");
    }
}

#[test]
fn what_was_seen_to_complete_is_read_from_one_that_has_ended_by_peers_that_read_late() {
    inside(
        "scenarios::what_was_seen_to_complete_is_read_from_one_that_has_ended_by_peers_that_read_late",
        many_read_late,
    );
}

fn many_read_late() {
    const COUNT: u64 = 31;
    let mut receivers: Vec<_> = (0..MANY).map(|_| Receiver::new()).collect();
    let began = Instant::now();
    let names: Vec<_> = receivers.iter().map(|receiver| receiver.own.name().to_vec()).collect();
    let mut child = start(&names, COUNT, 500, 1);
    while receivers.iter().any(|receiver| receiver.heard == 0) {
        receivers.iter_mut().for_each(|receiver| receiver.step(began));
    }
    // From now on nobody listens, and all have said something that nobody reads.
    for receiver in &mut receivers {
        (0..20).for_each(|_| receiver.talk());
    }
    assert!(child.wait().unwrap().success());
    let mut idle = 0;
    while receivers.iter().any(|receiver| receiver.received < COUNT - 1) {
        receivers.iter_mut().for_each(|receiver| receiver.step(began));
        idle += 1;
        let counts: Vec<_> = receivers.iter().map(|receiver| receiver.received).collect();
        assert!(idle < 20_000, "these arrived: {counts:?}");
    }
}

#[test]
fn a_child_that_was_forked_does_not_keep_connections_of_its_parent() {
    inside("scenarios::a_child_that_was_forked_does_not_keep_connections_of_its_parent", fork_and_drop);
}

fn fork_and_drop() {
    let (mut own, mut peer, began) = (open(), open(), Instant::now());
    own.set_address(Address(0), peer.name()).unwrap();
    peer.set_address(Address(0), own.name()).unwrap();
    let hello = message(Address(0), HELLO, Payload::Copied(b"hello"), Level::Inject);
    while own.send(&hello).is_err() {
        own.progress(began.elapsed()).unwrap();
        peer.progress(began.elapsed()).unwrap();
    }
    // SAFETY: the child does nothing but wait for a signal.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: no memory is passed.
        unsafe { libc::pause() };
        // SAFETY: the process ends.
        unsafe { libc::_exit(0) };
    }
    // Not even one that is not closed in order.
    drop(own);
    for _ in 0..1_000_000 {
        peer.progress(began.elapsed()).unwrap();
        if peer.statistics().lost == 1 {
            break;
        }
    }
    let lost = peer.statistics().lost;
    let mut refusal = Err(SendRefused::Again);
    for _ in 0..1_000_000 {
        refusal = peer.send(&hello);
        if refusal != Err(SendRefused::Again) {
            break;
        }
        peer.progress(began.elapsed()).unwrap();
    }
    // SAFETY: it is our child.
    unsafe { libc::kill(child, libc::SIGKILL) };
    // SAFETY: it is our child, and nobody asks how it ended.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    assert_eq!((lost, refusal), (1, Err(SendRefused::Unreachable(Failure::Refused))));
}

#[test]
fn a_child_that_uses_its_parents_endpoint_is_told_so_and_the_parent_goes_on() {
    inside(
        "scenarios::a_child_that_uses_its_parents_endpoint_is_told_so_and_the_parent_goes_on",
        fork_and_use,
    );
}

fn fork_and_use() {
    let (mut own, mut peer, began) = (open(), open(), Instant::now());
    own.set_address(Address(0), peer.name()).unwrap();
    let area = memory(&[0; 64]);
    peer.post(&post(DATA, area, 1)).unwrap();
    let text = |text| message(Address(0), DATA, Payload::Copied(text), Level::Inject);
    while own.send(&text(b"before")).is_err() {
        own.progress(began.elapsed()).unwrap();
        peer.progress(began.elapsed()).unwrap();
    }
    // SAFETY: the child allocates, which the C library allows, takes no lock of the test's, and ends by itself.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let forked = EndpointError::Device(DeviceError::Forked);
        // What was not taken goes nowhere, whatever is said of it at first.
        let first = own.send(&text(b"of the child")).is_err();
        let told = own.progress(began.elapsed()) == Err(forked.clone());
        let then = own.send(&text(b"of the child")) == Err(SendRefused::Endpoint(forked));
        let posted = own.post(&post(DATA, area, 2)).is_err();
        drop(own);
        // SAFETY: the process ends.
        unsafe { libc::_exit(if first && told && then && posted { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: it is our child, and the place is ours.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } != child {}
    assert_eq!(status, 0, "ended by itself, and was told");
    let mut received = Vec::new();
    for expected in [&b"before"[..], b"after"] {
        while received.len() < expected.len() {
            own.progress(began.elapsed()).unwrap();
            peer.progress(began.elapsed()).unwrap();
            while let Some(done) = peer.poll_completion() {
                let Completed::Received { placed, .. } = done.what else { panic!("{done:?}") };
                received = read(area, usize::try_from(placed).unwrap());
            }
        }
        assert_eq!(received, expected);
        if expected == b"before" {
            received.clear();
            peer.post(&post(DATA, area, 1)).unwrap();
            assert_eq!(own.send(&text(b"after")), Ok(()));
        }
    }
    assert_eq!((own.statistics().lost, peer.statistics().lost), (0, 0));
}

const NAMES: &str = "TAGMATCH_TEST_NAMES";
const COUNT: &str = "TAGMATCH_TEST_COUNT";
const LENGTH: &str = "TAGMATCH_TEST_LENGTH";
const KILLED: &str = "TAGMATCH_TEST_KILLED";
const ENDPOINTS: &str = "TAGMATCH_TEST_ENDPOINTS";
const HELLO: u64 = 1;
const DATA: u64 = 2;
const TALK: u64 = 3;
