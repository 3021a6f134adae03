//! This crate's matching beside UCX's and a plain vector scan, in one process and one run: every point is
//! measured in alternating batches, and what is quoted is the median of the ratios of each round. "Ours" is the
//! whole engine, to the completion read; the matcher by itself stands beside it.
//!
//! `cargo bench --bench peers -- [--full] [--only WORD]... [--rounds N] [--batch-ms N] [--json] [--record]`
//! (benches/README.md). Without `--bench`, as under `cargo test --benches`, it runs every path once.
//!
//! Not here: the loops (`common`), UCX's interface (`peer_ucx`).
#![deny(unsafe_code)]

mod common;
#[path = "peers/options.rs"]
mod options;
#[allow(unsafe_code, reason = "UCX is a C library")]
mod peer_ucx;
#[path = "peers/table.rs"]
mod table;

use std::time::Duration;

use common::cycle::Cycle;
use common::engine::EngineSubject;
use common::median;
use common::runner::{Nanoseconds, Play, Runner};
use common::script::Script;
use common::subject::{MatcherSubject, NaiveSubject, Vectors};
use common::workload::{self, Masks, Order, Point, Scenario};
use options::Options;
use peer_ucx::Ucx;
use table::{Line, Table};

fn main() {
    let options = Options::from_arguments();
    let ucx = Ucx::version();
    match &ucx {
        Ok(version) => eprintln!("peer: UCX {version}, TLS=self"),
        Err(why) => eprintln!("UCX is skipped: {why}"),
    }
    let mut table = Table::new(ucx.clone().ok());
    for point in points(&options) {
        let name = format!("{}/{}/{}/{}", point.scenario, point.masks, point.order, point.depth);
        if options.wants(&name) {
            table.push(measure(&name, &options, point_runners(point, ucx.is_ok())));
        }
    }
    for script in scripts(&options) {
        let name = format!("script/{}", script.name);
        if options.wants(&name) {
            table.push(measure(&name, &options, script_runners(&script, ucx.is_ok())));
        }
    }
    table.finish(&options);
}

/// The points of the sweep that were asked for.
fn points(options: &Options) -> Vec<Point> {
    if options.smoke {
        return workload::points(&workload::SCENARIOS, &[Masks::FourClasses], &[Order::Random], &[1, 64]);
    }
    if options.full {
        return workload::points(
            &workload::SCENARIOS,
            &workload::MASKS,
            &workload::ORDERS,
            &workload::DEPTHS[..6],
        );
    }
    let masks = [Masks::Full, Masks::Partial, Masks::FourClasses, Masks::Behind(128)];
    let mut points = workload::points(
        &[Scenario::Posted, Scenario::Unexpected],
        &masks,
        &[Order::Forward, Order::Random],
        &[1, 16, 128, 1024, 8192, 65_536],
    );
    points.retain(|point| point.order == Order::Random || point.depth == 1);
    points.extend(workload::points(
        &[Scenario::ProbeMiss, Scenario::Cancel],
        &[Masks::Full, Masks::Partial],
        &[Order::Forward],
        &[1, 1024, 8192, 65_536],
    ));
    points
}

fn scripts(options: &Options) -> Vec<Script> {
    let bursts = if options.smoke { 100 } else { 20_000 };
    let mut scripts = vec![Script::realistic_mix(bursts, false, 1), Script::realistic_mix(bursts, true, 1)];
    if !options.smoke {
        scripts.extend(common::traces::bundled(|_| true));
    }
    scripts
}

fn point_runners(point: Point, ucx: bool) -> Vec<Box<dyn Runner>> {
    let mut runners: Vec<Box<dyn Runner>> = vec![
        Box::new(Cycle::new(EngineSubject::default(), point, point.depth)),
        Box::new(Cycle::new(MatcherSubject::default(), point, point.depth)),
    ];
    if point.depth <= VECTOR_DEPTH_MAX {
        runners.push(Box::new(Cycle::new(Vectors::default(), point, point.depth)));
    }
    if ucx {
        match Ucx::open() {
            Ok(peer) => runners.push(Box::new(Cycle::new(peer, point, point.depth))),
            Err(why) => eprintln!("UCX is skipped: {why}"),
        }
    }
    runners
}

fn script_runners(script: &Script, ucx: bool) -> Vec<Box<dyn Runner>> {
    let mut runners: Vec<Box<dyn Runner>> = vec![
        Box::new(Play::new(EngineSubject::default(), script)),
        Box::new(Play::new(MatcherSubject::default(), script)),
        Box::new(Play::new(NaiveSubject::default(), script)),
        Box::new(Play::new(Vectors::default(), script)),
    ];
    let folded = script.with_sources_in_tags();
    if folded.is_none() {
        eprintln!("{}: no room in the tag for sources, so without UCX", script.name);
    }
    if let (true, Some(folded)) = (ucx, folded) {
        match Ucx::open() {
            Ok(peer) => runners.push(Box::new(Play::new(peer, &folded))),
            Err(why) => eprintln!("UCX is skipped: {why}"),
        }
    }
    runners
}

/// Lets the runners take turns and keeps medians.
fn measure(name: &str, options: &Options, mut runners: Vec<Box<dyn Runner>>) -> Vec<Line> {
    let sample = runners.iter_mut().map(|runner| runner.affordable(ROUND_MAX)).min().unwrap_or(1);
    for runner in &mut runners {
        runner.set_sample(sample);
        runner.batch(options.batch / 4);
    }
    let mut seen: Vec<Vec<Nanoseconds>> = vec![Vec::new(); runners.len()];
    for round in 0..options.rounds {
        // Every other round backwards, so that nobody always runs behind the same peer.
        for turn in 0..runners.len() {
            let who = if round % 2 == 0 { turn } else { runners.len() - 1 - turn };
            seen[who].push(runners[who].batch(options.batch));
        }
    }
    let middle = |of: &dyn Fn(usize) -> f64| median(&mut (0..options.rounds).map(of).collect::<Vec<_>>());
    let ours = &seen[0];
    seen.iter()
        .zip(&runners)
        .map(|(times, runner)| Line {
            point: name.to_owned(),
            peer: runner.name(),
            sample,
            nanoseconds: Nanoseconds {
                fill: middle(&|round| times[round].fill),
                search: middle(&|round| times[round].search),
                pair: middle(&|round| times[round].pair),
            },
            search_ratio: middle(&|round| ours[round].search / times[round].search),
            pair_ratio: middle(&|round| ours[round].pair / times[round].pair),
        })
        .collect()
}

/// A whole round of any peer takes no longer; else the rounds of all become samples of that many messages.
const ROUND_MAX: Duration = Duration::from_millis(150);
/// Deeper than this a vector scan says nothing new.
const VECTOR_DEPTH_MAX: usize = 1024;
