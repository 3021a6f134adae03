//! The oracle: two vectors, scanned in order. What every other matcher must agree with.
//!
//! Not here: speed. It is written to be read.
