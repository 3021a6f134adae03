//! The card matches.

#[path = "../../../tests/endpoint/scenarios.rs"]
mod scenarios;

mod over {
    pub(crate) use crate::card::matching as open;
}
