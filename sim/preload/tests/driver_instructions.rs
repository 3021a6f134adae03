//! Instructions of an offloaded receive through the real driver (benches/driver.rs) against their limit.

#[path = "../../../tests/gate/mod.rs"]
mod gate;

use std::process::ExitCode;

fn main() -> ExitCode {
    gate::run(TEST, &["bench", "-p", "tagmatch-hca", "--bench", "driver"], env!("CARGO_MANIFEST_DIR"))
}

const TEST: &str = "an_offloaded_receive_costs_no_more_than_its_limit";
