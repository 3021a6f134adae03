//! The simulated HCA's kernel side: all that lies between the unmodified libibverbs and libmlx5 and the device model
//! of [`crate::hca`].
//!
//! ```text
//!  libibverbs, libmlx5 ── open stat access close write ioctl socket ── hooks ── registry
//!        │                                                                        │
//!        │ reads                 pollable descriptors ◄── events ◄── device ◄─────┘
//!        ▼                                                   │  ▲
//!      sysfs                                  commands ◄─────┘  └── drive (thread) or control (test)
//!                                                 │
//!                                                 ▼
//!                                          Hca (the model) ◄──► fabric ◄──► other processes
//! ```
//!
//! Two forms, one code. A binary that says [`hca_hooks!`](crate::hca_hooks) carries the whole HCA: a test makes a
//! device with [`HcaControl`], opens it by its name through libibverbs, and moves it on step by step. The library
//! `libtagmatch_hca.so` (package tagmatch-hca) says the same and is preloaded under any program.
//!
//! How it works, and why it can: docs/simulated-hca.md.

mod commands;
mod control;
mod device;
mod drive;
mod events;
mod fabric;
mod frame;
#[doc(hidden)]
pub mod hooks;
mod lazy;
mod memory;
mod mlx5;
mod options;
pub mod preload;
mod raw;
mod registry;
mod sysfs;
mod uverbs;

pub use control::HcaControl;
pub use device::Drive;
pub use memory::ProcessMemory;
