//! The instruction counts of benches/instructions.rs against benches/record/instructions.json.

mod gate;

use std::process::ExitCode;

fn main() -> ExitCode {
    gate::run(TEST, &["bench", "--bench", "instructions"], env!("CARGO_MANIFEST_DIR"))
}

const TEST: &str = "main_paths_need_no_more_instructions_than_recorded";
