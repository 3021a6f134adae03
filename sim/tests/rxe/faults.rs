//! What goes wrong on a real wire: peers that are killed, a wire that is cut, addresses and devices that go, few receives,
//! ends of different MTU. What concerns a peer that is lost ends once each; others notice nothing: what they say to each other
//! all the while comes once, in order and whole (`talk`). In software, and with the soft list.
//!
//! Run after the others and one by one: the devices are everybody's.

#[path = "talk.rs"]
mod talk;

use std::collections::{HashMap, VecDeque};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::endpoints::{endpoint, run, run_changed};
use super::traffic::TAGS;
use super::{Memory, RoceDevice, inside};
use crate::device::transport::Payload;
use crate::device::verbs::VerbsConfig;
use crate::device::verbs::queue_pair::Patience;
use crate::engine::Kind;
use crate::ids::{Ignore, Tag};
use crate::inside::TIMES;
use crate::seam::Buffer;
use tagmatch::endpoint::{Address, Completed, Endpoint, Level, Post, Send, SendRefused, Space};
use talk::Talk;

/// Tests, and with which lists: none is in software.
macro_rules! faults {
    ($($name:ident: $lists:expr;)*) => {
        $(#[test]
        fn $name() {
            inside(concat!(module_path!(), "::", stringify!($name)), |devices| {
                $lists.into_iter().for_each(|tags| each::$name(devices, tags));
            });
        })*
    };
}

faults! {
    with_four_receives_nothing_is_lost: [None];
    with_more_completions_than_the_device_has_nothing_is_lost: [None];
    between_ends_of_different_mtu_nothing_is_lost: [Some(TAGS)];
    a_peer_killed_at_any_moment_ends_its_own_operations_once_and_nothing_else: [None, Some(TAGS)];
    on_a_wire_that_is_cut_everything_ends_once_and_a_new_connection_works: [None, Some(TAGS)];
    where_the_address_of_a_peer_is_taken_away_everything_ends_once: [None, Some(TAGS)];
    a_device_that_is_deleted_under_an_endpoint_goes_when_that_is_closed: [None, Some(TAGS)];
}

mod each {
    use super::*;

    pub(super) fn with_four_receives_nothing_is_lost(devices: &[RoceDevice], tags: Tags) {
        let few = |config: VerbsConfig| VerbsConfig { unexpected_buffers: 4, spare_buffers: 0, ..config };
        run_changed(devices, tags, &few);
    }

    pub(super) fn with_more_completions_than_the_device_has_nothing_is_lost(
        devices: &[RoceDevice],
        tags: Tags,
    ) {
        run_changed(devices, tags, &|config| VerbsConfig { peers: 20_000, ..config });
    }

    pub(super) fn between_ends_of_different_mtu_nothing_is_lost(devices: &[RoceDevice], tags: Tags) {
        shell("ip link set v1 mtu 9000; until ibv_devinfo -d rxe1 | grep -q 'active_mtu:.*4096'; do :; done");
        run(devices, tags);
        shell("ip link set v1 mtu 1500; until ibv_devinfo -d rxe1 | grep -q 'active_mtu:.*1024'; do :; done");
    }

    pub(super) fn a_peer_killed_at_any_moment_ends_its_own_operations_once_and_nothing_else(
        devices: &[RoceDevice],
        tags: Tags,
    ) {
        let mut world = World::new(devices, tags);
        let rounds = if std::env::var_os("TAGMATCH_NIGHTLY").is_some() { 100 } else { 5 };
        let mut times = Vec::new();
        for round in 0..rounds {
            let victim = Address(VICTIMS + round);
            let mut child = world.start(victim);
            let moment = world.random() % 400;
            (0..moment).for_each(|_| world.step());
            let mut killed = Instant::now();
            for at in 0..SENDS {
                if at == moment % SENDS {
                    child.kill().unwrap();
                    killed = Instant::now();
                }
                world.send(victim, at);
            }
            child.wait().unwrap();
            world.until_all_ended();
            times.push(killed.elapsed());
        }
        say("after a peer is killed all has ended", times);
        assert!(world.failed >= rounds, "only {} operations failed", world.failed);
        world.check();
    }

    pub(super) fn on_a_wire_that_is_cut_everything_ends_once_and_a_new_connection_works(
        devices: &[RoceDevice],
        tags: Tags,
    ) {
        let mut world = World::new(devices, tags);
        world.meet(&devices[1]);
        shell("for end in v0 v1; do tc qdisc add dev $end root netem loss 100%; done");
        let since = Instant::now();
        (0..SENDS).for_each(|at| world.send(OTHER, at));
        world.other().say();
        world.until("everything ends", |world| {
            world.has_all_ended() && world.other.as_ref().is_some_and(|other| other.has_failed)
        });
        say("on a wire that is cut all has ended at both sides", vec![since.elapsed()]);
        assert!(world.failed >= SENDS / 2, "only {} operations failed", world.failed);
        shell("for end in v0 v1; do tc qdisc del dev $end root; done");
        world.meet(&devices[1]);
        world.check();
    }

