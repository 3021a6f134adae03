//! A reliable datagram endpoint (`FI_EP_RDM`) over transports that have connections.
//!
//! ```text
//!  send  receive  peek  claim  discard  cancel          completions
//!    │       │                                               ▲
//!    ▼       ▼                                               │
//!  addresses ── peers ── connections ── credits ── operations in progress
//!                 │                        │
//!                 │          two engines: messages with a tag, and without
//!                 ▼                        ▼
//!            transports (Outgoing ↓  Ear ↑): self, tcp, verbs, …
//! ```
//!
//! Sans-IO but for the transports it is given, and without a clock: whoever drives it says what time it is. Not here:
//! threads and locks (`domain`), and which shape users' calls have (`provider`, `capi`).

#![forbid(unsafe_code)]

mod interface;

pub use interface::{
    Address, Completed, Completion, EndpointError, Failure, Level, Message, Post, Posted, Send, SendRefused,
    Sent, Space,
};
