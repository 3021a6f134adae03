//! `tagmatch pingpong` and `tagmatch msgrate`: messages between two processes, beside those of others.
//!
//! ```text
//!  arguments ─▶ halves: start · connect · listen          report
//!                 │                                          ▲
//!                 ▼          lines (plan, control)           │
//!               lead ◀────────────────────────────▶ follow   │
//!                 │ work: the same loop for each contender ──┘
//!                 ▼
//!               port: own endpoint · libfabric · ucx
//! ```
//!
//! All contenders are open in the same two processes and take turns, so that what else the machine does hits all alike.
//! How to read it: docs/pair.md.

mod arguments;
mod contenders;
mod control;
mod fabric;
mod follow;
mod groups;
mod halves;
mod lead;
mod own;
mod plan;
mod port;
mod report;
mod system;
mod ucx;
mod work;

pub(crate) use arguments::{HELP, PairArguments, RateArguments};
pub(crate) use follow::run as run_half;

use crate::End;
use crate::bench::Machine;
use crate::build::BUILD;
use crate::output::{complain, write, write_json};
use lead::{Case, Lead, Wanted};
use plan::{Ahead, Contender, Over, Pattern, Setup};
use report::Report;
use std::time::Duration;

/// Latency.
pub(crate) fn pingpong(arguments: &PairArguments) -> End {
    run(arguments, Pattern::PingPong, "tagmatch pingpong 1")
}

/// Message rate and bandwidth.
pub(crate) fn msgrate(arguments: &RateArguments) -> End {
    run(&arguments.pair, Pattern::Windows { window: arguments.window }, "tagmatch msgrate 1")
}

fn run(arguments: &PairArguments, pattern: Pattern, format: &'static str) -> End {
    if let Some(address) = &arguments.listen {
        return follow::run_at(address);
    }
    match measure(arguments, pattern, format) {
        Ok(report) if arguments.json => write_json(&report, End::AsExpected),
        Ok(report) => write(&report.text(), End::AsExpected),
        Err(why) => {
            complain(&why);
            if why.contains(NOT_AS_SENT) { End::Disagreement } else { End::Unusable }
        }
    }
}

fn measure(arguments: &PairArguments, pattern: Pattern, format: &'static str) -> Result<Report, String> {
    let mut notes = Vec::new();
    let is_far = arguments.connect.is_some();
    let cpus = cpus(&arguments.cpus, is_far, &mut notes)?;
    let cases = cases(arguments);
    let setup = Setup {
        contenders: contenders(arguments),
        bytes_max: cases.iter().map(|case| case.bytes).max().unwrap_or_default(),
        depth_max: cases.iter().filter_map(|case| case.ahead).map(|a| a.depth).max().unwrap_or_default(),
        window: match pattern {
            Pattern::PingPong => 1,
            Pattern::Windows { window } => window,
        },
        cpu: cpus.map(|[_, follower]| follower),
    };
    setup.check()?;
    // Before this process is bound to one of its processors.
    let machine = Machine::here();
    if let Some([cpu, _]) = cpus {
        system::bind(cpu)?;
    }
    contenders::prepare(&setup)?;
    let other = match &arguments.connect {
        Some(address) => {
            let other = halves::connect(address)?;
            if arguments.over == Over::Shm && !other.address.is_loopback() {
                return Err("two hosts share no memory: take --over tcp with --connect".into());
            }
            other
        }
        None => halves::start()?,
    };
    let mut lead = Lead::open(other, setup, Duration::from_secs(arguments.timeout.into()))?;
    let contenders = lead.what().into_iter().map(Into::into).collect();
    let wanted = Wanted {
        pattern,
        cases,
        rounds: arguments.rounds,
        count: arguments.iterations,
        batch: Duration::from_millis(arguments.batch_ms.into()),
    };
    let points = lead.measure(&wanted)?;
    if cfg!(debug_assertions) {
        notes.push("Built without optimisations: times mean little.".into());
    }
    if machine.is_busy() {
        notes.push("The machine was busy: times are worth less.".into());
    }
    let window = match pattern {
        Pattern::PingPong => None,
        Pattern::Windows { window } => Some(window),
    };
    let rounds = arguments.rounds;
    Ok(Report { format, build: BUILD, machine, cpus, rounds, window, contenders, points, notes })
}

/// Who is measured: this project first.
fn contenders(arguments: &PairArguments) -> Vec<Contender> {
    let others = arguments.against.iter().map(|name| match name.as_str() {
        "ucx" => Contender::Ucx(arguments.over),
        name => Contender::Provider(name.to_owned()),
    });
    std::iter::once(Contender::Own(arguments.through, arguments.over)).chain(others).collect()
}

/// Each length with nothing ahead; the shortest with each list.
fn cases(arguments: &PairArguments) -> Vec<Case> {
    let bytes = arguments.bytes();
    let mut cases: Vec<Case> = bytes.iter().map(|bytes| Case { bytes: *bytes, ahead: None }).collect();
    let shortest = bytes.iter().copied().min().unwrap_or_default();
    for list in arguments.lists() {
        for depth in arguments.depths() {
            cases.push(Case { bytes: shortest, ahead: Some(Ahead { list, depth }) });
        }
    }
    cases
}

/// The processors of the two halves, if there are some to choose from.
fn cpus(asked: &[usize], is_far: bool, notes: &mut Vec<String>) -> Result<Option<[usize; 2]>, String> {
    match asked {
        [leader, follower] => return Ok(Some([*leader, *follower])),
        [] => {}
        [_] => return Err("--cpus takes two numbers: one for each process".into()),
        _ => return Err("--cpus takes two numbers".into()),
    }
    match system::allowed().as_slice() {
        // What the other host has is not known here.
        _ if is_far => Ok(None),
        [first, second, ..] => Ok(Some([*first, *second])),
        _ => {
            notes.push(
                "There is one processor for both processes, which take turns: times mean little.".into(),
            );
            Ok(None)
        }
    }
}

/// In what is said of a message that is not right.
const NOT_AS_SENT: &str = "did not come as it was sent";