    pub(super) fn where_the_address_of_a_peer_is_taken_away_everything_ends_once(
        devices: &[RoceDevice],
        tags: Tags,
    ) {
        let mut world = World::new(devices, tags);
        world.meet(&devices[1]);
        shell("ip address del 10.9.1.1/24 dev v1");
        let since = Instant::now();
        (0..SENDS).for_each(|at| world.send(OTHER, at));
        world.other().say();
        world.until("everything ends", |world| {
            world.has_all_ended() && world.other.as_ref().is_some_and(|other| other.has_failed)
        });
        say("where an address is taken away all has ended at both sides", vec![since.elapsed()]);
        assert!(world.failed >= SENDS / 2, "only {} operations failed", world.failed);
        world.other = None;
        shell("ip address add 10.9.1.1/24 dev v1; ip route replace 10.9.0.1 dev v1 src 10.9.1.1 table 102");
        world.check();
    }

    pub(super) fn a_device_that_is_deleted_under_an_endpoint_goes_when_that_is_closed(
        devices: &[RoceDevice],
        tags: Tags,
    ) {
        let mut world = World::new(devices, tags);
        world.meet(&devices[1]);
        let mut deleting = Command::new("rdma").args(["link", "delete", "rxe1"]).spawn().unwrap();
        for _ in 0..10 {
            world.meet(&devices[1]);
        }
        world.other = None;
        assert!(deleting.wait().unwrap().success());
        let since = Instant::now();
        (0..SENDS).for_each(|at| world.send(OTHER, at));
        world.until_all_ended();
        say("where the device of a peer is gone all has ended", vec![since.elapsed()]);
        world.check();
        shell("rdma link add rxe1 type rxe netdev v1");
    }
}

/// The length of a list, or none.
type Tags = Option<u32>;

/// The victim: says who it is, then sends and receives whatever there is, until it is killed.
#[test]
fn victim() {
    let Ok(survivor) = std::env::var(SURVIVOR) else { return };
    let name: Vec<u8> = survivor.split(' ').map(|byte| byte.parse().unwrap()).collect();
    let mut own = Other::new(&crate::inside::devices().unwrap()[1], None);
    own.endpoint.set_address(SURVIVOR_ADDRESS, &name).unwrap();
    let hello = Memory::new(own.endpoint.name().to_vec()).buffer();
    own.waiting.push_back((HELLO, hello, Level::Inject));
    // Whoever started it may be gone: then the connection is lost, and it ends by itself.
    while own.endpoint.statistics().lost == 0 {
        if own.waiting.is_empty() && own.under_way < 4 {
            own.say();
        }
        own.step();
    }
}

/// The other side of a fault, at the end of the cable.
struct Other {
    endpoint: Endpoint,
    began: Instant,
    area: Buffer,
    short: Buffer,
    long: Buffer,
    /// To be sent: tag, payload, when it is done.
    waiting: VecDeque<(u64, Buffer, Level)>,
    under_way: usize,
    received: u64,
    /// Something that it sent has failed, or could not be sent.
    has_failed: bool,
}

impl Other {
    fn new(device: &RoceDevice, tags: Tags) -> Self {
        let memory = |length| Memory::zeros(length).buffer();
        let mut other = Self {
            endpoint: endpoint(device, tags, &|config| config),
            began: Instant::now(),
            area: memory(LONG),
            short: memory(SHORT),
            long: memory(LONG),
            waiting: VecDeque::new(),
            under_way: 0,
            received: 0,
            has_failed: false,
        };
        (0..4).for_each(|_| other.post());
        other
    }

    fn post(&mut self) {
        self.endpoint.post(&post(None, TO_OTHER, self.area, TO_OTHER)).unwrap();
    }

    /// One short message and one long one, as soon as they can be sent.
    fn say(&mut self) {
        self.waiting.push_back((TO_SURVIVOR, self.short, Level::Delivery));
        self.waiting.push_back((TO_SURVIVOR, self.long, Level::Match));
    }

