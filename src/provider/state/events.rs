//! What an event queue has (`fi_eq(3)`): events and errors that wait to be read, and where more may come from.
//!
//! Whoever drives something puts its events here, with or without the state of a domain in hand; nobody who has what is
//! here in hand takes anything else, so that nobody waits for another who waits.
//!
//! Not here: how they look to applications.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::provider::abi::fid;
use crate::provider::info::OfRequest;
use crate::provider::wait::WaitSet;

/// An object of the application's, as events name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::provider) struct Fid(pub(in crate::provider) *mut fid);

// SAFETY: nothing here looks behind it; it is a name that the application gets back.
unsafe impl Send for Fid {}
// SAFETY: as above.
unsafe impl Sync for Fid {}

/// What happened.
#[derive(Debug)]
pub(in crate::provider) enum Event {
    /// What the application wrote: a kind, and bytes.
    Written(u32, Vec<u8>),
    /// Something of connections (`struct fi_eq_cm_entry`).
    Connection {
        /// `FI_CONNREQ`, `FI_CONNECTED` or `FI_SHUTDOWN`.
        kind: u32,
        /// Whose.
        of: Fid,
        /// Of a request.
        info: Option<OfRequest>,
        /// What the other side said.
        data: Vec<u8>,
    },
}

/// What came to nothing (`struct fi_eq_err_entry`).
#[derive(Clone, Debug)]
pub(in crate::provider) struct Failed {
    /// Whose.
    pub(in crate::provider) of: Fid,
    /// Its context.
    pub(in crate::provider) context: usize,
    /// A positive code.
    pub(in crate::provider) error: i32,
    /// What the other side said.
    pub(in crate::provider) data: Vec<u8>,
}

/// Who may bring more.
pub(in crate::provider) trait Source: Send + Sync {
    /// As whom the application knows it.
    fn fid(&self) -> Fid;

    /// Move on.
    fn progress(&self);

    /// Whether one may wait for it, and until when. `None`: there is something to do.
    fn may_wait(&self) -> Option<Option<Duration>>;
}

/// See the file.
pub(in crate::provider) struct Events {
    /// What one waits with, if that was asked for.
    pub(in crate::provider) wait: Option<Arc<WaitSet>>,
    all: Mutex<All>,
    sources: Mutex<Vec<Arc<dyn Source>>>,
}

#[derive(Default)]
struct All {
    events: VecDeque<Event>,
    failed: VecDeque<Failed>,
    /// The data of the error that was read last, which stays until the next is read.
    shown: Vec<u8>,
}

/// What there is to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::provider) enum There {
    /// An error, whatever else.
    Failed,
    /// An event.
    Event,
    /// Nothing.
    Nothing,
}

impl Events {
    pub(in crate::provider) fn new(wait: Option<Arc<WaitSet>>) -> Self {
        Self { wait, all: Mutex::default(), sources: Mutex::default() }
    }

    fn with<R>(&self, call: impl FnOnce(&mut All) -> R) -> R {
        // No call leaves them half changed.
        call(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn sources<R>(&self, call: impl FnOnce(&mut Vec<Arc<dyn Source>>) -> R) -> R {
        call(&mut self.sources.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// It is there to be read; whoever waits looks.
    pub(in crate::provider) fn push(&self, event: Event) {
        self.with(|all| all.events.push_back(event));
        self.signal();
    }

    /// The same of an error.
    pub(in crate::provider) fn fail(&self, failed: Failed) {
        self.with(|all| all.failed.push_back(failed));
        self.signal();
    }

    fn signal(&self) {
        if let Some(set) = &self.wait {
            set.signal();
        }
    }

    /// More may come from there.
    pub(in crate::provider) fn add(&self, source: Arc<dyn Source>) {
        self.sources(|sources| {
            sources.retain(|other| other.fid() != source.fid());
            sources.push(source);
        });
        // Whoever waits already does not wait for it.
        self.signal();
    }

    /// It is closed: nothing comes from there, and what came of it names nothing. Those events are given back.
    pub(in crate::provider) fn forget(&self, of: Fid) -> Vec<Event> {
        self.sources(|sources| sources.retain(|source| source.fid() != of));
        self.with(|all| {
            all.failed.retain(|failed| failed.of != of);
            let is_of = |event: &Event| matches!(event, Event::Connection { of: whose, .. } if *whose == of);
            let all_events = std::mem::take(&mut all.events);
            let (gone, left): (Vec<Event>, Vec<Event>) = all_events.into_iter().partition(is_of);
            all.events = left.into();
            gone
        })
    }

    /// Move all on from which more may come.
    pub(in crate::provider) fn progress(&self) {
        // What each does may bring others, and is done without anything in hand.
        for source in self.sources(|sources| sources.clone()) {
            source.progress();
        }
    }

    pub(in crate::provider) fn there(&self) -> There {
        self.with(|all| {
            if !all.failed.is_empty() {
                There::Failed
            } else if all.events.is_empty() {
                There::Nothing
            } else {
                There::Event
            }
        })
    }

    /// Whether one may wait (`fi_trywait(3)`): there is nothing, and nothing to be done. From then on whoever brings something
    /// wakes.
    pub(in crate::provider) fn may_wait(&self) -> bool {
        self.progress();
        let mut deadline: Option<Duration> = None;
        for source in self.sources(|sources| sources.clone()) {
            let Some(until) = source.may_wait() else { return false };
            deadline = deadline.into_iter().chain(until).min();
        }
        if self.there() != There::Nothing {
            return false;
        }
        if let Some(set) = &self.wait {
            set.prepare(deadline);
        }
        // What came before the signals were forgotten is seen here.
        self.there() == There::Nothing
    }

    /// Have the oldest event, which is taken if the call says so.
    pub(in crate::provider) fn read<R>(&self, take: impl FnOnce(&mut Event) -> (R, bool)) -> Option<R> {
        let (result, gone) = self.with(|all| {
            let (result, is_taken) = take(all.events.front_mut()?);
            Some((result, if is_taken { all.events.pop_front() } else { None }))
        })?;
        drop(gone);
        Some(result)
    }

    /// The oldest error, with where its data stays until the next is read. It is taken unless it is only looked at.
    pub(in crate::provider) fn read_error(&self, is_taken: bool) -> Option<(Failed, *const u8)> {
        self.with(|all| {
            let failed = all.failed.front().cloned()?;
            if is_taken {
                all.failed.pop_front();
            }
            all.shown.clone_from(&failed.data);
            Some((failed, all.shown.as_ptr()))
        })
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("there", &self.there()).finish_non_exhaustive()
    }
}
