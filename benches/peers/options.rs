//! The command line of the comparison.

use std::time::Duration;

/// What was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Every point instead of a selection.
    pub(crate) full: bool,
    /// Not a measurement: every path once.
    pub(crate) smoke: bool,
    /// Write benches/record/.
    pub(crate) record: bool,
    /// Print JSON instead of a table.
    pub(crate) json: bool,
    pub(crate) rounds: usize,
    pub(crate) batch: Duration,
    only: Vec<String>,
}

impl Options {
    /// From the command line; ends the process with a word when it is wrong.
    pub(crate) fn from_arguments() -> Self {
        let mut options = Self {
            full: false,
            smoke: true,
            record: false,
            json: false,
            rounds: 7,
            batch: Duration::from_millis(20),
            only: Vec::new(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().unwrap_or_else(|| wrong(&format!("{argument} needs a value")));
            match argument.as_str() {
                "--bench" => options.smoke = false,
                "--full" => options.full = true,
                "--record" => options.record = true,
                "--json" => options.json = true,
                "--only" => options.only.push(value()),
                "--rounds" => options.rounds = value().parse().unwrap_or_else(|_| wrong("--rounds N")),
                "--batch-ms" => {
                    options.batch =
                        Duration::from_millis(value().parse().unwrap_or_else(|_| wrong("--batch-ms N")));
                }
                other => wrong(&format!("unknown argument {other}")),
            }
        }
        if options.smoke {
            options.rounds = 1;
            options.batch = Duration::from_millis(1);
        }
        options.rounds = options.rounds.max(1);
        options
    }

    /// Whether the point is among those asked for: each `--only` names a part of its name, and all must fit.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.iter().all(|word| name.contains(word.as_str()))
    }
}

fn wrong(what: &str) -> ! {
    eprintln!("peers: {what}");
    std::process::exit(2);
}
