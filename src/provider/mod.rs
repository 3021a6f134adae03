//! The endpoint as a libfabric provider named `tagmatch`, for programs that know libfabric and nothing else.
//!
//! ```text
//!  application ── struct fid_… → ops ── calls ── turn ── state ── endpoint
//!                                         │               └ queues, counters, address vectors
//!                 fi_getinfo ── info      └ pointers and codes end here
//! ```
//!
//! A library that exports `fi_prov_ini` (package `tagmatch-fi`) hands out [`provider`]. Nothing of libfabric is needed to
//! build or to load it: all calls of applications go through tables, which libfabric's headers call inline. One build
//! serves applications of API 1.5 to 2.6: structures are written as far as the application's API goes.
//!
//! Unsafe code is in `calls`, `info`, `abi` and the small files beside; `state` has none.

#![allow(
    unsafe_code,
    reason = "calls of a C library's applications, and structures that are shared with them"
)]

pub mod abi;
mod address;
mod arrays;
mod calls;
pub mod client;
mod clock;
mod error;
mod info;
pub mod matching;
pub mod parameters;
mod state;
pub mod statistics;
mod transports;
mod turn;
mod wait;

use std::cell::UnsafeCell;

pub use self::info::check_interface;

use self::abi::fi_provider;

/// The provider's structure: the same static one at every call. libfabric writes to its `context`.
#[must_use]
pub fn provider() -> *mut fi_provider {
    PROVIDER.0.get()
}

/// Memory that is libfabric's to write to.
struct Shared(UnsafeCell<fi_provider>);

// SAFETY: nobody here reads or writes it; libfabric does, under its own lock.
unsafe impl Sync for Shared {}

static PROVIDER: Shared = Shared(UnsafeCell::new(fi_provider {
    version: info::PROVIDER_VERSION,
    fi_version: info::FI_VERSION,
    context: [std::ptr::null_mut(); 4],
    name: c"tagmatch".as_ptr(),
    getinfo: info::getinfo,
    fabric: calls::fabric::open,
    cleanup: None,
}));
