//! Which module may use which (docs/architecture.md). Tests may use anything.

use crate::common::Text;

/// What each module of the library may use, besides itself.
const ALLOWED: &[(&str, &[&str])] = &[
    ("ids", &[]),
    ("seam", &["ids"]),
    ("atomics", &[]),
    ("wire", &["ids", "atomics"]),
    ("matching", &["ids", "seam", "wire"]),
    ("offload", &["ids", "seam", "wire", "matching"]),
    ("protocol", &["ids", "seam", "wire", "matching", "offload"]),
    ("engine", &["ids", "seam", "wire", "matching", "offload", "protocol"]),
    ("device", &["ids", "seam", "wire", "atomics"]),
    ("domain", &["ids", "seam", "wire"]),
    (
        "endpoint",
        &["ids", "seam", "wire", "atomics", "matching", "offload", "protocol", "engine", "device", "domain"],
    ),
    ("paths", &["ids", "device", "endpoint"]),
    ("traces", &["ids", "matching"]),
    ("replay", &["ids", "seam", "wire", "matching", "offload", "engine", "device", "traces"]),
    (
        "provider",
        &[
            "ids", "seam", "wire", "atomics", "matching", "offload", "protocol", "engine", "device",
            "domain", "endpoint", "paths",
        ],
    ),
];

/// Whether a file holds tests alone.
pub(crate) fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// The module of the library that a file belongs to; `None` for the root and the command line.
fn module(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("src/")?;
    let first = inside.split('/').next()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (name != "lib" && name != "bin").then_some(name)
}

fn allowed(module: &str) -> Option<&'static [&'static str]> {
    ALLOWED.iter().find(|(name, _)| *name == module).map(|(_, allowed)| *allowed)
}

/// A module that has no place yet.
pub(crate) fn unknown_module(text: &Text) -> Vec<String> {
    match module(&text.path) {
        Some(module) if allowed(module).is_none() => {
            vec![format!("the module {module} has no place in the arrows: tests/tidy/arrows.rs")]
        }
        _ => Vec::new(),
    }
}

/// Uses of modules that do not lie below.
pub(crate) fn wrong_uses(text: &Text) -> Vec<String> {
    let Some(module) = module(&text.path) else {
        return Vec::new();
    };
    let allowed = allowed(module).unwrap_or_default();
    let code = without_comments(&text.text);
    let mut wrong: Vec<String> = used(&code, depth(&text.path))
        .into_iter()
        .filter(|used| used != module && is_module(used) && !allowed.contains(&used.as_str()))
        .map(|used| format!("{module} must not use {used}"))
        .collect();
    wrong.dedup();
    wrong
}

fn is_module(name: &str) -> bool {
    allowed(name).is_some()
}

/// How many `super::` lead from a file to the root of the crate.
fn depth(path: &str) -> usize {
    let steps = path.trim_start_matches("src/").split('/').count();
    if path.ends_with("/mod.rs") { steps - 1 } else { steps }
}

/// The first names behind `crate::`, and behind as many `super::` as lead to the root.
fn used(code: &str, depth: usize) -> Vec<String> {
    let mut names = Vec::new();
    for (place, _) in code.match_indices("crate::") {
        let before = code[..place].chars().next_back();
        if before.is_none_or(|before| !before.is_alphanumeric() && before != '_' && before != '$') {
            names.extend(first_names(&code[place + "crate::".len()..]));
        }
    }
    let up = "super::".repeat(depth);
    for (place, _) in code.match_indices(&up) {
        names.extend(first_names(&code[place + up.len()..]));
    }
    names
}

/// The name at the beginning, or the first names of a group in braces.
fn first_names(code: &str) -> Vec<String> {
    let name =
        |code: &str| -> String { code.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = code.strip_prefix('{') else {
        return vec![name(code)];
    };
    let mut names = Vec::new();
    let mut level = 0;
    let mut start = 0;
    for (place, c) in group.char_indices() {
        match c {
            '{' => level += 1,
            ',' | '}' if level == 0 => {
                names.push(name(group[start..place].trim_start()));
                start = place + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => level -= 1,
            _ => {}
        }
    }
    names
}

/// The text with its line comments blanked: links in documentation are no uses.
pub(crate) fn without_comments(text: &str) -> String {
    text.lines()
        .map(|line| if line.trim_start().starts_with("//") { "" } else { line })
        .collect::<Vec<_>>()
        .join("\n")
}
