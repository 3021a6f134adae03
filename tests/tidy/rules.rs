//! Rules about single files.

use crate::arrows::without_comments;
use crate::common::Text;

const LINES_MAX: usize = 600;

/// A file that should be split.
pub(crate) fn too_long(text: &Text) -> Vec<String> {
    let lines = text.text.lines().count();
    if lines > LINES_MAX {
        vec![format!("{lines} lines; at {LINES_MAX} a file is split")]
    } else {
        Vec::new()
    }
}

/// A file that does not begin with what it is for.
pub(crate) fn no_purpose(text: &Text) -> Vec<String> {
    let first = text.text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!"));
    if first.is_some_and(|line| line.starts_with("//! ")) {
        Vec::new()
    } else {
        vec!["does not begin with what it is for (\"//! ...\")".into()]
    }
}

/// Paths of one machine, and hosts that packages come from. Written in pieces, so that this file passes its own rule.
pub(crate) fn machine_paths(text: &Text) -> Vec<String> {
    let paths = ["work", "farm", "tmp", "home", "root"].map(|name| format!("/{name}"));
    let hosts = ["index.crates", "static.crates", "pypi", "deb.debian", "registry.npmjs"]
        .map(|name| format!("{name}.{}", if name.ends_with("crates") { "io" } else { "org" }));
    let mut wrong = Vec::new();
    for (number, line) in text.text.lines().enumerate() {
        for path in &paths {
            if line.match_indices(path.as_str()).any(|(place, _)| is_path(line, place, path.len())) {
                wrong.push(format!("line {}: the machine path {path}", number + 1));
            }
        }
        for host in hosts.iter().filter(|host| line.contains(host.as_str())) {
            wrong.push(format!("line {}: the registry host {host}", number + 1));
        }
    }
    wrong
}

/// Whether a whole path begins at this place, and not a part of a longer word or of a relative path.
fn is_path(line: &str, place: usize, length: usize) -> bool {
    let before = line[..place].chars().next_back();
    let after = line[place + length..].chars().next();
    before.is_none_or(|c| !c.is_alphanumeric() && !"._-/}>)*".contains(c))
        && after.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '-')
}

/// An unsafe block or implementation without a SAFETY comment right above it or on its line.
pub(crate) fn unsafe_without_comment(text: &Text) -> Vec<String> {
    let lines: Vec<&str> = text.text.lines().collect();
    let mut wrong = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if !is_unsafe_block(code) || line.contains("SAFETY:") {
            continue;
        }
        // Up through the rest of the statement: comments and attributes, at most one line of code.
        let above = lines[..number].iter().rev().map(|line| line.trim());
        let mut first = true;
        let above = above.skip_while(|line| std::mem::take(&mut first) && line.ends_with('='));
        let comment = above.take_while(|line| line.starts_with("//") || line.starts_with("#["));
        if !comment.into_iter().any(|line| line.contains("SAFETY:")) {
            wrong.push(format!("line {}: unsafe without a SAFETY comment above it", number + 1));
        }
    }
    wrong
}

fn is_unsafe_block(code: &str) -> bool {
    let words = word("unsafe");
    ["{", "impl "].iter().any(|next| {
        code.match_indices(words.as_str()).any(|(place, _)| code[place + words.len()..].starts_with(next))
            && !code.contains('"')
    })
}

/// The word with the space behind it; in this form it does not stand in this file as code.
fn word(word: &str) -> String {
    format!("{word} ")
}

/// Unsafe code outside the modules that share memory with a device, a process or C.
pub(crate) fn unsafe_elsewhere(text: &Text) -> Vec<String> {
    if UNSAFE.iter().any(|start| text.path.starts_with(start)) {
        return Vec::new();
    }
    let code = without_comments(&text.text);
    let wrong = code.lines().enumerate().filter(|(_, line)| {
        let line = line.split('"').next().unwrap_or_default();
        is_unsafe_block(line) || line.contains(&word("unsafe fn").replace("fn ", "fn"))
    });
    wrong.map(|(number, _)| format!("line {}: unsafe code has no place in this module", number + 1)).collect()
}

