//! Seeded programs and seeded schedules: larger than what can be explored whole.
//!
//! One number makes a program, another one a schedule of it; the same numbers make the same run on every machine.
//! Each run is watched by the monitor, and its history is given to the offline checker when nothing happens any more.
//!
//! Not here: what a program can do ([`crate::world::scope`]).

use std::fmt;
use std::sync::Arc;

use tagmatch::device::soft::Switches;
use tagmatch::device::soft::switches::{
    CountOrder, EmptyRendezvous, ExpectedOrder, HandBack, ImmediateOn, OutOfSync,
};
use tagmatch::ids::{Ignore, PeerId, Source, Tag};
use tagmatch::matching::Pattern;
use tagmatch::offload::Statistics;

use crate::checker::{self, Options};
use crate::world::scope::{EAGER_LIMIT, Message, Op, Path, Receive, Scope};
use crate::world::{Action, Machine, StepKind, Watch, World, Wrong};

/// Numbers that look random: the same on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One below `bound`, or 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound.max(1)
    }

    fn small(&mut self, bound: u32) -> u32 {
        u32::try_from(self.below(u64::from(bound))).unwrap_or(0)
    }

    /// True once in so many.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = usize::try_from(self.below(all.len() as u64)).unwrap_or(0);
        all[at]
    }
}

/// What one run came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ran {
    /// Actions.
    pub actions: u64,
    /// What offload did.
    pub statistics: Statistics,
}

/// A run that went wrong.
#[derive(Clone, Debug)]
pub struct Failed {
    /// What was wrong.
    pub wrong: Wrong,
    /// What happened, in words.
    pub story: Vec<String>,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.story {
            writeln!(f, "{line}")?;
        }
        write!(f, "=> {}", self.wrong)
    }
}

/// Run the program and the schedule of this seed: programs change every [`SCHEDULES_OF_A_PROGRAM`] seeds.
///
/// # Errors
/// What went wrong, told in words.
pub fn run_seed(seed: u64) -> Result<Ran, Failed> {
    let scope = Arc::new(program(seed / SCHEDULES_OF_A_PROGRAM));
    run(&scope, seed, false).or_else(|_| run(&scope, seed, true))
}

/// Run a program by the schedule of this seed.
///
/// # Errors
/// What went wrong; told in words if `log` says so.
pub fn run(scope: &Arc<Scope>, seed: u64, log: bool) -> Result<Ran, Failed> {
    let watch = Watch { history: true, log, ..Watch::default() };
    let failed = |wrong: Wrong, world: Option<&World>| Failed {
        wrong,
        story: world.map(|world| world.log().to_vec()).unwrap_or_default(),
    };
    let mut world = World::new(scope, watch).map_err(|wrong| failed(wrong, None))?;
    let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5eed);
    match go(&mut world, &mut random) {
        Ok(actions) => Ok(Ran { actions, statistics: *world.engine().statistics() }),
        Err(wrong) => Err(failed(wrong, Some(&world))),
    }
}

/// Let a world happen to its end, by a schedule drawn, and check its history. How many actions it took.
///
/// # Errors
/// What went wrong.
pub fn go<D: Machine>(world: &mut World<D>, random: &mut Random) -> Result<u64, Wrong> {
    let weights = Weights::new(random);
    go_by(weights, world, random)
}

/// The same with given weights.
///
/// # Errors
/// What went wrong.
pub fn go_by<D: Machine>(weights: Weights, world: &mut World<D>, random: &mut Random) -> Result<u64, Wrong> {
    let (mut actions, mut count) = (Vec::new(), 0);
    loop {
        world.actions(&mut actions);
        let Some(action) = weights.choose(world, &actions, random) else { break };
        world.apply(action)?;
        count += 1;
        if count > ACTIONS_MAX {
            return Err(Wrong::Stuck(format!("{count} actions are not the end")));
        }
        if world.is_quiet() {
            world.check_quiet()?;
        }
    }
    if let Some(history) = world.history() {
        checker::check(history, Options::default())?;
    }
    Ok(count)
}

/// How likely each kind of action is in one run, so that runs differ in kind.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    user: u64,
    command: u64,
    accept: u64,
    data: u64,
    poll: u64,
    submit: u64,
}

