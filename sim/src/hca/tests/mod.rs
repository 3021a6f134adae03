//! Tests of the device model over memory of their own; what the driver would write, they write.

mod host;
mod reliable;
mod reliable_errors;
mod retries;
