//! What only a card can answer: the doubtful points of TM-CONTRACT 14.

use crate::port::TmDevice;
use crate::suite::{Filter, Report};

/// One question.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// The point of TM-CONTRACT 14.
    pub point: &'static str,
    /// What is asked.
    pub question: &'static str,
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Probe> {
    Vec::new()
}

/// Ask all.
///
/// # Errors
/// What `tell` returned.
pub fn run_all<E>(
    _device: &mut dyn TmDevice,
    _filter: &Filter,
    _tell: impl FnMut(&Report) -> Result<(), E>,
) -> Result<(), E> {
    Ok(())
}
