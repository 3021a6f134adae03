//! Every schedule of a small scope, once: a search over canonical states.
//!
//! [`exhaust`] goes depth first and keeps nothing but the states' fingerprints and the worlds on its way down. That no way
//! comes back to where it was, and that at the end of each nothing waits, is what makes progress certain: whatever the
//! schedule, everything is done after finitely many steps. [`exhaust_twice`] tries whether fingerprints tell enough.
//! [`shortest`] goes breadth first and keeps how each state was reached, so that what it finds is a shortest way
//! there; it replays that way whenever it needs the world, since worlds are large and ways are short.
//!
//! Not here: what must hold in a state (that is [`crate::world`]).

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash as _, Hasher};
use std::sync::Arc;

use crate::world::scope::Scope;
use crate::world::{Action, Fingerprint, Watch, World, Wrong};

/// What an exhaustive search saw.
#[derive(Clone, Debug)]
pub struct Explored {
    /// The scope's name.
    pub name: String,
    /// Canonical states.
    pub states: u64,
    /// Transitions between them.
    pub transitions: u64,
    /// The most actions on the way to a state.
    pub depth: usize,
    /// States in which nothing can happen by itself.
    pub quiet: u64,
    /// Every state that can be reached was.
    pub is_complete: bool,
    /// A way to something wrong, not the shortest.
    pub wrong: Option<Counterexample>,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, states, transitions, depth, quiet, .. } = self;
        write!(
            f,
            "{name:<44} {states:>9} states {transitions:>10} transitions, depth {depth:>3}, {quiet:>6} quiet"
        )?;
        match (&self.wrong, self.is_complete) {
            (Some(wrong), _) => write!(f, ", WRONG: {}", wrong.wrong),
            (None, true) => f.write_str(", complete"),
            (None, false) => f.write_str(", not complete"),
        }
    }
}

/// A way to something wrong.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// What.
    pub wrong: Wrong,
    /// What was done.
    pub actions: Vec<Action>,
    /// What happened, in words.
    pub story: Vec<String>,
}

impl Counterexample {
    fn new(scope: &Arc<Scope>, actions: Vec<Action>, wrong: Wrong) -> Self {
        let watch = Watch { log: true, ..Watch::default() };
        let story = World::new(scope, watch).map_or_else(
            |_| Vec::new(),
            |mut world| {
                for &action in &actions {
                    if world.apply(action).is_err() {
                        break;
                    }
                }
                world.log().to_vec()
            },
        );
        Self { wrong, actions, story }
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.story {
            writeln!(f, "{line}")?;
        }
        write!(f, "=> {}", self.wrong)
    }
}

/// Go through all states of a scope, but at most so many.
#[must_use]
pub fn exhaust(scope: &Scope, states_max: u64) -> Explored {
    Search::new(scope, states_max, false).run()
}

/// The same, and whenever a state is reached again by another way, see that the same can follow: that states which look
/// alike behave alike, so that it was right to go on from one of them only.
#[must_use]
pub fn exhaust_twice(scope: &Scope, states_max: u64) -> Explored {
    Search::new(scope, states_max, true).run()
}

struct Search {
    scope: Arc<Scope>,
    explored: Explored,
    seen: Seen,
    /// By state what can follow, where that is asked for.
    followed: Option<HashMap<Fingerprint, u64, BuildHasherDefault<Already>>>,
    words: Vec<u64>,
    path: Vec<Action>,
    states_max: u64,
}

struct Level {
    world: Option<World>,
    actions: Vec<Action>,
    fingerprint: Fingerprint,
}

impl Search {
    fn new(scope: &Scope, states_max: u64, is_twice: bool) -> Self {
        let explored = Explored {
            name: scope.name.clone(),
            states: 0,
            transitions: 0,
            depth: 0,
            quiet: 0,
            is_complete: false,
            wrong: None,
        };
        Self {
            scope: Arc::new(scope.clone()),
            explored,
            seen: Seen::default(),
            followed: is_twice.then(HashMap::default),
            words: Vec::new(),
            path: Vec::new(),
            states_max,
        }
    }

    fn run(mut self) -> Explored {
        match self.go() {
            Ok(is_complete) => self.explored.is_complete = is_complete,
            Err(wrong) => {
                let actions = std::mem::take(&mut self.path);
                self.explored.wrong = Some(Counterexample::new(&self.scope, actions, wrong));
            }
        }
        self.explored
    }

