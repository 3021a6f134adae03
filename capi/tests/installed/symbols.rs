//! What the shared library gives to programs: the functions of the header, each with its version, and nothing else.

use std::collections::BTreeSet;
use std::process::Command;

use crate::stage::{package, prefix, printed};

/// The functions that `tagmatch.map` lists, with the version under which each stands there.
fn listed() -> BTreeSet<String> {
    let text = std::fs::read_to_string(package().join("tagmatch.map")).unwrap();
    let mut version = "";
    let mut listed = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_suffix(" {") {
            version = name;
        } else if let Some(function) = line.strip_suffix(';').filter(|name| name.starts_with("tm_")) {
            assert!(listed.insert(format!("{function}@@{version}")), "{function} stands there twice");
        }
    }
    listed
}

#[test]
fn the_shared_library_has_the_listed_symbols_with_their_versions_and_no_other() {
    let library = prefix().join("lib/libtagmatch.so");
    let symbols = printed(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let names = symbols.lines().filter_map(|line| line.split_whitespace().nth(2).map(|name| (line, name)));
    // The versions themselves are absolute symbols.
    let found: BTreeSet<String> = names
        .filter(|(line, _)| !line.contains(" A "))
        .map(|(line, name)| {
            assert!(line.contains(" T "), "{line}: no function");
            name.to_owned()
        })
        .collect();
    assert!(found.len() > 50, "{found:?}");
    assert_eq!(found, listed());
}

#[test]
fn every_function_of_the_header_is_listed_and_no_other() {
    let header = std::fs::read_to_string(package().join("tagmatch.h")).unwrap();
    let is_comment = |line: &&str| line.trim_start().starts_with(['*', '/']);
    let code: Vec<&str> = header.lines().filter(|line| !is_comment(line)).collect();
    let code = code.join(" ");
    let functions: BTreeSet<String> = code
        .match_indices("tm_")
        .filter_map(|(place, _)| {
            let name: String =
                code[place..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            let is_whole = !code[..place].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            (is_whole && code[place + name.len()..].starts_with('(')).then_some(name)
        })
        .collect();
    let listed: BTreeSet<String> =
        listed().into_iter().map(|name| name.split('@').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(functions, listed);
}

#[test]
fn the_shared_library_goes_by_its_name_and_needs_the_system_s_libraries_alone() {
    let library = prefix().join("lib/libtagmatch.so");
    let dynamic = printed(Command::new("readelf").arg("-dW").arg(library));
    let named = |kind: &str| -> Vec<String> {
        let lines = dynamic.lines().filter(|line| line.contains(kind));
        lines.filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned())).collect()
    };
    assert_eq!(named("(SONAME)"), ["libtagmatch.so.0"]);
    let system = ["libc.so.", "libm.so.", "libgcc_s.so.", "ld-linux", "libpthread.so.", "libdl.so."];
    let needed = named("(NEEDED)");
    assert!(needed.iter().any(|name| name.starts_with("libc.so.")), "{needed:?}");
    for name in needed {
        assert!(system.iter().any(|known| name.starts_with(known)), "it needs {name}");
    }
}
