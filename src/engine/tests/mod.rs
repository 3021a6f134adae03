//! The engine against devices played by hand: each rule of docs/ordering.md, and every kind of bad event.

mod adding;
mod attack;
mod bad;
mod counted;
mod hand;
mod named;
mod placing;
mod quick;
mod rules;
mod software;
