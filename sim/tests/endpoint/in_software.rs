//! The card carries messages.

#[path = "../../../tests/endpoint/scenarios.rs"]
mod scenarios;

mod over {
    pub(crate) use crate::card::plain as open;
}
