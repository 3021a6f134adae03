//! Real machines with real soft-RoCE devices, emulated by QEMU. Those that are a process: `tests/uml.rs`.

use crate::bench::cache;
use crate::doing::{run_on_two_machines, run_with_two_devices};

#[test]
fn a_command_runs_with_two_devices_and_leaves_what_is_wanted() {
    run_with_two_devices("qemu", &cache());
}

#[test]
fn two_machines_of_an_ordinary_user_reach_each_other_over_a_wire_that_loses_packets() {
    run_on_two_machines("qemu", &cache());
}
