//! Where and with what a result was measured.
//!
//! Not here: the results.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Machine, system, compiler and commit, as every record begins.
pub(crate) fn circumstances() -> Value {
    json!({
        "cpu": cpu(),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "kernel": first_line("/proc/sys/kernel/osrelease"),
        "virtual": fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("hypervisor")),
        "compiler": env!("TAGMATCH_RUSTC"),
        "commit": env!("TAGMATCH_COMMIT"),
        "dirty": is_dirty(),
        "date": date(),
    })
}

/// The processor's name as the kernel gives it, with family and model, since names of virtual machines say little.
pub(crate) fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        line.split(':').nth(1).map(|value| value.trim().to_owned())
    };
    match (field("model name"), field("cpu family"), field("model")) {
        (Some(name), Some(family), Some(model)) => format!("{name} (family {family} model {model})"),
        _ => "unknown".to_owned(),
    }
}

/// The same in one line, as records for people begin.
pub(crate) fn headline() -> String {
    let about = circumstances();
    let word = |key: &str| about[key].as_str().map_or_else(|| about[key].to_string(), str::to_owned);
    format!(
        "{}, {} cores, Linux {}; {}; commit {}",
        word("cpu"),
        word("cores"),
        word("kernel"),
        word("compiler"),
        word("commit")
    )
}

/// Writes a record, or ends the process with a word.
pub(crate) fn write_or_exit(path: &Path, text: &str) {
    if let Err(error) = fs::write(path, text) {
        eprintln!("{}: {error}", path.display());
        std::process::exit(1);
    }
    eprintln!("written: {}", path.display());
}

/// `<date>-<processor>`, the name of a record's files.
pub(crate) fn file_stem() -> String {
    let cpu = cpu();
    let words: Vec<String> = cpu
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty() && !["R", "TM", "CPU"].contains(word))
        .map(str::to_ascii_lowercase)
        .collect();
    format!("{}-{}", date(), words.join("-"))
}

/// Today, as the system says it.
fn date() -> String {
    output("date", &["-u", "+%Y-%m-%d"]).unwrap_or_else(|| "undated".to_owned())
}

fn is_dirty() -> Option<bool> {
    output("git", &["status", "--porcelain", "--untracked-files=no"]).map(|changes| !changes.is_empty())
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let out = Command::new(program).args(arguments).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
