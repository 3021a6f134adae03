//! Sockets, for all transports that connect by them: addresses, listening, what the standard library does not call.
//!
//! Not here: what is said on a connection, and what becomes of it.

pub(in crate::device) mod address;
pub(in crate::device) mod listener;
pub(in crate::device) mod process;
pub(in crate::device) mod status;
pub(crate) mod sys;

use std::io;

/// No transport could be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It follows the addresses of all buffers, which nobody has promised that it may.
    #[error("this transport needs memory that is trusted")]
    Memory,
    /// The operating system refused.
    #[error("{call} failed with errno {errno}")]
    System {
        /// What was called.
        call: &'static str,
        /// `errno`, positive.
        errno: i32,
    },
}

impl OpenError {
    pub(in crate::device) fn of(call: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::System { call, errno: error.raw_os_error().unwrap_or(libc::EIO) }
    }
}
