//! `tagmatch pingpong` and `tagmatch msgrate` through the provider's file. It is here since it takes the built provider.

use crate::job::library;
use std::process::{Command, Stdio};

#[test]
fn this_project_is_measured_through_libfabric_over_both_media() {
    for (name, over) in [("pingpong", "shm"), ("pingpong", "tcp"), ("msgrate", "shm"), ("msgrate", "tcp")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tagmatch"));
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("FI_")) {
                command.env_remove(name);
            }
        }
        command.args([name, "--through", "libfabric", "--over", over, "--against", "tcp;ofi_rxm", "--json"]);
        command.args(["--iterations", "20", "--rounds", "2", "--bytes", "8,70000", "--depth", "5"]);
        let output = command.env("TAGMATCH_FI_LIB", library()).stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| panic!("tagmatch cannot be run: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{name} {over}: {said}");
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let what = json["contenders"][0]["what"].as_str().unwrap_or_default();
        let medium = if over == "shm" { "shared memory" } else { "tcp" };
        assert!(
            what.starts_with("libfabric ") && what.ends_with(&format!("provider tagmatch, {medium}")),
            "{what}"
        );
        assert_eq!(json["points"].as_array().map(Vec::len), Some(6));
        assert_eq!(json["points"][0]["ratios"][0]["against"], "tcp;ofi_rxm");
    }
}
