//! Peers share memory, with the soft TM-SRQ over all paths.

#[path = "scenarios.rs"]
mod scenarios;

mod over {
    pub(crate) use crate::over_shm::listed as open;
}
