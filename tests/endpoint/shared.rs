//! Peers share memory.

#[path = "scenarios.rs"]
mod scenarios;

mod over {
    pub(crate) use crate::over_shm::shared as open;
}
