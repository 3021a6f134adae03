//! What a script saw, so that two devices can be compared.

use std::fmt;

use crate::script::{Completion, Created, opcode, status};

/// One thing seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// What creation answered.
    Created(Result<Created, i32>),
    /// What a list of operations gave: handles, and what was refused.
    Posted(Vec<u32>, Option<(i32, usize)>),
    /// Receives taken of those posted.
    Received(u32),
    /// A completion, and what its buffer then held.
    Completed(Completion, Seen),
    /// Statuses of a sender's SENDs.
    Sent(u8, Vec<u32>),
    /// A FIN reached its sender.
    Finished(u8),
    /// What `ibv_destroy_srq` answered.
    Destroyed(i32),
}

/// What a buffer held. Addresses and keys differ between devices, so that bytes are kept only where they are wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    /// Not looked at.
    Nothing,
    /// What the script says: so many bytes.
    AsExpected(u32),
    /// Something else.
    Other(Vec<u8>),
}

impl Record {
    /// Without what no client may rely on: the opcode and length of an error, and a model's vendor error.
    #[must_use]
    pub fn comparable(mut self) -> Self {
        if let Self::Completed(completion, _) = &mut self {
            completion.vendor_error = 0;
            let is_told = matches!(
                completion.status,
                status::SUCCESS | status::TM_ERROR | status::TM_RENDEZVOUS_INCOMPLETE
            );
            // MSG_COMPLETION_CANCELED has no opcode of its own, and nothing says what its length is.
            let is_cancelled =
                completion.status == status::TM_RENDEZVOUS_INCOMPLETE && completion.opcode != opcode::TM_RECV;
            if !is_told || is_cancelled {
                completion.opcode = 0;
                completion.byte_len = 0;
            }
        }
        self
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created(Ok(created)) => write!(f, "created, max_wr {}", created.receives),
            Self::Created(Err(errno)) => write!(f, "not created, errno {errno}"),
            Self::Posted(handles, None) => write!(f, "posted, handles {handles:?}"),
            Self::Posted(handles, Some((errno, bad))) => {
                write!(f, "refused, errno {errno} at {bad}, handles {handles:?}")
            }
            Self::Received(taken) => write!(f, "{taken} receives taken"),
            Self::Completed(completion, Seen::Nothing) => write!(f, "{completion}"),
            Self::Completed(completion, Seen::AsExpected(length)) => {
                write!(f, "{completion} ({length} bytes as expected)")
            }
            Self::Completed(completion, Seen::Other(bytes)) => write!(f, "{completion} bytes {bytes:02x?}"),
            Self::Sent(sender, statuses) => write!(f, "sender {sender}: sends completed {statuses:?}"),
            Self::Finished(sender) => write!(f, "sender {sender}: FIN"),
            Self::Destroyed(errno) => write!(f, "destroy_srq {errno}"),
        }
    }
}
