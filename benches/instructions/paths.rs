//! What is counted.
//!
//! A path is a loop that is warmed up first: lists, tables and pools have their size when counting starts.

use crate::common::cycle::Cycle;
use crate::common::endpoints::{Endpoints, Way};
use crate::common::engine::{EngineLoop, EngineSubject, OffloadedLoop, OffloadedSubject};
use crate::common::script::{Script, Stage};
use crate::common::subject::{MatcherSubject, NaiveSubject, Nothing, Subject, Vectors};
use crate::common::traces;
use crate::common::workload::{Masks, Order, Point, Scenario};
use crate::peer_ucx::Ucx;

/// A loop with a name.
pub(crate) struct Path {
    /// `subject/what/…`
    pub(crate) name: String,
    quick: bool,
    body: Body,
}

/// Given a mark: sets up, warms up, marks, runs, marks; how many messages.
type Body = Box<dyn FnOnce(&mut dyn FnMut()) -> u64>;

impl Path {
    /// Runs it; how many messages there were between the two marks.
    pub(crate) fn run(self, mut mark: impl FnMut()) -> u64 {
        (self.body)(&mut mark)
    }

    /// Whether it takes no time to speak of.
    pub(crate) const fn is_quick(&self) -> bool {
        self.quick
    }
}

/// Every path, always in the same order.
pub(crate) fn all(ucx: bool) -> Vec<Path> {
    let mut paths = Vec::new();
    for point in points() {
        paths.push(of_point("matcher", MatcherSubject::default, point));
        if point.depth <= VECTOR_DEPTH_MAX {
            paths.push(of_point("vectors", Vectors::default, point));
        }
        if ucx {
            paths.push(of_point("ucx", open_ucx, point));
        }
    }
    let mut scripts = vec![Script::realistic_mix(2_000, false, 1)];
    scripts.extend(traces::bundled(traces::is_shallow));
    for script in scripts {
        paths.push(of_script("matcher", MatcherSubject::default, script.clone()));
        paths.push(of_script("naive", NaiveSubject::default, script.clone()));
        paths.push(of_script("engine", EngineSubject::default, script.clone()));
        paths.push(of_script("vectors", Vectors::default, script.clone()));
        if let (true, Some(folded)) = (ucx, script.with_sources_in_tags()) {
            paths.push(of_script("ucx", open_ucx, folded));
        }
    }
    paths.extend(engine());
    paths.extend(endpoints());
    let point = Point { scenario: Scenario::Posted, depth: 16, order: Order::Random, masks: Masks::Full };
    paths.push(of_point("loop", Nothing::default, point));
    paths
}

/// The engine, from post to completion read: in software, and offloaded with a device that costs next to
/// nothing; and the same loops over the same devices without the engine. What two of them differ by, `alone/…`, is the
/// engine's, and budgets for that are in record/instructions.json.
fn engine() -> Vec<Path> {
    let point = |scenario, depth| Point { scenario, depth, order: Order::Forward, masks: Masks::Full };
    let mut paths = Vec::new();
    for depth in [1, 16, 1024] {
        paths.push(of_point("engine", EngineSubject::default, point(Scenario::Posted, depth)));
        paths.push(of_point("engine", EngineSubject::default, point(Scenario::Unexpected, depth)));
    }
    for depth in [1, 16, 256] {
        paths.push(of_point("offloaded", OffloadedSubject::default, point(Scenario::Posted, depth)));
    }
    paths.push(of_point("loop/engine", EngineLoop::default, point(Scenario::Posted, 16)));
    paths.push(of_point("loop/offloaded", OffloadedLoop::default, point(Scenario::Posted, 16)));
    paths
}

/// Whole endpoints: a message from post and send to both completions read, and a look that finds nothing.
fn endpoints() -> Vec<Path> {
    let mut paths = Vec::new();
    let ways = [("self", Way::Oneself), ("shm", Way::SharedMemory)];
    for (name, way, length) in
        ways.into_iter().flat_map(|(name, way)| [8, 1024].map(|length| (name, way, length)))
    {
        paths.push(of_endpoints(format!("endpoint/{name}/{length}"), way, length, Endpoints::exchange));
    }
    paths.push(of_endpoints("endpoint/shm/look".into(), Way::SharedMemory, 8, Endpoints::look));
    paths
}

fn of_endpoints(name: String, way: Way, length: usize, step: fn(&mut Endpoints)) -> Path {
    Path {
        name,
        quick: true,
        body: Box::new(move |mark| {
            let mut endpoints = Endpoints::new(way, length);
            (0..ENDPOINT_STEPS).for_each(|_| endpoints.exchange());
            mark();
            (0..ENDPOINT_STEPS).for_each(|_| step(&mut endpoints));
            mark();
            ENDPOINT_STEPS
        }),
    }
}

fn points() -> Vec<Point> {
    let point = |scenario, masks, depth| Point { scenario, depth, order: Order::Random, masks };
    let mut points = Vec::new();
    for depth in [1, 4, 16, 1024, 65_536] {
        points.push(point(Scenario::Posted, Masks::Full, depth));
    }
    for depth in [1, 4, 16, 1024, 65_536] {
        points.push(point(Scenario::Unexpected, Masks::Full, depth));
    }
    for depth in [16, 1024] {
        points.push(point(Scenario::Posted, Masks::FourClasses, depth));
        points.push(point(Scenario::Unexpected, Masks::FourClasses, depth));
        points.push(point(Scenario::Posted, Masks::Behind(128), depth));
        points.push(point(Scenario::ProbeMiss, Masks::Full, depth));
        points.push(point(Scenario::ProbeMiss, Masks::Partial, depth));
        points.push(point(Scenario::Cancel, Masks::Full, depth));
    }
    points
}

fn of_point<S: Subject + 'static>(peer: &str, make: fn() -> S, point: Point) -> Path {
    Path {
        name: format!("{peer}/{}/{}/{}", point.scenario, point.masks, point.depth),
        quick: point.depth <= 1024,
        body: Box::new(move |mark| {
            let mut cycle = Cycle::new(make(), point, point.depth);
            let warm_up = 2 * point.depth as u64;
            cycle.untimed(warm_up.max(64));
            mark();
            let messages = cycle.untimed((point.depth as u64).max(4096));
            mark();
            messages
        }),
    }
}

fn of_script<S: Subject + 'static>(peer: &str, make: fn() -> S, script: Script) -> Path {
    Path {
        name: format!("{peer}/script/{}", script.name),
        quick: true,
        body: Box::new(move |mark| {
            let mut subject = make();
            let mut stage = Stage::new(&script);
            stage.play(&mut subject);
            stage.drain(&mut subject);
            mark();
            stage.play(&mut subject);
            mark();
            stage.len() as u64
        }),
    }
}

fn open_ucx() -> Ucx {
    Ucx::open().unwrap_or_else(|why| {
        eprintln!("UCX: {why}");
        std::process::exit(2)
    })
}

/// Steps of endpoints that are counted.
const ENDPOINT_STEPS: u64 = 4096;
/// Deeper than this a vector scan takes minutes under valgrind.
const VECTOR_DEPTH_MAX: usize = 1024;
