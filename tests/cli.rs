//! The command line as a person or a script meets it: output, complaints and exit codes.
#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]

#[path = "cli/info.rs"]
mod info;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn tagmatch(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tagmatch"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("tagmatch cannot be run: {error}"))
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn complaints(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A fresh folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli").join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path.display().to_string()
}

const GOOD: &str = "# format: fi-tagged-trace 1\n# app: two\npost 0 tag=1 ignore=0 src=any len=8\narrive 0 tag=1 src=0 len=8\nmatch 0 0\n";
const WRONG: &str =
    "# format: fi-tagged-trace 1\npost 0 tag=1 ignore=0 src=any len=8\narrive 0 tag=1 src=0 len=8\n";
const MALFORMED: &str = "# format: fi-tagged-trace 1\npost 0 tag=0x1 ignore=0 src=any len=8\n";

#[test]
fn replay_without_arguments_replays_the_recorded_traces_exactly() {
    let output = tagmatch(&["replay"]);
    assert_eq!(code(&output), Some(0), "{}", complaints(&output));
    let text = out(&output);
    assert!(text.contains("22 traces, 304329 events, "), "{text}");
    assert!(text.contains(" expected results checked, 0 disagreements\n"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("lulesh27-center.r13 ")), "{text}");
    assert_eq!(complaints(&output), "", "nothing but results when all is well and no terminal is there");
}

#[test]
fn replay_can_rewrite_the_layout_of_all_recorded_traces() {
    let output = tagmatch(&["replay", "--layout", "source-in-tag"]);
    assert_eq!(code(&output), Some(0), "{}", complaints(&output));
    assert!(out(&output).contains(" checked, 0 disagreements\n"));
}

#[test]
fn replay_prints_json_that_has_every_count() {
    let folder = folder("json");
    let good = file(&folder, "good.trace", GOOD);
    let output = tagmatch(&["replay", "--json", &good]);
    assert_eq!(code(&output), Some(0), "{}", complaints(&output));
    let json: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(json["events"], 2);
    assert_eq!(json["disagreements"], 0);
    assert_eq!(json["traces"][0]["trace"], "good.trace");
    assert_eq!(json["traces"][0]["posted_max"], 1);
    assert_eq!(json["traces"][0]["software"][0]["matcher"], "naive");
    assert!(json["traces"][0]["software"][0]["ns_per_event"].is_f64());
    assert!(json["build"]["commit"].is_string());
}

#[test]
fn a_disagreement_is_shown_and_ends_with_1() {
    let folder = folder("wrong");
    let wrong = file(&folder, "wrong.trace", WRONG);
    let output = tagmatch(&["replay", &wrong]);
    assert_eq!(code(&output), Some(1));
    let text = out(&output);
    assert!(
        text.contains(
            "wrong.trace, naive: line 3: arrive 0: expected no match, got receive 0 takes message 0\n"
        ),
        "{text}"
    );
}

#[test]
fn a_malformed_trace_is_named_with_its_line_and_ends_with_2_after_the_others_were_replayed() {
    let folder = folder("malformed");
    let bad = file(&folder, "bad.trace", MALFORMED);
    file(&folder, "good.trace", GOOD);
    let output = tagmatch(&["replay", &folder.display().to_string()]);
    assert_eq!(code(&output), Some(2));
    assert!(
        complaints(&output).starts_with(&format!("tagmatch: {bad}:2: expected tag= and ")),
        "{}",
        complaints(&output)
    );
    assert!(out(&output).contains("1 trace, 2 events, "), "{}", out(&output));
    assert!(out(&output).contains(", 1 input unusable\n"), "{}", out(&output));
}

#[test]
fn a_missing_file_is_named_and_ends_with_2() {
    let output = tagmatch(&["replay", "no/such.trace"]);
    assert_eq!(code(&output), Some(2));
    assert!(complaints(&output).contains("no/such.trace: cannot be read: No such file or directory"));
    assert_eq!(out(&output), "nothing was replayed: 1 input unusable\n");
}

#[test]
fn a_folder_without_traces_says_what_was_looked_for() {
    let folder = folder("empty");
    file(&folder, "notes.txt", "x");
    let output = tagmatch(&["replay", &folder.display().to_string()]);
    assert_eq!(code(&output), Some(2));
    assert!(complaints(&output).contains("no trace in this folder (looked for *.zst, *.gz and *.trace)"));
}

#[test]
fn a_folder_is_replayed_by_name() {
    let folder = folder("folder");
    file(&folder, "b.trace", GOOD);
    file(&folder, "a.trace", GOOD);
    let output = tagmatch(&["replay", &folder.display().to_string()]);
    assert_eq!(code(&output), Some(0), "{}", complaints(&output));
    let text = out(&output);
    let a = text.find("a.trace ");
    assert!(a.is_some() && a < text.find("b.trace "), "{text}");
}

#[test]
fn the_soft_device_matches_in_hardware_what_the_layout_allows() {
    let share = |layout: &str| {
        let folder = folder(layout);
        let text = GOOD.replace("app: two", "mpi: ofi_tag_full").replace("src=any", "src=0");
        let file = file(&folder, "directed.trace", &text);
        let output =
            tagmatch(&["replay", "--json", "--device", "soft", "--tags", "2", "--layout", layout, &file]);
        assert_eq!(code(&output), Some(0), "{}", complaints(&output));
        let json: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}"));
        json["traces"][0]["offload"].clone()
    };
    let recorded = share("recorded");
    assert_eq!((&recorded["matches"], &recorded["matches_in_hardware"]), (&1.into(), &0.into()));
    assert_eq!(recorded["reasons"][0]["reason"], "directed");
    let in_tag = share("source-in-tag");
    assert_eq!((&in_tag["matches"], &in_tag["matches_in_hardware"]), (&1.into(), &1.into()));
    assert_eq!((&in_tag["is_model"], &in_tag["tags"]), (&true.into(), &2.into()));
}

