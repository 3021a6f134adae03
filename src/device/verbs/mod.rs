//! Devices behind libibverbs.
//!
//! Not here: matching by the engine, and connections between endpoints.

#![allow(unsafe_code, reason = "this is where memory is shared with devices")]

pub mod address;
pub mod channel;
pub mod completion;
pub mod context;
pub mod device;
pub mod error;
pub mod launch;
pub mod ledger;
pub mod memory;
pub mod queue_pair;
pub mod receives;
pub mod simulated;
pub mod sys;
pub mod tag_matching;
pub mod transport;

pub use context::{DeviceEntry, devices};
pub use device::{HostMemory, TagMatching, VerbsConfig, VerbsDevice};
pub use error::{TagMatchingRefusal, VerbsError};
pub use simulated::SimulatedHca;
pub use tag_matching::TagMatchingSrq;
pub use transport::{VerbsTransport, VerbsTransportConfig};

/// How the layouts in [`sys`] were checked when this was built: words for `tagmatch info`.
pub const LAYOUTS: &str = env!("TAGMATCH_VERBS_LAYOUTS");
