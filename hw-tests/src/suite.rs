//! What is run, and what came of it: checks by name, counted, with the reason of each that was skipped.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::json;

use crate::port::TmDevice;
use crate::refusal::refusal;
use crate::runner::{Outcome, Verdict, run};
use crate::script::Script;
use crate::scripts;

/// What came of one check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Its name.
    pub name: String,
    /// Where what it checks is said: a section of TM-CONTRACT, or a call of verbs.
    pub source: String,
    /// How it ended.
    pub verdict: Verdict,
    /// What a probe found: a word, and what it means.
    pub reading: Option<(&'static str, String)>,
    /// What it saw, where that is of use.
    pub seen: Vec<String>,
}

/// Counts reports as they come, and writes them.
#[derive(Debug)]
pub struct Summary<W: Write> {
    out: W,
    json: bool,
    passed: usize,
    failed: usize,
    skipped: BTreeMap<String, usize>,
}

impl<W: Write> Summary<W> {
    /// Writes lines for people, or a JSON object a line.
    pub const fn new(out: W, json: bool) -> Self {
        Self { out, json, passed: 0, failed: 0, skipped: BTreeMap::new() }
    }

    /// Count and write one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, report: &Report) -> io::Result<()> {
        let (word, what) = match &report.verdict {
            Verdict::Passed => ("passed", None),
            Verdict::Failed(what) => ("failed", Some(what)),
            Verdict::Skipped(what) => ("skipped", Some(what)),
        };
        match &report.verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed(_) => self.failed += 1,
            Verdict::Skipped(reason) => *self.skipped.entry(reason.clone()).or_default() += 1,
        }
        let Report { name, source, reading, seen, .. } = report;
        if self.json {
            let (reading, meaning) =
                reading.as_ref().map_or((None, None), |(word, what)| (Some(word), Some(what)));
            let line = json!({
                "check": name, "source": source, "verdict": word, "what": what, "reading": reading,
                "meaning": meaning, "seen": seen,
            });
            return writeln!(self.out, "{line}");
        }
        let what = what.map(|what| format!(": {what}")).unwrap_or_default();
        writeln!(self.out, "{word:7} {name} ({source}){what}")?;
        if let Some((reading, meaning)) = reading {
            writeln!(self.out, "        {name} = {reading}: {meaning}")?;
        }
        for line in seen {
            writeln!(self.out, "        {line}")?;
        }
        Ok(())
    }

    /// Anything else worth knowing.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn note(&mut self, key: &str, text: &str) -> io::Result<()> {
        if self.json {
            return writeln!(self.out, "{}", json!({ key: text }));
        }
        writeln!(self.out, "{key}: {text}")
    }

    /// Whether nothing was counted yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.passed == 0 && self.failed == 0 && self.skipped.is_empty()
    }

    /// The last lines. Whether nothing failed, and something passed.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> io::Result<bool> {
        let (passed, failed) = (self.passed, self.failed);
        let skipped: usize = self.skipped.values().sum();
        if self.json {
            let reasons = &self.skipped;
            let line = json!({ "passed": passed, "failed": failed, "skipped": skipped, "reasons": reasons });
            writeln!(self.out, "{line}")?;
        } else {
            for (reason, number) in &self.skipped {
                writeln!(self.out, "{number} skipped: {reason}")?;
            }
            writeln!(self.out, "{passed} passed, {failed} failed, {skipped} skipped")?;
        }
        Ok(failed == 0 && passed > 0)
    }
}

/// Which scripts and checks are run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Those whose names contain this; empty: all.
    pub part: String,
    /// Skipping for want of tag matching is a failure.
    pub require_tm: bool,
    /// Scripts that send more than [`Filter::SHORT_MAX`] messages are left out.
    pub short: bool,
}

impl Filter {
    /// The most messages of a script that is short. The others turn counters of 16 bits round.
    pub const SHORT_MAX: u64 = 10_000;

    /// Whether a check is run.
    #[must_use]
    pub fn takes(&self, name: &str) -> bool {
        name.contains(&self.part)
    }

    fn takes_script(&self, script: &Script) -> bool {
        self.takes(&script.name) && !(self.short && script.messages() > Self::SHORT_MAX)
    }

    /// What becomes of a check that needs tag matching on a device that has none.
    pub(crate) fn without_tm(&self, why: &str) -> Verdict {
        if self.require_tm {
            Verdict::Failed(format!("required, but {why}"))
        } else {
            Verdict::Skipped(why.to_owned())
        }
    }
}

/// Run the scripts, and hand over what came of each.
///
/// # Errors
/// What `tell` returned.
pub fn run_scripts<E>(
    device: &mut dyn TmDevice,
    filter: &Filter,
    mut tell: impl FnMut(&Report) -> Result<(), E>,
) -> Result<(), E> {
    let refusal = refusal(device);
    for script in scripts::all() {
        if !filter.takes_script(&script) {
            continue;
        }
        let outcome = match &refusal {
            None => run(&script, device),
            Some(why) => Outcome { verdict: filter.without_tm(why), records: Vec::new() },
        };
        let verdict = outcome.verdict;
        let failed = matches!(verdict, Verdict::Failed(_));
        let last = outcome.records.len().saturating_sub(LAST);
        let seen = outcome.records.iter().skip(last).filter(|_| failed);
        let seen = seen.map(ToString::to_string).collect();
        let source = format!("TM-CONTRACT {}", script.contract);
        tell(&Report { name: script.name.into_owned(), source, verdict, reading: None, seen })?;
    }
    Ok(())
}

/// What a failed script saw last.
const LAST: usize = 8;
