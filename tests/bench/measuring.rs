//! What is measured, and as what it is shown.

use super::{File, array, bench, complaints, json, measured, out};
use serde_json::Value;
use std::process::{Command, Stdio};

fn points<'a>(device: &'a Value, curve: &str, is_offload: bool) -> Vec<&'a Value> {
    let is_of = |point: &&Value| point["curve"] == curve && point["is_offload"] == is_offload;
    array(&device["points"]).iter().filter(is_of).collect()
}

#[test]
fn every_device_is_measured_in_software_and_offloaded_and_says_what_is_a_model() {
    let devices = array(&measured()["devices"]);
    let names: Vec<_> = devices.iter().map(|device| &device["device"]).collect();
    assert_eq!(names, ["soft", "tcp"]);
    for device in devices {
        assert_eq!(device["software"]["is_model"], false, "{device}");
        assert_eq!(
            (&device["offload"]["is_model"], &device["offload"]["tags"]),
            (&true.into(), &1024.into())
        );
        for is_offload in [false, true] {
            let depths: Vec<u64> = points(device, "depth", is_offload)
                .iter()
                .map(|point| point["at"].as_u64().unwrap())
                .collect();
            assert_eq!(depths, [0, 16, 64, 256, 1024, 4096, 8192]);
        }
        let figures = ["per_second", "receiver_ns", "sender_ns"];
        for point in array(&device["points"]) {
            assert!(
                figures.iter().all(|figure| point[*figure].as_f64().is_some_and(|figure| figure > 0.0)),
                "{point}"
            );
            assert!(point["messages"].as_u64().is_some_and(|messages| messages > 0), "{point}");
        }
    }
}

#[test]
fn what_the_list_matches_is_what_it_can_and_the_rest_has_its_reason() {
    for device in array(&measured()["devices"]) {
        for point in array(&device["points"]).iter().filter(|point| point["is_offload"] == true) {
            let share = point["share_in_hardware"].as_f64().unwrap();
            let (curve, at) = (point["curve"].as_str().unwrap(), point["at"].as_u64().unwrap());
            let expected = match (curve, at) {
                // Older receives that fill the list leave no room.
                ("depth", 1024..) => 0.0,
                ("depth", _) | ("list", 1024..) => 1.0,
                #[expect(clippy::cast_precision_loss, reason = "a share of a hundred")]
                ("unexpected", late) => 1.0 - late as f64 / 100.0,
                // It is filled again as entries are used.
                ("list", _) => continue,
                other => panic!("{other:?}"),
            };
            assert!((share - expected).abs() < 0.001, "{point}");
            let reasons: u64 =
                point["reasons"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
            let messages = point["messages"].as_f64().unwrap();
            #[expect(clippy::cast_precision_loss, reason = "a count of one run")]
            let explained = (reasons as f64 - (1.0 - share) * messages).abs();
            assert!(explained < 1.0, "each receive that the list did not match has a reason: {point}");
        }
    }
}

#[test]
fn software_alone_is_a_device_too() {
    let run = json(&bench(&["--device", "none", "--json", "--only", "wildcards"]));
    let device = &run["devices"][0];
    assert_eq!((&device["device"], &device["offload"]), (&"none".into(), &Value::Null));
    assert_eq!(points(device, "wildcards", false).len(), 5);
    assert_eq!(points(device, "wildcards", true).len(), 0);
}

#[test]
fn a_run_comes_back_from_its_file_as_it_was_and_is_shown_as_tables() {
    let file = File::of("back", measured());
    let again = json(&bench(&["--from", file.path(), "--json"]));
    assert_eq!(&again, measured());
    let text = out(&bench(&["--from", file.path()]));
    for line in [
        "machine   ",
        "  offload: the soft TM-SRQ matches (a model, not a card), 1024 tags\n",
        "older receives in the list: 8192 ",
        "messages before their receive: 75 % ",
        "minife8-busy.r2 ",
        "soft: offload",
        "message_was_first: it was posted when its message was there already",
        "No card was measured where it says model",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let instructions = if measured()["instructions_counted"] == true {
        "instructions"
    } else {
        "Instructions: this machine"
    };
    assert!(text.contains(instructions), "{text}");
}

#[test]
fn a_pipe_sees_no_progress() {
    let output = bench(&["--device", "none", "--only", "minife8"]);
    assert_eq!((output.status.code(), complaints(&output)), (Some(0), String::new()));
}

#[test]
fn without_anything_but_this_program_the_rest_is_named_with_what_it_takes() {
    // Neither programs nor the card's library, and no kernel that was made before.
    let nowhere = env!("CARGO_TARGET_TMPDIR");
    let output = Command::new(env!("CARGO_BIN_EXE_tagmatch"))
        .args(["bench", "--seconds", "4", "--only", "size", "--json"])
        .env("PATH", "")
        .env("TAGMATCH_HCA_LIB", "/nowhere/libtagmatch_hca.so")
        .env("XDG_CACHE_HOME", nowhere)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let run = json(&output);
    let names: Vec<_> = array(&run["devices"]).iter().map(|device| &device["device"]).collect();
    assert!(names.starts_with(&[&"soft".into(), &"tcp".into()]), "{run}");
    let why = |name: &str| {
        let absent = array(&run["absent"]).iter().find(|absent| absent["device"] == name);
        absent.map(|absent| absent["why"].to_string()).unwrap_or_default()
    };
    let hca = why("hca");
    assert!(hca.contains("/nowhere") && hca.contains("apt-get install ibverbs-providers"), "{hca}");
    // A machine that has soft RoCE itself needs nothing.
    let has_devices =
        std::fs::read_dir("/sys/class/infiniband").is_ok_and(|mut devices| devices.next().is_some());
    let rxe = why("rxe");
    assert!(has_devices || rxe.contains("qemu-system-x86") && rxe.contains("apt-get install"), "{rxe}");
}

#[test]
fn a_device_that_is_asked_for_and_is_not_there_is_no_run() {
    let output = bench(&["--device", "tcp,no_such_device", "--only", "unexpected messages"]);
    assert_eq!((output.status.code(), out(&output)), (Some(2), String::new()));
    let refused = "--device \"no_such_device\": it takes none, soft, tcp, rxe, hca, verbs, or ";
    assert!(complaints(&output).contains(refused), "{}", complaints(&output));
    let output = bench(&["--device", "none", "--html", "/nowhere/page.html"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaints(&output).contains("--html: the page cannot be written"), "{}", complaints(&output));
}
