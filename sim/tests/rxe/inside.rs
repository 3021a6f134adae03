//! Tests that need soft-RoCE devices: all of this binary's run in one emulated machine, and each says outside what became
//! of it there. Those named `lossy` run once the others are done, on a cable that loses packets, then those named
//! `faults`, one by one. Those named `machines` each run in two machines at once.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use tagmatch_rxe::{Backend, Options, Outcome, Relay as _, Transcript};

/// A device and the address that goes with it.
#[derive(Clone, Debug)]
pub(crate) struct RoceDevice {
    pub(crate) name: String,
    pub(crate) address: std::net::IpAddr,
}

/// The devices, if this is inside.
pub(crate) fn devices() -> Option<Vec<RoceDevice>> {
    let names = std::env::var("TAGMATCH_RXE_DEVICES").ok()?;
    let addresses = std::env::var("TAGMATCH_RXE_ADDRESSES").unwrap();
    let both = names.split_whitespace().zip(addresses.split_whitespace());
    Some(both.map(|(name, at)| RoceDevice { name: name.into(), address: at.parse().unwrap() }).collect())
}

/// Run a test of this name inside; outside, ask what became of it.
pub(crate) fn inside(name: &str, test: impl FnOnce(&[RoceDevice])) {
    if let Some(devices) = devices() {
        return test(&devices);
    }
    static SAID: OnceLock<String> = OnceLock::new();
    let said = SAID.get_or_init(run_all);
    let name = name.split_once("::").map_or(name, |(_, name)| name);
    let passed = format!("test {name} ... ok");
    assert!(said.lines().any(|line| line == passed), "{}", of(said, name));
    let own = said.lines().skip_while(|line| *line != format!("---- {name} stdout ----")).skip(1);
    own.take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with(TIMES))
        .for_each(|line| println!("{line}"));
}

/// One of two machines.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// 0 or 1.
    pub(crate) host: usize,
    pub(crate) device: RoceDevice,
    pub(crate) interface: String,
    /// A directory of both.
    pub(crate) share: PathBuf,
}

/// Run a test of this name inside, on each of two machines; outside, see what becomes of it.
pub(crate) fn on_machines(name: &str, test: impl FnOnce(&Machine)) {
    let variable = |name: &str| std::env::var(name).unwrap();
    if std::env::var_os("TAGMATCH_RXE_HOST").is_some() {
        let device = devices().unwrap().remove(0);
        let machine = Machine {
            host: variable("TAGMATCH_RXE_HOST").parse().unwrap(),
            device,
            interface: variable("TAGMATCH_RXE_INTERFACES"),
            share: variable("TAGMATCH_RXE_SHARE").into(),
        };
        return test(&machine);
    }
    let name = name.split_once("::").map_or(name, |(_, name)| name);
    let itself = std::env::current_exe().unwrap();
    let command = vec![itself.into_os_string(), name.into(), "--exact".into()];
    let options = Options { hosts: 2, memory: 768, ..options(command) };
    let mut said = Transcript::default();
    let outcome = tagmatch_rxe::run(&options, &mut said).unwrap();
    assert_eq!(outcome, Outcome::Ended(0), "{}", said.0);
    assert_eq!(said.0.matches("test result: ok. 1 passed").count(), 2, "{}", said.0);
}

fn options(command: Vec<std::ffi::OsString>) -> Options {
    let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("rxe"));
    let is_nightly = std::env::var_os("TAGMATCH_NIGHTLY").is_some();
    let timeout = Duration::from_secs(if is_nightly { 7200 } else { 1500 });
    Options { backend: Backend::Qemu, cache, install: true, timeout, ..Options::new(command) }
}

/// Runs the binary three times.
const TWICE: &str = r#"
"$@" --skip ::lossy:: --skip ::machines:: --skip ::faults::
status=$?
for end in $TAGMATCH_RXE_INTERFACES; do
    tc qdisc add dev $end root netem limit 10000 delay 2ms loss 1% duplicate 1% reorder 5% || exit
done
"$1" --test-threads=1 ::lossy:: || status=$?
for end in $TAGMATCH_RXE_INTERFACES; do tc qdisc del dev $end root || exit; done
"$1" --test-threads=1 --show-output ::faults:: || status=$?
exit $status
"#;

/// What a test measured, which is shown outside too, begins with this.
pub(crate) const TIMES: &str = "measured: ";

/// What was said of this test, or everything.
fn of<'a>(said: &'a str, name: &str) -> &'a str {
    let from = said.split_once(&format!("---- {name} stdout ----\n")).map(|(_, behind)| behind);
    from.map_or(said, |from| from.split_once("\n---- ").map_or(from, |(own, _)| own))
}

/// All tests that were asked for, in an emulated machine: what they said.
fn run_all() -> String {
    let itself = std::env::current_exe().unwrap();
    let mut command = vec!["sh".into(), "-c".into(), TWICE.into(), "sh".into(), itself.into_os_string()];
    command.push("--test-threads=2".into());
    command.extend(std::env::args_os().skip(1).filter(|argument| {
        // What tests print would stand in the lines that say how they ended.
        !["--nocapture", "--no-capture", "--show-output", "--quiet", "-q"].iter().any(|not| argument == not)
    }));
    let options = options(command);
    let mut said = Transcript::default();
    match tagmatch_rxe::run(&options, &mut said) {
        Ok(outcome) => said.note(&format!("{outcome:?}")),
        Err(failure) => said.note(&failure.to_string()),
    }
    said.0
}
