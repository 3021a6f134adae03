//! The engine against devices played by hand: each rule of docs/ordering.md, and every kind of bad event.

mod attack;
mod bad;
mod hand;
mod placing;
mod quick;
mod rules;
mod software;
