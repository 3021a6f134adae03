//! Rules of the repository that no compiler knows: which module may use which, how long files are, what must not
//! stand in them. Each rule is a function of one file's text, so that it is itself tested on bad samples.
#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]

#[path = "tidy/arrows.rs"]
mod arrows;
mod common;
#[path = "tidy/pages.rs"]
mod pages;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/samples.rs"]
mod samples;
#[path = "tidy/scenarios.rs"]
mod scenarios;

use common::{Text, texts};

/// Apply a rule to every file that it is about, and show all that is wrong at once.
fn check(is_about: impl Fn(&str) -> bool, rule: impl Fn(&Text) -> Vec<String>) {
    let texts = texts();
    let about: Vec<_> = texts.iter().filter(|text| is_about(&text.path)).collect();
    assert!(!about.is_empty(), "the rule is about no file at all");
    let wrong: Vec<String> = about
        .iter()
        .flat_map(|text| rule(text).into_iter().map(|what| format!("{}: {what}", text.path)))
        .collect();
    assert!(wrong.is_empty(), "{}\n{} in all", wrong.join("\n"), wrong.len());
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

#[test]
fn modules_use_only_what_lies_below_them() {
    check(|path| path.starts_with("src/") && is_rust(path) && !arrows::is_test(path), arrows::wrong_uses);
}

#[test]
fn every_module_has_its_place_in_the_arrows() {
    check(|path| path.starts_with("src/") && is_rust(path), arrows::unknown_module);
}

#[test]
fn files_are_at_most_600_lines() {
    check(is_rust, rules::too_long);
}

#[test]
fn files_say_what_they_are_for() {
    check(is_rust, rules::no_purpose);
}

#[test]
fn no_file_names_a_machine_path_or_a_registry_host() {
    check(|_| true, rules::machine_paths);
}

#[test]
fn unsafe_has_a_safety_comment() {
    check(is_rust, rules::unsafe_without_comment);
}

#[test]
fn unsafe_stays_where_memory_is_shared_with_devices_or_c() {
    let is_about = |path: &str| {
        ["src/", "capi/", "sim/", "hw-tests/", "fuzz/"].iter().any(|start| path.starts_with(start))
    };
    check(|path| is_about(path) && is_rust(path), rules::unsafe_elsewhere);
}

#[test]
fn core_modules_forbid_unsafe_code() {
    let paths: Vec<String> = texts().into_iter().map(|text| text.path).collect();
    for root in rules::FORBIDDING {
        assert!(paths.iter().any(|path| path == root), "{root} is gone; the rule is about it");
    }
    check(|path| path.starts_with("src/") && is_rust(path), rules::unsafe_not_forbidden);
}

#[test]
fn an_ignored_test_says_why() {
    check(is_rust, rules::ignored_without_reason);
}

#[test]
fn tests_do_not_sleep() {
    check(is_rust, rules::sleeps);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let paths: Vec<String> = texts().into_iter().map(|text| text.path).collect();
    check(|path| path.ends_with(".md"), |text| rules::dead_links(text, &paths));
}

#[test]
fn every_number_of_the_contract_that_is_cited_stands_in_its_table() {
    let texts = texts();
    let page = texts.iter().find(|text| text.path == "docs/tm-srq.md");
    let table = rules::contract_numbers(&page.unwrap_or_else(|| panic!("docs/tm-srq.md is gone")).text);
    assert!(table.len() > 20, "{table:?}");
    check(|path| is_rust(path) || path.ends_with(".md"), |text| rules::unknown_numbers(text, &table));
}

#[test]
fn every_reading_that_can_be_switched_stands_in_the_page_of_the_simulated_card() {
    let texts = texts();
    let page = texts.iter().find(|text| text.path == "docs/simulated-hca.md");
    let page = &page.unwrap_or_else(|| panic!("docs/simulated-hca.md is gone")).text;
    for reading in tagmatch::device::soft::readings::READINGS {
        let row = format!("| `{}` | {} |", reading.text(), reading.meaning);
        assert!(page.contains(&row), "there is no row {row}");
    }
}

#[test]
fn the_page_on_cost_says_what_the_records_say() {
    let texts = texts();
    let text = |path: &str| {
        let found = texts.iter().find(|text| text.path == path);
        found.unwrap_or_else(|| panic!("{path} is gone")).text.as_str()
    };
    let figures = |path: &str| -> serde_json::Value {
        let json: serde_json::Value =
            serde_json::from_str(text(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        json["figures"].clone()
    };
    let paths = figures("benches/record/instructions.json");
    let layers = figures("benches/record/driver-instructions.json");
    let wrong = rules::stale_figures(text("docs/performance.md"), |name| {
        paths.get(name).or_else(|| layers.get(name)).and_then(serde_json::Value::as_f64)
    });
    assert!(wrong.is_empty(), "docs/performance.md:\n{}", wrong.join("\n"));
}

#[test]
fn the_table_of_scenarios_names_every_test_of_one_and_no_other() {
    let texts = texts();
    let page = texts.iter().find(|text| text.path == "docs/scenarios.md");
    let page = page.unwrap_or_else(|| panic!("docs/scenarios.md is gone"));
    let wrong = scenarios::wrong_rows(&page.text, &texts);
    assert!(wrong.is_empty(), "docs/scenarios.md:\n{}", wrong.join("\n"));
}

#[test]
fn the_tables_of_manual_pages_name_tests_and_files_that_there_are() {
    let texts = texts();
    for path in ["docs/fi_cm.md", "docs/fi_tagged.md"] {
        let page = texts.iter().find(|text| text.path == path);
        let page = page.unwrap_or_else(|| panic!("{path} is gone"));
        let wrong = pages::wrong_rows(&page.text, &texts);
        assert!(wrong.is_empty(), "{path}:\n{}", wrong.join("\n"));
    }
}

#[test]
fn the_glossary_has_each_term_once_in_order_and_names_only_what_there_is() {
    let sources: String =
        texts().into_iter().filter(|text| is_rust(&text.path)).map(|text| text.text).collect();
    check(|path| path == "docs/glossary.md", |text| rules::glossary(text, &sources));
}
