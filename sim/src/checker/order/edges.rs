//! What has to be before what, in number about linear in the length of the run.
//!
//! Nodes: the points of time (0 to length, the last one being the end of the run), then messages, then cancels, then
//! helpers. Rules are numbered as in the [module above](super::super).
//!
//! Not here: whether they go round.

use std::collections::{HashMap, HashSet};

use tagmatch::ids::{Source, Tag};
use tagmatch::matching::{Envelope, Pattern};

use super::run::{NEVER, Removal, Run};
use crate::checker::{Name, Options, Rule};

#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Why; none if it is only time.
    pub(super) rule: Option<Rule>,
}

#[derive(Default)]
pub(super) struct Edges {
    pub(super) nodes: u32,
    pub(super) edges: Vec<Edge>,
    /// Helper nodes that stand for a receive, in order.
    receives: Vec<(u32, usize)>,
}

/// What one receive or peek looks for, with nothing that it does not look at.
type Key = (u64, u64, Source);

/// An ignore mask, and for the source: any, a peer, a group.
type Class = (u64, u8);

/// "All of these receives are gone": for those up to each.
#[derive(Default)]
struct Chain {
    posted: Vec<usize>,
    gone: Vec<u32>,
}

impl Edges {
    pub(super) fn of(run: &Run, options: Options) -> Self {
        let nodes = number(run.length + 1 + run.messages.len() + run.cancels.len());
        let mut edges = Self { nodes, ..Self::default() };
        edges.add_time(run);
        edges.add_passed_receives(run);
        edges.add_found_messages(run);
        edges.add_senders(run);
        edges.add_cancels(run);
        if options.acceptance_order {
            edges.add_acceptance_order(run);
        }
        edges
    }

    /// What a node is called.
    pub(super) fn name(&self, run: &Run, node: u32) -> Option<Name> {
        let index = node as usize;
        let (messages, cancels) = (run.length + 1, run.length + 1 + run.messages.len());
        if index < messages {
            None
        } else if index < cancels {
            Some(Name::Message(run.messages[index - messages].name))
        } else if let Some(cancel) = run.cancels.get(index - cancels) {
            Some(Name::Cancel(cancel.name))
        } else {
            let at = self.receives.binary_search_by_key(&node, |receive| receive.0).ok()?;
            Some(Name::Receive(run.receives[self.receives[at].1].name))
        }
    }

    /// When an operation ended.
    #[expect(clippy::unused_self, reason = "the numbers of nodes are its business")]
    pub(super) fn end(&self, run: &Run, node: u32) -> Option<usize> {
        let index = (node as usize).checked_sub(run.length + 1)?;
        match index.checked_sub(run.messages.len()) {
            None => Some(run.messages[index].end),
            Some(cancel) => run.cancels.get(cancel).map(|cancel| cancel.end),
        }
    }

    /// Rule 7, and the first half of 1.
    fn add_time(&mut self, run: &Run) {
        for at in 0..run.length {
            self.add(number(at), number(at + 1), None);
        }
        for (index, message) in run.messages.iter().enumerate().filter(|(_, message)| message.is_placed()) {
            self.add(number(message.begin), arrival(run, index), None);
            self.add(arrival(run, index), number(message.end), None);
            if let Some(receive) = message.receive {
                let posted = number(run.receives[receive].posted);
                self.add(posted, arrival(run, index), Some(Rule::BeforePost));
            }
        }
        for (index, call) in run.cancels.iter().enumerate() {
            self.add(number(call.begin), cancel(run, index), None);
            self.add(cancel(run, index), number(call.end), None);
        }
    }

