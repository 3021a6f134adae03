//! Sequences of programs: the realistic mix and recorded traces, as steps that any subject can play.
//!
//! What each step ends in is settled once, beforehand, by two vectors; a subject that ends a script with
//! another count of matches fails. So scripts never cancel what is gone, and always can be drained.
//!
//! Not here: checking every single match (`tagmatch replay` does).

use tagmatch::ids::{Ignore, PeerId, Source, Tag};
use tagmatch::matching::{Envelope, Pattern};

use super::Seeded;
use super::subject::Subject;

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<P, E> {
    Post(P),
    Arrive(E),
    Probe(P),
    /// A probe that takes the message; the receive that names it later does no matching.
    Claim(P),
    /// Cancels the receive of the so-manieth post, which is still posted.
    Cancel(u32),
}

/// A sequence with what it comes to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) name: String,
    steps: Vec<Step<Pattern, Envelope>>,
    /// Cancels and claims that leave both lists empty; played, but not counted.
    drain: Vec<Step<Pattern, Envelope>>,
    posts: u32,
    /// Posts, arrivals, probes and claims that find something.
    matches: usize,
}

impl Script {
    /// Settles what the steps come to. A cancel of what is not posted is dropped.
    pub(crate) fn new(name: &str, wanted: impl IntoIterator<Item = Step<Pattern, Envelope>>) -> Self {
        let mut script = Self { name: name.to_owned(), ..Self::default() };
        let mut posted: Vec<(u32, Pattern)> = Vec::new();
        let mut unexpected: Vec<Envelope> = Vec::new();
        for step in wanted {
            let first = |pattern: &Pattern, list: &[Envelope]| {
                list.iter().position(|message| pattern.fits(message, None))
            };
            match &step {
                Step::Post(pattern) => {
                    if let Some(place) = first(pattern, &unexpected) {
                        unexpected.remove(place);
                        script.matches += 1;
                    } else {
                        posted.push((script.posts, *pattern));
                    }
                    script.posts += 1;
                }
                Step::Arrive(envelope) => {
                    if let Some(place) = posted.iter().position(|(_, pattern)| pattern.fits(envelope, None)) {
                        posted.remove(place);
                        script.matches += 1;
                    } else {
                        unexpected.push(*envelope);
                    }
                }
                Step::Probe(pattern) => script.matches += usize::from(first(pattern, &unexpected).is_some()),
                Step::Claim(pattern) => {
                    if let Some(place) = first(pattern, &unexpected) {
                        unexpected.remove(place);
                        script.matches += 1;
                    }
                }
                Step::Cancel(post) => {
                    let Some(place) = posted.iter().position(|(name, _)| name == post) else { continue };
                    posted.remove(place);
                }
            }
            script.steps.push(step);
        }
        script.drain.extend(posted.iter().map(|(post, _)| Step::Cancel(*post)));
        script.drain.extend(unexpected.iter().map(|message| {
            Step::Claim(Pattern {
                tag: message.tag,
                ignore: Ignore::NONE,
                source: Source::Peer(message.source),
            })
        }));
        script
    }

    pub(crate) fn steps(&self) -> &[Step<Pattern, Envelope>] {
        &self.steps
    }

    /// The same for a matcher without sources: the sender's number in bits that no tag of the script uses,
    /// as Open MPI's UCX component does. None if there is no room.
    pub(crate) fn with_sources_in_tags(&self) -> Option<Self> {
        let (mut used, mut last_source) = (0, 0);
        for step in &self.steps {
            match step {
                Step::Post(pattern) | Step::Probe(pattern) | Step::Claim(pattern) => used |= pattern.tag.0,
                Step::Arrive(envelope) => {
                    used |= envelope.tag.0;
                    last_source = last_source.max(envelope.source.0);
                }
                Step::Cancel(_) => {}
            }
        }
        let width = u64::from(u32::BITS - last_source.leading_zeros()).max(1);
        let field = (1u64 << width) - 1;
        let shift = (0..=64 - width).rev().find(|shift| used & field << shift == 0)?;
        let in_tag = |pattern: &Pattern| match pattern.source {
            Source::Peer(peer) => Pattern {
                tag: Tag(pattern.tag.0 | u64::from(peer.0) << shift),
                ignore: pattern.ignore,
                source: Source::Any,
            },
            Source::Any | Source::Group(_) => {
                Pattern { ignore: Ignore(pattern.ignore.0 | field << shift), source: Source::Any, ..*pattern }
            }
        };
        let steps = self.steps.iter().map(|step| match step {
            Step::Post(pattern) => Step::Post(in_tag(pattern)),
            Step::Probe(pattern) => Step::Probe(in_tag(pattern)),
            Step::Claim(pattern) => Step::Claim(in_tag(pattern)),
            Step::Arrive(envelope) => Step::Arrive(Envelope {
                tag: Tag(envelope.tag.0 | u64::from(envelope.source.0) << shift),
                source: PeerId(0),
            }),
            Step::Cancel(post) => Step::Cancel(*post),
        });
        let folded = Self::new(&self.name, steps.collect::<Vec<_>>());
        assert_eq!((folded.matches, folded.drain.len()), (self.matches, self.drain.len()), "{}", self.name);
        Some(folded)
    }