impl Weights {
    /// Drawn.
    pub fn new(random: &mut Random) -> Self {
        let mut weight = || random.one_of(&[1, 2, 4, 16]);
        Self {
            user: weight(),
            command: weight(),
            accept: weight(),
            data: weight(),
            poll: weight(),
            submit: weight(),
        }
    }

    /// Drawn, but so that receives are mostly in the list before their messages come.
    pub fn posting(random: &mut Random) -> Self {
        let mut weight = || random.one_of(&[1, 2, 4]);
        Self { user: 64, command: 64, accept: 1, data: weight(), poll: 4 * weight(), submit: 64 }
    }

    /// Drawn, but so that devices and host keep up with messages: long runs get no queues as long as themselves.
    pub fn lively(random: &mut Random) -> Self {
        let mut weight = || random.one_of(&[1, 2, 4, 8]);
        Self { user: weight(), accept: weight(), command: 16, data: weight(), poll: 16, submit: 16 }
    }

    fn of<D: Machine>(&self, world: &World<D>, action: Action<D::Step>) -> u64 {
        match (action, world.kind(action)) {
            (Action::User(_), _) => self.user,
            (Action::Poll(_), _) => self.poll,
            (Action::Submit(_), _) => self.submit,
            (Action::Step(..), Some(StepKind::Command)) => self.command,
            (Action::Step(..), Some(StepKind::Accept)) => self.accept,
            (Action::Step(..), Some(StepKind::Data) | None) => self.data,
        }
    }

    /// One of the actions; none if there is none.
    pub fn choose<D: Machine>(
        &self,
        world: &World<D>,
        actions: &[Action<D::Step>],
        random: &mut Random,
    ) -> Option<Action<D::Step>> {
        let total: u64 = actions.iter().map(|&action| self.of(world, action)).sum();
        let mut left = random.below(total);
        for &action in actions {
            let weight = self.of(world, action);
            if left < weight {
                return Some(action);
            }
            left -= weight;
        }
        None
    }
}

/// A program.
#[must_use]
pub fn program(seed: u64) -> Scope {
    let mut random = Random::new(seed ^ 0x0070_726f_6772_616d);
    let mut scope = Scope::new(&format!("program {seed}"));
    scope.counters_start = 0xfff0 + u16::try_from(random.below(24)).unwrap_or(0) % 16;
    let kinds: &[&[bool]] =
        &[&[true], &[true], &[true, true], &[true, false], &[true, false], &[true, true, false], &[false]];
    for &matching in random.one_of(kinds) {
        scope.paths.push(if matching { device(&mut random) } else { Path::plain() });
    }
    scope.acceptance_order = scope.paths.len() == 1;
    scope.batched = random.once_in(3);
    scope.paths_known = random.once_in(3);
    scope.layout = random.once_in(3).then_some(0xf00);
    let senders = 1 + random.small(3);
    messages(&mut scope, senders, &mut random);
    user(&mut scope, senders, &mut random);
    fate(&mut scope, senders, &mut random);
    scope.placing = random.once_in(2);
    scope.silent_adds_max = random.one_of(&[0, 1, 3, 31]);
    scope.added_by_hand = hands(&mut random);
    scope.kept_from = random.one_of(&[0, 1, 2, 4]);
    scope
}

/// Which receives are put into lists while they are posted: none, most, or all.
pub(crate) fn hands(random: &mut Random) -> u64 {
    match random.below(4) {
        0 | 1 => 0,
        2 => random.below(u64::MAX) | random.below(u64::MAX),
        _ => u64::MAX,
    }
}

fn device(random: &mut Random) -> Path {
    let tags = 1 + random.small(4);
    let usual = Switches::default();
    let switches = match random.below(12) {
        0 => Switches { out_of_sync: OutOfSync::NothingMatches, ..usual },
        1 => Switches { count_order: CountOrder::AfterChange, ..usual },
        2 => Switches { count_order: CountOrder::BeforeChangeNotAtomic, ..usual },
        4 => Switches { hand_back: HandBack::ThenExpected, ..usual },
        5 => Switches { hand_back: HandBack::ThenCanceled, ..usual },
        6 => Switches { expected_order: ExpectedOrder::AsMatched, ..usual },
        7 => Switches {
            empty_rendezvous: EmptyRendezvous::HandedBack,
            immediate_on: ImmediateOn::Consumed,
            ..usual
        },
        _ => usual,
    };
    Path {
        tags,
        operations: random.one_of(&[3, 4, 6, 2 * tags + 2, 16, 64]),
        bounces: random.small(3),
        rendezvous: !random.once_in(3),
        switches,
    }
}

