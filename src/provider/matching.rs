//! Who matches the messages of an endpoint: what `FI_TAGMATCH_TM` asks for, and what there is.
//!
//! Not here: transports, which are made accordingly (`transports`).

use super::parameters::TagMatching;

/// Who matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Matcher {
    /// The engine alone.
    Software,
    /// The soft TM-SRQ: a model of a device, in software.
    Model,
}

impl std::fmt::Display for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Software => write!(f, "software"),
            Self::Model => write!(f, "the soft TM-SRQ, a model of a device"),
        }
    }
}

/// A device is required, and there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("FI_TAGMATCH_TM=require is refused: {NO_DEVICE}; auto, soft and off do without")]
pub struct NoDevice;

/// Why a device that may match does not.
pub const NO_DEVICE: &str =
    "there is no device that matches tags for the provider, whose one transport between processes is TCP";

/// Who matches where this is asked for.
///
/// # Errors
/// A device is required, and there is none.
pub const fn matcher(asked: TagMatching) -> Result<Matcher, NoDevice> {
    match asked {
        TagMatching::Off | TagMatching::Auto => Ok(Matcher::Software),
        TagMatching::Soft => Ok(Matcher::Model),
        TagMatching::Require => Err(NoDevice),
    }
}
