//! What endpoints counted, as `tagmatch stats` shows it: in programs whose name begins with `protocols`.
//!
//! A domain appends its counters to a file when it is closed. All tests of such a program share that file, so that they
//! take turns: whoever has an open domain has the turn.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::ThreadId;

use tagmatch::provider::statistics::Report;

use super::Side;

/// Bytes that go eagerly at most; longer messages go in segments where the other side puts them together.
pub(crate) const EAGER_MAX: usize = 4096;
/// Bytes that go in segments at most; longer messages go by rendezvous.
pub(crate) const SEGMENTED_MAX: usize = 32 << 10;

/// Whether this program counts.
pub(crate) fn is_counting() -> bool {
    env!("CARGO_CRATE_NAME").starts_with("protocols")
}

/// Where counters go.
pub(crate) fn place() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("counted-{}", std::process::id()))
}

/// Counters of some endpoints together.
#[derive(Debug)]
pub(crate) struct Counters(HashMap<String, u64>);

impl Counters {
    /// Close these sides one after the other, and add up what they counted.
    pub(crate) fn of(sides: Vec<Side>) -> Self {
        assert!(is_counting(), "this program does not count");
        // The turn ends when all is read. What stands there is of tests that are over.
        enter();
        let before = std::fs::read_to_string(place()).unwrap_or_default().len();
        let count = sides.len();
        drop(sides);
        let text = std::fs::read_to_string(place()).unwrap();
        leave();
        let reports = Report::parse_all(&text[before..]).unwrap();
        assert_eq!(reports.len(), count, "{text}");
        let mut sums = HashMap::new();
        for (name, value) in reports.into_iter().flat_map(|report| report.counters) {
            *sums.entry(name).or_insert(0) += value;
        }
        Self(sums)
    }

    /// One of them.
    pub(crate) fn count(&self, name: &str) -> u64 {
        *self.0.get(name).unwrap_or_else(|| panic!("nothing called {name} is counted: {:?}", self.0))
    }

    /// Messages sent eagerly, in segments, and by rendezvous.
    pub(crate) fn sent(&self) -> [u64; 3] {
        ["sent_eager", "sent_segmented", "sent_rendezvous"].map(|name| self.count(name))
    }
}

/// Who has the turn, and how many domains it has open.
static TURN: Mutex<Option<(ThreadId, usize)>> = Mutex::new(None);
static FREE: Condvar = Condvar::new();

/// A domain is opened by this thread: wait until no other thread's is open.
pub(crate) fn enter() {
    if !is_counting() {
        return;
    }
    let own = std::thread::current().id();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_others = |turn: &mut Option<(ThreadId, usize)>| turn.is_some_and(|(owner, _)| owner != own);
    let mut turn = FREE.wait_while(turn, is_others).unwrap_or_else(PoisonError::into_inner);
    let open = turn.map_or(0, |(_, open)| open);
    *turn = Some((own, open + 1));
}

/// A domain is closed, by any thread.
pub(crate) fn leave() {
    if !is_counting() {
        return;
    }
    let mut turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    *turn = turn.and_then(|(owner, open)| (open > 1).then_some((owner, open - 1)));
    FREE.notify_all();
}
