//! `tagmatch mpirun --beside N`: a program over the provider and over the MPI's own transports, in turns.
//!
//! A program says what it took in lines `time NAME MICROSECONDS us OF-WHAT`, as those in `examples/mpi` do. Ratios are of
//! the two runs of one round, since a machine is another one a minute later.

use super::settings::Setting;
use super::{CODE_NOT_RUN, Failure, Prepared, variables};
use crate::figures::Spread;
use crate::output::{harmless, progress};
use crate::table::Table;
use serde::Serialize;
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// What a program took.
#[derive(Debug, Serialize)]
pub(super) struct Timed {
    /// As the program has it.
    pub(super) name: String,
    /// Of what, in its words.
    pub(super) what: String,
    pub(super) provider_us: Spread,
    pub(super) own_us: Spread,
    /// Of the provider to the MPI's own transports, round by round.
    pub(super) ratio: Spread,
    pub(super) rounds: usize,
}

/// Run it so often, each way.
pub(super) fn run(prepared: &Prepared, arguments: &[OsString], rounds: u32) -> Result<Vec<Timed>, Failure> {
    let Prepared { launcher, settings } = prepared;
    let handed = super::settings::forwarding(launcher, settings, &variables(), arguments);
    let bar = progress(2 * rounds as usize);
    let mut all = Vec::new();
    for round in 0..rounds {
        let mut both = [Vec::new(), Vec::new()];
        // Who was first is second in the next round.
        for turn in 0..2 {
            let is_own = (round + turn) % 2 == 1;
            bar.set_message(if is_own { "over the MPI's own transports" } else { "over the provider" });
            let mut command = Command::new(&launcher.path);
            command.args(if is_own { arguments } else { &handed });
            set(&mut command, settings, is_own);
            both[usize::from(is_own)] = times(command)?;
            bar.inc(1);
        }
        all.push(both);
    }
    bar.finish_and_clear();
    let timed = of_rounds(&all);
    if timed.is_empty() {
        return Err(failure(
            "the program says no times: it is to print lines like `time NAME 1.5 us a step`",
        ));
    }
    Ok(timed)
}

/// As a person reads it.
pub(super) fn text(timed: &[Timed]) -> String {
    let mut table =
        Table::new(["of what", "over the\nprovider, µs", "own\ntransports, µs", "ratio\nmedian", "\nrounds"]);
    for Timed { name, what, provider_us, own_us, ratio, .. } in timed {
        table.row(vec![
            harmless(format_args!("{name}: {what}")),
            format!("{:.2}", provider_us.median),
            format!("{:.2}", own_us.median),
            format!("{:.2}", ratio.median),
            format!("{:.2}–{:.2}", ratio.least, ratio.most),
        ]);
    }
    table.text()
}

/// The variables of one way. What is about messages is taken away for the other, also where it was set before.
fn set(command: &mut Command, settings: &[Setting], is_own: bool) {
    for setting in settings {
        if is_own && setting.is_about_messages() {
            command.env_remove(&setting.name);
        } else if !setting.is_kept {
            command.env(&setting.name, &setting.value);
        }
    }
}

/// One run: what it says it took.
fn times(mut command: Command) -> Result<Vec<Line>, Failure> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| failure(&format!("mpirun cannot be run: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let code = output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
        let what = format!("{text}a run ended with {}", output.status);
        return Err(Failure { code, what });
    }
    Ok(text.lines().filter_map(Line::of).collect())
}

/// A line with a time.
#[derive(Clone, PartialEq, Debug)]
struct Line {
    name: String,
    microseconds: f64,
    what: String,
}

impl Line {
    fn of(text: &str) -> Option<Self> {
        let mut words = text.strip_prefix("time ")?.splitn(4, ' ');
        let name = words.next().filter(|name| !name.is_empty())?.to_owned();
        let microseconds = words.next()?.parse().ok().filter(|time: &f64| time.is_finite() && *time > 0.0)?;
        words.next().filter(|unit| *unit == "us")?;
        Some(Self { name, microseconds, what: words.next().unwrap_or_default().to_owned() })
    }
}

/// Figures of what every run has told, in the order of the first.
fn of_rounds(all: &[[Vec<Line>; 2]]) -> Vec<Timed> {
    let Some([first, _]) = all.first() else { return Vec::new() };
    let figures = first.iter().filter_map(|line| {
        let find = |side: usize| -> Option<Vec<f64>> {
            let same = |other: &&Line| other.name == line.name && other.what == line.what;
            all.iter().map(|both| both[side].iter().find(same).map(|line| line.microseconds)).collect()
        };
        let (provider, own) = (find(0)?, find(1)?);
        Some(Timed {
            name: line.name.clone(),
            what: line.what.clone(),
            provider_us: Spread::of(&provider)?,
            own_us: Spread::of(&own)?,
            ratio: Spread::of_ratios(&provider, &own)?,
            rounds: provider.len(),
        })
    });
    figures.collect()
}

fn failure(what: &str) -> Failure {
    Failure { code: CODE_NOT_RUN, what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_that_form_are_times() {
        let line = Line::of("time storm 1.5 us a step of all").unwrap();
        assert_eq!((line.name.as_str(), line.what.as_str()), ("storm", "a step of all"));
        assert!((line.microseconds - 1.5).abs() < 1e-9);
        let others =
            ["", "time", "time storm", "time storm x us", "time storm 1 ms", "time storm -1 us a step"];
        for other in
            others.into_iter().chain(["time storm NaN us x", "time storm inf us x", "times storm 1 us x"])
        {
            assert_eq!(Line::of(other), None, "{other}");
        }
    }

    #[test]
    fn ratios_are_of_the_two_runs_of_a_round_and_of_what_both_tell() {
        let line = |name: &str, microseconds| Line { name: name.into(), microseconds, what: "a step".into() };
        let all = [
            [vec![line("one", 2.0), line("two", 1.0)], vec![line("one", 4.0)]],
            [vec![line("one", 9.0), line("two", 1.0)], vec![line("one", 6.0)]],
        ];
        let timed = of_rounds(&all);
        assert_eq!(timed.len(), 1, "{timed:?}");
        assert_eq!((timed[0].name.as_str(), timed[0].rounds), ("one", 2));
        assert_eq!(timed[0].ratio, Spread { median: 1.0, least: 0.5, most: 1.5 });
        assert!(of_rounds(&[]).is_empty());
    }
}
