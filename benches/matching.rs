//! The matcher by depth, order and masks, and in the sequences of programs, with criterion.
//!
//! A criterion iteration is one message: of a point, one search in whole rounds of [`common::cycle`], the
//! fill not counted; of a script, one step. `TAGMATCH_SWEEP=full` measures every combination.
//!
//! Not here: other peers (`peers`), instruction counts (`instructions`), memory and stalls (`memory`).
#![deny(unsafe_code)]

mod common;

use criterion::{BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, measurement::WallTime};
use std::time::Duration;

use common::clock::Clock;
use common::cycle::{Cycle, Laps};
use common::script::{Script, Stage};
use common::subject::{MatcherSubject, Subject, Vectors};
use common::workload::{self, Masks, Order, Point, Scenario};

fn main() {
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_millis(300))
        .warm_up_time(Duration::from_millis(100))
        .sample_size(10)
        .configure_from_args();
    for point in points() {
        let name = format!("{}/{}/{}", point.scenario, point.masks, point.order);
        let mut group = criterion.benchmark_group(name);
        measure_point::<MatcherSubject>(&mut group, "matcher", point);
        if point.depth <= VECTOR_DEPTH_MAX {
            measure_point::<Vectors>(&mut group, "vectors", point);
        }
        group.finish();
    }
    for script in scripts() {
        let mut group = criterion.benchmark_group(format!("script/{}", script.name));
        measure_script::<MatcherSubject>(&mut group, "matcher", &script);
        measure_script::<Vectors>(&mut group, "vectors", &script);
        group.finish();
    }
    criterion.final_summary();
}

fn points() -> Vec<Point> {
    if std::env::var_os("TAGMATCH_SWEEP").is_some_and(|sweep| sweep == "full") {
        return workload::points(
            &workload::SCENARIOS,
            &workload::MASKS,
            &workload::ORDERS,
            &workload::DEPTHS,
        );
    }
    let masks = [Masks::Full, Masks::Partial, Masks::FourClasses, Masks::Behind(128)];
    let mut points =
        workload::points(&workload::SCENARIOS, &masks, &workload::ORDERS, &[1, 16, 1024, 65_536]);
    points.retain(|point| {
        let order = if point.scenario == Scenario::ProbeMiss || point.depth == 1 {
            Order::Forward
        } else {
            Order::Random
        };
        point.order == order
    });
    points
}

fn scripts() -> Vec<Script> {
    let mut scripts = vec![Script::realistic_mix(20_000, false, 1), Script::realistic_mix(20_000, true, 1)];
    scripts.extend(common::traces::bundled(|_| true));
    scripts
}

fn measure_point<S: Subject + Default>(group: &mut BenchmarkGroup<'_, WallTime>, peer: &str, point: Point) {
    // Made when criterion first asks for it: a filter may leave out most points.
    let mut cycle = None;
    group.sampling_mode(SamplingMode::Flat);
    group.bench_function(BenchmarkId::new(peer, point.depth), |bencher| {
        let cycle = cycle.get_or_insert_with(|| Cycle::new(S::default(), point, point.depth));
        let clock = cycle.clock();
        let cost = clock.cost();
        bencher.iter_custom(|iterations| {
            let mut laps = Laps::default();
            while laps.messages < iterations {
                cycle.timed_round(clock, cost, &mut laps);
            }
            Duration::from_nanos(laps.search).mul_f64(iterations as f64 / laps.messages as f64)
        });
    });
}

fn measure_script<S: Subject + Default>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    peer: &str,
    script: &Script,
) {
    let mut subject = S::default();
    let mut stage = Stage::<S>::new(script);
    group.sampling_mode(SamplingMode::Flat);
    group.bench_function(peer, |bencher| {
        bencher.iter_custom(|iterations| {
            let (mut steps, mut spent) = (0, 0);
            while steps < iterations {
                let start = Clock::Processor.now();
                stage.play(&mut subject);
                spent += Clock::Processor.now() - start;
                steps += stage.len() as u64;
                stage.drain(&mut subject);
            }
            Duration::from_nanos(spent).mul_f64(iterations as f64 / steps as f64)
        });
    });
}

/// Deeper than this a vector scan says nothing new.
const VECTOR_DEPTH_MAX: usize = 1024;
