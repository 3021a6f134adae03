//! stub
use super::{Observation, Options, Violation};
/// v
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /** a */
    Correct,
    /** b */
    Undecided,
}
/// c
/// # Errors
/// d
pub fn check(_history: &[Observation], _options: Options) -> Result<Verdict, Violation> {
    Ok(Verdict::Undecided)
}
