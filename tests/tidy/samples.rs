//! Each rule on a bad sample, and on a good one that looks like it.

use crate::common::Text;
use crate::{arrows, rules};

fn text(path: &str, text: &str) -> Text {
    Text { path: path.into(), text: text.into() }
}

#[test]
fn uses_upwards_and_sideways_are_found() {
    for (path, code, wrong) in [
        ("src/matching/table.rs", "use crate::engine::Engine;", "matching must not use engine"),
        (
            "src/device/soft/mod.rs",
            "use crate::{ids::Tag, engine::{Engine, Other}};",
            "device must not use engine",
        ),
        ("src/engine/mod.rs", "fn f() { crate::device::soft::new() }", "engine must not use device"),
        ("src/ids.rs", "use super::seam;", "ids must not use seam"),
        ("src/device/soft/list.rs", "use super::super::super::engine::Engine;", "device must not use engine"),
        ("src/seam.rs", "pub(crate) use crate::matching::Pattern;", "seam must not use matching"),
    ] {
        assert_eq!(arrows::wrong_uses(&text(path, code)), [wrong], "{path}: {code}");
    }
}

#[test]
fn uses_downwards_links_and_own_names_are_not() {
    for (path, code) in [
        (
            "src/engine/mod.rs",
            "use crate::matching::Matcher;\nuse crate::{ids::Tag, offload::{Policy, engine}};",
        ),
        ("src/device/mod.rs", "/// It is polled; see [`crate::engine`].\nuse crate::seam::Command;"),
        (
            "src/matching/mod.rs",
            "use crate::matching::naive::Naive; use $crate::engine::E; use mycrate::engine;",
        ),
        ("src/offload/tests.rs", ""),
        ("src/lib.rs", "use crate::engine;"),
        ("src/bin/tagmatch/main.rs", "use crate::replay;"),
        ("src/device/soft/list.rs", "use super::super::engine_like::X; use super::engine;"),
    ] {
        assert_eq!(arrows::wrong_uses(&text(path, code)), [""; 0], "{path}: {code}");
    }
    assert!(arrows::is_test("src/engine/tests.rs") && arrows::is_test("src/traces/tests/mod.rs"));
    assert!(!arrows::is_test("src/attests.rs"));
}

#[test]
fn a_module_without_a_place_is_found() {
    assert_eq!(arrows::unknown_module(&text("src/magic/mod.rs", "")).len(), 1);
    assert_eq!(arrows::unknown_module(&text("src/wire/mod.rs", "")).len(), 0);
}

#[test]
fn long_files_are_found() {
    assert_eq!(rules::too_long(&text("a.rs", &"x\n".repeat(601))).len(), 1);
    assert_eq!(rules::too_long(&text("a.rs", &"x\n".repeat(600))).len(), 0);
}

#[test]
fn files_without_a_purpose_are_found() {
    assert_eq!(rules::no_purpose(&text("a.rs", "use std::fmt;\n//! late")).len(), 1);
    assert_eq!(rules::no_purpose(&text("a.rs", "")).len(), 1);
    assert_eq!(rules::no_purpose(&text("a.rs", "//! It is for this.\n")).len(), 0);
}

#[test]
fn machine_paths_and_hosts_are_found() {
    let slash = "/";
    for bad in [
        format!("see {slash}work/main"),
        format!("\"{slash}tmp\""),
        format!("`{slash}root/.cargo`"),
        format!("{slash}home/me"),
        format!("={slash}farm/in"),
        format!("https:{slash}{slash}index.crates.{}", "io/x"),
    ] {
        assert_eq!(rules::machine_paths(&text("a.md", &bad)).len(), 1, "{bad}");
    }
    for good in [
        "src/tmp/x",
        "a /working day",
        "either/work",
        "../work",
        "$(dir)/tmp",
        "/dev/null",
        "and/or /rootless",
    ] {
        assert_eq!(rules::machine_paths(&text("a.md", good)).len(), 0, "{good}");
    }
}

#[test]
fn unsafe_without_a_safety_comment_is_found() {
    let block = format!("{} {{ f() }}", "unsafe");
    let with = format!("// SAFETY: it is.\n{block}");
    assert_eq!(rules::unsafe_without_comment(&text("a.rs", &block)).len(), 1);
    assert_eq!(rules::unsafe_without_comment(&text("a.rs", &format!("// It is.\n{block}"))).len(), 1);
    assert_eq!(rules::unsafe_without_comment(&text("a.rs", &with)).len(), 0);
    let statement = format!("// SAFETY: it is.\nlet x =\n    {block};");
    assert_eq!(rules::unsafe_without_comment(&text("a.rs", &statement)).len(), 0);
    let farther = format!("// SAFETY: it is.\nlet y = 1;\nlet x =\n    {block};");
    assert_eq!(rules::unsafe_without_comment(&text("a.rs", &farther)).len(), 1);
    let implementation = format!("{} impl Send for X {{}}", "unsafe");
    assert_eq!(rules::unsafe_without_comment(&text("a.rs", &implementation)).len(), 1);
    assert_eq!(rules::unsafe_without_comment(&text("a.rs", "// no unsafe { here }")).len(), 0);
}