#[test]
fn every_receive_that_ended_was_matched_by_the_device_or_has_a_reason() {
    for (tags, layout) in [("1024", "source-in-tag"), ("2", "recorded")] {
        let output = tagmatch(&["replay", "--json", "--tags", tags, "--layout", layout]);
        assert_eq!(code(&output), Some(0), "{}", complaints(&output));
        let json: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}"));
        let rows = json["traces"].as_array().unwrap_or_else(|| panic!("{json}"));
        assert_eq!(rows.len(), 22);
        for row in rows {
            let offload = &row["offload"];
            let count = |value: &serde_json::Value| value.as_u64().unwrap_or_else(|| panic!("{row}"));
            let reasons = offload["reasons"].as_array().into_iter().flatten();
            let in_software: u64 = reasons.map(|reason| count(&reason["receives"])).sum();
            let ended = count(&offload["matches"]) + count(&offload["cancelled"]);
            assert_eq!(count(&offload["matches_in_hardware"]) + in_software, ended, "{row}");
        }
    }
}

#[test]
fn the_table_says_what_each_reason_in_it_means() {
    let output = tagmatch(&["replay", "--tags", "2"]);
    let text = out(&output);
    for line in [
        "device_full: it waited",
        "directed: it names",
        "message_was_first: it was posted",
        "--layout source-in-tag",
    ] {
        assert!(text.contains(line), "{line} is missing: {text}");
    }
}

#[test]
fn an_option_of_a_device_that_is_not_there_is_refused() {
    for (device, option, what) in [
        ("none", &["--tags", "5"][..], "--tags is of a device's list; --device is none"),
        ("none", &["--senders", "2"], "--senders is of verbs devices"),
        ("soft", &["--senders", "2"], "--senders is of verbs devices"),
        ("soft", &["--sender-process"], "--sender-process is of verbs devices"),
    ] {
        let output = tagmatch(&[&["replay", "--device", device], option].concat());
        assert_eq!((code(&output), out(&output)), (Some(2), String::new()), "{option:?}");
        assert!(complaints(&output).contains(what), "{}", complaints(&output));
    }
}

#[test]
fn the_model_takes_as_many_tags_as_there_can_be() {
    let file = file(&folder("tags"), "good.trace", GOOD);
    let output = tagmatch(&["replay", "--tags", "32767", &file]);
    assert_eq!(code(&output), Some(0), "{}", out(&output));
}

