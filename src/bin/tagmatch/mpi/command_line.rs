//! The command line of Open MPI's mpirun: what on it is mpirun's own, and what each of its programs is handed.
//!
//! Programs are told apart by a colon, and each begins with options of its own. Which words are values of options
//! cannot be told from their looks, so that the options without a value are known here; whatever else looks like an
//! option has one. That is as `mpirun --help full` of 4.1 lists them, and as the parser of 5.0 has them.

use super::kind::Kind;
use std::ffi::{OsStr, OsString};

/// The command line with these variables handed on to every program that does not say so itself (`-x`). In 4.1 that holds
/// for one program alone, and the last word on a variable counts; in 5.0 the first.
pub(crate) fn handing_on(kind: Kind, names: &[&str], arguments: &[OsString]) -> Vec<OsString> {
    let mut all = Vec::new();
    for (number, program) in arguments.split(is_colon).enumerate() {
        if number > 0 {
            all.push(":".into());
        }
        let own = own(kind, program);
        for name in names.iter().filter(|name| !is_named(own, name)) {
            all.extend(["-x".into(), name.into()]);
        }
        all.extend_from_slice(program);
    }
    all
}

/// Whether mpirun is told this for one of the programs: an option, with or without its value.
pub(crate) fn has(kind: Kind, arguments: &[OsString], options: &[&str]) -> bool {
    let mut programs = arguments.split(is_colon);
    programs.any(|program| options.iter().any(|option| is_named(own(kind, program), option)))
}

/// How many processes the command line asks for: the sum over its programs, 0 if it does not say.
pub(crate) fn processes(kind: Kind, arguments: &[OsString]) -> usize {
    arguments.split(is_colon).map(|program| processes_of(own(kind, program))).sum()
}

fn processes_of(own: &[OsString]) -> usize {
    let text = |at: usize| own.get(at).and_then(|argument| argument.to_str());
    let count = |at| match text(at)?.split_once('=') {
        Some((name, count)) if COUNTS.contains(&name) => count.parse::<usize>().ok(),
        None if COUNTS.contains(&text(at)?) => text(at + 1)?.parse().ok(),
        _ => None,
    };
    (0..own.len()).filter_map(count).sum()
}

/// What of one program stands in front of its name.
fn own(kind: Kind, program: &[OsString]) -> &[OsString] {
    let mut at = 0;
    while let Some(option) = program.get(at).and_then(|argument| option(argument)) {
        let values = match option {
            _ if FLAGS.contains(&option) || option.contains('=') => 0,
            _ if kind == Kind::OpenMpi4 && FLAGS_OF_4.contains(&option) => 0,
            _ if TWO_VALUES.contains(&option) => 2,
            _ => 1,
        };
        // An option behind one that should have a value: that one has none, whatever it is.
        let is_value = |argument: &&OsString| option_of_value(argument).is_none();
        at += 1 + program[at + 1..].iter().take(values).take_while(is_value).count();
    }
    &program[..at]
}

/// The name of an option without its dashes.
fn option(argument: &OsStr) -> Option<&str> {
    let text = argument.to_str()?;
    text.strip_prefix("--").or_else(|| text.strip_prefix('-'))
}

/// The same where a value is expected: a dash alone (an output) and numbers below zero are values.
fn option_of_value(argument: &OsStr) -> Option<&str> {
    option(argument).filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic()))
}

/// Whether the words name this (an option, a variable).
fn is_named(words: &[OsString], name: &str) -> bool {
    words
        .iter()
        .filter_map(|word| word.to_str())
        .any(|word| word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
}

fn is_colon(argument: &OsString) -> bool {
    argument == ":"
}

const COUNTS: [&str; 6] = ["-n", "-np", "--np", "-c", "--n", "--c"];
/// Options without a value, of 4.1 and of 5.0, without their dashes.
const FLAGS: [&str; 67] = [
    "V",
    "allow-run-as-root",
    "bind-to-core",
    "bind-to-socket",
    "bycore",
    "bynode",
    "byslot",
    "continuous",
    "d",
    "debug",
    "debug-daemons",
    "debug-daemons-file",
    "debug-devel",
    "disable-recovery",
    "display-allocation",
    "display-comm",
    "display-comm-finalize",
    "display-devel-allocation",
    "display-devel-map",
    "display-diffable-map",
    "display-map",
    "do-not-launch",
    "do-not-resolve",
    "enable-instant-on-support",
    "enable-recovery",
    "fwd-environment",
    "fwd-mpirun-port",
    "get-stack-traces",
    "hetero-nodes",
    "index-argv-by-rank",
    "leave-session-attached",
    "merge-stderr-to-stdout",
    "no-aggregate-help",
    "no-app-prefix",
    "nolocal",
    "nooversubscribe",
    "noprefix",
    "novm",
    "output-proctable",
    "oversubscribe",
    "p",
    "parsable",
    "parseable",
    "pernode",
    "preload-binary",
    "q",
    "quiet",
    "report-bindings",
    "report-child-jobs-separately",
    "report-state-on-timeout",
    "s",
    "set-cwd-to-session-dir",
    "show-progress",
    "soft",
    "stop-in-app",
    "stop-in-init",
    "stop-on-exec",
    "tag-output",
    "test-suicide",
    "timestamp-output",
    "tv",
    "use-hwthread-cpus",
    "use-regexp",
    "v",
    "verbose",
    "version",
    "xml",
];
/// Those that have one in 5.0.
const FLAGS_OF_4: [&str; 2] = ["display-topo", "dvm"];
/// Those that have two values.
const TWO_VALUES: [&str; 9] =
    ["mca", "gmca", "omca", "gomca", "prtemca", "pmixmca", "mpimca", "prepend-env", "append-env"];

#[cfg(test)]
mod tests;
