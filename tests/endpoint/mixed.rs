//! Some peers share memory and others do not, also when they come again.

#[path = "scenarios.rs"]
mod scenarios;

mod over {
    pub(crate) use crate::over_shm::mixed as open;
}
