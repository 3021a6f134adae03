//! The world around the engine: checker, exhaustive model, seeded schedules.
//!
//! Nothing here is part of the library that users get.

pub mod checker;
pub mod driver;
pub mod explore;
pub mod free;
pub mod hca;
pub mod hca_abi;
pub mod schedules;
pub mod scopes;
pub mod world;