    /// The mix of real programs: bursts of receives of mean depth 3, at most 32; 2 % wildcards; 12 % of the
    /// messages ahead of their receive; a fifth of the bursts arrive reversed, a fifth in random order, the
    /// rest in order. One probe in 50 bursts. With `tails`, one burst in 2,000 has 256 to 16,384 receives.
    pub(crate) fn realistic_mix(bursts: usize, tails: bool, seed: u64) -> Self {
        let mut random = Seeded::new(seed);
        let mut steps = Vec::new();
        let mut next_tag = 0u64;
        for _ in 0..bursts {
            let depth = burst_depth(&mut random, tails);
            let early_share = 12;
            let mut early = Vec::new();
            let mut late = Vec::new();
            let mut patterns = Vec::new();
            for _ in 0..depth {
                let source = PeerId(u32::try_from(random.below(16)).unwrap_or(0));
                let tag = Tag(next_tag & 0xffff | 1 << 34);
                next_tag += 1;
                let wild = random.below(100) < 2;
                let from = if wild { Source::Any } else { Source::Peer(source) };
                patterns.push(Pattern { tag, ignore: NAMED, source: from });
                let envelope = Envelope { tag, source };
                if random.below(100) < early_share { early.push(envelope) } else { late.push(envelope) }
            }
            match random.below(5) {
                0 => late.reverse(),
                1 => random.shuffle(&mut late),
                _ => {}
            }
            if random.below(50) == 0 {
                steps.push(Step::Probe(Pattern { tag: Tag(2 << 34), ignore: NAMED, source: Source::Any }));
            }
            steps.extend(early.into_iter().map(Step::Arrive));
            steps.extend(patterns.into_iter().map(Step::Post));
            steps.extend(late.into_iter().map(Step::Arrive));
        }
        Self::new(if tails { "realistic-mix-tails" } else { "realistic-mix" }, steps)
    }
}

/// Receives of one burst: exponential with a mean of 3 and at most 32, but for the rare long tail.
fn burst_depth(random: &mut Seeded, tails: bool) -> usize {
    if tails && random.below(2000) == 0 {
        return 256 << random.below(7);
    }
    let mut depth = 1;
    while depth < 32 && random.below(3) != 0 {
        depth += 1;
    }
    depth
}

/// A script in one subject's own form.
#[derive(Debug)]
pub(crate) struct Stage<S: Subject> {
    name: String,
    steps: Vec<Step<S::Pattern, S::Envelope>>,
    drain: Vec<Step<S::Pattern, S::Envelope>>,
    receives: Vec<Option<S::Receive>>,
    matches: usize,
}

impl<S: Subject> Stage<S> {
    pub(crate) fn new(script: &Script) -> Self {
        let prepare = |steps: &[Step<Pattern, Envelope>]| {
            let prepare_step = |step: &Step<Pattern, Envelope>| match step {
                Step::Post(pattern) => Step::Post(S::prepare_pattern(pattern)),
                Step::Arrive(envelope) => Step::Arrive(S::prepare_envelope(envelope)),
                Step::Probe(pattern) => Step::Probe(S::prepare_pattern(pattern)),
                Step::Claim(pattern) => Step::Claim(S::prepare_pattern(pattern)),
                Step::Cancel(post) => Step::Cancel(*post),
            };
            steps.iter().map(prepare_step).collect::<Vec<_>>()
        };
        Self {
            name: script.name.clone(),
            steps: prepare(&script.steps),
            drain: prepare(&script.drain),
            receives: Vec::with_capacity(script.posts as usize),
            matches: script.matches,
        }
    }

    /// Steps of one play.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Plays every step.
    pub(crate) fn play(&mut self, subject: &mut S) {
        self.receives.clear();
        let mut matches = 0;
        for step in &self.steps {
            match step {
                Step::Post(pattern) => {
                    let receive = subject.post(pattern);
                    matches += usize::from(receive.is_none());
                    self.receives.push(receive);
                }
                Step::Arrive(envelope) => matches += usize::from(subject.arrive(envelope)),
                Step::Probe(pattern) => matches += usize::from(subject.probe(pattern)),
                Step::Claim(pattern) => matches += usize::from(subject.claim(pattern)),
                Step::Cancel(post) => {
                    let receive = self.receives[*post as usize];
                    assert!(
                        receive.is_some_and(|receive| subject.cancel(receive)),
                        "cancel in {}",
                        self.name
                    );
                }
            }
        }
        subject.settle();
        assert_eq!(matches, self.matches, "{} in {}", subject.name(), self.name);
    }

    /// Empties both lists.
    pub(crate) fn drain(&mut self, subject: &mut S) {
        for step in &self.drain {
            match step {
                Step::Cancel(post) => {
                    let receive = self.receives[*post as usize];
                    assert!(receive.is_some_and(|receive| subject.cancel(receive)), "drain of {}", self.name);
                }
                Step::Claim(pattern) => assert!(subject.claim(pattern), "drain of {}", self.name),
                Step::Post(_) | Step::Arrive(_) | Step::Probe(_) => {}
            }
        }
        subject.settle();
    }
}

/// An ordinary named receive of Open MPI over libfabric.
const NAMED: Ignore = Ignore(0x1_0000_0000);