/// A core module whose root does not forbid unsafe code, and a lint that is lifted where it may not be.
pub(crate) fn unsafe_not_forbidden(text: &Text) -> Vec<String> {
    let mut wrong = Vec::new();
    if FORBIDDING.contains(&text.path.as_str()) && !text.text.contains("#![forbid(unsafe_code)]") {
        wrong.push("a core module, which begins with #![forbid(unsafe_code)]".into());
    }
    let may = UNSAFE.iter().any(|start| text.path.starts_with(start));
    if !may && without_comments(&text.text).contains(&format!("{}(unsafe_code", "allow")) {
        wrong.push("unsafe code has no place in this module".into());
    }
    wrong
}

/// Where unsafe code may be: modules that share memory with a device, a process or C.
const UNSAFE: [&str; 25] = [
    "src/device/verbs/",
    // Where addresses of buffers are followed, and calls of the operating system with them.
    "src/device/host_memory",
    "src/device/sockets/sys.rs",
    // A page that the system wipes in a child.
    "src/device/sockets/process.rs",
    // A test of a transport says whose memory its buffers are.
    "src/device/tests/memory.rs",
    "src/device/shm/",
    "src/provider/",
    // The edge of the C library, and calls of it as C makes them.
    "capi/src/",
    "capi/tests/",
    // The entry of the library that libfabric loads, and applications that call it.
    "provider/src/",
    "provider/tests/",
    // What stands between a program and the simulated card, and calls of it as a program makes them.
    "sim/src/hca_abi/",
    "sim/preload/src/",
    "sim/preload/tests/",
    "sim/tests/hca_abi.rs",
    // Memory that is registered with a device.
    "sim/src/driver/card.rs",
    "sim/tests/device/",
    "sim/tests/threads/",
    "sim/tests/endpoint/",
    "hw-tests/src/verbs/",
    // Memory of the messages that are measured with.
    "src/bin/tagmatch/bench/memory.rs",
    // Other libraries that it is measured beside, and processors and variables of a process.
    "src/bin/tagmatch/pair/fabric.rs",
    "src/bin/tagmatch/pair/ucx/",
    "src/bin/tagmatch/pair/system.rs",
    "src/bin/tagmatch/pair/contenders.rs",
];

/// The roots of the modules that have none. (The root of the crate only denies it, so that those above may.)
pub(crate) const FORBIDDING: [&str; 11] = [
    "src/atomics.rs",
    "src/ids.rs",
    "src/seam.rs",
    "src/wire/mod.rs",
    "src/matching/mod.rs",
    "src/offload/mod.rs",
    "src/engine/mod.rs",
    "src/domain/mod.rs",
    "src/device/soft/mod.rs",
    "src/traces/mod.rs",
    "src/replay/mod.rs",
];

/// A test that is left out without a word.
pub(crate) fn ignored_without_reason(text: &Text) -> Vec<String> {
    let bare = format!("#[{}]", "ignore");
    let lines = text.text.lines().enumerate().filter(|(_, line)| line.trim() == bare);
    lines.map(|(number, _)| format!("line {}: an ignored test without a reason", number + 1)).collect()
}

/// Waiting for luck.
pub(crate) fn sleeps(text: &Text) -> Vec<String> {
    let call = format!("thread::{}", "sleep");
    let lines = text.text.lines().enumerate().filter(|(_, line)| line.contains(&call));
    lines.map(|(number, _)| format!("line {}: sleeping is waiting for luck", number + 1)).collect()
}

