//! An application: it knows libfabric's library and tables alone, and finds the provider as every other does.

#![allow(dead_code, unused_imports, reason = "not every test uses everything")]

pub(crate) mod counted;
pub(crate) mod library;
pub(crate) mod pair;
#[path = "../../../src/device/tests/ports.rs"]
pub(crate) mod ports;
pub(crate) mod region;
pub(crate) mod side;

pub(crate) use library::{Fabric, fabric};
pub(crate) use side::{Received, Side, Wanted};

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use tagmatch::provider::abi;

/// Whether the tests of this program run with the soft TM-SRQ over the transport: by the program's name.
pub(crate) fn is_offloaded() -> bool {
    env!("CARGO_CRATE_NAME").ends_with("_offloaded")
}

/// Whether peers talk through shared memory: by the program's name. Where paths are mixed, all but every third do.
pub(crate) fn is_shared() -> bool {
    env!("CARGO_CRATE_NAME").contains("_shared") || is_mixed()
}

/// Whether some peers talk through shared memory and others over the network: by the program's name.
pub(crate) fn is_mixed() -> bool {
    env!("CARGO_CRATE_NAME").contains("_mixed")
}

/// Do what reads the environment, in turn where it changes.
pub(crate) fn with_environment<T>(read: impl FnOnce() -> T) -> T {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    read()
}

thread_local!(static OPENED: Cell<usize> = const { Cell::new(0) });

/// The next domain of this thread counts as its first, for [`with_path`].
pub(crate) fn begin_paths() {
    OPENED.set(0);
}

/// Open a domain, with shared memory or without. Where paths are mixed every third of a test is without.
pub(crate) fn with_path<T>(open: impl FnOnce() -> T) -> T {
    with_environment(|| {
        if is_mixed() {
            let number = OPENED.replace(OPENED.get() + 1);
            // SAFETY: whoever reads an environment waits for its turn, and the variable is there already: no other one
            // moves.
            unsafe { std::env::set_var(SHM, if number % 3 == 2 { "0" } else { "1" }) };
        }
        open()
    })
}

/// The run-time parameters of a program's tests, by its name: an environment is a whole process's.
fn settings() -> Vec<(&'static str, String)> {
    let mut settings = vec![(SHM, u8::from(is_shared()).to_string())];
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

/// Whether there is shared memory.
pub(crate) const SHM: &str = "FI_TAGMATCH_SHM";

/// The negative of an error code, as calls return it.
pub(crate) fn minus(code: u64) -> isize {
    -isize::try_from(code).unwrap()
}

/// Rounds until something must have come: each moves both sides on.
pub(crate) const ROUNDS: usize = 2_000_000;

/// Flags of a message with a tag that was received.
pub(crate) const TAGGED_RECEIVE: u64 = abi::FI_TAGGED | abi::FI_RECV;
