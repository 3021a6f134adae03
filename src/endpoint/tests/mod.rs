//! Endpoints over a simulated network: scenarios by name, and random runs by seed against what must hold.

mod random;
mod scenarios;
mod sim;
mod transport;
mod world;