/// Relative links of a document to files that are not there.
pub(crate) fn dead_links(text: &Text, paths: &[String]) -> Vec<String> {
    let mut wrong = Vec::new();
    let folder: Vec<&str> =
        text.path.split('/').rev().skip(1).collect::<Vec<_>>().into_iter().rev().collect();
    for (place, _) in text.text.match_indices("](") {
        let target: String = text.text[place + 2..].chars().take_while(|c| *c != ')' && *c != '#').collect();
        if target.is_empty() || target.contains("://") {
            continue;
        }
        let mut parts = folder.clone();
        for part in target.trim_end_matches('/').split('/') {
            match part {
                "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let full = parts.join("/");
        if !paths.iter().any(|path| *path == full || path.starts_with(&format!("{full}/"))) {
            wrong.push(format!("the link to {target} leads nowhere"));
        }
    }
    wrong
}

/// The glossary: each line that begins with `**` is a term; names in its brackets are names in the sources.
pub(crate) fn glossary(text: &Text, sources: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut last = String::new();
    for line in text.text.lines().filter(|line| line.starts_with("**")) {
        let mut parts = line.splitn(3, "**").skip(1);
        let (term, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if rest.trim().is_empty() {
            wrong.push(format!("{term}: nothing is said about it"));
        }
        let order = term.to_lowercase();
        if order <= last {
            wrong.push(format!("{term}: stands behind {last}; terms are in order and there once"));
        }
        last = order;
        let brackets =
            rest.trim_start().strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|pair| pair.0);
        for name in brackets.unwrap_or_default().split('`').skip(1).step_by(2) {
            if !sources.contains(name) {
                wrong.push(format!("{term}: there is no {name} in the sources"));
            }
        }
    }
    if last.is_empty() {
        wrong.push("no term at all".into());
    }
    wrong
}

/// The numbers in the first column of the contract's table of numbers.
pub(crate) fn contract_numbers(page: &str) -> Vec<String> {
    let rows =
        page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |").map(|(cell, _)| cell));
    rows.filter(|cell| is_number(cell)).map(str::to_owned).collect()
}

/// Numbers behind the contract's name that its table does not have: "6.1", and each of "6.1, 8.1 and 12".
pub(crate) fn unknown_numbers(text: &Text, table: &[String]) -> Vec<String> {
    let name = format!("TM-{} ", "CONTRACT");
    let mut wrong = Vec::new();
    for (place, _) in text.text.match_indices(&name) {
        let behind = text.text[place + name.len()..].split_whitespace();
        for word in behind {
            let number = word.trim_end_matches([',', '.', ')', ';', ':', '`', '"']);
            if is_number(number) && !table.iter().any(|known| known == number) {
                wrong.push(format!("{name}{number} is not in the table of docs/tm-srq.md"));
            }
            // What goes on is a list.
            if !is_number(number) && !["and", "to"].contains(&word)
                || is_number(number) && word != number && !word.ends_with(',')
            {
                break;
            }
        }
    }
    wrong
}

/// "12" or "6.1".
fn is_number(word: &str) -> bool {
    let mut parts = word.split('.');
    let all = parts.clone().count() <= 2 && parts.all(|part| !part.is_empty() && part.len() <= 2);
    all && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Rows of the page on cost that are not what was recorded: goals with the sum of the paths that a row names, and the
/// layers of a receive through the driver.
pub(crate) fn stale_figures(page: &str, recorded: impl Fn(&str) -> Option<f64>) -> Vec<String> {
    let (mut wrong, mut rows) = (Vec::new(), 0);
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(&recorded).sum::<Option<f64>>();
        let should = match cells.as_slice() {
            [paths, what, goal, _, _] if paths.contains('`') => names(paths).map(|figure| {
                let times = figure / goal.parse::<f64>().unwrap_or(f64::NAN);
                format!("| {paths} | {what} | {goal} | {figure:.0} | {times:.1} |")
            }),
            [who, _] => recorded(&who.replace('`', "")).map(|figure| format!("| {who} | {figure:.0} |")),
            _ => None,
        };
        if let Some(should) = should {
            rows += 1;
            if should != line {
                wrong.push(format!("recorded is {should}"));
            }
        }
    }
    if rows < 7 {
        wrong.push(format!("only {rows} rows have figures that were recorded"));
    }
    wrong
}
