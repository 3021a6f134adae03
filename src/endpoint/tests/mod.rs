//! Endpoints over a simulated network: scenarios by name, and random runs by seed against what must hold.

mod arriving;
mod behaviour;
mod random;
mod scenarios;
mod sim;
mod transport;
mod world;
