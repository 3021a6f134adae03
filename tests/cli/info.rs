//! What `tagmatch info` says: build, libraries and devices, and who matches for the provider.

use std::process::{Command, Stdio};

use super::{code, out, tagmatch};

#[test]
fn info_names_build_and_devices() {
    let output = tagmatch(&["info"]);
    assert_eq!(code(&output), Some(0));
    let text = out(&output);
    for word in ["tagmatch 0.", "commit", "compiler  rustc", "verbs     layouts", "devices:"] {
        assert!(text.contains(word), "{word} is missing: {text}");
    }
    let says_why = text.lines().any(|line| line.starts_with("  no verbs device: "));
    let shows_one = text.contains("\n  verbs ");
    assert_ne!(says_why, shows_one, "{text}");
    let output = tagmatch(&["info", "--json"]);
    let json: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(json["devices"][0]["limits"]["tags"], 1024, "{json}");
    assert_eq!(json["build"]["version"], env!("CARGO_PKG_VERSION"), "{json}");
    assert_eq!(json["features"], serde_json::json!(["cli", "traces", "libfabric"]), "{json}");
}

/// The packages that the tests need have all three.
#[cfg(target_os = "linux")]
#[test]
fn info_names_the_libraries_with_versions_and_files() {
    let output = tagmatch(&["info", "--json"]);
    let json: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}"));
    let text = out(&tagmatch(&["info"]));
    for (number, name) in ["libfabric", "libibverbs", "libmlx5"].into_iter().enumerate() {
        let library = &json["libraries"][number];
        assert_eq!(library["name"], name, "{json}");
        let file = library["file"].as_str().unwrap_or_else(|| panic!("no file: {library}"));
        assert!(std::path::Path::new(file).exists(), "{library}");
        let version = library["version"].as_str().unwrap_or_else(|| panic!("no version: {library}"));
        assert!(version.starts_with(|letter: char| letter.is_ascii_digit()), "{library}");
        assert!(text.contains(&format!("\n  {name} {version} ({file})\n")), "{name}: {text}");
    }
}

#[test]
fn info_says_who_matches_for_the_provider() {
    let said_with = |name: &str, value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tagmatch"));
        let output = command.arg("info").env(name, value).stdin(Stdio::null()).output();
        let text = out(&output.unwrap_or_else(|error| panic!("tagmatch cannot be run: {error}")));
        let line = text.lines().find_map(|line| line.trim().strip_prefix("tags are matched by: "));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    let said = |value: &str| said_with("FI_TAGMATCH_TM", value);
    assert_eq!(said("off"), "software");
    assert_eq!(said("soft"), "the soft TM-SRQ, a model of a device");
    assert!(said("auto").starts_with("software (there is no device that matches tags"), "{}", said("auto"));
    assert!(
        said("require").starts_with("nobody: FI_TAGMATCH_TM=require is refused: "),
        "{}",
        said("require")
    );
    assert!(said("often").starts_with("nobody: FI_TAGMATCH_TM=often is refused: it takes one of"));
    let nowhere = said_with("FI_TAGMATCH_IFACE", "no-such-interface");
    let refusal =
        "nobody: FI_TAGMATCH_IFACE=no-such-interface is refused: no interface that is up has that name";
    assert!(nowhere.starts_with(refusal), "{nowhere}");
}
