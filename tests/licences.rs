//! The licences of everything that is built, against a list of those that go with MIT OR Apache-2.0.
//!
//! A small check of our own instead of a tool that takes minutes to build: docs/decisions/0002-licence-check.md.
#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]

use serde_json::Value;
use std::process::Command;

/// Licences under which a dependency may be used.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Tools of the tests alone, under licences of their own (MPL-2.0 asks for changes to the tool itself to be given): nothing of
/// them is in what is built.
const TOOLS: &[(&str, &str)] = &[("cbindgen", "MPL-2.0"), ("libfuzzer-sys", "(MIT OR Apache-2.0) AND NCSA")];

/// Is itself a tool of the tests.
const TOOL_OF_OURS: &str = "tagmatch-fuzz";

/// What an embedder gets without features.
const EMBEDDED: [&str; 6] = ["crossbeam-queue", "hmac", "libc", "sha2", "slab", "thiserror"];

fn metadata() -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap_or_else(|error| panic!("cargo cannot be run: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}"))
}

fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn every_dependency_may_be_used() {
    let metadata = metadata();
    let packages = packages(&metadata);
    assert!(packages.len() > 10, "{} packages: too few to be all", packages.len());
    let wrong: Vec<String> = packages
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(is_allowed) && !is_tool(package))
        .map(|package| format!("{} {}: licence {}", package["name"], package["version"], package["license"]))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_dependency_comes_from_the_registry_or_from_here() {
    let metadata = metadata();
    for package in packages(&metadata) {
        let source = package["source"].as_str().unwrap_or("here");
        assert!(source == "here" || source.starts_with("registry+"), "{}: {source}", package["name"]);
    }
}

#[test]
fn an_embedder_gets_six_small_dependencies() {
    let metadata = metadata();
    let root = packages(&metadata).iter().find(|package| package["name"] == "tagmatch");
    let dependencies = root.and_then(|root| root["dependencies"].as_array()).map_or(&[][..], Vec::as_slice);
    let mut names: Vec<&str> = dependencies
        .iter()
        .filter(|dependency| dependency["optional"] == false && dependency["kind"].is_null())
        .filter_map(|dependency| dependency["name"].as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, EMBEDDED);
}

fn is_tool(package: &Value) -> bool {
    TOOLS.iter().any(|(name, licence)| package["name"] == *name && package["license"] == *licence)
}

#[test]
fn tools_are_for_tests_alone() {
    let metadata = metadata();
    let mut found = 0;
    for package in packages(&metadata) {
        for dependency in package["dependencies"].as_array().map_or(&[][..], Vec::as_slice) {
            if TOOLS.iter().any(|(name, _)| dependency["name"] == *name) {
                let is_for_tests = dependency["kind"] == "dev" || package["name"] == TOOL_OF_OURS;
                assert!(is_for_tests, "{} needs {}", package["name"], dependency["name"]);
                found += 1;
            }
        }
    }
    assert!(found >= TOOLS.len(), "a tool that nobody needs");
}

/// Whether an SPDX expression can be satisfied from the list. `/` is the old way to write OR.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    either(&mut rest) == Some(true) && rest.is_empty()
}

/// `a OR b ...`
fn either(words: &mut &[&str]) -> Option<bool> {
    let mut result = both(words)?;
    while let Some(("OR", rest)) = next(words) {
        *words = rest;
        result |= both(words)?;
    }
    Some(result)
}

/// `a AND b ...`
fn both(words: &mut &[&str]) -> Option<bool> {
    let mut result = one(words)?;
    while let Some(("AND", rest)) = next(words) {
        *words = rest;
        result &= one(words)?;
    }
    Some(result)
}

/// A licence, perhaps with an exception, or an expression in brackets.
fn one(words: &mut &[&str]) -> Option<bool> {
    let (word, rest) = next(words)?;
    *words = rest;
    if word == "(" {
        let result = either(words)?;
        let (")", rest) = next(words)? else {
            return None;
        };
        *words = rest;
        return Some(result);
    }
    let mut licence = word.to_owned();
    if let Some(("WITH", rest)) = next(words) {
        let (exception, rest) = rest.split_first()?;
        licence = format!("{licence} WITH {exception}");
        *words = rest;
    }
    Some(ALLOWED.contains(&licence.as_str()))
}

fn next<'a, 'b>(words: &'b [&'a str]) -> Option<(&'a str, &'b [&'a str])> {
    words.split_first().map(|(word, rest)| (*word, rest))
}

#[test]
fn expressions_are_satisfied_as_spdx_says() {
    for good in [
        "MIT",
        "MIT OR GPL-3.0",
        "GPL-3.0 OR MIT",
        "MIT/Apache-2.0",
        "(MIT OR GPL-3.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        "MIT AND (Zlib OR GPL-3.0)",
    ] {
        assert!(is_allowed(good), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "MIT OR",
        "(MIT",
        "MIT Apache-2.0",
        "GPL-2.0 WITH Classpath-exception-2.0",
        "MIT WITH Something",
        "(MIT OR Zlib) AND GPL-3.0",
    ] {
        assert!(!is_allowed(bad), "{bad}");
    }
}
