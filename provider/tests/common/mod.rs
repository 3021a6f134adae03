//! An application: it knows libfabric's library and tables alone, and finds the provider as every other does.

#![allow(dead_code, unused_imports, reason = "not every test uses everything")]

pub(crate) mod library;
pub(crate) mod pair;
pub(crate) mod side;

pub(crate) use library::{Fabric, fabric};
pub(crate) use side::{Received, Side, Wanted};

use tagmatch::provider::abi;

/// The negative of an error code, as calls return it.
pub(crate) fn minus(code: u64) -> isize {
    -isize::try_from(code).unwrap()
}

/// Rounds until something must have come: each moves both sides on.
pub(crate) const ROUNDS: usize = 2_000_000;

/// Flags of a message with a tag that was received.
pub(crate) const TAGGED_RECEIVE: u64 = abi::FI_TAGGED | abi::FI_RECV;
