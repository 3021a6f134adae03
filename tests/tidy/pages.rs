//! Tables that go through a manual page: what is asked, where it is done, which tests show it.

use std::collections::BTreeSet;

use crate::common::Text;

/// Files of the second column that are not there, tests of the third that are not, and rows without any.
pub(crate) fn wrong_rows(page: &str, texts: &[Text]) -> Vec<String> {
    let tests = tests(texts);
    let is_file = |name: &str| {
        let below = format!("src/provider/calls/{name}");
        texts.iter().any(|text| text.path == name || text.path == below)
    };
    let mut wrong = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| **")).skip(1) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let &[asked, done, shown] = &cells[..] else {
            wrong.push(format!("three columns: {row}"));
            continue;
        };
        let named = ticked(shown);
        if named.is_empty() {
            wrong.push(format!("no test: {asked}"));
        }
        let gone = named.into_iter().filter(|name| !tests.contains(name));
        wrong.extend(gone.map(|name| format!("no test {name}")));
        let files = ticked(done).into_iter().filter(|name| name.ends_with(".rs"));
        wrong.extend(files.filter(|name| !is_file(name)).map(|name| format!("no file {name}")));
    }
    wrong
}

/// What stands in backticks.
fn ticked(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The names of all tests.
fn tests(texts: &[Text]) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for text in texts.iter().filter(|text| text.path.ends_with(".rs")) {
        let mut is_test = false;
        for line in text.text.lines().map(str::trim_start) {
            match line.strip_prefix("fn ").and_then(|rest| rest.split_once('(')) {
                Some((name, _)) if std::mem::take(&mut is_test) => drop(names.insert(name)),
                _ => is_test = line == "#[test]" || is_test && line.starts_with("#["),
            }
        }
    }
    names
}

#[test]
fn a_row_that_names_what_is_gone_is_shown() {
    let texts = [Text {
        path: "src/provider/calls/cm.rs".into(),
        text: "#[test]\n#[ignore]\nfn kept() {}\nfn helper() {}".into(),
    }];
    let page = "| asked | done in | shown by |\n|---|---|---|\n| **part** | | |\n\
                | one | `cm.rs` (`-FI_EINVAL`) | `kept` |\n\
                | two | `gone.rs` | `helper` |\n\
                | three | here | |\n\
                | four |";
    let expected = ["no test helper", "no file gone.rs", "no test: three", "three columns: | four |"];
    assert_eq!(wrong_rows(page, &texts), expected);
}
