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
struct Process {
    pid: u32,
    command: String,
    counters: BTreeMap<String, u64>,
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

/// All domains of a process together.
fn processes(reports: &[Report]) -> Vec<Process> {
    let mut processes: Vec<Process> = Vec::new();
    for report in reports {
        if processes.last().is_none_or(|last| last.pid != report.pid) {
            let command = report.command.clone();
            processes.push(Process { pid: report.pid, command, counters: BTreeMap::new() });
        }
        let Some(process) = processes.last_mut() else { continue };
        for (name, value) in &report.counters {
            *process.counters.entry(name.clone()).or_default() += value;
        }
    }
    processes
}

/// A row a counter, a column a process; counters that are 0 everywhere only with `--all`.
fn table(reports: &[Report], all: bool) -> String {
    let processes = processes(reports);
    let heading = |process: &Process| output::harmless(format_args!("{} {}", process.pid, process.command));
    let mut table = Table::new(std::iter::once("counter".into()).chain(processes.iter().map(heading)));
    let names = reports.first().map_or(&[][..], |report| &report.counters);
    for (name, _) in names {
        let value = |process: &Process| process.counters.get(name).copied().unwrap_or_default();
        if all || processes.iter().any(|process| value(process) > 0) {
            let cells = processes.iter().map(|process| value(process).to_string());
            table.row(std::iter::once(name.clone()).chain(cells).collect());
        }
    }
    table.text()
}
