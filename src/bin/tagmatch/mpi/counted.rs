//! `tagmatch mpirun --stats`: what the endpoints of a job have counted, shown when it has ended.
//!
//! Each process leaves its counters in a directory (`FI_TAGMATCH_STATS`) when it closes its domain. mpirun is a child here
//! and not this process itself; it hears this one's signals, and its exit status is passed on.

use super::{CODE_NOT_FOUND, CODE_NOT_RUN, Failure, Prepared, command_line};
use crate::hca;
use crate::output::{self, complain};
use crate::run_directory::RunDirectory;
use crate::stats::{Process, processes};
use crate::table::Table;
use crate::{End, MpirunArguments};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;
use tagmatch::device::verbs::launch;
use tagmatch::provider::statistics::{Report, reports_in};

/// What a job counted.
#[derive(Debug, Serialize)]
struct Job {
    /// How many processes mpirun was told to start; 0 if it was not.
    asked: usize,
    /// All together.
    total: BTreeMap<String, u64>,
    /// Each one that told.
    processes: Vec<Process>,
}

/// Where the processes leave what they count, until this is dropped.
pub(super) struct Left {
    run: RunDirectory,
    path: String,
}

impl Left {
    pub(super) fn new() -> Result<Self, String> {
        let run = RunDirectory::new(PREFIX)?;
        let path = run.path.to_str().map(str::to_owned);
        let path = path
            .ok_or_else(|| format!("{} is no text: set TMPDIR to another directory", run.path.display()))?;
        Ok(Self { run, path })
    }

    /// The value for `FI_TAGMATCH_STATS`.
    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        // A daemon of mpirun's that has not ended yet would keep it otherwise.
        let _ = fs::remove_dir_all(&*self.run.path);
    }
}

/// Run mpirun to its end and show what was counted: mpirun's exit code.
pub(super) fn run(
    prepared: &Prepared,
    arguments: &MpirunArguments,
    handed: &[OsString],
    left: &Left,
) -> Result<u8, Failure> {
    let Prepared { launcher, settings } = prepared;
    let set = settings.iter().filter(|setting| !setting.is_kept);
    let mut command = Command::new(&launcher.path);
    command.args(handed).envs(set.map(|setting| (&setting.name, &setting.value)));
    if arguments.json {
        // The document has standard output for itself.
        command.stdout(io::stderr());
    }
    let status = launch::run(&mut command, &left.run.alive).map_err(|error| {
        let code = if error.kind() == io::ErrorKind::NotFound { CODE_NOT_FOUND } else { CODE_NOT_RUN };
        Failure { code, what: format!("{} cannot be run: {error}", launcher.path.display()) }
    })?;
    let asked = command_line::processes(launcher.kind, &arguments.arguments);
    let shown = show(asked, Path::new(left.path()), arguments.json);
    Ok(if status.success() { shown.code() } else { hca::code(status) })
}

/// Show it; who did not tell is counted.
fn show(asked: usize, folder: &Path, is_json: bool) -> End {
    let reports = reports_in(folder).unwrap_or_else(|error| {
        complain(format_args!("{} cannot be read: {error}", folder.display()));
        Vec::new()
    });
    let job = Job { asked, total: total(&reports), processes: processes(&reports) };
    let told = job.processes.len();
    if told == 0 || told < asked {
        let of = if asked > 0 { format!("{told} of {asked}") } else { told.to_string() };
        complain(format_args!("{of} processes have told what they counted; {SILENT}"));
    }
    if is_json {
        return output::write_json(&job, End::AsExpected);
    }
    if told > 0 {
        // If that cannot be written, nobody is there to read it.
        let _ = io::stderr().lock().write_all(table(&job, &reports).as_bytes());
    }
    End::AsExpected
}

fn total(reports: &[Report]) -> BTreeMap<String, u64> {
    let mut total = BTreeMap::new();
    for (name, value) in reports.iter().flat_map(|report| &report.counters) {
        let sum: &mut u64 = total.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*value);
    }
    total
}

/// A row a counter, where not all are 0: of all processes, the least and the most of one, and each where there are few.
fn table(job: &Job, reports: &[Report]) -> String {
    let each = if job.processes.len() <= COLUMNS_MAX { job.processes.as_slice() } else { &[] };
    let headings = ["counter", "all", "least", "most"].map(str::to_owned);
    let mut table = Table::new(headings.into_iter().chain(each.iter().map(Process::heading)));
    // In the order in which they are told.
    for (name, _) in reports.first().map_or(&[][..], |report| &report.counters) {
        let all = job.total.get(name).copied().unwrap_or_default();
        if all == 0 {
            continue;
        }
        let least = job.processes.iter().map(|process| process.counter(name)).min().unwrap_or_default();
        let most = job.processes.iter().map(|process| process.counter(name)).max().unwrap_or_default();
        let values = [all, least, most].into_iter().chain(each.iter().map(|process| process.counter(name)));
        table.row(std::iter::once(name.clone()).chain(values.map(|value| value.to_string())).collect());
    }
    table.text()
}

const PREFIX: &str = "tagmatch-mpirun-";
/// So many processes have columns of their own.
const COLUMNS_MAX: usize = 8;
const SILENT: &str = "a process that does not finalize MPI tells nothing, and one on another machine only where TMPDIR is a \
    directory that both machines share";