    /// Rules 1 and 2.
    fn add_passed_receives(&mut self, run: &Run) {
        let rule = Some(Rule::EarlierReceive);
        let mut chains: HashMap<Key, Chain> = HashMap::new();
        for (index, receive) in run.receives.iter().enumerate() {
            let gone = self.node();
            self.receives.push((gone, index));
            self.add(removal(run, index), gone, rule);
            let chain = chains.entry(key(&receive.pattern)).or_default();
            if let Some(before) = chain.gone.last() {
                self.add(*before, gone, rule);
            }
            chain.posted.push(receive.posted);
            chain.gone.push(gone);
        }
        let classes = classes(run.receives.iter().map(|receive| &receive.pattern));
        for (index, message) in run.messages.iter().enumerate().filter(|(_, message)| message.is_placed()) {
            let limit = message.receive.map_or(message.taken, |receive| run.receives[receive].posted);
            for key in keys(&classes, run, &message.envelope) {
                let Some(chain) = chains.get(&key) else { continue };
                let count = chain.posted.partition_point(|posted| *posted < limit);
                if count > 0 {
                    self.add(chain.gone[count - 1], arrival(run, index), rule);
                }
            }
        }
    }

    /// Rules 3 and 4.
    fn add_found_messages(&mut self, run: &Run) {
        let mut listed: HashMap<Key, Vec<(usize, usize)>> = HashMap::new();
        for look in &run.looks {
            listed.entry(key(&look.pattern)).or_default();
        }
        let classes = classes(run.looks.iter().map(|look| &look.pattern));
        for (index, message) in run.messages.iter().enumerate().filter(|(_, message)| message.is_unexpected())
        {
            for key in keys(&classes, run, &message.envelope) {
                if let Some(listed) = listed.get_mut(&key) {
                    listed.push((message.taken, index));
                }
            }
        }
        let mut trees = HashMap::new();
        for (key, listed) in &mut listed {
            listed.sort_unstable();
            trees.insert(*key, self.add_tree(run, listed));
        }
        for look in &run.looks {
            let key = key(&look.pattern);
            let (listed, root) = (&listed[&key], trees[&key]);
            let first = listed.partition_point(|(taken, _)| *taken <= look.at);
            let Some(found) = look.found else {
                self.add_range(number(look.at), root, listed.len(), (first, listed.len()));
                continue;
            };
            // A message that a peek leaves where it is, is not before itself.
            let itself = listed.binary_search(&(run.messages[found].taken, found)).unwrap_or_else(|at| at);
            let from = arrival(run, found);
            self.add_range(from, root, listed.len(), (first, itself));
            self.add_range(from, root, listed.len(), (first.max(itself + 1), listed.len()));
        }
    }

    /// A tree over the messages of a key: whatever is before a node is before all below it. Its nodes are numbered
    /// from the one returned; node n has children 2n and 2n + 1, and the leaves come last.
    fn add_tree(&mut self, run: &Run, listed: &[(usize, usize)]) -> u32 {
        let (root, count) = (self.nodes, number(listed.len()));
        self.nodes += 2 * count;
        for node in 1..count {
            self.add(root + node, root + 2 * node, Some(Rule::EarlierMessage));
            self.add(root + node, root + 2 * node + 1, Some(Rule::EarlierMessage));
        }
        for (leaf, (_, message)) in (root + count..).zip(listed) {
            self.add(leaf, arrival(run, *message), Some(Rule::EarlierMessage));
        }
        root
    }

    fn add_range(&mut self, from: u32, root: u32, count: usize, range: (usize, usize)) {
        let (mut low, mut high) = (number(range.0 + count), number(range.1 + count));
        while low < high {
            if low % 2 == 1 {
                self.add(from, root + low, Some(Rule::EarlierMessage));
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                self.add(from, root + high, Some(Rule::EarlierMessage));
            }
            low /= 2;
            high /= 2;
        }
    }

    /// Rule 5.
    fn add_senders(&mut self, run: &Run) {
        let rule = Some(Rule::Overtaken);
        let mut placed: Vec<usize> =
            (0..run.messages.len()).filter(|index| run.messages[*index].is_placed()).collect();
        placed
            .sort_unstable_by_key(|index| (run.messages[*index].envelope.source, run.messages[*index].sent));
        for sender in
            placed.chunk_by(|a, b| run.messages[*a].envelope.source == run.messages[*b].envelope.source)
        {
            let ignores: HashSet<u64> = sender
                .iter()
                .filter_map(|index| run.messages[*index].receive)
                .map(|receive| run.receives[receive].pattern.ignore.0)
                .collect();
            let mut all: Option<u32> = None;
            let mut fitting: HashMap<(u64, u64), u32> = HashMap::new();
            for index in sender {
                let (message, to) = (&run.messages[*index], arrival(run, *index));
                let Tag(tag) = message.envelope.tag;
                let earlier = match message.receive {
                    None => all,
                    Some(receive) => {
                        let ignore = run.receives[receive].pattern.ignore.0;
                        fitting.get(&(ignore, tag & !ignore)).copied()
                    }
                };
                if let Some(earlier) = earlier {
                    self.add(earlier, to, rule);
                }
                all = Some(self.link(all, to, rule));
                for ignore in &ignores {
                    let key = (*ignore, tag & !ignore);
                    let link = self.link(fitting.get(&key).copied(), to, rule);
                    fitting.insert(key, link);
                }
            }
        }
    }

