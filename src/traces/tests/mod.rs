//! Tests of the trace reader.

mod input;
mod layout;
mod malformed;
mod mutated;

use super::*;

/// A trace with the first line, the given headers and events.
fn parse(text: &str) -> Result<Trace, ReadError> {
    Trace::from_bytes("t", format!("# format: fi-tagged-trace 1\n{text}"))
}

/// What is wrong with it.
fn complaint(text: &str) -> String {
    parse(text).map_or_else(|error| error.to_string(), |_| panic!("should be malformed: {text}"))
}

fn read(bundle: &Bundled) -> Trace {
    bundle.read().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_recorded_trace_is_well_formed_and_has_what_its_headers_say() {
    assert_eq!(bundled().len(), 22);
    let mut events = 0;
    for bundle in bundled() {
        let trace = read(bundle);
        for key in ["app", "ranks", "rank", "mpi", "order", "events", "n-match"] {
            assert!(trace.header.value(key).is_some(), "{}: no header {key}", trace.name);
        }
        assert_eq!(trace.header.order(), Some(Order::Send));
        events += trace.steps.len();
    }
    assert_eq!(events, 304_329);
}

#[test]
fn depths_are_those_of_the_published_statistics() {
    let depths = |name: &str| {
        let bundle = bundled().iter().find(|bundle| bundle.name.starts_with(name));
        let depths = read(bundle.unwrap_or_else(|| panic!("no trace {name}"))).depths();
        (depths.posted_max, depths.unexpected_max)
    };
    assert_eq!(depths("deepposted4-reverse"), (10_003, 0));
    assert_eq!(depths("lulesh27-center"), (26, 25));
    assert_eq!(depths("incast8-directed"), (1, 14_003));
    assert_eq!(depths("wildmix-deep8"), (611, 596));
}

#[test]
fn the_files_in_the_folder_are_those_in_the_program() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{error}"))
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".zst"))
        .collect();
    names.sort();
    assert_eq!(names, bundled().iter().map(|bundle| bundle.name).collect::<Vec<_>>());
}

#[test]
fn every_kind_of_line_is_understood() {
    use crate::ids::{Ignore, PeerId, Source, Tag};
    use crate::matching::{Envelope, Pattern};

    let trace = parse(
        "# app: a b\n# ranks: 3\n# order: poll\n# events: 7 (first of 9)\n# n-post: 2\n# n-match: 2\n\
         post 0 tag=ffffffffffffffff ignore=f src=2 len=8\n\
         arrive 0 tag=0 src=1 len=0\n\
         peek 0 tag=0 ignore=0 src=any claim\nfound 0 0\n\
         claim 1 0 len=18446744073709551615\nmatch 1 0\n\
         peek 1 tag=0 ignore=0 src=0\nnone 1\n\
         cancel 0\ncancelled 0\n\
         post 2 tag=1 ignore=0 src=any len=1\n",
    );
    // One event is missing its match: the header counts two.
    assert_eq!(
        trace.map_err(|error| error.to_string()).err().as_deref(),
        Some("t:18: expected 2 of \"n-match\" as the header says, found 1 at the end of the file")
    );

    let trace = parse(
        "# ranks: 3\npost 0 tag=ffffffffffffffff ignore=f src=2 len=8\narrive 0 tag=0 src=1 len=0\n\
         peek 0 tag=0 ignore=0 src=any claim\nfound 0 0\nclaim 1 0 len=9\nmatch 1 0\ncancel 0\ncancelled 0\n",
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let steps = [
        Step {
            line: 3,
            event: Event::Post {
                receive: ReceiveNumber(0),
                pattern: Pattern { tag: Tag(u64::MAX), ignore: Ignore(15), source: Source::Peer(PeerId(2)) },
                length: 8,
            },
            expected: Outcome::Queued,
        },
        Step {
            line: 4,
            event: Event::Arrive {
                message: MessageNumber(0),
                envelope: Envelope { tag: Tag(0), source: PeerId(1) },
                length: 0,
            },
            expected: Outcome::Queued,
        },
        Step {
            line: 5,
            event: Event::Peek {
                peek: PeekNumber(0),
                pattern: Pattern { tag: Tag(0), ignore: Ignore(0), source: Source::Any },
                claim: true,
            },
            expected: Outcome::Found(MessageNumber(0)),
        },
        Step {
            line: 7,
            event: Event::Claim { receive: ReceiveNumber(1), peek: PeekNumber(0), length: 9 },
            expected: Outcome::Matched(ReceiveNumber(1), MessageNumber(0)),
        },
        Step { line: 9, event: Event::Cancel { receive: ReceiveNumber(0) }, expected: Outcome::Cancelled },
    ];
    assert_eq!(trace.steps, steps);
    assert_eq!(trace.counts(), Counts { receives: 2, messages: 1, peeks: 1 });
}

#[test]
fn a_trace_of_headers_alone_has_no_steps() {
    assert_eq!(parse("# events: 0\n").map(|trace| trace.steps.len()).ok(), Some(0));
}

#[test]
fn short_names_leave_out_folder_and_ending() {
    let name = |name: &str| {
        let trace = Trace { name: name.into(), header: Header::default(), steps: Vec::new() };
        trace.short_name().to_owned()
    };
    assert_eq!(name("a/b/c.r0.zst"), "c.r0");
    assert_eq!(name("c.gz"), "c");
    assert_eq!(name("c"), "c");
}
