//! Endpoints over a simulated network: scenarios by name, and random runs by seed against what must hold.

mod arriving;
mod awaited;
mod behaviour;
mod failing;
mod going;
mod lifetime;
mod linking;
mod listed;
mod operating;
mod placing;
mod random;
mod remote;
mod scenarios;
mod sim;
mod transport;
mod unreadable;
mod world;
