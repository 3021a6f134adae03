//! The table of scenarios against the tests whose names say that they are of one.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::Text;

/// What a row names, or should: tests at provider level by their names, others by their files.
#[derive(Default, PartialEq, Eq, Debug)]
struct Row {
    tests: BTreeSet<String>,
    files: BTreeSet<String>,
}

/// Rows that name a test that is not there, or leave one out; and scenarios without a row.
pub(crate) fn wrong_rows(page: &str, texts: &[Text]) -> Vec<String> {
    let (rows, mut actual) = (rows(page), actual(texts));
    let mut wrong = Vec::new();
    if rows.len() < 30 {
        wrong.push(format!("there are {} rows", rows.len()));
    }
    for (number, row) in rows {
        let there = actual.remove(&number).unwrap_or_default();
        let mut differ = |what: &str, named: &BTreeSet<String>, there: &BTreeSet<String>| {
            let gone = named.difference(there).map(|name| format!("{number}: no {what} {name}"));
            let missing =
                there.difference(named).map(|name| format!("{number} leaves out the {what} {name}"));
            wrong.extend(gone.chain(missing));
        };
        differ("test", &row.tests, &there.tests);
        differ("file", &row.files, &there.files);
    }
    wrong.extend(actual.into_keys().map(|number| format!("{number} has tests and no row")));
    wrong
}

/// The rows of the page: in backticks names of tests in the third column, and files with such in the fourth.
fn rows(page: &str) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    for line in page.lines().filter(|line| line.starts_with("| B")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ticked = |cell: usize| {
            let cell = cells.get(cell).copied().unwrap_or_default();
            cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
        };
        // What else stands there says why not.
        let tests = ticked(3).into_iter().filter(|name| !numbers(name).is_empty()).collect();
        rows.insert(cells[1].to_owned(), Row { tests, files: ticked(4).into_iter().collect() });
    }
    rows
}

/// The tests that there are.
fn actual(texts: &[Text]) -> BTreeMap<String, Row> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for text in texts.iter().filter(|text| text.path.ends_with(".rs")) {
        let functions = text.text.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
        for name in functions.filter_map(|rest| rest.split_once('(')).map(|(name, _)| name) {
            for number in numbers(name) {
                let row = rows.entry(number).or_default();
                if text.path.starts_with("provider/tests/") {
                    row.tests.insert(name.to_owned());
                } else {
                    row.files.insert(text.path.clone());
                }
            }
        }
    }
    rows
}

/// The scenarios that a name begins with: of `b13_b14_…` B13 and B14.
fn numbers(name: &str) -> Vec<String> {
    let is_number = |part: &&str| {
        part.len() == 3 && part.starts_with('b') && part.bytes().skip(1).all(|digit| digit.is_ascii_digit())
    };
    name.split('_').take_while(is_number).map(str::to_uppercase).collect()
}

#[test]
fn a_row_that_names_what_is_gone_or_leaves_out_what_is_there_is_shown() {
    let text = |path: &str, text: &str| Text { path: path.into(), text: text.into() };
    let texts = [
        text("provider/tests/one.rs", "fn b01_b02_kept() {}\n    fn b01_new() {}\nfn b1_no_number() {}"),
        text("src/two.rs", "fn b03_elsewhere() {}"),
    ];
    let page = "| B01 | x | `b01_b02_kept`, `b01_gone`; not in `tests/other.rs` | `src/gone.rs` |\n\
                | B02 | x | `b01_b02_kept` | – |";
    let wrong = wrong_rows(page, &texts);
    let expected = [
        "there are 2 rows",
        "B01: no test b01_gone",
        "B01 leaves out the test b01_new",
        "B01: no file src/gone.rs",
        "B03 has tests and no row",
    ];
    assert_eq!(wrong, expected);
}
