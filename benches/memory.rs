//! Bytes of matching state and the longest single operation, with a million posted receives and a million
//! unexpected messages.
//!
//! Bytes: what the matcher says of itself and what the allocator has given out, by live classes. Longest
//! operation: the same run several times; each operation counts with the shortest of its times, since an
//! interrupt hits another operation each time and growth always the same. First use of a new mask: a probe that finds
//! nothing in the whole unexpected list, in processor time, by how many messages that follow each other have one key
//! under the mask. With the kernel's first touch of the new index's memory in it; and where the memory of an index
//! no longer used is there, without. The shortest of the runs counts here too.
//!
//! `cargo bench --bench memory -- [--entries N] [--runs N] [--json]`. Not here: limits; time is not asserted.
#![deny(unsafe_code)]

mod common;
#[allow(unsafe_code, reason = "an allocator")]
#[path = "memory/counting.rs"]
mod counting;

use serde_json::{Value, json};
use tagmatch::ids::{Ignore, PeerId, Source, Tag};
use tagmatch::matching::{Envelope, Pattern};

use common::arguments::Arguments;
use common::clock::Clock;
use common::median;
use common::record;
use common::subject::{MatcherSubject, Subject};

fn main() {
    let arguments = Arguments::of_process(&["--json"], &["--entries", "--runs"]);
    let bench = arguments.has("--bench");
    let entries = arguments.number("--entries").unwrap_or(if bench { 1_000_000 } else { 1000 });
    let runs = arguments.number("--runs").unwrap_or(if bench { 5 } else { 1 }).max(1);
    // With --json the document alone is on standard output.
    let say: fn(&str) =
        if arguments.has("--json") { |text| eprintln!("{text}") } else { |text| println!("{text}") };
    say(&format!("{entries} posted and {entries} unexpected, {runs} runs; clock {} ns", Clock::Wall.cost()));
    let mut results = Vec::new();
    for classes in [1, 2, 4] {
        results.push(measure(classes, entries, runs, say));
    }
    if arguments.has("--json") {
        let about = record::circumstances();
        println!(
            "{:#}",
            json!({ "bench": "memory", "circumstances": about, "entries": entries, "results": results })
        );
    }
}

fn measure(classes: usize, entries: usize, runs: usize, say: fn(&str)) -> Value {
    let mut phases = Phase::all(entries);
    let (mut stated, mut given) = (0, 0);
    let mut first_search = Vec::new();
    let mut first_uses = FIRST_USES.map(|(_, _, _)| f64::INFINITY);
    for _ in 0..runs {
        let before = counting::live_bytes();
        let mut subject = MatcherSubject::default();
        for phase in &mut phases {
            phase.run(&mut subject, classes);
            if phase.kind == Kind::Arrive {
                // Each class searches once, so that it is live on the unexpected list as well.
                first_search
                    .push((0..classes).map(|class| search_of_class(&mut subject, class)).fold(0.0, f64::max));
                stated = subject.memory_bytes();
                given = counting::live_bytes() - before;
            }
        }
        for (shortest, (_, ignore, is_used_again)) in first_uses.iter_mut().zip(FIRST_USES) {
            *shortest = shortest.min(first_use_of_a_mask(entries, ignore, is_used_again));
        }
    }
    let each = |bytes: usize| bytes as f64 / (2 * entries) as f64;
    say(&format!(
        "\n{classes} classes: {:.1} bytes an entry by the matcher, {:.1} by the allocator",
        each(stated),
        each(given)
    ));
    let first_search = median(&mut first_search) / 1e3;
    for (spent, (name, ..)) in first_uses.iter().zip(FIRST_USES) {
        say(&format!("  first use of a new mask, {name}: {spent:.2} ns per unexpected message"));
    }
    let first_use = FIRST_USES.iter().zip(first_uses);
    let first_use: Vec<Value> =
        first_use.map(|((name, ..), spent)| json!({ "case": name, "ns": spent })).collect();
    say(&format!("  first search with the mask of posted receives, the longest: {first_search:.1} us"));
    let mut longest = Vec::new();
    for phase in &phases {
        longest.push(phase.report(say));
    }
    json!({
        "classes": classes,
        "bytes_per_entry_stated": each(stated),
        "bytes_per_entry_given": each(given),
        "first_use_ns_per_entry": first_use,
        "first_search_us": first_search,
        "longest": longest,
    })
}

/// Nanoseconds of a probe that finds nothing, by the mask of a class that has receives posted already.
fn search_of_class(subject: &mut MatcherSubject, class: usize) -> f64 {
    let probe = Pattern { tag: Tag(3 << 40), ignore: CLASSES[class], source: Source::Any };
    let start = Clock::Processor.now();
    assert!(!subject.probe(&probe), "nothing fits");
    (Clock::Processor.now() - start) as f64
}

