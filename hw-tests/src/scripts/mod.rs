//! The scripts: every row of TM-CONTRACT 3 and 5 to 13 that a program can see.
//!
//! Rows that a program must never bring about are not here: DEL of a handle that is not in use (6), more than 126
//! DELs of one handle under way (8.2), a full CQ (12), operations posted inside a poll while the command queue is
//! full (6.2; `--by-hand deadlock`).

mod assumptions;
mod creation;
mod deletes;
mod flows;
mod handles;
mod operations;
mod phase;
mod races;
mod slots;
mod sync_request;
mod teardown;

use crate::script::Script;

/// All of them, by section.
#[must_use]
pub fn all() -> Vec<Script> {
    let mut scripts = Vec::new();
    scripts.extend(creation::scripts());
    scripts.extend(operations::scripts());
    scripts.extend(slots::scripts());
    scripts.extend(handles::scripts());
    scripts.extend(deletes::scripts());
    scripts.extend(flows::scripts());
    scripts.extend(phase::scripts());
    scripts.extend(sync_request::scripts());
    scripts.extend(races::scripts());
    scripts.extend(assumptions::scripts());
    scripts.extend(teardown::scripts());
    scripts
}

/// Not among them: posts an operation inside a poll while no slot is free, on which libmlx5 hangs (6.2). It ends only
/// on the description; with `MLX5_SINGLE_THREADED=1` the driver aborts instead.
#[must_use]
pub fn deadlock() -> Script {
    slots::full_inside_a_poll()
}
