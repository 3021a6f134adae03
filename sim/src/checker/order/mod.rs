//! The offline checker: a whole finished history, however many operations are under way at once.
//!
//! The edges of the [rules](super) are built through indexes by (ignore mask, kind of source), with a chain of helper
//! nodes for "all of these receives are gone" and a tree of them for "before all of these messages", so that their
//! number grows with the length of the history and the number of such classes, and not with the depth of the queues.
//!
//! It is sound and complete, but for one case in which it answers [`Verdict::Undecided`]: a peer joins a group after
//! a message of its was accepted. Then what fits depends on when it is asked, which is the [monitor](super::monitor)'s
//! business. A message that was never decided although its peer is not lost, and a cancel that was never answered,
//! are violations: a history that stops in the middle is the monitor's business too.
//!
//! Not here: single observations.

mod edges;
mod run;

use super::{Name, Observation, Options, Rule, Violation};
use edges::{Edge, Edges};
use run::Run;

/// What came out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A total order explains the run.
    Correct,
    /// Ask the monitor.
    Undecided,
}

/// Whether a finished run was correct.
///
/// # Errors
/// The rule that was broken, and the last observation that has to do with it.
pub fn check(history: &[Observation], options: Options) -> Result<Verdict, Violation> {
    if run::joins_late(history) {
        return Ok(Verdict::Undecided);
    }
    let run = Run::read(history, options)?;
    let edges = Edges::of(&run, options);
    match circle(&edges) {
        None => Ok(Verdict::Correct),
        Some(circle) => Err(violation(&run, &edges, &circle, history)),
    }
}

/// Some edges that go round, if any do.
fn circle(edges: &Edges) -> Option<Vec<Edge>> {
    let (firsts, sorted) = by_source(edges);
    let next = |node: u32| &sorted[firsts[node as usize] as usize..firsts[node as usize + 1] as usize];
    let mut blockers = vec![0_u32; edges.nodes as usize];
    for edge in &edges.edges {
        blockers[edge.to as usize] += 1;
    }
    let mut free: Vec<u32> = (0..edges.nodes).filter(|node| blockers[*node as usize] == 0).collect();
    let mut placed = 0;
    while let Some(node) = free.pop() {
        placed += 1;
        for edge in next(node) {
            blockers[edge.to as usize] -= 1;
            if blockers[edge.to as usize] == 0 {
                free.push(edge.to);
            }
        }
    }
    if placed == edges.nodes {
        return None;
    }
    // Each node left has another one left before it: going back from any of them ends on a circle.
    let is_left = |node: u32| blockers[node as usize] > 0;
    let mut previous = vec![u32::MAX; edges.nodes as usize];
    for edge in edges.edges.iter().filter(|edge| is_left(edge.from) && is_left(edge.to)) {
        previous[edge.to as usize] = edge.from;
    }
    let mut seen = vec![false; edges.nodes as usize];
    let mut start = (0..edges.nodes).find(|node| is_left(*node))?;
    while !std::mem::replace(&mut seen[start as usize], true) {
        start = previous[start as usize];
    }
    shortest(start, edges.nodes, is_left, next)
}

/// The shortest way from a node back to it.
fn shortest<'a>(
    start: u32,
    nodes: u32,
    is_left: impl Fn(u32) -> bool,
    next: impl Fn(u32) -> &'a [Edge],
) -> Option<Vec<Edge>> {
    let mut reached_by: Vec<Option<Edge>> = vec![None; nodes as usize];
    let mut queue = std::collections::VecDeque::from([start]);
    while reached_by[start as usize].is_none() {
        for edge in next(queue.pop_front()?) {
            if is_left(edge.to) && reached_by[edge.to as usize].is_none() {
                reached_by[edge.to as usize] = Some(*edge);
                queue.push_back(edge.to);
            }
        }
    }
    let mut circle = vec![reached_by[start as usize]?];
    while circle[circle.len() - 1].from != start {
        circle.push(reached_by[circle[circle.len() - 1].from as usize]?);
    }
    circle.reverse();
    Some(circle)
}

/// Edges sorted by where they begin, and where each node's begin.
fn by_source(edges: &Edges) -> (Vec<u32>, Vec<Edge>) {
    let mut firsts = vec![0_u32; edges.nodes as usize + 1];
    for edge in &edges.edges {
        firsts[edge.from as usize + 1] += 1;
    }
    for node in 0..edges.nodes as usize {
        firsts[node + 1] += firsts[node];
    }
    let mut at = firsts.clone();
    let mut sorted = edges.edges.clone();
    for edge in &edges.edges {
        let place = &mut at[edge.from as usize];
        sorted[*place as usize] = *edge;
        *place += 1;
    }
    (firsts, sorted)
}

fn violation(run: &Run, edges: &Edges, circle: &[Edge], history: &[Observation]) -> Violation {
    let mut rules: Vec<Rule> = circle.iter().filter_map(|edge| edge.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let rule = if rules.len() == 1 { rules[0] } else { Rule::Circle };
    let candidates: Vec<Name> = circle.iter().filter_map(|edge| edges.name(run, edge.from)).collect();
    let at = circle.iter().filter_map(|edge| edges.end(run, edge.from)).max();
    Violation { at, observation: at.map(|at| history[at]), rule, candidates }
}