    fn go(&mut self) -> Result<bool, Wrong> {
        let watch = Watch { log: self.followed.is_some(), ..Watch::default() };
        let world = World::new(&self.scope, watch)?;
        let fingerprint = world.fingerprint(&mut self.words);
        let mut levels = vec![self.enter(world, fingerprint)?];
        while let Some(level) = levels.last_mut() {
            let Some(action) = level.actions.pop() else {
                levels.pop();
                self.path.pop();
                continue;
            };
            if self.explored.states >= self.states_max {
                return Ok(false);
            }
            self.explored.transitions += 1;
            // Nobody needs it behind the last of its actions.
            let world = if level.actions.is_empty() { level.world.take() } else { level.world.clone() };
            let Some(mut world) = world else { continue };
            self.path.push(action);
            world.apply(action)?;
            world.take_log();
            let fingerprint = world.fingerprint(&mut self.words);
            if !self.seen.contains(&fingerprint) {
                levels.push(self.enter(world, fingerprint)?);
                continue;
            }
            // Who comes back to where it was can do so for ever.
            if levels.iter().any(|level| level.fingerprint == fingerprint) {
                return Err(Wrong::Stuck("this goes round in a circle".to_owned()));
            }
            let follows = self.followed.as_ref().and_then(|followed| followed.get(&fingerprint)).copied();
            if let Some(follows) = follows
                && follows != Self::follows(&world)?
            {
                return Err(Wrong::Stuck("two states look alike, and different things follow".to_owned()));
            }
            self.path.pop();
        }
        Ok(true)
    }

    fn enter(&mut self, world: World, fingerprint: Fingerprint) -> Result<Level, Wrong> {
        self.explored.states += 1;
        self.explored.depth = self.explored.depth.max(self.path.len());
        if world.is_quiet() {
            self.explored.quiet += 1;
            world.check_quiet()?;
        }
        if let Some(followed) = &mut self.followed {
            followed.insert(fingerprint, Self::follows(&world)?);
        }
        self.seen.insert(fingerprint);
        let mut actions = Vec::new();
        world.actions(&mut actions);
        Ok(Level { world: Some(world), actions, fingerprint })
    }

    /// All that can happen next, what is seen of it, and what can happen then: as one number. In words, which name everything
    /// by its number in the program, since names that engine and devices give depend on the past.
    fn follows(world: &World) -> Result<u64, Wrong> {
        let (mut actions, mut next) = (Vec::new(), Vec::new());
        world.actions(&mut actions);
        let words = |world: &World, actions: &[Action]| {
            let mut words: Vec<String> = actions.iter().map(|&action| world.words(action)).collect();
            words.sort_unstable();
            words
        };
        for &action in &actions {
            let (mut after, mut then) = (world.clone(), Vec::new());
            after.apply(action)?;
            after.actions(&mut then);
            next.push((world.words(action), after.take_log(), after.is_quiet(), words(&after, &then)));
        }
        next.sort_unstable();
        let mut hasher = DefaultHasher::new();
        (world.is_quiet(), next).hash(&mut hasher);
        Ok(hasher.finish())
    }
}

/// A shortest way to something wrong, if there is one within so many states.
#[must_use]
pub fn shortest(scope: &Scope, states_max: usize) -> Option<Counterexample> {
    let scope = Arc::new(scope.clone());
    let mut nodes: Vec<Node> = vec![Node { parent: 0, action: None }];
    let start = match World::new(&scope, Watch::default()) {
        Ok(world) => world,
        Err(wrong) => return Some(Counterexample::new(&scope, Vec::new(), wrong)),
    };
    let (mut words, mut seen, mut actions) = (Vec::new(), Seen::default(), Vec::new());
    seen.insert(start.fingerprint(&mut words));
    let mut next = 0;
    while next < nodes.len() && nodes.len() < states_max {
        let path = way_to(&nodes, next);
        let mut world = start.clone();
        for &action in &path {
            // It went well when the node was made.
            world.apply(action).ok()?;
        }
        world.actions(&mut actions);
        for &action in &actions {
            let mut after = world.clone();
            let applied = after.apply(action);
            let checked = applied.and_then(|()| if after.is_quiet() { after.check_quiet() } else { Ok(()) });
            if let Err(wrong) = checked {
                let way = path.iter().copied().chain([action]).collect();
                return Some(Counterexample::new(&scope, way, wrong));
            }
            if seen.insert(after.fingerprint(&mut words)) {
                nodes.push(Node { parent: u32::try_from(next).ok()?, action: Some(action) });
            }
        }
        next += 1;
    }
    None
}

struct Node {
    parent: u32,
    action: Option<Action>,
}

fn way_to(nodes: &[Node], mut at: usize) -> Vec<Action> {
    let mut way = Vec::new();
    while let Some(action) = nodes[at].action {
        way.push(action);
        at = nodes[at].parent as usize;
    }
    way.reverse();
    way
}

type Seen = HashSet<Fingerprint, BuildHasherDefault<Already>>;

/// A fingerprint is a hash already.
#[derive(Default)]
struct Already(u64);

impl Hasher for Already {
    fn write(&mut self, bytes: &[u8]) {
        let (low, _) = bytes.split_at(bytes.len().min(8));
        let mut word = [0; 8];
        word[..low.len()].copy_from_slice(low);
        self.0 = u64::from_le_bytes(word);
    }

    #[expect(clippy::cast_possible_truncation, reason = "half of the word is meant")]
    fn write_u128(&mut self, word: u128) {
        self.0 = (word >> 32) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
