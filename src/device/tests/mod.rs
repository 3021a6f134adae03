//! What every transport does, tried over each of them; and what only some of them can get into.

mod memory;
mod rig;

mod arrivals;
mod over;
mod rendezvous;
mod segments;

pub(super) use memory::{Memory, trusted};
pub(super) use rig::{Heard, Policy, RECEIVED_FROM, Random, Recorder, Rig, pattern, untagged};

/// Run tests over every transport.
macro_rules! over_every_transport {
    ($($name:ident),* $(,)?) => {
        mod over_loopback {
            $(#[test]
            fn $name() {
                super::$name(crate::device::tests::Rig::loopback());
            })*
        }
        #[cfg(target_os = "linux")]
        mod over_tcp {
            $(#[test]
            fn $name() {
                super::$name(crate::device::tests::Rig::tcp());
            })*
        }
    };
}
use over_every_transport;
