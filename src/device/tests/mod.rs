//! What every transport does, tried over each of them; and what only some of them can get into.

mod memory;
#[cfg(target_os = "linux")]
pub(super) mod ports;
mod rig;

mod arrivals;
mod over;
mod rendezvous;
mod segments;
#[cfg(target_os = "linux")]
pub(super) mod streamed;

pub(super) use memory::{Memory, trusted};
pub(super) use rig::{Heard, Policy, RECEIVED_FROM, Random, Recorder, Rig, pattern, untagged};
#[cfg(target_os = "linux")]
pub(super) use rig::{framed, framed_with, shared_memory, shared_memory_with};

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
        #[cfg(target_os = "linux")]
        mod over_shared_memory {
            $(#[test]
            fn $name() {
                super::$name(crate::device::tests::Rig::shm());
            })*
        }
    };
}
use over_every_transport;

/// Run tests with the list over each transport.
macro_rules! over_every_listed_transport {
    ($($name:ident),* $(,)?) => {
        mod over_loopback {
            $(#[test]
            fn $name() {
                super::$name(crate::device::tests::Rig::listed_loopback(super::TAGS));
            })*
        }
        #[cfg(target_os = "linux")]
        mod over_tcp {
            $(#[test]
            fn $name() {
                super::$name(crate::device::tests::Rig::listed_tcp(super::TAGS));
            })*
        }
        #[cfg(target_os = "linux")]
        mod over_shared_memory {
            $(#[test]
            fn $name() {
                super::$name(crate::device::tests::Rig::listed_shm(super::TAGS));
            })*
        }
    };
}
use over_every_listed_transport;

/// Run tests over transports that answer reads by themselves, as opposed to a card.
macro_rules! where_the_transport_reads {
    ($($name:ident),* $(,)?) => {
        mod where_the_transport_reads {
            $(#[test]
            fn $name() {
                super::$name(crate::device::tests::Rig::loopback());
                #[cfg(target_os = "linux")]
                super::$name(crate::device::tests::Rig::tcp());
                #[cfg(target_os = "linux")]
                super::$name(crate::device::tests::Rig::shm());
            })*
        }
    };
}
use where_the_transport_reads;

/// The same with the list over them.
macro_rules! where_the_listed_transport_reads {
    ($($name:ident),* $(,)?) => {
        mod where_the_listed_transport_reads {
            $(#[test]
            fn $name() {
                super::$name(crate::device::tests::Rig::listed_loopback(super::TAGS));
                #[cfg(target_os = "linux")]
                super::$name(crate::device::tests::Rig::listed_tcp(super::TAGS));
                #[cfg(target_os = "linux")]
                super::$name(crate::device::tests::Rig::listed_shm(super::TAGS));
            })*
        }
    };
}
use where_the_listed_transport_reads;
