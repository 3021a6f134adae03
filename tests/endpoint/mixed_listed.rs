//! Some peers share memory and others do not, also when they come again; with the soft TM-SRQ over all paths.

#[path = "scenarios.rs"]
mod scenarios;

mod over {
    pub(crate) use crate::over_shm::mixed_listed as open;
}
