//! `tagmatch hca`, the command, with the real library and a real program.

#![allow(clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

mod common;

use std::path::PathBuf;
use std::process::Command;

/// The command line, built if it is not: it belongs to another package, whose programs cargo does not build for this
/// one's tests.
fn tagmatch() -> PathBuf {
    let library = common::library();
    let folder = library.ancestors().nth(2).unwrap();
    let profile = if folder.ends_with("release") { "release" } else { "test" };
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "-p", "tagmatch", "--bin", "tagmatch", "--profile", profile])
        .arg("--target-dir")
        .arg(folder.parent().unwrap())
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .status()
        .unwrap();
    assert!(built.success(), "the command line cannot be built");
    folder.join("tagmatch")
}

#[test]
fn programs_started_by_the_command_share_a_card() {
    let hca = |arguments: &[&str]| {
        let mut command = Command::new("timeout");
        command.arg("120").arg(tagmatch()).arg("hca").args(arguments);
        command.env("TAGMATCH_HCA_LIB", common::library()).output().unwrap()
    };
    let output = hca(&["--tags", "127", "--", "ibv_devinfo", "-v"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("max_num_tags:\t\t\t127"), "{said}");

    let port = common::free_port();
    // The client asks again until the server listens.
    let script = format!(
        "ibv_rc_pingpong -p {port} -n 50 & until ibv_rc_pingpong -p {port} -n 50 127.0.0.1 2>/dev/null; do :; done; wait $!"
    );
    let output = hca(&["--", "sh", "-c", &script]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.matches("50 iters in").count(), 2, "{said}");

    let output = hca(&["--switch", "A1=perhaps", "--", "ibv_devices"]);
    assert_eq!(output.status.code(), Some(125), "an option that makes no sense");
}