fn messages(scope: &mut Scope, senders: u32, random: &mut Random) {
    let paths: Vec<u8> =
        (0..senders).map(|_| u8::try_from(random.below(scope.paths.len() as u64)).unwrap_or(0)).collect();
    let mut left: Vec<u64> = (0..senders).map(|_| random.below(9)).collect();
    while left.iter().any(|&left| left > 0) {
        let sender = random.small(senders);
        let at = sender as usize;
        if left[at] == 0 {
            continue;
        }
        left[at] -= 1;
        let (rendezvous, long) = (random.once_in(4), random.once_in(3));
        scope.messages.push(Message {
            source: PeerId(sender),
            tag: Tag(tag(scope, sender, random)),
            path: paths[at],
            packets: if rendezvous { 1 } else { 1 + random.small(6) / 4 + random.small(9) / 8 },
            length: match (rendezvous, long) {
                (true, true) => EAGER_LIMIT * 3,
                (true, false) => random.below(EAGER_LIMIT),
                (false, _) => random.below(EAGER_LIMIT + 1),
            },
            rendezvous,
        });
    }
}

/// The tags that this sender uses.
fn tag(scope: &Scope, sender: u32, random: &mut Random) -> u64 {
    let named = if scope.layout.is_some() { u64::from(sender) << 8 } else { 0 };
    named | random.one_of(&[1, 1, 2, 3])
}

fn pattern(scope: &Scope, senders: u32, random: &mut Random) -> Pattern {
    let sender = random.small(senders);
    let source = if random.once_in(3) { Source::Peer(PeerId(sender)) } else { Source::Any };
    let ignore = random.one_of(&[0, 0, 0, 1, 2, 3, 0xf00, u64::MAX]);
    Pattern { tag: Tag(tag(scope, sender, random)), ignore: Ignore(ignore), source }
}

fn user(scope: &mut Scope, senders: u32, random: &mut Random) {
    let (mut ops, mut claims) = (Vec::new(), 0);
    for _ in 0..random.below(9) {
        let number = receive(scope, senders, random);
        ops.push(Op::Post(number));
        match random.below(8) {
            0 => ops.push(Op::Cancel(random.small(number + 1))),
            1 | 2 => scope.threads.push(vec![Op::Cancel(number)]),
            3 => ops.push(Op::Peek(pattern(scope, senders, random))),
            4 => {
                ops.push(Op::Claim(claims, pattern(scope, senders, random)));
                let then = if random.once_in(3) {
                    Op::Discard(claims)
                } else {
                    Op::ReceiveClaimed(claims, receive(scope, senders, random))
                };
                claims += 1;
                ops.push(then);
            }
            _ => {}
        }
    }
    // A cancel of a receive that is only for a claim would never come about.
    let posted = |op: &Op| {
        let Op::Cancel(receive) = *op else { return true };
        ops.contains(&Op::Post(receive))
    };
    scope.threads[0] = ops.iter().copied().filter(posted).collect();
}

fn receive(scope: &mut Scope, senders: u32, random: &mut Random) -> u32 {
    let length = if random.once_in(4) { random.below(EAGER_LIMIT) } else { EAGER_LIMIT };
    let pattern = pattern(scope, senders, random);
    scope.receives.push(Receive { pattern, length, least: None });
    u32::try_from(scope.receives.len() - 1).unwrap_or(0)
}

fn fate(scope: &mut Scope, senders: u32, random: &mut Random) {
    let device = u8::try_from(random.below(scope.paths.len() as u64)).unwrap_or(0);
    match random.below(12) {
        0 => scope.threads.push(vec![Op::Switch(device, false)]),
        1 | 2 => scope.threads.push(vec![Op::Switch(device, false), Op::Switch(device, true)]),
        3 => scope.threads.push(vec![Op::Lose(PeerId(random.small(senders)))]),
        4 => {
            scope.threads.push(vec![Op::Fail(device)]);
            scope.acceptance_order = false;
        }
        _ => {}
    }
}

/// No schedule takes so many: something goes round and round.
const ACTIONS_MAX: u64 = 1 << 22;
/// Schedules of one program, in seeds.
pub const SCHEDULES_OF_A_PROGRAM: u64 = 4;
