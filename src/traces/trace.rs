//! A whole trace in memory.

use super::ledger::Ledger;
use super::{Event, Header, Outcome, ReadError, Step, Steps};
use std::io::Cursor;
use std::path::Path;

/// A trace whose steps have been checked against the grammar and against each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// The name of its file, as whoever opened it gave it.
    pub name: String,
    /// Its headers.
    pub header: Header,
    /// Its steps, in order.
    pub steps: Vec<Step>,
}

/// How many of what a trace holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Counts {
    /// Receives: posts and claims.
    pub receives: usize,
    /// Messages.
    pub messages: usize,
    /// Peeks.
    pub peeks: usize,
}

/// How long the two lists get, as the expected results have it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Depths {
    /// The most receives that are posted at a time.
    pub posted_max: usize,
    /// The most messages that are unexpected at a time; bound ones do not count.
    pub unexpected_max: usize,
}

impl Trace {
    /// Read a file, plain or compressed.
    ///
    /// # Errors
    /// It cannot be read, or it is no well-formed trace.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::from_steps(path.display().to_string(), Steps::open(path)?)
    }

    /// Read a trace, plain or compressed, that is in memory; the name is only for messages.
    ///
    /// # Errors
    /// It is no well-formed trace.
    pub fn from_bytes(name: impl Into<String>, bytes: impl AsRef<[u8]> + 'static) -> Result<Self, ReadError> {
        let name = name.into();
        let steps = Steps::new(name.clone(), Cursor::new(bytes))?;
        Self::from_steps(name, steps)
    }

    /// Collect and check the steps.
    ///
    /// # Errors
    /// As the steps say, or they do not make sense together.
    pub fn from_steps(name: impl Into<String>, mut steps: Steps) -> Result<Self, ReadError> {
        let mut ledger = Ledger::default();
        let mut all = Vec::new();
        while let Some(step) = steps.next().transpose()? {
            ledger.handle_step(&step).map_err(|problem| steps.malformed(step.line, problem))?;
            all.push(step);
        }
        Ok(Self { name: name.into(), header: steps.into_header(), steps: all })
    }

    /// The last part of the name, without what tells how it is stored.
    #[must_use]
    pub fn short_name(&self) -> &str {
        let name = self.name.rsplit('/').next().unwrap_or(&self.name);
        [".zst", ".gz", ".txt"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
    }

    /// How many of what it holds.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for step in &self.steps {
            match step.event {
                Event::Post { .. } | Event::Claim { .. } => counts.receives += 1,
                Event::Arrive { .. } => counts.messages += 1,
                Event::Peek { .. } => counts.peeks += 1,
                Event::Cancel { .. } => {}
            }
        }
        counts
    }

    /// How long the two lists get.
    #[must_use]
    pub fn depths(&self) -> Depths {
        let (mut posted, mut unexpected) = (0usize, 0usize);
        let mut depths = Depths::default();
        for step in &self.steps {
            match (step.event, step.expected) {
                (Event::Post { .. }, Outcome::Queued) => posted += 1,
                (Event::Arrive { .. }, Outcome::Queued) => unexpected += 1,
                (Event::Post { .. }, _) | (Event::Peek { claim: true, .. }, Outcome::Found(_)) => {
                    unexpected = unexpected.saturating_sub(1);
                }
                (Event::Arrive { .. }, _) | (Event::Cancel { .. }, Outcome::Cancelled) => {
                    posted = posted.saturating_sub(1);
                }
                (Event::Peek { .. } | Event::Claim { .. } | Event::Cancel { .. }, _) => {}
            }
            depths.posted_max = depths.posted_max.max(posted);
            depths.unexpected_max = depths.unexpected_max.max(unexpected);
        }
        depths
    }
}
