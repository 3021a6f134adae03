//! Checks on the checkers.

mod brute;
mod random;
mod world;
mod written;
