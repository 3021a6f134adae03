//! One suite for any verbs device: a ConnectX card, the simulated HCA, soft-RoCE.
//!
//! A [`script`] says what is done to a TM-SRQ and what must come of it; [`scripts`] holds one for every row of
//! TM-CONTRACT 3 and 5 to 13. [`runner`] runs one through a [`port`]: on the executable description
//! ([`soft_port`]) or on a verbs device. What both saw can be compared ([`record`]).

pub mod port;
pub mod record;
pub mod runner;
pub mod script;
pub mod scripts;
pub mod soft_port;
