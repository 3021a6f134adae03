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

    let port = common::lasting_port();
    // The client asks again until the server listens.
    let script = format!(
        "ibv_rc_pingpong -p {port} -n 50 & until ibv_rc_pingpong -p {port} -n 50 127.0.0.1 2>/dev/null; do :; done; wait $!"
    );
    let output = hca(&["--", "sh", "-c", &script]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.matches("50 iters in").count(), 2, "{said}");

    let output = hca(&["--switch", "A1=perhaps", "--", "ibv_devices"]);
    assert_eq!(output.status.code(), Some(2), "an option that makes no sense");
}

#[test]
fn a_library_whose_path_cannot_stand_in_a_list_is_loaded_all_the_same() {
    let folder = std::env::temp_dir().join(format!("tagmatch hca:{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let library = folder.join("library.so");
    std::fs::copy(common::library(), &library).unwrap();
    let output = Command::new(tagmatch())
        .args(["hca", "--", "ibv_devices"])
        .env("TAGMATCH_HCA_LIB", &library)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("mlx5_0"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_program_that_goes_elsewhere_finds_the_card_though_the_temporary_directory_is_relative() {
    let folder = std::env::temp_dir().join(format!("tagmatch-relative-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("temporary")).unwrap();
    let output = Command::new(tagmatch())
        .args(["hca", "--", "sh", "-c", "cd / && ibv_devices"])
        .env("TAGMATCH_HCA_LIB", common::library())
        .env("TMPDIR", "temporary")
        .current_dir(&folder)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("mlx5_0"), "{said}");
}
