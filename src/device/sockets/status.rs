//! What all do alike that connect by TCP: how connecting stands, and why something on a socket failed.
//!
//! Not here: what is said on a connection.

use std::io;
use std::net::TcpStream;

use crate::device::transport::CloseReason;

/// What came of connecting; `None` while it is under way.
pub(in crate::device) fn connected(stream: &TcpStream) -> Option<Result<(), CloseReason>> {
    let failure = match stream.take_error() {
        Ok(None) => stream.peer_addr().err(),
        Ok(Some(error)) | Err(error) => Some(error),
    };
    match failure {
        Some(error) if error.raw_os_error() == Some(libc::ENOTCONN) => None,
        Some(error) => Some(Err(refusal(&error))),
        None if is_to_itself(stream) => Some(Err(CloseReason::Refused)),
        None => Some(Ok(())),
    }
}

/// Two ends that draw the same port of the same host can be one (simultaneous open): nobody listens there.
fn is_to_itself(stream: &TcpStream) -> bool {
    match (stream.local_addr(), stream.peer_addr()) {
        (Ok(local), Ok(peer)) => local == peer,
        _ => false,
    }
}

/// Why nothing came of connecting.
pub(in crate::device) fn refusal(error: &io::Error) -> CloseReason {
    if error.kind() == io::ErrorKind::ConnectionRefused { CloseReason::Refused } else { reason_of(error) }
}

pub(in crate::device) fn reason_of(error: &io::Error) -> CloseReason {
    CloseReason::System { errno: error.raw_os_error().unwrap_or(libc::EIO) }
}

/// There is nothing to read now.
pub(in crate::device) fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
