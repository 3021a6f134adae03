//! The suite on real soft-RoCE devices, in emulated machines (docs/rxe.md): as they are, and with the description's
//! TM-SRQ over them, on a wire that loses nothing and on one that does.
//!
//! With `TAGMATCH_NIGHTLY` set, scripts that send more than 10,000 messages take part as well (`.ci/nightly`); between two
//! machines that lose packets only with `TAGMATCH_NIGHTLY=all`, since each of 65,536 messages in turn waits for its delay and
//! its losses there, which takes an hour and more.

#![allow(clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

use std::path::Path;

use tagmatch_rxe::{Backend, Options, Outcome, Transcript};

/// What is common to all of them: `lose` makes the wire lose packets and change their order.
const BEGIN: &str = r#"
set -e
lose() { for end in "$@"; do tc qdisc add dev $end root netem limit 10000 delay 2ms loss 1% duplicate 1% reorder 5%; done; }
"#;

/// The devices one by one, then from one to the other.
const TWO_DEVICES: &str = r#"
for device in $TAGMATCH_RXE_DEVICES; do $suite --device $device; done
set -- $TAGMATCH_RXE_GIDS
over() { $suite --device rxe1 --gid-index $2 --senders rxe0 --senders-gid-index $1 --require tm $extent; }
over $1 $2
lose $TAGMATCH_RXE_INTERFACES
over $1 $2
"#;

/// From one machine to the other.
const TWO_MACHINES: &str = r#"
gid=$TAGMATCH_RXE_GIDS
set -- $TAGMATCH_RXE_ADDRESSES
over() {
    if [ $TAGMATCH_RXE_HOST = 0 ]; then
        $suite --gid-index $gid --senders $2:$3 --require tm $extent
    else
        $suite --gid-index $gid --serve $1:$3
    fi
}
over $1 $2 7471
lose $TAGMATCH_RXE_INTERFACES
extent=$extent_of_lossy
over $1 $2 7472
"#;

/// Run a script of a shell, which must end well: all that was said.
fn run(hosts: u32, script: &str) -> String {
    let extent = |is_long| if is_long { "" } else { "--short" };
    let (extent, lossy) = (extent(is_nightly()), extent(is_all()));
    let suite = env!("CARGO_BIN_EXE_tagmatch-hw-tests");
    let script = format!("suite='{suite}' extent='{extent}' extent_of_lossy='{lossy}'{BEGIN}{script}");
    let options = Options {
        backend: Backend::Qemu,
        hosts,
        timeout: std::time::Duration::from_secs(if extent.is_empty() { 7200 } else { 1500 }),
        cache: Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("rxe")),
        install: true,
        ..Options::new(vec!["sh".into(), "-c".into(), script.into()])
    };
    let mut said = Transcript::default();
    let outcome = tagmatch_rxe::run(&options, &mut said).unwrap();
    assert_eq!(outcome, Outcome::Ended(0), "{}", said.0);
    said.0
}

/// How each run of the suite ended.
fn results(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.ends_with(" skipped")).collect()
}

fn is_nightly() -> bool {
    std::env::var_os("TAGMATCH_NIGHTLY").is_some()
}

fn is_all() -> bool {
    std::env::var_os("TAGMATCH_NIGHTLY").is_some_and(|extent| extent == "all")
}

/// All scripts, without those that send many messages unless these are asked for.
const fn all_scripts(with_long: bool) -> &'static str {
    if with_long { "155 passed, 0 failed, 0 skipped" } else { "151 passed, 0 failed, 0 skipped" }
}

#[test]
fn on_two_devices_all_passes_with_the_soft_list_and_without_it_what_needs_none() {
    let said = run(1, TWO_DEVICES);
    let alone = "23 passed, 0 failed, 156 skipped";
    let scripts = all_scripts(is_nightly());
    assert_eq!(results(&said), [alone, alone, scripts, scripts], "{said}");
    for reason in ["no tag matching: max_num_tags is 0", "no extended CQ with TM info"] {
        assert!(said.contains(&format!("skipped: {reason}")), "{said}");
    }
}

#[test]
fn between_two_machines_all_passes_with_the_soft_list_also_where_packets_are_lost_and_overtake_each_other() {
    let said = run(2, TWO_MACHINES);
    assert_eq!(results(&said), [all_scripts(is_nightly()), all_scripts(is_all())], "{said}");
}
