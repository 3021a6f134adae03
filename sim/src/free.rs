//! A recorded trace as a program: what the receiver did stays in its order, and so does what each sender sent; when
//! messages arrive is free.
//!
//! Not here: the trace's own order, which [`tagmatch::replay`] keeps.

use std::collections::BTreeMap;
use std::sync::Arc;

use tagmatch::ids::Source;
use tagmatch::traces::{Event, Outcome, Trace};

use crate::checker::{self, Options};
use crate::schedules::{Random, Weights};
use crate::world::scope::{EAGER_LIMIT, Message, Op, Path, Receive, Scope};
use crate::world::{Watch, World, Wrong};

/// Over what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Over {
    /// Entries of each list; 0: no device matches.
    pub tags: u32,
    /// Devices of that size.
    pub devices: u8,
    /// One more that does not match, for every third sender.
    pub second_path: bool,
}

/// The program. Receives and messages have the trace's numbers.
#[must_use]
pub fn scope(trace: &Trace, over: Over) -> Scope {
    let counts = trace.counts();
    let mut scope = Scope::new(trace.short_name());
    let matching = Path { bounces: over.tags, ..Path::matching(over.tags) };
    scope.paths = vec![if over.tags == 0 { Path::plain() } else { matching }; usize::from(over.devices)];
    if over.second_path {
        scope.paths.push(Path::plain());
    }
    let mut messages: BTreeMap<u32, Message> = BTreeMap::new();
    let mut receives: BTreeMap<u32, Receive> = BTreeMap::new();
    // Claims are dense, whatever the peeks' numbers are.
    let mut claims: BTreeMap<u32, u32> = BTreeMap::new();
    let ops = &mut scope.threads[0];
    for step in &trace.steps {
        match step.event {
            Event::Post { receive, pattern, length } => {
                receives.insert(receive.0, Receive { pattern, length, least: None });
                ops.push(Op::Post(receive.0));
            }
            Event::Arrive { message, envelope, length } => {
                let source = envelope.source;
                let path = if over.second_path && source.0 % 3 == 2 {
                    over.devices
                } else {
                    u8::try_from(source.0 % u32::from(over.devices)).unwrap_or(0)
                };
                let rendezvous = length > EAGER_LIMIT;
                let packets = 1 + u32::from(!rendezvous && message.0 % 5 == 0);
                let message_sent = Message { source, tag: envelope.tag, path, packets, length, rendezvous };
                messages.insert(message.0, message_sent);
            }
            Event::Peek { peek, pattern, claim: true } => {
                let number = u32::try_from(claims.len()).unwrap_or(u32::MAX);
                claims.insert(peek.0, number);
                ops.push(Op::Claim(number, pattern));
            }
            Event::Peek { pattern, .. } => ops.push(Op::Peek(pattern)),
            Event::Claim { receive, peek, length } => {
                let pattern = tagmatch::matching::Pattern {
                    tag: tagmatch::ids::Tag(0),
                    ignore: tagmatch::ids::Ignore::ALL,
                    source: Source::Any,
                };
                receives.insert(receive.0, Receive { pattern, length, least: None });
                if let Some(&number) = claims.get(&peek.0) {
                    ops.push(Op::ReceiveClaimed(number, receive.0));
                }
            }
            Event::Cancel { receive } => ops.push(Op::Cancel(receive.0)),
        }
    }
    debug_assert_eq!((messages.len(), receives.len()), (counts.messages, counts.receives));
    scope.messages = messages.into_values().collect();
    scope.receives = receives.into_values().collect();
    scope.counters_start = 0;
    scope
}

/// The trace's own pairs (receive, message), if every schedule must come to them: every receive names its sender and
/// ignores the same bits, and nobody looks or cancels.
#[must_use]
pub fn certain_pairs(trace: &Trace) -> Option<Vec<(u32, u32)>> {
    let mut ignored = None;
    let mut pairs = Vec::new();
    for step in &trace.steps {
        match step.event {
            Event::Post { pattern, .. } => {
                let same = *ignored.get_or_insert(pattern.ignore) == pattern.ignore;
                if !same || !matches!(pattern.source, Source::Peer(_)) {
                    return None;
                }
            }
            Event::Arrive { .. } => {}
            Event::Peek { .. } | Event::Claim { .. } | Event::Cancel { .. } => return None,
        }
        if let Outcome::Matched(receive, message) = step.expected {
            pairs.push((receive.0, message.0));
        }
    }
    pairs.sort_unstable();
    Some(pairs)
}

/// Run it by the schedule of this seed, and check the history. The pairs that came about, by receive.
///
/// # Errors
/// What went wrong.
pub fn run(scope: &Arc<Scope>, seed: u64) -> Result<Vec<(u32, u32)>, Wrong> {
    let watch = Watch { unmonitored: true, history: true, ..Watch::default() };
    let mut world = World::new(scope, watch)?;
    let mut random = Random::new(seed);
    let weights = Weights::lively(&mut random);
    let mut actions = Vec::new();
    loop {
        world.actions(&mut actions);
        let Some(action) = weights.choose(&world, &actions, &mut random) else { break };
        world.apply(action)?;
    }
    world.check_quiet()?;
    checker::check(world.history().unwrap_or_default(), Options::default())?;
    let count = u32::try_from(scope.messages.len()).unwrap_or(u32::MAX);
    let mut pairs: Vec<_> =
        (0..count).filter_map(|message| Some((world.receive_of(message)?, message))).collect();
    pairs.sort_unstable();
    Ok(pairs)
}
