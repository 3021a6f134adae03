//! What happens in a run, as data: drawn by seed, and as text, so that what is left of a failing run becomes a test.
//!
//! Every line makes sense behind every other: places in lists are taken modulo their lengths, and what cannot be done at
//! the time is left out. So lines can be taken away.
//!
//! Not here: doing it.

use std::fmt::Write as _;

use super::world::Random;

/// A run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Script {
    pub(super) setting: Setting,
    pub(super) ops: Vec<Op>,
}

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident),* }) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub(super) struct $name {
            $($(#[$field_doc])* pub(super) $field: u64,)*
        }

        impl $name {
            fn print(&self) -> String {
                let mut line = String::from(stringify!($name));
                $(let _ = write!(line, " {}={}", stringify!($field), self.$field);)*
                line
            }

            fn parse(words: &[&str]) -> Option<Self> {
                let mut it = Self::default();
                for word in words {
                    let (name, number) = word.split_once('=')?;
                    let number = number.parse().ok()?;
                    match name {
                        $(stringify!($field) => it.$field = number,)*
                        _ => return None,
                    }
                }
                Some(it)
            }
        }
    };
}

named! {
    /// How the run is set up.
    Setting {
        /// Of the network's own draws.
        seed,
        /// Endpoints.
        nodes,
        /// Entries of a list over each transport; 0: none.
        tags,
        /// Bits: endpoints that have a second path.
        near,
        delay, split, full, posted, unexposed,
        eager_limit, segmented_limit,
        headers, eager_messages, eager_bytes,
        has_key,
        /// Seconds; 0: never.
        keepalive
    }
}

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident { $($field:ident),* })*) => {
        /// One thing to do.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Op {
            $($(#[$doc])* $name { $($field: u64),* },)*
        }

        impl Op {
            fn print(self) -> String {
                match self {
                    $(Self::$name { $($field),* } => {
                        let mut line = String::from(stringify!($name));
                        $(let _ = write!(line, " {}={}", stringify!($field), $field);)*
                        line
                    })*
                }
            }

            fn parse(line: &str) -> Option<Self> {
                let words: Vec<&str> = line.split_whitespace().collect();
                let (name, fields) = words.split_first()?;
                let field = |wanted: &str| {
                    fields.iter().find_map(|it| it.strip_prefix(wanted)?.strip_prefix('=')?.parse().ok())
                };
                match *name {
                    $(stringify!($name) => Some(Self::$name { $($field: field(stringify!($field))?),* }),)*
                    _ => None,
                }
            }
        }
    };
}

ops! {
    /// A message; `untagged` 1: without a tag; `level` as the levels of completion, from 0.
    Send { from, to, untagged, tag, length, level }
    /// A receive; `source` and `tag` one more than what is named, 0: anybody's, any.
    Post { at, untagged, source, tag, length }
    /// A multi-receive.
    Multi { at, untagged, tag, length, least }
    /// `action` 0: look, 1: claim, 2: discard.
    Peek { at, untagged, source, tag, action }
    /// What was claimed is received (`drop` 0) or dropped.
    Take { at, nth, drop }
    /// The receive that was posted so many receives ago.
    Cancel { at, nth }
    /// Time goes on, and with it all that are awake.
    Turns { count }
    /// It does nothing for so many turns.
    Sleep { at, turns }
    /// Its clock jumps ahead.
    Jump { at, ms }
    /// A connection is cut.
    Cut { nth }
    /// It dies, `told` or not, and starts again, with a second path or without one.
    Kill { at, told, near }
    /// A transport of it fails: the endpoint is of no more use, and starts again.
    Break { at, path }
}

impl Script {
    /// The script of a seed.
    pub(super) fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0xD134_2543_DE82_EF95) ^ 0x5C21);
        let setting = Setting::draw(seed, &mut random);
        let weights = Weights::draw(&mut random);
        let ops = (0..OPS).map(|_| weights.draw_op(&setting, &mut random)).collect();
        Self { setting, ops }
    }

    pub(super) fn print(&self) -> String {
        let mut text = self.setting.print();
        for op in &self.ops {
            let _ = write!(text, "\n{}", op.print());
        }
        text.push('\n');
        text
    }

    /// Reads what [`Self::print`] writes; a line that is no operation is `Err`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let words: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
        let setting = match words.split_first() {
            Some((&"Setting", fields)) => Setting::parse(fields),
            _ => None,
        };
        let setting = setting.ok_or("the first line is no setting")?;
        let ops = lines.map(|line| Op::parse(line).ok_or_else(|| format!("no operation: {line}")));
        Ok(Self { setting, ops: ops.collect::<Result<_, _>>()? })
    }
}

