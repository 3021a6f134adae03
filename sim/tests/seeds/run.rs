//! A script is run: endpoints with everything that belongs to them on a simulated network, in virtual time.
//!
//! Not here: what is right (`judge`).

use std::collections::BTreeSet;
use std::time::Duration;

use super::device::soft::SoftConfig;
use super::device::soft::over::OverTransport;
use super::device::transport::{Payload, Transport};
use super::endpoint::{
    Address, Completed, Config, Endpoint, Level, Peek, PeekAction, Post, Send, SendRefused, Space, Statistics,
};
use super::engine::Kind;
use super::ids::{DeviceId, Ignore, Tag};
use super::judge::{self, Judge, LENGTH_OF_CLAIMS, Receive, SENDS};
use super::matching::Pattern;
use super::script::{LENGTH_MAX, Op, Script, Setting};
use super::transport::SimTransport;
use super::wire::Credits;
use super::world::{Fault, Shared, Weather};

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Ran {
    /// Operations done and things told.
    pub(super) events: u64,
    pub(super) statistics: Vec<Statistics>,
}

/// Endpoints and the network between them.
struct Run<'a> {
    setting: &'a Setting,
    world: Shared,
    nodes: Vec<Node>,
    judge: Judge,
    contexts: u64,
    lives: u8,
    ran: Ran,
}

#[derive(Default)]
struct Node {
    endpoint: Option<Endpoint>,
    /// The network's numbers of its transports.
    numbers: Vec<usize>,
    /// Its clock is so many ms ahead.
    ahead: u64,
    /// It does nothing until then.
    asleep: u64,
    is_near: bool,
}

type Went = Result<(), String>;

/// Run a script to its end.
///
/// # Errors
/// What was wrong.
pub(super) fn run(script: &Script) -> Result<Ran, String> {
    let mut run = Run::new(&script.setting)?;
    for op in &script.ops {
        run.ran.events += 1;
        run.act(*op)?;
    }
    run.finish()?;
    run.judge.finish()?;
    for node in 0..run.nodes.len() {
        run.keep_statistics(node);
    }
    Ok(run.ran)
}

impl<'a> Run<'a> {
    fn new(setting: &'a Setting) -> Result<Self, String> {
        let Setting { delay, split, full, posted, .. } = *setting;
        let world = Shared::new(setting.seed, Weather { delay, split, full, posted, holds: false });
        world.lock().unexposed = setting.unexposed;
        let mut judge = Judge::default();
        judge.may_refuse_memory = setting.unexposed > 0;
        let nodes = usize::try_from(setting.nodes.clamp(1, 8)).unwrap();
        if setting.keepalive > 0 {
            // Whoever sleeps is taken for dead.
            (0..nodes).for_each(|one| (0..nodes).for_each(|other| judge.is_faulty(one, other)));
        }
        let mut run = Self {
            setting,
            world,
            nodes: (0..nodes).map(|_| Node::default()).collect(),
            judge,
            contexts: 0,
            lives: 0,
            ran: Ran::default(),
        };
        for at in 0..nodes {
            run.nodes[at].is_near = setting.near >> at & 1 == 1;
            run.start(at)?;
        }
        Ok(run)
    }

    fn config(&mut self) -> Config {
        let it = self.setting;
        let few = |number: u64| u32::try_from(number).unwrap();
        self.lives = self.lives.wrapping_add(1);
        Config {
            eager_limit: it.eager_limit,
            segmented_limit: it.segmented_limit,
            credits: Credits {
                headers: few(it.headers),
                eager_messages: few(it.eager_messages),
                eager_bytes: it.eager_bytes,
            },
            job_key: (it.has_key > 0).then(|| vec![9; 16]),
            keepalive: (it.keepalive > 0).then(|| Duration::from_secs(it.keepalive)),
            seed: Some([self.lives; 32]),
            ..Config::default()
        }
    }

