//! What is mpirun's own on its command line, and what programs are handed.

use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn handed(kind: Kind, line: &str) -> String {
    let all = handing_on(kind, &["A", "B"], &words(line));
    all.iter().filter_map(|word| word.to_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_program_is_handed_what_it_does_not_name_itself() {
    for kind in [Kind::OpenMpi4, Kind::OpenMpi5] {
        assert_eq!(handed(kind, "-n 1 a"), "-x A -x B -n 1 a");
        assert_eq!(
            handed(kind, "-n 1 a x : -x B=2 -n 1 b -x A : c"),
            "-x A -x B -n 1 a x : -x A -x B=2 -n 1 b -x A : -x A -x B c"
        );
        assert_eq!(handed(kind, ""), "-x A -x B");
    }
}

#[test]
fn an_option_of_any_kind_hides_nothing_that_stands_behind_it() {
    let before = [
        "--mca btl self",
        "--prepend-env A[:] /b",
        "--forward-signals USR1",
        "--preload-files f",
        "-cf f",
        "--report-uri -",
        "--timeout -1",
        "--map-by=core",
        "--display-comm",
        "-v -q --tag-output",
        "--soft",
        "--not-known-yet value",
        "--not-known-yet --not-known-either",
        "--xml-file f -am g",
    ];
    for option in before {
        for kind in [Kind::OpenMpi4, Kind::OpenMpi5] {
            let line = format!("{option} -x A=1 -n 3 a -x B=1 -n 5");
            assert_eq!(handed(kind, &line), format!("-x B {line}"), "{kind:?}");
            assert_eq!(processes(kind, &words(&line)), 3, "{kind:?}: {line}");
        }
    }
}

#[test]
fn an_option_without_a_value_does_not_take_the_programs_name_for_one() {
    for option in FLAGS {
        let line = format!("--{option} a -x A");
        for kind in [Kind::OpenMpi4, Kind::OpenMpi5] {
            assert_eq!(handed(kind, &line), format!("-x A -x B {line}"));
        }
    }
    assert_eq!(handed(Kind::OpenMpi4, "-dvm a -x A"), "-x A -x B -dvm a -x A");
    assert_eq!(handed(Kind::OpenMpi5, "--dvm x -x A a"), "-x B --dvm x -x A a");
}

#[test]
fn processes_are_counted_over_all_programs_however_they_are_asked_for() {
    let count = |line: &str| processes(Kind::OpenMpi5, &words(line));
    assert_eq!(count("-n 2 a -n 9 : --np=3 b : -c 1 c : -np 4 d : e"), 10);
    assert_eq!(count("a -n 9"), 0);
    assert_eq!(count("-n x a"), 0);
}

#[test]
fn options_are_seen_with_and_without_a_value_but_not_behind_a_program() {
    let has = |line: &str| has(Kind::OpenMpi4, &words(line), &["--host", "-H"]);
    assert!(has("--host=a b") && has("-n 1 a : -H b c"));
    assert!(!has("a --host b") && !has("--hostfile f a"));
}
