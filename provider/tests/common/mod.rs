//! An application: it knows libfabric's library and tables alone, and finds the provider as every other does.

#![allow(dead_code, unused_imports, reason = "not every test uses everything")]

pub(crate) mod counted;
pub(crate) mod library;
pub(crate) mod pair;
pub(crate) mod side;

pub(crate) use library::{Fabric, fabric};
pub(crate) use side::{Received, Side, Wanted};

use tagmatch::provider::abi;

/// Whether the tests of this program run with the soft TM-SRQ over the transport: by the program's name.
pub(crate) fn is_offloaded() -> bool {
    env!("CARGO_CRATE_NAME").ends_with("_offloaded")
}

/// The run-time parameters of a program's tests, by its name: an environment is a whole process's.
fn settings() -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    if is_offloaded() {
        settings.push(("FI_TAGMATCH_TM", "soft".into()));
    }
    if counted::is_counting() {
        // Thresholds so low that every protocol is used by short messages.
        settings.push(("FI_TAGMATCH_BUFFER_SIZE", counted::EAGER_MAX.to_string()));
        settings.push(("FI_TAGMATCH_SAR_LIMIT", counted::SEGMENTED_MAX.to_string()));
        settings.push(("FI_TAGMATCH_INJECT_SIZE", counted::EAGER_MAX.to_string()));
        settings.push(("FI_TAGMATCH_STATS", counted::place().display().to_string()));
    }
    if env!("CARGO_CRATE_NAME").starts_with("credits") {
        settings.push(("FI_TAGMATCH_CREDIT_BYTES", (64 << 10).to_string()));
        settings.push(("FI_TAGMATCH_CREDIT_MESSAGES", "16".into()));
        settings.push(("FI_TAGMATCH_CREDIT_HEADERS", "1024".into()));
    }
    settings
}

/// The negative of an error code, as calls return it.
pub(crate) fn minus(code: u64) -> isize {
    -isize::try_from(code).unwrap()
}

/// Rounds until something must have come: each moves both sides on.
pub(crate) const ROUNDS: usize = 2_000_000;

/// Flags of a message with a tag that was received.
pub(crate) const TAGGED_RECEIVE: u64 = abi::FI_TAGGED | abi::FI_RECV;