    /// A node after the last such and one more.
    fn link(&mut self, last: Option<u32>, more: u32, rule: Option<Rule>) -> u32 {
        let link = self.node();
        if let Some(last) = last {
            self.add(last, link, rule);
        }
        self.add(more, link, rule);
        link
    }

    /// Rule 6, and that a multi-receive was cancelled after its matches.
    fn add_cancels(&mut self, run: &Run) {
        let rule = Some(Rule::CancelAnswer);
        for (index, call) in run.cancels.iter().enumerate() {
            let Some(receive) = call.receive else { continue };
            if call.cancelled {
                self.add(number(run.receives[receive].posted), cancel(run, index), Some(Rule::BeforePost));
                for message in &run.receives[receive].matches {
                    self.add(arrival(run, *message), cancel(run, index), rule);
                }
            } else {
                self.add(removal(run, receive), cancel(run, index), rule);
            }
        }
    }

    fn add_acceptance_order(&mut self, run: &Run) {
        let mut last: HashMap<u8, u32> = HashMap::new();
        for (index, message) in run.messages.iter().enumerate().filter(|(_, message)| message.is_placed()) {
            let to = arrival(run, index);
            if let Some(from) = last.insert(message.path, to) {
                self.add(from, to, Some(Rule::AcceptanceOrder));
            }
        }
    }

    fn node(&mut self) -> u32 {
        self.nodes += 1;
        self.nodes - 1
    }

    fn add(&mut self, from: u32, to: u32, rule: Option<Rule>) {
        self.edges.push(Edge { from, to, rule });
    }
}

fn arrival(run: &Run, message: usize) -> u32 {
    number(run.length + 1 + message)
}

fn cancel(run: &Run, index: usize) -> u32 {
    number(run.length + 1 + run.messages.len() + index)
}

/// The operation that took a receive off the list: the end of the run if none did, since that is after all others.
fn removal(run: &Run, receive: usize) -> u32 {
    match run.receives[receive].removal {
        Removal::None => number(run.length),
        Removal::Arrival(message) => arrival(run, message),
        Removal::Cancel(index) => cancel(run, index),
        Removal::Point(at) => number(at),
    }
}

fn key(pattern: &Pattern) -> Key {
    (pattern.ignore.0, pattern.tag.0 & !pattern.ignore.0, pattern.source)
}

fn classes<'a>(patterns: impl Iterator<Item = &'a Pattern>) -> Vec<Class> {
    let classes: HashSet<Class> = patterns
        .map(|pattern| {
            let kind = match pattern.source {
                Source::Any => 0,
                Source::Peer(_) => 1,
                Source::Group(_) => 2,
            };
            (pattern.ignore.0, kind)
        })
        .collect();
    let mut classes: Vec<Class> = classes.into_iter().collect();
    classes.sort_unstable();
    classes
}

/// The keys of everything that could fit a message.
fn keys<'a>(classes: &'a [Class], run: &'a Run, message: &'a Envelope) -> impl Iterator<Item = Key> + 'a {
    classes.iter().filter_map(|(ignore, kind)| {
        let source = match kind {
            0 => Source::Any,
            1 => Source::Peer(message.source),
            _ => Source::Group(run.groups.of(message.source)?),
        };
        Some((*ignore, message.tag.0 & !ignore, source))
    })
}

/// A node's number. Histories are far shorter than 2^30 observations.
fn number(index: usize) -> u32 {
    debug_assert!(index != NEVER);
    u32::try_from(index).unwrap_or(u32::MAX)
}