/// Nanoseconds per unexpected message of a probe by a mask never used before, which finds nothing. `is_used_again`: in
/// the memory of another mask's class that no receive searched for long.
fn first_use_of_a_mask(entries: usize, ignore: Ignore, is_used_again: bool) -> f64 {
    let mut subject = MatcherSubject::default();
    Phase::new(Kind::Arrive, entries).run(&mut subject, 1);
    let probe = |ignore| Pattern { tag: Tag(3 << 40), ignore, source: Source::Any };
    if is_used_again {
        assert!(!subject.probe(&probe(Ignore(1 << 63))), "nothing fits");
        for _ in 0..UNUSED {
            assert!(!subject.probe(&probe(Ignore(1 << 62))), "nothing fits");
        }
    }
    let start = Clock::Processor.now();
    assert!(!subject.probe(&probe(ignore)), "nothing fits");
    (Clock::Processor.now() - start) as f64 / entries as f64
}

/// What is done to every entry in turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Post a million receives.
    Post,
    /// Let a million messages arrive that fit none of them.
    Arrive,
    /// Receive each of the messages.
    Receive,
    /// Let the message of each receive arrive.
    Match,
}

/// One kind with the shortest time seen of each of its operations.
#[derive(Debug)]
struct Phase {
    kind: Kind,
    shortest: Vec<u32>,
    /// The longest operation of each run as it was.
    raw: Vec<f64>,
}

impl Phase {
    fn new(kind: Kind, entries: usize) -> Self {
        Self { kind, shortest: vec![u32::MAX; entries], raw: Vec::new() }
    }

    fn all(entries: usize) -> [Self; 4] {
        [Kind::Post, Kind::Arrive, Kind::Receive, Kind::Match].map(|kind| Self::new(kind, entries))
    }

    fn run(&mut self, subject: &mut MatcherSubject, classes: usize) {
        let mut longest = 0;
        for (index, shortest) in self.shortest.iter_mut().enumerate() {
            let ignore = CLASSES[index % classes];
            let receive = |communicator: u64| Pattern {
                tag: Tag(communicator << 34 | index as u64),
                ignore,
                source: Source::Any,
            };
            let message = |communicator: u64| Envelope {
                tag: Tag(communicator << 34 | index as u64),
                source: PeerId(0),
            };
            let start = Clock::Wall.now();
            match self.kind {
                Kind::Post => assert!(subject.post(&receive(1)).is_some()),
                Kind::Arrive => assert!(!subject.arrive(&message(2))),
                Kind::Receive => assert!(subject.post(&receive(2)).is_none()),
                Kind::Match => assert!(subject.arrive(&message(1))),
            }
            let spent = u32::try_from(Clock::Wall.now() - start).unwrap_or(u32::MAX);
            *shortest = spent.min(*shortest);
            longest = longest.max(spent);
        }
        self.raw.push(f64::from(longest));
    }

    fn report(&self, say: fn(&str)) -> Value {
        let mut places: Vec<usize> = (0..self.shortest.len()).collect();
        places.sort_unstable_by_key(|&place| std::cmp::Reverse(self.shortest[place]));
        let top: Vec<(usize, u32)> =
            places.iter().take(3).map(|&place| (place, self.shortest[place])).collect();
        let raw = median(&mut self.raw.clone());
        let kind = format!("{:?}", self.kind);
        let mut line = format!("  {kind:<8} longest of {} operations:", self.shortest.len());
        for (place, spent) in &top {
            line += &format!(" {:.1} us (operation {place})", f64::from(*spent) / 1e3);
        }
        say(&format!("{line}; median of each run's longest, interrupts included: {:.1} us", raw / 1e3));
        json!({
            "operation": format!("{:?}", self.kind),
            "longest_ns": top.iter().map(|(place, spent)| json!({ "index": place, "ns": spent })).collect::<Vec<_>>(),
            "longest_with_interrupts_ns": raw,
        })
    }
}

/// Open MPI's named receive, the full mask, and others like it (traces/README.md). Messages and receives of one index fit under each of them.
const CLASSES: [Ignore; 4] =
    [Ignore(0x1_0000_0000), Ignore::NONE, Ignore(0x2_0000_0000), Ignore(0xfff0_0001_0000_0000)];

/// A name, a mask, and whether memory of an index is there.
const FIRST_USES: [(&str, Ignore, bool); 3] = [
    ("256 of a key in a row", Ignore(0xff), false),
    ("each of its own key", Ignore(1 << 40), false),
    ("each of its own key, memory there", Ignore(1 << 41), true),
];
/// Searches after which a class that none of them used is gone.
const UNUSED: usize = 5000;