    fn step(&mut self) {
        while let Some((tag, payload, level)) = self.waiting.front().copied() {
            match self.endpoint.send(&message(SURVIVOR_ADDRESS, tag, payload, level, 1)) {
                Ok(()) => self.under_way += 1,
                // It tries anew.
                Err(SendRefused::Unreachable(_)) => {
                    self.has_failed = true;
                    break;
                }
                Err(_) => break,
            }
            self.waiting.pop_front();
        }
        self.endpoint.progress(self.began.elapsed()).unwrap();
        while let Some(done) = self.endpoint.poll_completion() {
            match done.what {
                Completed::Received { .. } => {
                    self.received += 1;
                    self.post();
                }
                Completed::Failed(_) if done.context == TO_OTHER => self.post(),
                Completed::Failed(_) => {
                    self.under_way -= 1;
                    self.has_failed = true;
                }
                Completed::Sent => self.under_way -= 1,
                what => panic!("{what:?}"),
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.under_way == 0
    }
}

/// The survivor, a bystander on the same device with whom it talks all the while, and what it was told.
struct World {
    survivor: Endpoint,
    bystander: Endpoint,
    tags: Tags,
    /// Of the survivor to the bystander, and back.
    talks: [Talk; 2],
    other: Option<Other>,
    began: Instant,
    /// By context.
    ends: HashMap<u64, Completed>,
    begun: u64,
    failed: u64,
    area: Buffer,
    hello: Memory,
    short: Buffer,
    long: Buffer,
    chance: u64,
    /// Whoever cannot be reached is tried again.
    is_meeting: bool,
    is_talking: bool,
}

impl World {
    fn new(devices: &[RoceDevice], tags: Tags) -> Self {
        let open = || endpoint(&devices[0], tags, &|config| config);
        let (mut survivor, mut bystander) = (open(), open());
        survivor.set_address(BYSTANDER, bystander.name()).unwrap();
        bystander.set_address(SURVIVOR_ADDRESS, survivor.name()).unwrap();
        let memory = |length| Memory::zeros(length).buffer();
        let mut world = Self {
            survivor,
            bystander,
            tags,
            talks: [Talk::new(), Talk::new()],
            other: None,
            began: Instant::now(),
            ends: HashMap::new(),
            begun: 0,
            failed: 0,
            area: memory(LONG),
            hello: Memory::zeros(64),
            short: memory(SHORT),
            long: memory(LONG),
            chance: 1,
            is_meeting: false,
            is_talking: true,
        };
        // What others send is taken, whatever it is.
        (0..4).for_each(|_| world.take());
        world
    }

    fn random(&mut self) -> u64 {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.chance >> 40
    }

    fn take(&mut self) {
        self.survivor.post(&post(None, TO_SURVIVOR, self.area, TO_SURVIVOR)).unwrap();
    }

    /// One step of both. They always talk.
    fn step(&mut self) {
        if self.is_talking {
            let [there, back] = &mut self.talks;
            there.go_on(&mut self.survivor, BYSTANDER, &mut self.bystander);
            back.go_on(&mut self.bystander, SURVIVOR_ADDRESS, &mut self.survivor);
        }
        let now = self.began.elapsed();
        self.survivor.progress(now).unwrap();
        self.bystander.progress(now).unwrap();
        if let Some(other) = &mut self.other {
            other.step();
        }
        while let Some(done) = self.bystander.poll_completion() {
            assert!(self.talks[0].handle(&done), "the bystander is told {done:?}");
        }
        while let Some(done) = self.survivor.poll_completion() {
            match done.context {
                _ if self.talks[1].handle(&done) => {}
                // A receive whose message was lost half-way has failed.
                TO_SURVIVOR => self.take(),
                context => {
                    self.failed += u64::from(matches!(done.what, Completed::Failed(_)));
                    let before = self.ends.insert(context, done.what);
                    assert_eq!(before, None, "{context} ends twice");
                }
            }
        }
    }

    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..20_000_000 {
            if is_so(self) {
                return;
            }
            self.step();
        }
        panic!("never so: {what}; {} of {} have ended", self.ends.len(), self.begun);
    }

    /// A victim that has said who it is.
    fn start(&mut self, victim: Address) -> Child {
        let context = self.begin();
        self.survivor.post(&post(None, HELLO, self.hello.buffer(), context)).unwrap();
        let name: Vec<String> = self.survivor.name().iter().map(u8::to_string).collect();
        let own = module_path!().split_once("::").map_or("", |(_, path)| path);
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("{own}::victim")])
            .env(SURVIVOR, name.join(" "))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.until("the victim says who it is", |world| world.ends.contains_key(&context));
        let Completed::Received { placed, .. } = self.ends[&context] else { panic!("{:?}", self.ends) };
        let name = self.hello.bytes()[..usize::try_from(placed).unwrap()].to_vec();
        self.survivor.set_address(victim, &name).unwrap();
        child
    }

    fn begin(&mut self) -> u64 {
        self.begun += 1;
        FIRST + self.begun
    }

    /// Send; where the peer cannot be reached any more, that is its end.
    fn send(&mut self, to: Address, at: u64) {
        let context = self.begin();
        let (memory, level) = match at % 3 {
            0 => (self.long, Level::Match),
            1 => (self.short, Level::Delivery),
            _ => (self.short, Level::Transmit),
        };
        loop {
            match self.survivor.send(&message(to, TO_OTHER, memory, level, context)) {
                Ok(()) => return,
                Err(SendRefused::Unreachable(_)) if !self.is_meeting => {
                    self.ends.insert(context, Completed::Cancelled);
                    self.failed += 1;
                    return;
                }
                Err(SendRefused::Again | SendRefused::Unreachable(_)) => self.step(),
                Err(refused) => panic!("{refused}"),
            }
        }
    }

    fn other(&mut self) -> &mut Other {
        self.other.as_mut().unwrap()
    }

    /// Both send to each other, and all of it comes.
    fn meet(&mut self, device: &RoceDevice) {
        let survivor = self.survivor.name().to_vec();
        let other = self.other.get_or_insert_with(|| {
            let mut other = Other::new(device, self.tags);
            other.endpoint.set_address(SURVIVOR_ADDRESS, &survivor).unwrap();
            other
        });
        let wanted = other.received + SENDS;
        self.survivor.set_address(OTHER, other.endpoint.name()).unwrap();
        self.is_meeting = true;
        let failed = self.failed;
        (0..SENDS).for_each(|at| self.send(OTHER, at));
        self.other().say();
        self.until("all comes", |world| {
            let all_came = |other: &Other| other.received >= wanted && other.is_quiet();
            world.has_all_ended() && world.other.as_ref().is_some_and(all_came)
        });
        self.is_meeting = false;
        self.other().has_failed = false;
        assert_eq!(self.failed, failed, "nothing fails");
    }

    fn has_all_ended(&self) -> bool {
        self.ends.len() as u64 == self.begun
    }

    fn until_all_ended(&mut self) {
        self.until("everything ends", Self::has_all_ended);
    }

    /// The two have talked all the while, and nothing is left.
    fn check(&mut self) {
        let before = self.talks.each_ref().map(Talk::taken);
        self.until("they go on talking", |world| {
            world.talks.iter().zip(before).all(|(talk, before)| talk.taken() > before + 10)
        });
        self.is_talking = false;
        self.until("sends are over", |world| {
            let ends = [&world.survivor, &world.bystander];
            ends.iter().all(|end| end.sends_in_progress() == 0) && world.talks.iter().all(Talk::is_over)
        });
        let [survivor, bystander] = [&self.survivor, &self.bystander].map(Endpoint::statistics);
        assert_eq!((bystander.lost, bystander.protocol_errors, survivor.protocol_errors), (0, 0, 0));
        let is_listed = [survivor, bystander].map(|counted| counted.matched_by_device > 0);
        assert_eq!(is_listed, [self.tags.is_some(); 2], "{survivor:?}, {bystander:?}");
    }
}

