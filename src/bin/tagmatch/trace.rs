//! `tagmatch trace check`: whether files are well-formed traces with right results.

use crate::End;
use crate::input;
use crate::output::{complain, write};
use std::path::{Path, PathBuf};
use tagmatch::matching::Naive;
use tagmatch::replay::{self, Software};
use tagmatch::traces::{Steps, Trace};

/// Check files, and those in folders, one after the other.
pub(crate) fn check(paths: &[PathBuf]) -> End {
    let (mut worst, mut all) = (End::AsExpected, Vec::new());
    for path in paths {
        match input::files(path) {
            Ok(files) => all.extend(files),
            Err(what) => {
                complain(what);
                worst = End::Unusable;
            }
        }
    }
    for file in &all {
        let end = match check_one(file) {
            Ok((text, end)) => write(&text, end),
            Err(what) => {
                complain(what);
                End::Unusable
            }
        };
        worst = worst.max(end);
    }
    worst
}

fn check_one(file: &Path) -> Result<(String, End), String> {
    let shown = file.display();
    let steps = Steps::open(file).map_err(|error| error.to_string())?;
    let encoding = steps.encoding();
    let trace = Trace::from_steps(shown.to_string(), steps).map_err(|error| error.to_string())?;
    let report = replay::run(&trace, &mut Software::new(Naive::new(), trace.counts()));
    if report.is_exact() {
        let what = trace.header.value("app").unwrap_or("no app named");
        let events = report.events;
        return Ok((
            format!("{shown}: well-formed ({encoding}, {what}), {events} results right\n"),
            End::AsExpected,
        ));
    }
    let mut text = format!(
        "{shown}: well-formed ({encoding}), but {} results are not those of the matching rules\n",
        report.disagreements
    );
    for disagreement in &report.first {
        text += &format!("{shown}:{}\n", disagreement.to_string().trim_start_matches("line "));
    }
    Ok((text, End::Disagreement))
}
