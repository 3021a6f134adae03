//! The model of a device that matches, over the card.

#[path = "../../../tests/endpoint/scenarios.rs"]
mod scenarios;

mod over {
    pub(crate) use crate::card::modelled as open;
}
