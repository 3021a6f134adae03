//! Runs of machines that are scripts.

use super::*;
use crate::tests::Notes;

/// A run of machines that are scripts: `$0` is the share, `$1` the number of the start, `$2` of the machine.
fn attended(script: &str, hosts: u32, limits: Limits) -> (Outcome, Notes) {
    let mut run = RunDirectory::new().unwrap();
    let starts = std::cell::Cell::new(0);
    let build = |place: &Place| {
        starts.set(starts.get() + 1);
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(&place.share);
        command.args([starts.get().to_string(), place.host.to_string()]);
        Ok(command)
    };
    let mut notes = Notes::default();
    let outcome = attend(&mut run, hosts, limits, &build, &mut notes).unwrap();
    (outcome, notes)
}

const LONG: Duration = Duration::from_secs(3600);
const LIMITS: Limits = Limits { boot: LONG, command: LONG, grace: LONG };

#[test]
fn the_status_is_that_from_inside_whatever_the_machine_ends_with() {
    let script = "cd $0; : >ready; echo hello >out; printf oops >err; echo 3 >rc.new; mv rc.new rc; exit 0";
    let (outcome, notes) = attended(script, 1, LIMITS);
    assert_eq!((outcome, notes.out.as_str(), notes.err.as_str()), (Outcome::Ended(3), "hello\n", "oops"));
    let (outcome, _) = attended("cd $0; : >ready; echo 0 >rc.new; mv rc.new rc; exit 1", 1, LIMITS);
    assert_eq!(outcome.code(), 0);
}

#[test]
fn a_machine_that_does_not_end_by_itself_is_ended_once_it_has_said_its_status() {
    let script = "cd $0; : >ready; echo 0 >rc.new; mv rc.new rc; exec sleep 3600";
    assert_eq!(attended(script, 1, LIMITS).0, Outcome::Ended(0));
}

#[test]
fn a_panic_is_told_from_a_command_that_failed_and_its_console_is_shown() {
    let script = "echo early; : >$0/ready; seq 100; echo 'Kernel panic - not syncing'; exit 0";
    let (outcome, notes) = attended(script, 1, LIMITS);
    assert_eq!((outcome.code(), outcome), (70, Outcome::Panicked));
    let text = notes.notes.join("\n");
    assert!(text.contains("Kernel panic") && text.contains("  52\n") && !text.contains("early"), "{text}");
    assert!(!text.contains("  51\n"), "50 lines");
}

#[test]
fn a_machine_that_did_not_come_up_is_started_once_more() {
    let script = "[ $1 = 2 ] || exit 0; cd $0; : >ready; echo 0 >rc.new; mv rc.new rc";
    let (outcome, notes) = attended(script, 1, LIMITS);
    assert_eq!(outcome, Outcome::Ended(0));
    assert!(notes.notes[0].contains("once more"), "{:?}", notes.notes);
    let (outcome, notes) = attended("echo 'no such device'; exit 1", 1, LIMITS);
    assert_eq!((outcome.code(), outcome), (71, Outcome::NoBoot));
    assert!(notes.notes.last().unwrap().contains("no such device"));
}

#[test]
fn a_machine_that_comes_up_too_slowly_did_not_come_up() {
    let limits = Limits { boot: Duration::ZERO, ..LIMITS };
    assert_eq!(attended("exec sleep 3600", 1, limits).0, Outcome::NoBoot);
}

#[test]
fn a_command_that_does_not_end_in_its_time_is_ended() {
    let limits = Limits { command: Duration::ZERO, ..LIMITS };
    let (outcome, notes) = attended("echo busy; : >$0/ready; exec sleep 3600", 1, limits);
    assert_eq!((outcome.code(), outcome), (124, Outcome::TimedOut));
    assert!(notes.notes[0].contains("busy"), "{:?}", notes.notes);
}

#[test]
fn devices_that_cannot_be_made_are_an_end_of_their_own() {
    let (outcome, _) =
        attended("cd $0; : >ready; echo no rxe >setup.log; echo setup >rc; sleep 3600", 1, LIMITS);
    assert_eq!((outcome.code(), outcome), (72, Outcome::NoDevices("no rxe".into())));
}

#[test]
fn of_two_machines_both_must_end_and_the_first_failure_counts() {
    let end = "echo $code >rc.new; mv rc.new rc";
    let script = format!("cd $0; : >ready; echo $2 >out; code=$(($2 * 5)); {end}");
    let (outcome, notes) = attended(&script, 2, LIMITS);
    assert_eq!(outcome, Outcome::Ended(5));
    assert!(notes.out.contains("[0] 0\n") && notes.out.contains("[1] 1\n"), "{}", notes.out);
    // One fails, the other one would wait for ever.
    let script = format!("cd $0; : >ready; [ $2 = 1 ] || exec sleep 3600; code=4; {end}");
    let (outcome, _) = attended(&script, 2, Limits { grace: Duration::ZERO, ..LIMITS });
    assert_eq!(outcome, Outcome::Ended(4));
}

#[test]
fn a_command_that_failed_shows_what_the_kernel_said_meanwhile_and_one_that_did_not_nothing() {
    // The second line comes when the session is known to have begun: its output is read from then on.
    let script = |code| {
        format!(
            "echo before; cd $0; : >ready; until [ -e seen ]; do sleep 0.05; done; echo oops; echo '[1.0] sysrq: Power Off'; \
             echo {code} >rc.new; mv rc.new rc"
        )
    };
    let notes = |code| {
        let mut run = RunDirectory::new().unwrap();
        let build = |place: &Place| {
            let mut command = Command::new("sh");
            command.arg("-c").arg(script(code)).arg(&place.share);
            fs::write(place.share.join("out"), "begun\n").unwrap();
            Ok(command)
        };
        let mut notes = Notes { seen: Some(run.path().join("host0/seen")), ..Notes::default() };
        attend(&mut run, 1, LIMITS, &build, &mut notes).unwrap();
        notes.notes
    };
    assert_eq!(notes(0), [""; 0]);
    assert_eq!(notes(3), ["the last lines of the console:\n  oops"]);
}
