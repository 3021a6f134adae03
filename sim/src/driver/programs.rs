//! Programs for worlds with the real driver: those of [`crate::schedules`], and wider ones, with lists of up to 127
//! entries.

use tagmatch::ids::{Ignore, PeerId, Source, Tag};
use tagmatch::matching::Pattern;

use super::in_bytes;
use crate::schedules::{self, Random};
use crate::world::scope::{EAGER_LIMIT, Message, Op, Path, Receive, Scope};

/// A small program, in bytes: most with lists as short as those of [`schedules::program`], some with longer ones.
#[must_use]
pub fn small(seed: u64) -> Scope {
    let mut scope = schedules::program(seed);
    let mut random = Random::new(seed ^ 0x006c_6973_7473);
    for path in scope.paths.iter_mut().filter(|path| path.tags > 0) {
        if random.once_in(3) {
            path.tags = tags(&mut random);
        }
    }
    in_bytes(scope)
}

/// A program in which lists of up to 127 entries fill up, in bytes.
#[must_use]
pub fn wide(seed: u64) -> Scope {
    let mut random = Random::new(seed ^ 0x7769_6465);
    let mut scope = Scope::new(&format!("wide program {seed}"));
    scope.counters_start = 0xffc0 + u16::try_from(random.below(64)).unwrap_or(0);
    let tags = tags(&mut random);
    let operations = if random.once_in(4) { 4 } else { 2 * tags + 2 };
    let bounces = u32::try_from(random.below(3)).unwrap_or(0);
    let path = Path { bounces, ..Path::matching(tags) }.with_operations(operations);
    scope.paths.push(path);
    match random.below(4) {
        0 => scope.paths.push(Path::plain()),
        1 => scope.paths.push(Path { bounces, ..Path::matching(1 + tags / 2) }),
        _ => {}
    }
    scope.acceptance_order = scope.paths.len() == 1;
    scope.batched = random.once_in(2);
    scope.placing = random.once_in(2);
    let senders = 1 + u32::try_from(random.below(3)).unwrap_or(0);
    // As many again as the list holds, so that some wait for room.
    let count = (tags + tags / 2).min(RECEIVES_MAX) + u32::try_from(random.below(8)).unwrap_or(0);
    let kinds = 1 + random.below(1 + u64::from(tags));
    for number in 0..count {
        let sender = u32::try_from(random.below(senders.into())).unwrap_or(0);
        let path = u8::try_from(sender as usize % scope.paths.len()).unwrap_or(0);
        let rendezvous = random.once_in(6);
        scope.messages.push(Message {
            source: PeerId(sender),
            tag: Tag(1 + random.below(kinds)),
            path,
            packets: if !rendezvous && random.once_in(5) { 2 } else { 1 },
            length: random.below(EAGER_LIMIT + 1),
            rendezvous,
        });
        let ignore = if random.once_in(12) { u64::MAX } else { 0 };
        let pattern =
            Pattern { tag: Tag(1 + random.below(kinds)), ignore: Ignore(ignore), source: Source::Any };
        scope.receives.push(Receive { pattern, length: EAGER_LIMIT, least: None });
        scope.threads[0].push(Op::Post(number));
        if random.once_in(8) {
            scope.threads.push(vec![Op::Cancel(number)]);
        }
    }
    scope.silent_adds_max = random.one_of(&[0, 1, 3, 31]);
    scope.added_by_hand = schedules::hands(&mut random);
    in_bytes(scope)
}

/// 1 to 127; those at powers of two are more frequent.
fn tags(random: &mut Random) -> u32 {
    let near = 1_u64 << random.below(8);
    let tags = match random.below(4) {
        0 => near,
        1 => near - 1,
        2 => near + 1,
        _ => 1 + random.below(127),
    };
    u32::try_from(tags).unwrap_or(1).clamp(1, 127)
}

const RECEIVES_MAX: u32 = 180;
