//! A peer is killed at a moment left to chance: what was under way with it ends once each; two others that talk all the
//! while notice nothing; and nothing is left over.

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::counting::live_bytes;
use crate::{MORE_MAX, ROUNDS, inside, open};
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{
    Address, Completed, Endpoint, Level, Peek, PeekAction, Post, Send, SendRefused, Space,
};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, Tag};
use tagmatch::seam::Buffer;

/// Memory that stays: whatever a transport does with it, it is nobody else's.
fn memory(length: usize) -> Buffer {
    let leaked: &'static mut [u8] = vec![0x5A; length].leak();
    Buffer::new(leaked.as_mut_ptr().expose_provenance() as u64, leaked.len() as u64)
}

fn read(buffer: Buffer, length: usize) -> Vec<u8> {
    let from = std::ptr::with_exposed_provenance::<u8>(usize::try_from(buffer.address).unwrap());
    // SAFETY: it lies in a buffer of `memory`, and the transport is done with it.
    unsafe { std::slice::from_raw_parts(from, length) }.to_vec()
}

const fn message(to: Address, tag: u64, payload: Payload<'_>, level: Level, context: u64) -> Send<'_> {
    let (tag, cq_data) = (Tag(tag), None);
    Send { space: Space::Tagged, to, tag, payload, cq_data, level, more: false, context, flags: 0 }
}

fn post(source: Option<Address>, tag: u64, buffer: Buffer, context: u64) -> Post {
    let (tag, ignore) = (Tag(tag), Ignore::NONE);
    Post { space: Space::Tagged, source, tag, ignore, buffer, kind: Kind::Once, context, flags: 0 }
}

/// The victim: says who it is, then sends and receives whatever there is, until it is killed.
#[test]
fn victim() {
    let Ok(name) = std::env::var(SURVIVOR) else { return };
    let name: Vec<u8> = name.split(' ').map(|byte| byte.parse().unwrap()).collect();
    let (mut own, began) = (open(&std::env::var(OVER).unwrap_or_default()), Instant::now());
    own.set_address(PEER, &name).unwrap();
    let hello = own.name().to_vec();
    let (mut sends, mut is_introduced) = (0, false);
    let (short, long) = (memory(100), memory(LONG));
    for tag in [TO_VICTIM, TO_VICTIM + 1, TO_VICTIM + 2] {
        own.post(&post(None, tag, memory(LONG), tag)).unwrap();
    }
    // Whoever started it may be gone: then the connection is lost, and it ends by itself.
    while own.statistics().lost == 0 {
        let next = match (is_introduced, sends % 3) {
            (false, _) => message(PEER, HELLO, Payload::Copied(&hello), Level::Inject, 1),
            (true, 0) => message(PEER, TO_SURVIVOR, Payload::Memory(long), Level::Match, 1),
            (true, _) => message(PEER, TO_SURVIVOR + 1, Payload::Memory(short), Level::Inject, 1),
        };
        if sends < 60 && own.send(&next).is_ok() {
            is_introduced = true;
            sends += 1;
        }
        own.progress(began.elapsed()).unwrap();
        while let Some(done) = own.poll_completion() {
            if done.context >= TO_VICTIM {
                own.post(&post(None, done.context, memory(LONG), done.context)).unwrap();
            }
        }
    }
}

/// The survivor, the bystander that it talks to, and what was said.
struct World {
    /// Over what, as [`open`] knows it; `""`: what is there always.
    over: &'static str,
    survivor: Endpoint,
    bystander: Endpoint,
    began: Instant,
    /// What the survivor was told, by context, since the last victim.
    ends: HashMap<u64, Vec<Completed>>,
    /// Messages to the bystander: sent and taken.
    sent: u64,
    taken: u64,
    area: Buffer,
}

impl World {
    fn new(over: &'static str) -> Self {
        let (mut survivor, bystander, area) = (open(over), open(over), memory(8));
        survivor.set_address(BYSTANDER, bystander.name()).unwrap();
        let (began, ends) = (Instant::now(), HashMap::new());
        Self { over, survivor, bystander, began, ends, sent: 0, taken: 0, area }
    }

    /// One step of both. They always talk.
    fn step(&mut self) {
        if self.sent == self.taken {
            let number = self.sent.to_le_bytes();
            let send = message(BYSTANDER, TALK, Payload::Copied(&number), Level::Inject, TALK);
            if self.survivor.send(&send).is_ok() {
                self.bystander.post(&post(None, TALK, self.area, self.sent)).unwrap();
                self.sent += 1;
            }
        }
        let now = self.began.elapsed();
        self.survivor.progress(now).unwrap();
        self.bystander.progress(now).unwrap();
        while let Some(done) = self.bystander.poll_completion() {
            assert!(matches!(done.what, Completed::Received { .. }), "the bystander is told {done:?}");
            assert_eq!((done.context, read(self.area, 8)), (self.taken, self.taken.to_le_bytes().to_vec()));
            self.taken += 1;
        }
        while let Some(done) = self.survivor.poll_completion() {
            if done.context == TALK {
                assert_eq!(done.what, Completed::Sent, "what is for the bystander goes");
            } else {
                self.ends.entry(done.context).or_default().push(done.what);
            }
        }
    }

    fn until(&mut self, what: &str, is_so: impl Fn(&mut Self) -> bool) {
        for _ in 0..20_000_000 {
            if is_so(self) {
                return;
            }
            self.step();
        }
        panic!("never so: {what}; {:?}", self.ends);
    }

    /// A victim that has said who it is.
    fn start(&mut self, hello: Buffer, context: u64) -> (Child, Address) {
        self.survivor.post(&post(None, HELLO, hello, context)).unwrap();
        let name: Vec<String> = self.survivor.name().iter().map(u8::to_string).collect();
        let mut victim = Command::new(std::env::current_exe().unwrap());
        let child = victim
            .args(["--exact", "rounds::victim"])
            .env(SURVIVOR, name.join(" "))
            .env(OVER, self.over)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.until("the victim says who it is", |world| world.ends.contains_key(&context));
        let Completed::Received { placed, .. } = self.ends[&context][0] else { panic!("{:?}", self.ends) };
        // Numbers are dealt again, as an address vector deals them.
        let victim = Address(1 + context / 1000 % 4);
        let name = read(hello, usize::try_from(placed).unwrap());
        self.survivor.set_address(victim, &name).unwrap();
        (child, victim)
    }

    /// Send, unless the victim cannot be reached any more: whether it was taken.
    fn send(&mut self, send: &Send<'_>) -> bool {
        for _ in 0..20_000_000 {
            match self.survivor.send(send) {
                Ok(()) => return true,
                Err(SendRefused::Again) => self.step(),
                Err(SendRefused::Unreachable(_)) => return false,
                Err(other) => panic!("{other}"),
            }
        }
        panic!("a send is neither taken nor refused");
    }

    /// Drop whatever the victim has sent and nobody took.
    fn drain(&mut self) {
        loop {
            let (source, tag, ignore) = (None, Tag(0), Ignore(u64::MAX));
            let (space, action) = (Space::Tagged, PeekAction::Discard);
            self.survivor.peek(&Peek { space, source, tag, ignore, action, context: DRAIN, flags: 0 });
            self.until("a peek ends", |world| world.ends.contains_key(&DRAIN));
            if self.ends.remove(&DRAIN) == Some(vec![Completed::NoMessage]) {
                return;
            }
        }
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Mappings of memory that is shared with others. None of it has a name in a file system.
fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains("/dev/shm/"), "{maps}");
    maps.lines().filter(|line| line.contains("/memfd:tagmatch")).count()
}

/// Five times as many where there is time for that.
fn rounds() -> u64 {
    if std::env::var_os("TAGMATCH_NIGHTLY").is_some() { 5 * ROUNDS } else { ROUNDS }
}

#[test]
fn a_peer_killed_at_any_moment_ends_its_own_operations_once_and_nothing_else() {
    inside("rounds::a_peer_killed_at_any_moment_ends_its_own_operations_once_and_nothing_else", || {
        kill_peers("");
    });
}

/// With a list of tags over the transport, or without.
pub(crate) fn kill_peers(over: &'static str) {
    // The descriptors of the process are counted.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut world = World::new(over);
    let (hello, short, long) = (memory(64), memory(1000), memory(LONG));
    let areas = [memory(LONG), memory(LONG), memory(LONG), memory(LONG)];
    let mut chance = 1_u64;
    let (rounds, mut failed, mut before) = (rounds(), 0, (0, 0));
    // The least of each part: what is kept for a while and given up now and then counts for nothing.
    let mut live = [isize::MAX; PARTS];
    for round in 1..=rounds {
        let (mut child, victim) = world.start(hello, round * 1000);
        let receives: Vec<u64> = (1..=4).map(|at| round * 1000 + at).collect();
        for (context, area) in receives.iter().zip(areas) {
            world.survivor.post(&post(Some(victim), TO_SURVIVOR + context % 3, area, *context)).unwrap();
        }
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (moment, mut sends) = (chance >> 55, Vec::new());
        for at in 0..12 {
            // Some are matched at once, some never.
            let tag = TO_VICTIM + at % 4;
            let (payload, level) = if at % 3 == 0 { (long, Level::Match) } else { (short, Level::Delivery) };
            let context = round * 1000 + 100 + at;
            if at == moment % 12 {
                (0..moment).for_each(|_| world.step());
                child.kill().unwrap();
            }
            if world.send(&message(victim, tag, Payload::Memory(payload), level, context)) {
                sends.push(context);
            }
        }
        child.wait().unwrap();
        world.until("every send ends", |world| sends.iter().all(|context| world.ends.contains_key(context)));
        world.until("its connection is gone", |world| world.survivor.statistics().lost == round);
        for context in &receives {
            if !world.ends.contains_key(context) {
                world.survivor.cancel(*context);
            }
        }
        world.until("every receive ends", |world| receives.iter().all(|end| world.ends.contains_key(end)));
        world.survivor.remove_address(victim);
        world.drain();
        (0..10).for_each(|_| world.step());
        for (context, ends) in world.ends.drain() {
            assert_eq!(ends.len(), 1, "round {round}, {context} ends once: {ends:?}");
            failed += u64::from(matches!(ends[0], Completed::Failed(_)));
        }
        assert_eq!(world.survivor.depths(Space::Tagged), (0, 0), "round {round}");
        // A message to the bystander may be under way.
        world.until("sends are over", |world| world.survivor.sends_in_progress() == 0);
        if round == 2 {
            before = (descriptors(), mappings());
        }
        let least = &mut live[usize::try_from((round - 1) * PARTS as u64 / rounds).unwrap()];
        *least = live_bytes().min(*least);
    }
    let more = live[PARTS - 1] - live[PARTS / 2 - 1];
    println!("{failed} operations failed, {more} bytes more after {} kills", rounds / 2);
    // A table that grows once is no leak; what stays of each of the dead would show in every part.
    let is_level = live[1..].windows(2).any(|parts| parts[1] <= parts[0]);
    assert!(is_level && more < MORE_MAX, "{more} bytes more: {live:?}");
    world.until("connections of the dead are closed", |_| descriptors() <= before.0);
    world.until("and what was shared with them is gone", |_| mappings() <= before.1);
    assert!(failed >= rounds, "only {failed} operations failed: the victims died too late");
    assert!(world.taken > rounds * 10, "the others talked all the while: {}", world.taken);
    assert_eq!(world.bystander.statistics().lost, 0);
}

/// Parts of the rounds; of each counts the least that was live.
const PARTS: usize = 10;
static TURN: Mutex<()> = Mutex::new(());
const OVER: &str = "TAGMATCH_TEST_OVER";
const SURVIVOR: &str = "TAGMATCH_TEST_SURVIVOR";
/// Goes by rendezvous.
const LONG: usize = 200_000;
const PEER: Address = Address(0);
const BYSTANDER: Address = Address(0);
const HELLO: u64 = 1;
const TALK: u64 = 2;
const DRAIN: u64 = 3;
const TO_SURVIVOR: u64 = 10;
const TO_VICTIM: u64 = 20;
