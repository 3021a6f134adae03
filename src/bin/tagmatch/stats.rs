//! `tagmatch stats`: the counters of running processes that use the provider.
//!
//! Not here: who writes them (`tagmatch::provider::statistics`).

use crate::output::{self, complain};
use crate::table::Table;
use crate::{End, StatsArguments};
use serde::Serialize;
use std::collections::BTreeMap;
use tagmatch::provider::statistics::{Report, reports};

/// A process.
#[derive(Debug, Serialize)]
pub(crate) struct Process {
    host: String,
    pid: u32,
    /// In its job, where it has one.
    rank: Option<u32>,
    command: String,
    counters: BTreeMap<String, u64>,
}

impl Process {
    /// Of its column: two lines where it has a rank.
    pub(crate) fn heading(&self) -> String {
        let Self { pid, rank, command, .. } = self;
        match rank {
            Some(rank) => format!("rank {rank}\n{pid}"),
            None => output::harmless(format_args!("{pid} {command}")),
        }
    }

    /// How far one has counted.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or_default()
    }

    fn is_of(&self, report: &Report) -> bool {
        self.pid == report.pid && self.host == report.host
    }
}

/// Show them.
pub(crate) fn run(arguments: &StatsArguments) -> End {
    let found: Vec<Report> = running().into_iter().filter(|report| is_asked(arguments, report)).collect();
    if found.is_empty() {
        complain(match arguments.pids.as_slice() {
            [] => "no process of this user uses the provider now".into(),
            pids => format!("none of these processes of this user uses the provider now: {pids:?}"),
        });
        return End::Unusable;
    }
    if arguments.json {
        output::write_json(&processes(&found), End::AsExpected)
    } else {
        output::write(&table(&found, arguments.all), End::AsExpected)
    }
}

/// By process.
fn running() -> Vec<Report> {
    let mut running = reports();
    running.sort_by_key(|report| report.pid);
    running
}

fn is_asked(arguments: &StatsArguments, report: &Report) -> bool {
    arguments.pids.is_empty() || arguments.pids.contains(&report.pid)
}

/// All domains of a process together. They are next to each other.
pub(crate) fn processes(reports: &[Report]) -> Vec<Process> {
    let mut processes: Vec<Process> = Vec::new();
    for report in reports {
        if !processes.last().is_some_and(|last| last.is_of(report)) {
            let Report { pid, rank, .. } = *report;
            let (host, command) = (report.host.clone(), report.command.clone());
            processes.push(Process { host, pid, rank, command, counters: BTreeMap::new() });
        }
        let Some(process) = processes.last_mut() else { continue };
        for (name, value) in &report.counters {
            let sum: &mut u64 = process.counters.entry(name.clone()).or_default();
            // Whatever another process says it has counted.
            *sum = sum.saturating_add(*value);
        }
    }
    processes
}

/// A row a counter, a column a process; counters that are 0 everywhere only with `--all`.
fn table(reports: &[Report], all: bool) -> String {
    let processes = processes(reports);
    let mut table =
        Table::new(std::iter::once("counter".into()).chain(processes.iter().map(Process::heading)));
    let names = reports.first().map_or(&[][..], |report| &report.counters);
    for (name, _) in names {
        if all || processes.iter().any(|process| process.counter(name) > 0) {
            let cells = processes.iter().map(|process| process.counter(name).to_string());
            table.row(std::iter::once(name.clone()).chain(cells).collect());
        }
    }
    table.text()
}
