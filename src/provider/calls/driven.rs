//! What connected endpoints have beside others: the request that they are made for, and an event queue that moves them on.
//!
//! Not here: their calls (`cm`).

use std::sync::{Arc, Weak};
use std::time::Duration;

use libc::c_void;

use super::domain::Core;
use crate::provider::abi::{self, fi_info};
use crate::provider::clock::now;
use crate::provider::error::{Outcome, fail};
use crate::provider::state::endpoint::Connection;
use crate::provider::state::events::{Fid, Source};

/// What a connected endpoint has beside: for whom it is made, if the info is of a request.
pub(super) fn connection(info: &fi_info, core: &Core, context: *mut c_void) -> Outcome<Box<Connection>> {
    if !core.is_for_connected {
        return fail(abi::FI_EINVAL);
    }
    let request = match info.handle {
        handle if handle.is_null() => None,
        handle => Some(core.fabric.requests.take(handle)?),
    };
    let context = context.expose_provenance();
    Ok(Box::new(Connection { events: None, of: Fid(std::ptr::null_mut()), context, request }))
}

/// A connected endpoint, for the event queue that it is bound to.
pub(super) struct Driven {
    domain: Weak<Core>,
    index: usize,
    of: Fid,
}

impl Driven {
    pub(super) fn new(domain: &Arc<Core>, index: usize, of: Fid) -> Self {
        Self { domain: Arc::downgrade(domain), index, of }
    }
}

impl Source for Driven {
    fn fid(&self) -> Fid {
        self.of
    }

    fn progress(&self) {
        if let Some(domain) = self.domain.upgrade() {
            // A domain that is of no more use says so where it is asked for something.
            let _ = domain.with(|state| {
                state.progress(self.index, now());
                state.tell_waiting(self.index);
                Ok(())
            });
        }
    }

    fn may_wait(&self) -> Option<Option<Duration>> {
        let Some(domain) = self.domain.upgrade() else { return Some(None) };
        let until = domain.with(|state| {
            let endpoint = state.endpoint(self.index)?.endpoint.as_mut();
            let Some(endpoint) = endpoint.filter(|endpoint| endpoint.failure().is_none()) else {
                return Ok(Some(None));
            };
            Ok(endpoint.may_wait().then(|| endpoint.next_deadline()))
        });
        until.unwrap_or(Some(None))
    }
}
