//! Verbs objects for tests: thin and safe, with every error as an errno, over the raw binding of `tagmatch`.
//!
//! Each object keeps those alive that it needs, and is destroyed when it is dropped unless it was before. One thread.
//! What must not be done cannot be done from here, but for DELs of handles that are not in use: scripts know theirs.

#![allow(unsafe_code, reason = "calls of C functions")]

mod cq;
mod device;
mod memory;
mod qp;
mod srq;

pub use cq::{Channel, Cq, CqEx, Raw};
pub use device::{Choice, Device, Pd, device_names};
pub use memory::{Part, Region};
pub use qp::{Connection, Qp, QpForm, Request, Wr};
pub use srq::{Operation, OperationKind, Srq, SrqForm, SrqRequest};

/// `errno` of the call before.
fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or_default()
}