#[test]
fn unsafe_in_the_wrong_module_is_found() {
    let block = format!("// SAFETY: it is.\n{} {{ f() }}", "unsafe");
    let function = format!("{} fn f() {{}}", "unsafe");
    for code in [&block, &function] {
        assert_eq!(rules::unsafe_elsewhere(&text("src/matching/table.rs", code)).len(), 1);
        assert_eq!(rules::unsafe_elsewhere(&text("sim/src/hca/qp.rs", code)).len(), 1);
        assert_eq!(rules::unsafe_elsewhere(&text("hw-tests/src/runner.rs", code)).len(), 1);
        assert_eq!(rules::unsafe_elsewhere(&text("src/device/verbs/sys.rs", code)).len(), 0);
        assert_eq!(rules::unsafe_elsewhere(&text("sim/src/hca_abi/raw.rs", code)).len(), 0);
    }
    assert_eq!(rules::unsafe_elsewhere(&text("src/lib.rs", "#![forbid(unsafe_code)]")).len(), 0);
}

#[test]
fn a_core_module_that_does_not_forbid_unsafe_code_is_found_and_a_lint_lifted_elsewhere() {
    let forbids = "//! A module.\n\n#![forbid(unsafe_code)]\n";
    let lifts = format!("//! A module.\n\n#![{}(unsafe_code)]\n", "allow");
    assert_eq!(rules::unsafe_not_forbidden(&text("src/ids.rs", forbids)).len(), 0);
    assert_eq!(rules::unsafe_not_forbidden(&text("src/ids.rs", "//! A module.\n")).len(), 1);
    assert_eq!(rules::unsafe_not_forbidden(&text("src/engine/mod.rs", &lifts)).len(), 2);
    assert_eq!(rules::unsafe_not_forbidden(&text("src/engine/arrive.rs", &lifts)).len(), 1);
    assert_eq!(rules::unsafe_not_forbidden(&text("src/device/verbs/mod.rs", &lifts)).len(), 0);
}

#[test]
fn ignored_tests_without_a_reason_and_sleeps_are_found() {
    let bare = format!("    #[{}]\n", "ignore");
    assert_eq!(rules::ignored_without_reason(&text("a.rs", &bare)).len(), 1);
    assert_eq!(rules::ignored_without_reason(&text("a.rs", "#[ignore = \"needs a card\"]")).len(), 0);
    assert_eq!(rules::sleeps(&text("a.rs", &format!("std::thread::{}(x)", "sleep"))).len(), 1);
}

#[test]
fn dead_links_are_found() {
    let paths = ["docs/testing.md".to_owned(), "docs/decisions/0001.md".to_owned(), "README.md".to_owned()];
    let good = "[a](testing.md) [b](../README.md#top) [c](decisions) [d](https://example.org/x) [e](#here)";
    assert_eq!(rules::dead_links(&text("docs/a.md", good), &paths), [""; 0]);
    assert_eq!(rules::dead_links(&text("docs/a.md", "[a](README.md)"), &paths).len(), 1);
}

#[test]
fn glossary_terms_out_of_order_twice_empty_or_without_a_source_are_found() {
    let sources = "struct Tag;";
    let wrong = |glossary: &str| rules::glossary(&text("docs/glossary.md", glossary), sources).len();
    assert_eq!(wrong("**post** – to hand in.\n\n**tag** (`Tag`) – 64 bits.\n"), 0);
    assert_eq!(wrong("**tag** – 64 bits.\n**post** – to hand in.\n"), 1);
    assert_eq!(wrong("**tag** – 64 bits.\n**tag** – again.\n"), 1);
    assert_eq!(wrong("**tag**\n"), 1);
    assert_eq!(wrong("**tag** (`Label`) – 64 bits.\n"), 1);
    assert_eq!(wrong("no terms\n"), 1);
}

#[test]
fn a_number_of_the_contract_that_its_table_lacks_is_found_in_lists_too() {
    let table =
        rules::contract_numbers("| 6.1 | slots |\n| 12 | sizes |\n| A1 | a question |\n| `x` | y |\n");
    assert_eq!(table, ["6.1", "12"]);
    let name = format!("TM-{}", "CONTRACT");
    let wrong =
        |cited: &str| rules::unknown_numbers(&text("a.rs", &format!("// ({name} {cited}\n")), &table).len();
    assert_eq!([wrong("6.1, 12). 99"), wrong("6.1 and 12"), wrong("A7), 8"), wrong("says 3")], [0; 4]);
    assert_eq!([wrong("6.2)"), wrong("6.1, 7, 8)"), wrong("6.1 and 13."), wrong("12 to 14")], [1, 2, 1, 1]);
}

#[test]
fn figures_that_were_recorded_anew_are_found() {
    let recorded = |name: &str| match name {
        "a/16" => Some(100.4),
        "b" => Some(50.0),
        _ => None,
    };
    let page = |stands: &str, b: &str| {
        let others = "| b | 50 |\n".repeat(5);
        format!("| path | what | goal | at | times |\n| `a/16` | it | 50 | {stands} |\n| b | {b} |\n{others}")
    };
    assert_eq!(rules::stale_figures(&page("100 | 2.0", "50"), recorded), [""; 0]);
    assert_eq!(
        rules::stale_figures(&page("99 | 2.0", "51"), recorded),
        ["recorded is | `a/16` | it | 50 | 100 | 2.0 |", "recorded is | b | 50 |"]
    );
    assert_eq!(rules::stale_figures("", recorded), ["only 0 rows have figures that were recorded"]);
}