fn message<'a>(to: Address, tag: u64, memory: Buffer, level: Level, context: u64) -> Send<'a> {
    let (tag, payload) = (Tag(tag), Payload::Memory(memory));
    Send { space: Space::Tagged, to, tag, payload, cq_data: None, level, more: false, context, flags: 0 }
}

fn post(source: Option<Address>, tag: u64, buffer: Buffer, context: u64) -> Post {
    let (tag, ignore) = (Tag(tag), Ignore::NONE);
    Post { space: Space::Tagged, source, tag, ignore, buffer, kind: Kind::Once, context, flags: 0 }
}

/// How long errors took: printed, and bounded by many times what queue pairs try.
fn say(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let Patience { timeout, retries, .. } = VerbsConfig::default().patience;
    let tried = Duration::from_nanos(4096 << timeout) * (u32::from(retries) + 1);
    let [least, median, most] = [0, times.len() / 2, times.len() - 1].map(|place| times[place]);
    let range =
        if times.len() > 1 { format!("{least:.0?}, {median:.0?} (median) to ") } else { String::new() };
    println!("{TIMES}{what} {range}{most:.0?} later; queue pairs try for {tried:.0?}");
    assert!(most < tried * 100, "{what} after {most:?}");
}

fn shell(script: &str) {
    let status = Command::new("sh").args(["-e", "-c", script]).status().unwrap();
    assert!(status.success(), "{script}");
}

const SURVIVOR: &str = "TAGMATCH_TEST_SURVIVOR";
const SURVIVOR_ADDRESS: Address = Address(0);
const BYSTANDER: Address = Address(0);
const OTHER: Address = Address(1);
/// Addresses of victims begin here.
const VICTIMS: u64 = 10;
/// Contexts of operations that end once begin behind this.
const FIRST: u64 = 1000;
const SENDS: u64 = 12;
const SHORT: usize = 1000;
/// Goes by RDMA READ.
const LONG: usize = 200_000;
const HELLO: u64 = 1;
const TO_SURVIVOR: u64 = 10;
const TO_OTHER: u64 = 20;
