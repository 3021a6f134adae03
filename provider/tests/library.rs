//! The file that libfabric loads: what it exports, and what it needs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::path::PathBuf;
use std::process::Command;

fn library() -> PathBuf {
    // Beside the test's own program: only `cargo build` puts a copy one folder up.
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    folder.join("libtagmatch_fi.so")
}

/// What `nm` says of dynamic symbols, and their kinds.
fn symbols(option: &str) -> Vec<String> {
    let out = Command::new("nm").args(["-D", option]).arg(library()).output().unwrap();
    assert!(out.status.success(), "nm: {}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().last().map(str::to_owned)).collect()
}

#[test]
fn it_exports_fi_prov_ini_and_nothing_else() {
    assert_eq!(symbols("--defined-only"), ["fi_prov_ini"]);
}

#[test]
fn it_needs_no_symbol_of_libfabric() {
    let needed = symbols("--undefined-only");
    assert!(!needed.is_empty());
    let ours: Vec<_> =
        needed.iter().filter(|name| name.starts_with("fi_") || name.starts_with("ofi_")).collect();
    assert!(ours.is_empty(), "{ours:?}");
}

#[test]
fn the_structure_is_static_and_names_the_provider() {
    let provider = tagmatch_fi::fi_prov_ini();
    assert_eq!(provider, tagmatch_fi::fi_prov_ini());
    // SAFETY: static, and nobody writes to it here.
    let provider = unsafe { &*provider };
    // SAFETY: a string.
    let name = unsafe { std::ffi::CStr::from_ptr(provider.name) };
    assert_eq!(name, c"tagmatch");
    assert_eq!(provider.fi_version, tagmatch::provider::abi::version(2, 6));
    assert!(provider.context.iter().all(|word| word.is_null()));
}