    fn start(&mut self, at: usize) -> Went {
        let (config, tags) = (self.config(), u32::try_from(self.setting.tags).unwrap());
        let limit = if tags == 0 { 1 << 20 } else { config.eager_limit };
        let paths: &[&'static [u8]] = if self.nodes[at].is_near { &[b"near:", b""] } else { &[b""] };
        let mut transports: Vec<Box<dyn Transport + std::marker::Send>> = Vec::new();
        self.nodes[at].numbers.clear();
        for (id, path) in (0..).map(DeviceId).zip(paths) {
            let transport = SimTransport::on_path(&self.world, &name(at), limit, id, path);
            self.nodes[at].numbers.push(transport.node());
            if tags == 0 {
                transports.push(Box::new(transport));
            } else {
                let over = OverTransport::new(transport, SoftConfig { id, ..SoftConfig::matching(tags) });
                transports.push(Box::new(over.map_err(|error| error.to_string())?));
            }
        }
        let mut endpoint = Endpoint::new(config, transports).map_err(|error| error.to_string())?;
        for other in 0..self.nodes.len() {
            endpoint.set_address(Address(other as u64), &name(other)).map_err(|error| error.to_string())?;
        }
        self.nodes[at].endpoint = Some(endpoint);
        self.nodes[at].asleep = 0;
        self.judge.is_born(at);
        Ok(())
    }

    fn context(&mut self) -> u64 {
        self.contexts += 1;
        self.contexts
    }

    fn node(&self, number: u64) -> usize {
        usize::try_from(number).unwrap() % self.nodes.len()
    }

    fn act(&mut self, op: Op) -> Went {
        match op {
            Op::Send { from, to, untagged, tag, length, level } => {
                let send = Sending { space: space(untagged), tag: Tag(tag), length, level };
                self.send(self.node(from), self.node(to), &send)
            }
            Op::Post { at, untagged, source, tag, length } => {
                let source = source.checked_sub(1).map(|node| self.node(node) as u64);
                self.post(self.node(at), space(untagged), source, tag, (length, Kind::Once))
            }
            Op::Multi { at, untagged, tag, length, least } => {
                self.post(self.node(at), space(untagged), None, tag, (length, Kind::Multi { least }))
            }
            Op::Peek { at, untagged, source, tag, action } => {
                let action = [PeekAction::Look, PeekAction::Claim, PeekAction::Discard]
                    [usize::try_from(action % 3).unwrap()];
                let source = source.checked_sub(1).map(|node| self.node(node) as u64);
                self.peek(self.node(at), space(untagged), source, tag, action)
            }
            Op::Take { at, nth, drop } => {
                let at = self.node(at);
                let claims = self.judge.claims(at);
                if claims.is_empty() {
                    return Ok(());
                }
                self.take(at, claims[usize::try_from(nth).unwrap() % claims.len()], drop > 0)
            }
            Op::Cancel { at, nth } => {
                let at = self.node(at);
                let posted = self.judge.receives(at);
                if posted.is_empty() {
                    return Ok(());
                }
                self.cancel(at, posted[posted.len() - 1 - usize::try_from(nth).unwrap() % posted.len()])
            }
            Op::Turns { count } => self.turns(count),
            Op::Sleep { at, turns } => {
                let (at, now) = (self.node(at), self.world.lock().now);
                self.nodes[at].asleep = now + turns;
                Ok(())
            }
            Op::Jump { at, ms } => {
                let at = self.node(at);
                self.nodes[at].ahead += ms;
                Ok(())
            }
            Op::Cut { nth } => {
                self.cut(nth);
                Ok(())
            }
            Op::Kill { at, told, near } => self.kill(self.node(at), told > 0, near > 0),
            Op::Break { at, path } => {
                let at = self.node(at);
                self.may_lose_all_of(at);
                let numbers = &self.nodes[at].numbers;
                let number = numbers[usize::try_from(path).unwrap() % numbers.len()];
                self.world.lock().faults.insert(number, Fault::Error);
                Ok(())
            }
        }
    }

    fn endpoint(&mut self, at: usize) -> &mut Endpoint {
        self.nodes[at].endpoint.as_mut().expect("it lives")
    }

    fn send(&mut self, from: usize, to: usize, sending: &Sending) -> Went {
        let number = self.judge.next();
        let payload = judge::payload(number, sending.length);
        // Of what is copied the endpoint lets peers read its own memory, which is none of this world's.
        let memory = self.world.allocate(&payload);
        let levels = [Level::Inject, Level::Transmit, Level::Delivery, Level::Match];
        let send = Send {
            space: sending.space,
            to: Address(to as u64),
            tag: sending.tag,
            payload: Payload::Memory(memory),
            cq_data: Some(number),
            level: levels[usize::try_from(sending.level % 4).unwrap()],
            more: false,
            context: SENDS | u64::from(number),
            flags: 0,
        };
        match self.endpoint(from).send(&send) {
            Ok(()) => self.judge.sends(from, to, sending.space, sending.tag, sending.length),
            Err(SendRefused::Again | SendRefused::Unreachable(_) | SendRefused::Endpoint(_)) => {}
            Err(refused) => return Err(format!("a send from {from} to {to} was refused: {refused}")),
        }
        self.collect(from)
    }

    fn post(
        &mut self,
        at: usize,
        space: Space,
        source: Option<u64>,
        tag: u64,
        (length, kind): (u64, Kind),
    ) -> Went {
        let context = self.context();
        let buffer = self.world.allocate(&vec![0xEE; usize::try_from(length).unwrap()]);
        let ignore = if tag == 0 { Ignore::ALL } else { Ignore::NONE };
        let tag = Tag(tag.saturating_sub(1));
        let post = Post { space, source: source.map(Address), tag, ignore, buffer, kind, context, flags: 0 };
        let before = self.endpoint(at).depths(space);
        if self.endpoint(at).post(&post).is_err() {
            // Its device has failed: what it says next is that.
            return self.collect(at);
        }
        let after = self.endpoint(at).depths(space);
        let pattern = pattern(space, source, tag, ignore);
        let mut receive = Receive::new(space, pattern, kind != Kind::Once, buffer.address, length);
        (receive.took, receive.is_queued) = (before.1 - after.1, after.0 > before.0);
        self.judge.posts(at, context, receive);
        self.collect(at)
    }

    fn peek(&mut self, at: usize, space: Space, source: Option<u64>, tag: u64, action: PeekAction) -> Went {
        let context = self.context();
        let ignore = if tag == 0 { Ignore::ALL } else { Ignore::NONE };
        let tag = Tag(tag.saturating_sub(1));
        self.judge.peeks(at, context, pattern(space, source, tag, ignore), action);
        let source = source.map(Address);
        self.endpoint(at).peek(&Peek { space, source, tag, ignore, action, context, flags: 0 });
        self.collect(at)
    }

    fn take(&mut self, at: usize, context: u64, is_drop: bool) -> Went {
        self.judge.takes(at, context);
        let buffer = self.world.allocate(&vec![0xEE; usize::try_from(LENGTH_OF_CLAIMS).unwrap()]);
        let endpoint = self.endpoint(at);
        let taken = if is_drop {
            endpoint.discard_claimed(context, 0)
        } else {
            endpoint.receive_claimed(context, buffer, 0)
        };
        if let Err(error) = taken
            && self.endpoint(at).failure().is_none()
        {
            return Err(error.to_string());
        }
        self.collect(at)
    }

    fn cancel(&mut self, at: usize, context: u64) -> Went {
        let is_pending = self.endpoint(at).cancel(context);
        self.judge.cancels(at, context, is_pending)?;
        self.collect(at)
    }

    fn turns(&mut self, count: u64) -> Went {
        for _ in 0..count {
            let (now, first) = {
                let mut world = self.world.lock();
                world.now += 1;
                let count = self.nodes.len() as u64;
                (world.now, usize::try_from(world.random.below(count)).unwrap())
            };
            for turn in 0..self.nodes.len() {
                let at = (first + turn) % self.nodes.len();
                if self.nodes[at].asleep <= now {
                    self.progress(at, now)?;
                }
            }
        }
        Ok(())
    }

    fn progress(&mut self, at: usize, now: u64) -> Went {
        let now = Duration::from_millis(now + self.nodes[at].ahead);
        match self.endpoint(at).progress(now) {
            Ok(_) => self.collect(at),
            Err(_) => {
                self.collect(at)?;
                let is_near = self.nodes[at].is_near;
                self.kill(at, true, is_near)
            }
        }
    }

    fn collect(&mut self, at: usize) -> Went {
        while let Some(said) = self.endpoint(at).poll_completion() {
            self.ran.events += 1;
            let text = match said.what {
                Completed::Received { address, placed, .. } => self.world.read(address, placed),
                _ => Vec::new(),
            };
            self.judge.hears(at, &said, &text)?;
        }
        Ok(())
    }

    fn cut(&mut self, nth: u64) {
        let mut world = self.world.lock();
        let lives = |it: &super::world::Connection| it.ends.iter().all(Option::is_some);
        let living: Vec<usize> =
            (0..world.connections.len()).filter(|&it| lives(&world.connections[it])).collect();
        if living.is_empty() {
            return;
        }
        let connection = living[usize::try_from(nth).unwrap() % living.len()];
        let ends = world.connections[connection].ends.map(|end| end.map(|(number, _)| number));
        world.cut(connection);
        drop(world);
        let whose = |number: Option<usize>| {
            self.nodes.iter().position(|node| number.is_some_and(|number| node.numbers.contains(&number)))
        };
        if let [Some(one), Some(other)] = ends.map(whose) {
            self.judge.is_faulty(one, other);
        }
    }

    fn may_lose_all_of(&mut self, at: usize) {
        (0..self.nodes.len()).for_each(|other| self.judge.is_faulty(at, other));
    }

    fn kill(&mut self, at: usize, told: bool, near: bool) -> Went {
        self.may_lose_all_of(at);
        self.judge.is_dead(at);
        self.keep_statistics(at);
        for number in std::mem::take(&mut self.nodes[at].numbers) {
            self.world.lock().kill(number, told);
        }
        self.nodes[at].endpoint = None;
        self.nodes[at].is_near = near && self.setting.near > 0;
        self.start(at)
    }

    fn keep_statistics(&mut self, at: usize) {
        if let Some(endpoint) = &self.nodes[at].endpoint {
            self.ran.statistics.push(*endpoint.statistics());
        }
    }

    /// Everybody wakes up, and everything that is on its way arrives; what is left is received, dropped or cancelled.
    fn finish(&mut self) -> Went {
        self.nodes.iter_mut().for_each(|node| node.asleep = 0);
        let (mut quiet, mut poked) = (0, BTreeSet::new());
        for round in 0..ROUNDS_MAX {
            self.turns(TURNS)?;
            let mut is_quiet = self.judge.is_over();
            for at in 0..self.nodes.len() {
                for context in self.judge.claims(at) {
                    self.take(at, context, round % 2 == 0)?;
                    is_quiet = false;
                }
                for space in [Space::Tagged, Space::Untagged] {
                    for _ in 0..self.endpoint(at).depths(space).1 {
                        self.post(at, space, None, 0, (LENGTH_MAX, Kind::Once))?;
                        is_quiet = false;
                    }
                }
            }
            is_quiet &= !self.poke(&mut poked)?;
            quiet = if is_quiet { quiet + 1 } else { 0 };
            if quiet >= QUIET_ROUNDS {
                break;
            }
        }
        for at in 0..self.nodes.len() {
            for context in self.judge.posted(at) {
                self.cancel(at, context)?;
            }
        }
        self.turns(TURNS * QUIET_ROUNDS)?;
        self.is_nothing_left()
    }

    /// Whoever waits on a connection that is dead without a word hears of it when something is written to it. Whether there
    /// was somebody who had not written.
    fn poke(&mut self, poked: &mut BTreeSet<(usize, usize)>) -> Result<bool, String> {
        let mut is_any = false;
        for from in 0..self.nodes.len() {
            for to in 0..self.nodes.len() {
                if poked.contains(&(from, to)) || !self.judge.is_any_fault() {
                    continue;
                }
                is_any = true;
                let before = self.judge.next();
                self.send(from, to, &Sending { space: Space::Untagged, tag: Tag(0), length: 0, level: 0 })?;
                if self.judge.next() > before {
                    poked.insert((from, to));
                }
            }
        }
        Ok(is_any)
    }

    fn is_nothing_left(&mut self) -> Went {
        for at in 0..self.nodes.len() {
            let endpoint = self.endpoint(at);
            let left = [
                endpoint.sends_in_progress(),
                endpoint.depths(Space::Tagged).0,
                endpoint.depths(Space::Tagged).1,
                endpoint.depths(Space::Untagged).0,
                endpoint.depths(Space::Untagged).1,
            ];
            if left != [0; 5] {
                return Err(format!(
                    "endpoint {at} has left (sends; posted and unexpected with a tag; without): {left:?}"
                ));
            }
        }
        Ok(())
    }
}

struct Sending {
    space: Space,
    tag: Tag,
    length: u64,
    level: u64,
}

fn space(untagged: u64) -> Space {
    if untagged > 0 { Space::Untagged } else { Space::Tagged }
}

fn pattern(space: Space, source: Option<u64>, tag: Tag, ignore: Ignore) -> Pattern {
    let (tag, ignore) = if space == Space::Tagged { (tag, ignore) } else { (Tag(0), Ignore::ALL) };
    Pattern { tag, ignore, source: judge::from(source) }
}

fn name(at: usize) -> Vec<u8> {
    format!("node {at}").into_bytes()
}

/// Turns of a round at the end.
const TURNS: u64 = 40;
/// As long as that nothing may be left to do.
const QUIET_ROUNDS: u64 = 4;
/// After so many the run does not come to its end.
const ROUNDS_MAX: u64 = 400;
