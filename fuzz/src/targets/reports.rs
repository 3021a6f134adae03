//! Statistics of processes: a file that is read back is what was written.

use tagmatch::provider::statistics::Report;

pub(super) fn run(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some(reports) = Report::parse_all(&text) else { return false };
    let written: String = reports.iter().map(Report::text).collect();
    let again = Report::parse_all(&written).expect("what was written can be read");
    assert_eq!(again, reports);
    !reports.is_empty()
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let report = |rank: &str| {
        format!(
            "tagmatch-statistics 2\npid 12\nstarted 345\nhost h\nrank {rank}\ncommand c d\nsent 5\nmatched 18446744073709551615\nend\n"
        )
    };
    let both = [report("-"), report("3")].concat();
    vec![report("-").into_bytes(), report("0").into_bytes(), both.into_bytes()]
}
