//! Which device posted receives are offloaded to, as the arguments name it.
//!
//! `hca` is a simulated card under the real driver: this program is then run again with the card preloaded, and finds
//! it there.

use crate::End;
use std::convert::Infallible;
use std::str::FromStr;

/// A device to offload to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Device {
    /// None: software alone.
    None,
    /// The soft TM-SRQ: a model of a NIC's matching, in this process.
    Soft,
    /// A simulated ConnectX under libibverbs and libmlx5.
    Hca,
    /// A verbs device of this machine: the first, or the one of this name.
    Verbs(Option<String>),
}

impl FromStr for Device {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "none" => Self::None,
            "soft" => Self::Soft,
            "hca" => Self::Hca,
            "verbs" => Self::Verbs(None),
            name => Self::Verbs(Some(name.to_owned())),
        })
    }
}

impl Device {
    /// Whether a replay over it can begin. `Some`: the command has ended, since it was run again on a simulated card,
    /// or the device is not there.
    pub(crate) fn prepare(&self, tags: u32) -> Option<End> {
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        return crate::verbs::prepare(self, tags);
        #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
        match self {
            Self::None | Self::Soft => None,
            Self::Hca | Self::Verbs(_) => {
                crate::output::complain(format_args!("{tags} tags: verbs devices need Linux on 64 bits"));
                Some(End::Unusable)
            }
        }
    }

    /// As it is said.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::None => "none",
            Self::Soft => "soft",
            Self::Hca => "hca",
            Self::Verbs(name) => name.as_deref().unwrap_or("verbs"),
        }
    }

    /// What results over it are called.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Soft => "engine over the soft TM-SRQ (a model, not a card)",
            Self::Hca | Self::Verbs(_) if self.is_model() => {
                "engine over libibverbs and libmlx5 on the simulated HCA (a model, not a card)"
            }
            Self::Hca | Self::Verbs(_) => "engine over libibverbs and a verbs device, lock-step",
        }
    }

    /// Whether it is a model, so that its part of the time says nothing about a card. Under a simulated card a process
    /// sees no other, by whatever name.
    pub(crate) fn is_model(&self) -> bool {
        match self {
            Self::None => false,
            Self::Soft | Self::Hca => true,
            Self::Verbs(_) => is_simulated(),
        }
    }

    /// Whether it does nothing but what this process lets it do, so that it can be late by a seed.
    pub(crate) fn is_driven(&self) -> bool {
        match self {
            Self::None => false,
            Self::Soft => true,
            #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
            Self::Hca | Self::Verbs(_) => is_simulated() && crate::verbs::is_driven(),
            #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
            Self::Hca | Self::Verbs(_) => false,
        }
    }
}

/// Whether what this process sees as verbs devices is a simulated card.
pub(crate) fn is_simulated() -> bool {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    return tagmatch::device::verbs::SimulatedHca::find().is_some();
    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    false
}
