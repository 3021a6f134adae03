//! What only shared memory can do to a transport.

mod cut;
mod forbidden;
mod forked;
mod hostile;
mod raw;
mod scribbling;
mod slips;
mod waiting;
