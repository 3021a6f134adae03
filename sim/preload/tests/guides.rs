//! Commands of the guides that need the simulated card, or the suite for verbs devices, run as the guides say.

#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

mod common;
#[path = "../../../tests/common/guides.rs"]
mod guides;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

#[test]
fn commands_marked_so_run_on_the_simulated_card_as_the_guides_say() {
    let library = common::library();
    let built = library.ancestors().nth(2).unwrap();
    for program in ["tagmatch", "tagmatch-hw-tests"] {
        let path = built.join(program);
        assert!(path.exists(), "{} was not built: cargo build -p {program}", path.display());
    }
    let folder = guides::stage(&built.join("tagmatch"), PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    symlink(built.join("tagmatch-hw-tests"), folder.join("target/release/tagmatch-hw-tests")).unwrap();
    let environment: [(&str, &Path); 1] = [("TAGMATCH_HCA_LIB", &library)];
    let lines = guides::lines_to_run(guides::needs_card);
    assert!(lines.len() > 5, "{lines:?}");
    for (guide, line) in lines {
        guides::run(&guide, &line, &folder, &environment);
    }
}
