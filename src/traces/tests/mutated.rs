//! Damaged traces: whatever comes in, an error or steps come out, never a panic.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::io::{Cursor, Read};

/// The beginning of a real trace with every kind of line, as text.
fn text() -> Vec<u8> {
    let bundle = bundled().iter().find(|bundle| bundle.name.starts_with("masterworker"));
    let bytes = bundle.map_or(&[][..], |bundle| bundle.bytes);
    let mut text = Vec::new();
    zstd::Frames::new(Cursor::new(bytes))
        .take(24_000)
        .read_to_end(&mut text)
        .unwrap_or_else(|error| panic!("{error}"));
    text
}

/// What may happen to a byte of the input.
#[derive(Clone, Debug)]
enum Mutation {
    Set(prop::sample::Index, u8),
    Insert(prop::sample::Index, u8),
    Remove(prop::sample::Index, u8),
    Repeat(prop::sample::Index, u8),
    Cut(prop::sample::Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let place = any::<prop::sample::Index>;
    let byte = prop_oneof![
        3 => prop::sample::select(b" \n#=0123456789abcdefg:".to_vec()),
        1 => any::<u8>(),
    ];
    prop_oneof![
        8 => (place(), byte.clone()).prop_map(|(place, byte)| Mutation::Set(place, byte)),
        4 => (place(), byte).prop_map(|(place, byte)| Mutation::Insert(place, byte)),
        4 => (place(), 1..60u8).prop_map(|(place, length)| Mutation::Remove(place, length)),
        4 => (place(), 1..60u8).prop_map(|(place, length)| Mutation::Repeat(place, length)),
        1 => place().prop_map(Mutation::Cut),
    ]
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    if bytes.is_empty() {
        return;
    }
    let range = |place: &prop::sample::Index, length: u8, end: usize| {
        let start = place.index(end);
        start..(start + usize::from(length)).min(end)
    };
    match mutation {
        Mutation::Set(place, byte) => {
            let place = place.index(bytes.len());
            bytes[place] = *byte;
        }
        Mutation::Insert(place, byte) => bytes.insert(place.index(bytes.len()), *byte),
        Mutation::Remove(place, length) => drop(bytes.drain(range(place, *length, bytes.len()))),
        Mutation::Repeat(place, length) => {
            let range = range(place, *length, bytes.len());
            let piece = bytes[range.clone()].to_vec();
            bytes.splice(range.start..range.start, piece);
        }
        Mutation::Cut(place) => bytes.truncate(place.index(bytes.len())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn mutated_text_gives_steps_or_an_error_with_its_place(mutations in prop::collection::vec(mutation(), 1..6)) {
        let mut bytes = text();
        mutations.iter().for_each(|mutation| mutate(&mut bytes, mutation));
        let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
        match Trace::from_bytes("t", bytes) {
            Ok(trace) => prop_assert!(trace.steps.len() as u64 <= lines),
            Err(ReadError::Malformed(malformed)) => {
                prop_assert!(malformed.line >= 1 && malformed.line <= lines);
                let start = format!("t:{}: expected ", malformed.line);
                prop_assert!(malformed.to_string().starts_with(&start));
            }
            // The first bytes may have become those of a compressed file.
            Err(ReadError::Damaged { .. }) => {}
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn mutated_compressed_data_gives_the_same_steps_or_an_error(
        name in prop::sample::select(vec!["minife8", "miniamr8", "minife27"]),
        mutations in prop::collection::vec(mutation(), 1..4),
    ) {
        let bundle = *bundled().iter().find(|bundle| bundle.name.starts_with(name)).unwrap_or(&bundled()[0]);
        let mut bytes = bundle.bytes.to_vec();
        mutations.iter().for_each(|mutation| mutate(&mut bytes, mutation));
        // A checksum stands at the end: what is accepted is the text as it was.
        if let Ok(trace) = Trace::from_bytes(bundle.name, bytes) {
            prop_assert_eq!(trace, read(&bundle));
        }
    }

    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Trace::from_bytes("t", bytes).is_err());
    }
}
