//! What only a stream can do to a transport.

mod closing;
mod cut;
mod frames;
mod hostile;
mod links;
mod raw;
mod unreadable;
