//! `tagmatch replay` and `tagmatch bench` on the simulated card: the command line runs itself again with the card
//! under it, and every line of the driver is the distribution's.

#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]

mod common;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The command line, built beside this test.
fn program() -> PathBuf {
    let library = common::library();
    let folder = library.parent().and_then(|deps| deps.parent());
    let program = folder.unwrap_or_else(|| panic!("{} is nowhere", library.display())).join("tagmatch");
    assert!(program.exists(), "{} was not built: cargo build -p tagmatch", program.display());
    program
}

fn tagmatch(arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "120"]).arg(program()).args(arguments);
    command.env("TAGMATCH_HCA_LIB", common::library()).stdin(Stdio::null());
    command.output().unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
}

fn trace(name: &str) -> String {
    format!("{}/../../traces/{name}.zst", env!("CARGO_MANIFEST_DIR"))
}

fn json(output: &Output) -> Value {
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{complaints}{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {complaints}"))
}

#[test]
fn replay_over_the_card_is_exact_is_labelled_a_model_and_matches_in_hardware() {
    let (first, second) = (trace("minife8-busy.r2"), trace("netpipe2-anysource.r1"));
    let replay = ["replay", "--device", "hca", "--json", "--layout", "source-in-tag", &first, &second];
    let json = json(&tagmatch(&replay));
    assert_eq!((&json["device"], &json["disagreements"]), (&"hca".into(), &0.into()));
    for row in json["traces"].as_array().into_iter().flatten() {
        let offload = &row["offload"];
        assert_eq!((&offload["is_model"], &offload["refusal"]), (&true.into(), &Value::Null));
        assert_eq!(
            (&offload["tags"], &json["tags"], &json["tags_asked"]),
            (&1024.into(), &1024.into(), &1024.into())
        );
        assert!(offload["label"].as_str().is_some_and(|label| label.contains("a model, not a card")));
        let count = |name: &str| offload[name].as_u64().unwrap_or_else(|| panic!("{name}: {row}"));
        assert!(count("matches_in_hardware") * 10 >= count("matches_of_posted") * 9, "{row}");
        assert!(count("matches_of_posted") > 0, "{row}");
    }
}

#[test]
fn senders_can_be_in_a_process_of_their_own() {
    let traces = [trace("minimd8-busy.r4"), trace("wildmix8.r4")];
    let mut replay = vec!["replay", "--device", "hca", "--json", "--sender-process", "--senders", "2"];
    replay.extend(traces.iter().map(String::as_str));
    let json = json(&tagmatch(&replay));
    assert_eq!(json["disagreements"], 0);
    assert_eq!(json["traces"].as_array().map(Vec::len), Some(2));
}

#[test]
fn bench_compares_software_with_the_card_and_says_that_it_is_a_model() {
    let json = json(&tagmatch(&["bench", "--device", "hca", "--json", "--only", "minife8"]));
    let results = &json["rows"][0]["results"];
    let names: Vec<_> = results.as_array().into_iter().flatten().map(|result| &result["matcher"]).collect();
    assert_eq!(names, ["naive", "matcher", "engine, no tags", "offload"]);
    assert_eq!((&results[1]["is_model"], &results[3]["is_model"]), (&false.into(), &true.into()));
    assert!(results[3]["share_in_hardware"].as_f64().is_some_and(|share| share > 0.3), "{results}");
    let text = tagmatch(&["bench", "--device", "hca", "--only", "minife8"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("No card was measured"));
}

#[test]
fn bench_measures_messages_matched_in_software_and_by_the_card_through_the_driver() {
    let run = json(&tagmatch(&["bench", "--device", "hca", "--json", "--only", "depth"]));
    let device = &run["devices"][0];
    assert_eq!(
        (&device["software"]["is_model"], &device["offload"]["is_model"]),
        (&true.into(), &true.into())
    );
    assert_eq!(device["offload"]["tags"], 1024, "{device}");
    assert!(
        device["versions"]["libmlx5"].is_string() && device["versions"]["firmware"].is_string(),
        "{device}"
    );
    let points: Vec<&Value> = device["points"].as_array().into_iter().flatten().collect();
    assert_eq!(points.len(), 14, "{device}");
    for point in points {
        let is_matched =
            point["is_offload"] == true && point["at"].as_u64().is_some_and(|depth| depth < 1024);
        let share = point["share_in_hardware"].as_f64();
        assert_eq!(share, Some(if is_matched { 1.0 } else { 0.0 }), "{point}");
        assert!(point["receiver_ns"].as_f64().is_some_and(|time| time > 0.0), "{point}");
    }
}

#[test]
fn without_the_card_the_program_says_how_to_get_it_and_ends_with_2() {
    let mut command = Command::new(program());
    command.args(["replay", "--device", "hca"]).env("TAGMATCH_HCA_LIB", "/nowhere/libtagmatch_hca.so");
    let output = command.output().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(output.status.code(), Some(2));
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(complaints.contains("TAGMATCH_HCA_LIB names /nowhere"), "{complaints}");
}

/// The command line on a simulated card that moves by itself.
fn on_card(card: &[&str], arguments: &[&str]) -> Output {
    let program = program().display().to_string();
    tagmatch(&[&["hca"], card, &["--", &program], arguments].concat())
}

#[test]
fn the_list_that_is_reported_is_the_one_that_the_device_was_opened_with() {
    let trace = trace("minife8-busy.r2");
    for (card, tags) in [(&["--tags", "3"][..], 3), (&["--tags", "0"], 0), (&["--roce"], 0)] {
        let replay = ["replay", "--device", "mlx5_0", "--layout", "source-in-tag", &trace];
        let json = json(&on_card(card, &[&replay[..], &["--json"]].concat()));
        let offload = &json["traces"][0]["offload"];
        assert_eq!((&json["tags"], &json["tags_asked"]), (&tags.into(), &1024.into()), "{card:?}");
        assert_eq!((&offload["tags"], offload["refusal"].is_null()), (&tags.into(), tags > 0), "{offload}");
        let does_not_match = offload["reasons"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|it| it["reason"] == "device_does_not_match");
        assert_eq!(does_not_match, tags == 0, "{offload}");
        let text = on_card(card, &replay);
        let text = String::from_utf8_lossy(&text.stdout);
        assert!(text.contains(&format!("not a card), {tags} tags (1024 asked for)\n")), "{text}");
    }
}

#[test]
fn a_simulated_card_passes_for_no_real_one_by_whatever_name() {
    let devices = json(&on_card(&[], &["info", "--json"]));
    assert_eq!(devices["devices"][1]["is_model"], true, "{devices}");
    assert_eq!(devices["devices"][1]["limits"]["tags"], 1023, "{devices}");
    let trace = trace("minife8-busy.r2");
    for device in ["verbs", "mlx5_0", "hca"] {
        let json = json(&on_card(&[], &["replay", "--device", device, "--json", &trace]));
        let offload = &json["traces"][0]["offload"];
        assert_eq!(offload["is_model"], true, "{device}");
        assert!(offload["label"].as_str().is_some_and(|label| label.contains("not a card")), "{offload}");
    }
    let bench = on_card(&[], &["bench", "--device", "mlx5_0", "--only", "minife8"]);
    let text = String::from_utf8_lossy(&bench.stdout);
    assert!(text.contains("No card was measured"), "{text}{}", String::from_utf8_lossy(&bench.stderr));
}

#[test]
fn a_card_whose_library_cannot_be_opened_is_no_wrong_match() {
    // A directory in which the loader finds a file of this name that is no library.
    let folder = std::env::temp_dir().join(format!("tagmatch-no-verbs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{error}"));
    let library = folder.join("libibverbs.so.1");
    std::fs::write(&library, "no library").unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new(program());
    command.args(["replay", "--device", "hca", &trace("minife8-busy.r2")]).stdin(Stdio::null());
    command.env("TAGMATCH_HCA_LIB", common::library()).env("LD_LIBRARY_PATH", &folder);
    let output = command.output();
    let _ = std::fs::remove_dir_all(&folder);
    let output = output.unwrap_or_else(|error| panic!("{error}"));
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{complaints}");
    assert!(complaints.contains("libibverbs.so.1 cannot be opened"), "{complaints}");
}

#[test]
fn a_verbs_device_that_is_not_there_is_named_with_those_that_are() {
    let output = tagmatch(&["hca", "--", &program().display().to_string(), "replay", "--device", "mlx5_7"]);
    assert_eq!(output.status.code(), Some(2));
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(complaints.contains("no verbs device of this name (there are: mlx5_0)"), "{complaints}");
}

#[test]
fn a_verbs_device_that_moves_by_itself_is_waited_for() {
    let traces = trace("minife8-busy.r2");
    let program = program().display().to_string();
    let replay =
        ["hca", "--", &program, "replay", "--device", "mlx5_0", "--json", "--layout", "source-in-tag"];
    let mut replay = replay.to_vec();
    replay.push(&traces);
    let json = json(&tagmatch(&replay));
    assert_eq!((&json["device"], &json["disagreements"]), (&"mlx5_0".into(), &0.into()));
    assert!(json["traces"][0]["offload"]["matches_in_hardware"].as_u64().is_some_and(|count| count > 0));
}