impl Setting {
    fn draw(seed: u64, random: &mut Random) -> Self {
        let nodes = 2 + random.below(3);
        let eager_limit = 64 + random.below(1200);
        Self {
            seed,
            nodes,
            tags: if random.chance(50) { 1 + random.below(8) } else { 0 },
            near: if random.chance(50) { random.below(1 << nodes) } else { 0 },
            delay: random.below(8),
            split: random.below(100),
            full: random.below(40),
            posted: random.below(100),
            unexposed: if random.chance(25) { random.below(30) } else { 0 },
            eager_limit,
            segmented_limit: if random.chance(50) { 4000 } else { 0 },
            headers: 8 + random.below(40),
            eager_messages: 1 + random.below(8),
            eager_bytes: eager_limit + random.below(6000),
            has_key: u64::from(random.chance(20)),
            keepalive: if random.chance(10) { 1 + random.below(20) } else { 0 },
        }
    }
}

/// How often what happens in one run, so that runs differ in kind: some kinds of things do not happen at all.
struct Weights([u64; 12]);

impl Weights {
    fn draw(random: &mut Random) -> Self {
        let mut any = |of: &[u64]| of[usize::try_from(random.below(of.len() as u64)).unwrap()];
        let (mut weight, usual, rare) = ([0; 12], [4, 16, 32], [0, 0, 0, 1, 2]);
        (weight[0], weight[1], weight[6]) = (any(&usual), any(&usual), any(&usual));
        weight[2] = any(&[0, 0, 1, 4]);
        weight[3..6].fill_with(|| any(&[0, 1, 4]));
        weight[7..9].fill_with(|| any(&[0, 0, 1, 2]));
        // Half of the runs have no faults, and so may lose nothing.
        if any(&[0, 1]) == 1 {
            (9..12).for_each(|at| weight[at] = any(&rare));
        }
        Self(weight)
    }

    fn draw_op(&self, setting: &Setting, random: &mut Random) -> Op {
        let mut left = random.below(self.0.iter().sum());
        let kind = self.0.iter().position(|&weight| {
            let is_it = left < weight;
            left = left.saturating_sub(weight);
            is_it
        });
        let at = random.below(setting.nodes);
        let untagged = u64::from(random.chance(25));
        let (tag, source) = (random.below(4), random.below(3 * setting.nodes));
        let source = if source < setting.nodes { source + 1 } else { 0 };
        match kind {
            Some(0) => Op::Send {
                from: at,
                to: random.below(setting.nodes),
                untagged,
                tag: random.below(3),
                length: length(setting, random),
                level: random.below(4),
            },
            Some(1) => {
                // A list takes shorter ones through memory of its own, which is none of the network's.
                let is_short = setting.tags == 0 && random.chance(20);
                let length = if is_short { random.below(LENGTH_MAX) } else { LENGTH_MAX };
                Op::Post { at, untagged, source, tag, length }
            }
            Some(2) => {
                let (length, least) = (1000 + random.below(4000), random.below(1000));
                Op::Multi { at, untagged, tag, length, least }
            }
            Some(3) => Op::Peek { at, untagged, source, tag, action: random.below(3) },
            Some(4) => Op::Take { at, nth: random.below(4), drop: random.below(2) },
            Some(5) => Op::Cancel { at, nth: random.below(12) },
            Some(7) => Op::Sleep { at, turns: 1 + random.below(300) },
            Some(8) => Op::Jump { at, ms: 1 << random.below(17) },
            Some(9) => Op::Cut { nth: random.below(64) },
            Some(10) => Op::Kill { at, told: random.below(2), near: random.below(2) },
            Some(11) => Op::Break { at, path: random.below(2) },
            _ => Op::Turns { count: 1 + random.below(4) },
        }
    }
}

fn length(setting: &Setting, random: &mut Random) -> u64 {
    match random.below(6) {
        0 => 0,
        1 => setting.eager_limit,
        2 => setting.eager_limit + 1,
        3 => random.below(LENGTH_MAX),
        _ => random.below(200),
    }
}

/// Lines of a script that is drawn.
const OPS: usize = 1000;
/// Of messages and receives, in bytes.
pub(super) const LENGTH_MAX: u64 = 6000;
