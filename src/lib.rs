//! Tag matching for message-passing runtimes.
//!
//! `tagmatch` keeps MPI's matching order exactly, hands posted receives to a NIC that can match (TM-SRQ,
//! `ibv_post_srq_ops`), and matches the rest in software.
//!
//! Where to begin:
//!
//! * matching alone, in software: [`matching::Matcher`]
//! * matching with devices: [`engine`], whose page has an owner's loop that runs, over the device that needs nothing,
//!   [`device::soft::SoftDevice`]
//! * when memory may be freed: [`engine::Completion`]; shared among threads: [`domain`]
//!
//! A NIC that matches, and what its driver demands, are written down in docs/tm-srq.md of the sources. What is cited as
//! TM-CONTRACT with a number ("TM-CONTRACT 6.1") is a section of that contract: the page ends with a table that says
//! what each number is about. A1 to A19 are the points that nobody has written down; they stand there too.
//!
//! Modules in the order in which data flows:
//!
//! * [`ids`] – names for things
//! * [`seam`] – what passes between engine and devices, as plain data
//! * [`atomics`] – operations on single values of a peer's memory
//! * [`wire`] – bytes and values
//! * [`matching`] – posted and unexpected lists: the one order
//! * [`offload`] – posted receives in NICs
//! * [`engine`] – the three joined
//! * [`device`] – what carries messages and perhaps matches them
//! * [`endpoint`] – peers and connections: a reliable datagram endpoint over transports
#![cfg_attr(
    all(target_os = "linux", target_pointer_width = "64"),
    doc = "* [`paths`] – an endpoint over the transports that there are"
)]
//! * [`domain`] – whose turn it is, and whose memory: threads and buffers around an engine and its devices
#![cfg_attr(
    all(feature = "libfabric", target_os = "linux"),
    doc = "* [`provider`] – the endpoint as a libfabric provider, for unmodified programs"
)]
#![cfg_attr(feature = "traces", doc = "* [`traces`] – what real MPI programs asked for, recorded")]
#![cfg_attr(
    feature = "traces",
    doc = "* [`replay`] – a trace over anything that matches, every expected result checked"
)]
#![deny(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::wildcard_enum_match_arm, reason = "a test names the one variant that it expects")
)]

pub mod atomics;
pub mod device;
pub mod domain;
pub mod endpoint;
pub mod engine;
pub mod ids;
pub mod matching;
pub mod offload;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod paths;
#[cfg(all(feature = "libfabric", target_os = "linux"))]
pub mod provider;
#[cfg(feature = "traces")]
pub mod replay;
pub mod seam;
#[cfg(feature = "traces")]
pub mod traces;
pub mod wire;
