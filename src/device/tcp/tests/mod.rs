//! What only a stream can do to a transport.

mod frames;
mod hostile;
mod links;
mod raw;
