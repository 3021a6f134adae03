//! Running this program under callgrind and reading what it dumps.
//!
//! The format is callgrind's (valgrind manual, "Callgrind Format Specification"): of each dump only the
//! line `summary:` (or `totals:`) with the instructions since the dump before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::paths;

/// The argument by which the program knows that it is inside.
pub(crate) const INSIDE: &str = "--counted";

/// Instructions per message by path.
pub(crate) type Figures = BTreeMap<String, f64>;

/// Where callgrind dumps its counters.
#[inline(never)]
pub(crate) fn mark() {
    std::hint::black_box(MARK);
}

/// Counts every path, or says what stands in the way.
pub(crate) fn count(names: &[String], ucx: bool) -> Result<Figures, String> {
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("instructions-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let counted = run(&folder, ucx).and_then(|messages| read(&folder, names, &messages));
    let _ = fs::remove_dir_all(&folder);
    counted
}

/// How many messages each path had, as the program inside printed them.
fn run(folder: &Path, ucx: bool) -> Result<Vec<u64>, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let out = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--dump-before=*callgrind*mark*",
            "--dump-line=no",
            "--separate-threads=no",
        ])
        .arg(format!("--callgrind-out-file={}", folder.join(DUMP).display()))
        .arg(program)
        .arg(INSIDE)
        .args(ucx.then_some("--ucx"))
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("valgrind cannot be run ({error}); on Debian it is the package valgrind"))?;
    if !out.status.success() {
        return Err(format!("valgrind ended with {}:\n{}", out.status, String::from_utf8_lossy(&out.stderr)));
    }
    let text = String::from_utf8_lossy(&out.stdout);
    text.lines().map(|line| line.parse().map_err(|_| format!("not a count: {line}"))).collect()
}

/// Dump 1 is all before the first mark, dump 2 the first path, dump 3 what lies between, and so on.
fn read(folder: &Path, names: &[String], messages: &[u64]) -> Result<Figures, String> {
    if names.len() != messages.len() {
        return Err(format!("{} paths, but {} were counted", names.len(), messages.len()));
    }
    let mut figures = Figures::new();
    for (place, (name, messages)) in names.iter().zip(messages).enumerate() {
        let file = folder.join(format!("{DUMP}.{}", 2 * place + 2));
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let total = text
            .lines()
            .find_map(|line| line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:")))
            .and_then(|number| number.trim().parse::<f64>().ok())
            .ok_or_else(|| format!("{} has no summary", file.display()))?;
        figures.insert(name.clone(), total / *messages as f64);
    }
    Ok(with_differences(figures))
}

/// `alone/…`: a path less the same loop without the engine, `loop/…`.
fn with_differences(mut figures: Figures) -> Figures {
    let less = |(name, of_loop): (&String, &f64)| {
        let path = name.strip_prefix("loop/")?;
        figures.get(path).map(|whole| (format!("alone/{path}"), whole - of_loop))
    };
    let alone: Vec<_> = figures.iter().filter_map(less).collect();
    figures.extend(alone);
    figures
}

/// Runs every path between marks and says how many messages each had.
pub(crate) fn inside(ucx: bool) {
    for path in paths::all(ucx) {
        println!("{}", path.run(mark));
    }
}

const DUMP: &str = "dump";
const MARK: u32 = 0;