#[test]
fn what_cannot_be_written_is_no_success() {
    for arguments in [&["trace", "check", "--help"][..], &["--version"], &["completions", "bash"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tagmatch"));
        assert_eq!(command.args(arguments).stdout(full).status().unwrap().code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn no_tags_at_all_leads_to_software_alone() {
    let output = tagmatch(&["replay", "--tags", "0"]);
    assert_eq!(code(&output), Some(2));
    assert!(complaints(&output).contains("for software alone use --device none"), "{}", complaints(&output));
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn a_device_that_nobody_knows_is_repeated_with_what_there_could_be() {
    let (replay, bench) = ("none, soft, hca, verbs, or ", "none, soft, tcp, rxe, hca, verbs, or ");
    for (command, name, names) in
        [("replay", "sofft", replay), ("replay", "", replay), ("bench", "sofft", bench)]
    {
        let output = tagmatch(&[command, "--device", name]);
        assert_eq!(code(&output), Some(2));
        let said = complaints(&output);
        assert!(said.contains(&format!("--device {name:?}: it takes {names}")), "{said}");
        assert!(said.contains("\nWithout a card try --device hca"), "{said}");
    }
}

#[test]
fn a_layout_that_cannot_be_rewritten_says_why_and_what_to_do() {
    let folder = folder("layout");
    let good = file(&folder, "good.trace", GOOD);
    let output = tagmatch(&["replay", "--layout", "source-in-tag", &good]);
    assert_eq!(code(&output), Some(2));
    let text = complaints(&output);
    assert!(text.contains("expected the header \"mpi\" to name ofi_tag_full or ofi_tag_1"), "{text}");
    assert!(text.contains("try --layout recorded"), "{text}");
}

#[test]
fn an_unknown_option_is_named_and_ends_with_2() {
    let output = tagmatch(&["replay", "--speed", "9"]);
    assert_eq!(code(&output), Some(2));
    assert!(complaints(&output).contains("--speed"));
}

#[test]
fn an_option_out_of_range_is_named_with_its_range() {
    let output = tagmatch(&["replay", "--tags", "70000"]);
    assert_eq!(code(&output), Some(2));
    assert!(complaints(&output).contains("70000 is not in 1..=32767"), "{}", complaints(&output));
}

#[test]
fn no_command_shows_help_and_ends_with_2() {
    let output = tagmatch(&[]);
    assert_eq!(code(&output), Some(2));
    for command in ["replay", "bench", "info", "trace"] {
        assert!(complaints(&output).contains(command), "{}", complaints(&output));
    }
}

#[test]
fn trace_check_tells_good_wrong_and_malformed_apart() {
    let folder = folder("check");
    let good = file(&folder, "good", GOOD);
    let wrong = file(&folder, "wrong", WRONG);
    let bad = file(&folder, "bad", MALFORMED);

    let output = tagmatch(&["trace", "check", &good]);
    assert_eq!(code(&output), Some(0));
    assert_eq!(out(&output), format!("{good}: well-formed (plain, two), 2 results right\n"));

    let output = tagmatch(&["trace", "check", &wrong, &good]);
    assert_eq!(code(&output), Some(1));
    assert!(
        out(&output).contains(&format!("{wrong}:3: arrive 0: expected no match, got receive 0")),
        "{}",
        out(&output)
    );
    assert!(out(&output).contains("2 results right"), "{}", out(&output));

    let output = tagmatch(&["trace", "check", &wrong, &bad]);
    assert_eq!(code(&output), Some(2));
    assert!(complaints(&output).contains(&format!("{bad}:2: expected tag= and ")));
}

#[test]
fn trace_check_takes_folders_as_replay_does() {
    let folder = folder("check-folder");
    file(&folder, "b.trace", GOOD);
    file(&folder, "notes.txt", "x");
    let path = folder.display().to_string();
    let output = tagmatch(&["trace", "check", &path]);
    assert_eq!(code(&output), Some(0), "{}", complaints(&output));
    assert_eq!(out(&output), format!("{path}/b.trace: well-formed (plain, two), 2 results right\n"));
}

#[test]
fn trace_check_without_files_ends_with_2() {
    assert_eq!(code(&tagmatch(&["trace", "check"])), Some(2));
}

#[test]
fn bench_measures_what_is_asked_for() {
    let output = tagmatch(&["bench", "--device", "soft", "--json", "--only", "minife8"]);
    assert_eq!(code(&output), Some(0), "{}", complaints(&output));
    let json: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(1));
    assert_eq!(json["rows"][0]["name"], "minife8-busy.r2");
    assert!(json["rows"][0]["results"][0]["ns_per_event"].is_f64());
    assert!(json["instructions_counted"].is_boolean());
    let settings = &json["settings"];
    assert_eq!((&settings["tags"], &settings["layout"]), (&1024.into(), &"source-in-tag".into()));

    let output = tagmatch(&["bench", "--only", "no such thing"]);
    assert_eq!(code(&output), Some(2));
    assert!(complaints(&output).contains("no trace and no mix has this in its name"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tagmatch"))
        .arg("info")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{error}"));
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(code(&output), Some(0));
    assert_eq!(complaints(&output), "");
}

/// `tagmatch hca` with a library under the program that does nothing there.
fn hca(arguments: &[&str]) -> Output {
    let output = hca_command(arguments).output();
    output.unwrap_or_else(|error| panic!("tagmatch cannot be run: {error}"))
}

fn hca_command(arguments: &[&str]) -> Command {
    // Any library that every program has anyway.
    let library = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6"]
        .into_iter()
        .find(|path| Path::new(path).exists());
    let mut command = Command::new(env!("CARGO_BIN_EXE_tagmatch"));
    command.arg("hca").args(arguments).stdin(Stdio::null());
    command.env("TAGMATCH_HCA_LIB", library.unwrap_or_else(|| panic!("there is no libc")));
    command
}

#[test]
fn hca_ends_as_its_program_does() {
    assert_eq!(code(&hca(&["--", "true"])), Some(0));
    assert_eq!(code(&hca(&["--", "sh", "-c", "exit 7"])), Some(7));
    assert_eq!(code(&hca(&["--", "sh", "-c", "kill -9 $$"])), Some(128 + 9));
}

/// A program under `tagmatch hca` that says when it runs, and then lives as long as its input is open.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
struct Under {
    child: std::process::Child,
    said: std::io::BufReader<std::process::ChildStdout>,
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
impl Under {
    fn start(script: &str) -> Self {
        let mut child = hca_command(&["--", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("tagmatch cannot be run: {error}"));
        let said = child.stdout.take().unwrap_or_else(|| panic!("no output"));
        Self { child, said: std::io::BufReader::new(said) }
    }

    /// The next line; empty when nobody is left who could write one.
    fn line(&mut self) -> String {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut self.said, &mut line).unwrap_or_else(|error| panic!("{error}"));
        line.trim_end().to_owned()
    }

    fn kill(&self, signal: &str) {
        let killed = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(killed.is_ok_and(|status| status.success()), "{signal}");
    }

    fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap_or_else(|error| panic!("{error}")).code()
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn a_signal_to_hca_reaches_its_program_and_the_run_directory_is_removed() {
    // `read` ends at a signal that the shell has a trap for.
    let script = "trap 'echo told; exit 3' TERM; echo $TAGMATCH_HCA_RUN; read line; echo not told";
    let mut under = Under::start(script);
    let run = under.line();
    assert!(Path::new(&run).exists(), "{run}");
    under.kill("-TERM");
    assert_eq!((under.line(), under.code()), ("told".into(), Some(3)));
    assert!(!Path::new(&run).exists(), "{run} is left behind");

    let mut under = Under::start("echo runs; read line; echo not ended");
    assert_eq!(under.line(), "runs");
    under.kill("-TERM");
    assert_eq!((under.line(), under.code()), (String::new(), Some(128 + 15)));
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn a_program_does_not_outlive_hca_unless_it_wants_to_and_then_keeps_its_run_directory() {
    let mut under = Under::start("echo runs; read line; echo not ended");
    assert_eq!(under.line(), "runs");
    under.kill("-KILL");
    assert_eq!((under.line(), under.code()), (String::new(), None));

    let script = "trap '' TERM; echo $TAGMATCH_HCA_RUN; read line; test -d $TAGMATCH_HCA_RUN && echo there";
    let mut under = Under::start(script);
    let run = under.line();
    let mut input = under.child.stdin.take().unwrap_or_else(|| panic!("no input"));
    under.kill("-KILL");
    assert_eq!(under.code(), None);
    assert_eq!(code(&hca(&["--", "true"])), Some(0), "another run, which removes what is left of others");
    std::io::Write::write_all(&mut input, b"go on\n").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((under.line(), under.line()), ("there".into(), String::new()));
    assert_eq!(code(&hca(&["--", "true"])), Some(0));
    assert!(!Path::new(&run).exists(), "{run} is left behind");
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn a_program_that_goes_on_in_the_background_keeps_its_run_directory_until_it_ends() {
    let script = "exec 3<&0; echo $TAGMATCH_HCA_RUN; \
        { read line <&3; test -d $TAGMATCH_HCA_RUN && echo there; } &";
    let mut under = Under::start(script);
    let run = under.line();
    let mut input = under.child.stdin.take().unwrap_or_else(|| panic!("no input"));
    assert_eq!(under.code(), Some(0));
    assert_eq!(code(&hca(&["--", "true"])), Some(0), "another run, which removes what is left of others");
    std::io::Write::write_all(&mut input, b"go on\n").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((under.line(), under.line()), ("there".into(), String::new()));
    assert_eq!(code(&hca(&["--", "true"])), Some(0));
    assert!(!Path::new(&run).exists(), "{run} is left behind");
}

#[test]
fn hca_says_when_there_is_no_such_program() {
    let output = hca(&["--", "no-such-program"]);
    assert_eq!(code(&output), Some(127));
    assert!(complaints(&output).contains("no-such-program cannot be run"), "{}", complaints(&output));
    assert_eq!(code(&hca(&["--", "/"])), Some(126));
}

#[test]
fn hca_sets_the_device_up_for_its_program_and_cleans_up_after_it() {
    let script = "echo $LD_PRELOAD; echo $SYSFS_PATH; echo $TAGMATCH_HCA_RUN; echo $TAGMATCH_HCA_OPTIONS; \
        test -d $TAGMATCH_HCA_RUN && stat -c %a $TAGMATCH_HCA_RUN";
    let output = hca(&["--tags", "100", "--roce", "--switch", "A1=only-at-append", "--", "sh", "-c", script]);
    assert_eq!(code(&output), Some(0), "{}", complaints(&output));
    let text = out(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with("libc.so.6"), "{text}");
    assert_eq!(lines[1], format!("{}/sys", lines[2]));
    assert_eq!(lines[3], "tags=100,link=ethernet,A1=only-at-append");
    assert_eq!(lines[4], "700", "nobody else's");
    assert!(!Path::new(lines[2]).exists(), "the run directory is left behind");
}

#[test]
fn hca_without_its_library_says_how_to_make_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_tagmatch"))
        .args(["hca", "--", "true"])
        .env("TAGMATCH_HCA_LIB", "no-such-library.so")
        .output()
        .unwrap_or_else(|error| panic!("tagmatch cannot be run: {error}"));
    assert_eq!(code(&output), Some(125));
    assert!(
        complaints(&output).contains("TAGMATCH_HCA_LIB names no-such-library.so"),
        "{}",
        complaints(&output)
    );

    // Alone in a folder, so that nothing is beside it.
    let folder = folder("hca-alone");
    let alone = folder.join("tagmatch");
    fs::copy(env!("CARGO_BIN_EXE_tagmatch"), &alone).unwrap_or_else(|error| panic!("{error}"));
    let output = Command::new(alone)
        .args(["hca", "--", "true"])
        .env_remove("TAGMATCH_HCA_LIB")
        .output()
        .unwrap_or_else(|error| panic!("tagmatch cannot be run: {error}"));
    assert_eq!(code(&output), Some(125));
    assert!(complaints(&output).contains("cargo build -p tagmatch-hca"), "{}", complaints(&output));
}

#[test]
fn hca_needs_a_program() {
    assert_eq!(code(&hca(&[])), Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_switch_of_the_simulated_card_is_a_point_and_a_reading_and_no_other_option() {
    for wrong in ["drive=steps", "A1", "A0=x", "A20=x", "A1=only-at-append,link=ethernet"] {
        let output = tagmatch(&["hca", "--switch", wrong, "--", "true"]);
        assert_eq!(code(&output), Some(2), "{wrong}");
        assert!(complaints(&output).contains("A1=only-at-append"), "{}", complaints(&output));
    }
    let help = out(&tagmatch(&["hca", "--help"]));
    assert!(help.contains("A19=last-packet") && help.contains("2: the arguments cannot be used"), "{help}");
}

#[test]
fn a_name_with_control_characters_does_nothing_to_the_terminal() {
    let output = tagmatch(&["replay", "no\u{1b}[31msuch"]);
    assert_eq!(code(&output), Some(2));
    let said = complaints(&output);
    assert!(said.contains("no\\u{1b}[31msuch") && !said.contains('\u{1b}'), "{said:?}");
}
