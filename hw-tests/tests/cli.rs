//! The command line: what it runs, what it writes, and its exit codes.
#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]

mod common;

use tagmatch_hw_tests::cli;
use tagmatch_sim::hca::HcaConfig;
use tagmatch_sim::hca_abi::{Drive, HcaControl};

tagmatch_sim::hca_hooks!();

/// Exit code, what was written, and the complaints.
fn run(arguments: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = cli::run([&["tagmatch-hw-tests"], arguments].concat(), &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).unwrap_or_else(|error| panic!("{error}"));
    (code, text(out), text(err))
}

fn card(config: HcaConfig) -> HcaControl {
    HcaControl::new(config, Drive::Thread).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_description_passes_everything_and_the_last_line_counts() {
    let (code, out, err) = run(&["--device", "soft"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let last = out.lines().last().unwrap_or_default();
    assert!(last.ends_with(" passed, 0 failed, 0 skipped"), "{last}");
    assert_eq!(
        out.lines().filter(|line| line.starts_with("passed ")).count().to_string(),
        last.split(' ').next().unwrap_or_default()
    );
}

#[test]
fn a_card_is_asked_what_it_can_do_and_what_does_not_fit_is_named() {
    let card = card(HcaConfig::default());
    let (code, out, err) = run(&["--device", card.name(), "--require", "tm", "--filter", "flow."]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("max_num_tags: 2047"), "{out}");
    assert!(out.contains("depends on A10, which is not known of a card"), "{out}");
    assert!(out.lines().last().is_some_and(|line| line.contains(" passed, 0 failed, ")), "{out}");
}

#[test]
fn a_card_without_tag_matching_runs_the_rest_and_fails_where_it_is_required() {
    let card = card(HcaConfig { log_tag_list: 0, ..HcaConfig::default() });
    let (code, out, err) = run(&["--device", card.name(), "--filter", "r"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("skipped: no tag matching: max_num_tags is 0"), "{out}");
    assert!(out.contains("passed  rc.send_arrives_with_its_bytes"), "{out}");
    let (code, out, _) = run(&["--device", card.name(), "--require", "tm", "--filter", "phase."]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("required, but no tag matching"), "{out}");
}

#[test]
fn a_device_that_is_not_there_is_named_with_those_that_are() {
    let card = card(HcaConfig::default());
    let (code, out, err) = run(&["--device", "mlx5_none"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("no verbs device \"mlx5_none\"") && err.contains(card.name()), "{err}");
    let (code, _, err) = run(&["--device", card.name(), "--port", "2"]);
    assert_eq!(code, 2);
    assert!(err.contains("has no port 2"), "{err}");
    let (code, _, err) = run(&["--device", card.name(), "--gid-index", "7"]);
    assert_eq!(code, 2);
    assert!(err.contains("has no GID 7"), "{err}");
}

#[test]
fn a_filter_that_takes_nothing_is_no_success() {
    let (code, out, _) = run(&["--device", "soft", "--filter", "nothing.of.the.kind"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.ends_with("0 passed, 0 failed, 0 skipped\n"), "{out}");
    assert!(out.contains("no check has in its name \"nothing.of.the.kind\"; --list names them all"), "{out}");
    let (code, out, _) = run(&["--device", "soft", "--probe", "--filter", "A"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("no probe is named \"A\"; --list names them all"), "{out}");
}

#[test]
fn where_ethernet_refuses_tag_matching_it_is_skipped_with_that_reason_and_fails_only_if_required() {
    let card = card(HcaConfig::default().on_ethernet());
    let (code, out, err) = run(&["--device", card.name()]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("is refused with errno 22, as expected there (A15)"), "{out}");
    assert!(out.lines().last().is_some_and(|line| line.contains(" passed, 0 failed, ")), "{out}");
    let (code, out, _) = run(&["--device", card.name(), "--require", "tm", "--filter", "phase."]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("required, but no tag matching on this port"), "{out}");
}

#[test]
fn on_ethernet_the_probe_of_the_refusal_answers_and_the_others_are_skipped() {
    let card = card(HcaConfig::default().on_ethernet());
    let (code, out, _) = run(&["--device", card.name(), "--probe"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("A15 = refused"), "{out}");
    assert!(out.lines().last().is_some_and(|line| line.starts_with("1 passed, 0 failed, ")), "{out}");
}

#[test]
fn options_of_verbs_devices_are_refused_on_the_description() {
    for option in [["--by-hand", "deadlock"], ["--port", "1"], ["--gid-index", "0"], ["--quiet", "5"]] {
        let (code, out, err) = run(&[["--device", "soft"], option].concat());
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(err.contains(&format!("{} is for verbs devices", option[0])), "{err}");
    }
    let (code, _, err) = run(&["--by-hand", "deadlock", "--probe"]);
    assert_eq!(code, 2);
    assert!(err.contains("cannot be used with"), "{err}");
}

#[test]
fn a_reader_that_goes_away_ends_it_without_a_complaint() {
    struct Gone;
    impl std::io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut err = Vec::new();
    assert_eq!(cli::run(["tagmatch-hw-tests", "--list"], &mut Gone, &mut err), 1);
    assert_eq!(err, b"");
}

#[test]
fn as_json_each_line_is_an_object() {
    let (code, out, _) = run(&["--device", "soft", "--json", "--filter", "handles."]);
    assert_eq!(code, 0, "{out}");
    let lines: Vec<serde_json::Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect();
    let last = lines.last().unwrap_or_else(|| panic!("nothing"));
    assert_eq!(last["failed"], 0);
    assert_eq!(last["passed"], lines.iter().filter(|line| line["verdict"] == "passed").count());
}

#[test]
fn probes_say_what_they_found_and_what_it_means() {
    let card = card(HcaConfig::default());
    let (code, out, _) = run(&["--device", card.name(), "--probe", "--filter", "A7"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("A7 = never-matches: never (as assumed)"), "{out}");
    let (code, out, _) = run(&["--device", card.name(), "--probe", "--json", "--filter", "A11"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains(r#""reading":"zero""#), "{out}");
}

#[test]
fn the_list_names_devices_checks_and_probes() {
    let card = card(HcaConfig::default());
    let (code, out, _) = run(&["--list"]);
    assert_eq!(code, 0);
    for line in
        [format!("device {}\n", card.name()), "device soft\n".into(), "check rc.".into(), "probe A1: ".into()]
    {
        assert!(out.contains(&line), "{line} is not in\n{out}");
    }
}
