//! What only shared memory can do to a transport.

mod hostile;
mod raw;
mod waiting;
