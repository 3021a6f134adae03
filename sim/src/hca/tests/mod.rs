//! Tests of the device model over memory of their own; what the driver would write, they write.

mod control;
mod datagrams;
mod fabric;
mod host;
mod queues;
mod reliable;
mod reliable_errors;
mod retries;
mod states;
mod tag_failures;
mod tag_flows;
mod tag_host;
mod tag_list;
mod tag_switches;
mod wire;
mod wrapping;
