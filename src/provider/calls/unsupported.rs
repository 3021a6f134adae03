//! What is not offered: every slot of a table that nobody here fills says so, whatever it is called with.

use libc::ssize_t;

use crate::provider::abi::{self, Slot, fi_ops_collective};

/// `-FI_ENOSYS` to every call.
///
/// Slots differ in their arguments, which the calling conventions of Linux let a function ignore; and `int` and
/// `ssize_t` are returned alike.
unsafe extern "C" fn no_such_call() -> ssize_t {
    -(crate::provider::error::code(abi::FI_ENOSYS).0 as ssize_t)
}

/// For slots.
pub(super) const NONE: Slot = Some(no_such_call);

pub(super) static COLLECTIVE: fi_ops_collective = fi_ops_collective {
    size: size_of::<fi_ops_collective>(),
    barrier: NONE,
    broadcast: NONE,
    alltoall: NONE,
    allreduce: NONE,
    allgather: NONE,
    reduce_scatter: NONE,
    reduce: NONE,
    scatter: NONE,
    gather: NONE,
    msg: NONE,
    barrier2: NONE,
};
