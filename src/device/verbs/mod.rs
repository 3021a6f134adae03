//! Devices behind libibverbs.
//!
//! Not here: matching by the engine, and connections between endpoints.

#![allow(unsafe_code, reason = "this is where memory is shared with devices")]

pub mod sys;

/// How the layouts in [`sys`] were checked when this was built: words for `tagmatch info`.
pub const LAYOUTS: &str = env!("TAGMATCH_VERBS_LAYOUTS");
