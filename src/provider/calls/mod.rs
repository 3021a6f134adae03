//! The calls of libfabric, object by object: pointers in, safe values on, codes out.
//!
//! Every function here is called by an application, through a table. Each reads what it was given, and asks the
//! domain's state; nothing is decided here.

mod atomic;
mod cm;
mod counter;
mod domain;
mod driven;
mod endpoint;
mod event_queue;
pub(super) mod fabric;
mod memory;
mod message;
mod object;
mod options;
mod passive;
mod poll;
mod queue;
mod region;
mod rma;
mod tagged;
mod text;
mod transfers;
mod unsupported;
mod vector;
mod waiting;
