//! Bytes from a peer that means harm: never a panic, never two readings, always an error that says where.

use super::*;

/// Anything decoded must encode to what it was decoded from, and must not be known otherwise when it comes in pieces.
fn judge(bytes: &[u8], cut: usize) -> bool {
    let whole = decode(bytes);
    let total = bytes.len() as u64;
    match whole {
        Ok(message) => {
            let mut out = [0; 512];
            let length = message.encode(&mut out).expect("what was decoded can be said");
            assert_eq!(&out[..length], bytes, "not canonical: {message:?}");
            let part = decode_partial(&bytes[..cut], total).expect("the whole is right, so is its beginning");
            if let Partial::Message(early) = part {
                assert_eq!(early.payload_range(), message.payload_range());
            }
        }
        // A display that names the trouble, whatever it is.
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let part = decode_partial(&bytes[..cut], total);
            if !matches!(part, Ok(Partial::Needed(_))) {
                assert_eq!(part, Err(error), "with its header known, a message is as wrong as it is whole");
            }
        }
    }
    whole.is_ok()
}

/// A small generator of numbers: these tests are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        self.next() as u8
    }
}

#[test]
fn random_bytes_are_refused_or_mean_one_thing() {
    let mut numbers = Numbers(1);
    let mut understood = 0;
    for _ in 0..300_000 {
        let mut bytes = [0; 160];
        let length = numbers.below(bytes.len() + 1);
        for byte in &mut bytes[..length] {
            // Many zeros, or reserved fields alone would stop everything.
            *byte = if numbers.next() & 1 == 0 { 0 } else { numbers.byte() };
        }
        if length > 2 {
            bytes[0] = (numbers.byte() % 5).wrapping_mul(numbers.byte() & 1);
            bytes[1] = if bytes[0] == 0 { numbers.byte() & 0x3F } else { 0 };
        }
        let cut = numbers.below(length + 1);
        understood += u32::from(judge(&bytes[..length], cut));
    }
    assert!(understood > 1_000, "only {understood} of the random messages got past the checks");
}

#[test]
fn mutated_messages_are_refused_or_mean_one_thing() {
    let mut numbers = Numbers(2);
    let golden = GOLDEN.map(|(_, hex, _)| super::bytes(hex));
    let (mut understood, mut refused) = (0_u32, 0_u32);
    for _ in 0..300_000 {
        let mut bytes = golden[numbers.below(golden.len())].clone();
        for _ in 0..=numbers.below(3) {
            let at = numbers.below(bytes.len());
            match numbers.below(6) {
                0 => bytes[at] ^= 1 << numbers.below(8),
                1 => bytes[at] = numbers.byte(),
                2 => bytes[at] = if numbers.next() & 1 == 0 { 0xFF } else { 0 },
                3 => bytes.truncate(at.max(1)),
                4 => bytes.extend_from_slice(&numbers.next().to_be_bytes()[..numbers.below(8) + 1]),
                _ => {
                    let other = &golden[numbers.below(golden.len())];
                    let from = numbers.below(other.len());
                    bytes.truncate(at.max(1));
                    bytes.extend_from_slice(&other[from..]);
                }
            }
        }
        let cut = numbers.below(bytes.len() + 1);
        if judge(&bytes, cut) { understood += 1 } else { refused += 1 }
    }
    assert!(understood > 30_000 && refused > 30_000, "{understood} understood, {refused} refused");
}

#[test]
fn every_first_and_second_byte_is_known_or_an_error_that_names_it() {
    for (_, hex, _) in &GOLDEN {
        for value in 0..=u8::MAX {
            let mut bytes = bytes(hex);
            bytes[0] = value;
            judge(&bytes, bytes.len() / 2);
            let field_is = |field: &str| matches!(decode(&bytes), Err(WireError::Value { field: f, offset: 0, .. }) if f == field);
            assert_eq!(field_is("opcode"), value > 3, "opcode {value}");
        }
        for value in 0..=u8::MAX {
            let mut bytes = bytes(hex);
            bytes[1] = value;
            judge(&bytes, bytes.len() / 2);
            let known = if bytes[0] == 0 { (0x21..=0x38).contains(&value) } else { value == 0 };
            assert!(known || decode(&bytes).is_err(), "second byte {value:#x} behind {}", bytes[0]);
        }
    }
}

#[test]
fn every_truncation_is_refused_unless_the_payload_alone_is_cut() {
    for (name, hex, message) in &GOLDEN {
        let bytes = bytes(hex);
        let header = message.payload_range().map_or(bytes.len(), |range| range.start as usize);
        for length in 0..bytes.len() {
            let understood = judge(&bytes[..length], length / 2);
            if length < header {
                assert!(!understood, "{name} of {length} bytes");
                let error = decode(&bytes[..length]).unwrap_err();
                assert!(
                    matches!(error, WireError::Short { length: l, .. } if l == length as u64),
                    "{name}: {error}"
                );
            }
        }
    }
}

#[test]
fn bytes_behind_the_end_are_refused_where_no_payload_can_be() {
    for (name, hex, message) in &GOLDEN {
        let mut bytes = bytes(hex);
        for _ in 0..70 {
            bytes.push(0);
            let understood = judge(&bytes, 3);
            let may = message.payload_range().is_some();
            assert!(may || !understood, "{name} with {} bytes", bytes.len());
        }
    }
}

#[test]
fn every_reserved_bit_that_is_set_is_refused() {
    // Where docs/wire.md says 0, by golden message: name, and the reserved bytes (from, to).
    let reserved: [(&str, &[(usize, usize)]); 21] = [
        ("eager", &[(1, 4)]),
        ("rendezvous", &[(1, 4)]),
        ("fin", &[(1, 4)]),
        ("untagged", &[(2, 4), (8, 16)]),
        ("untagged rendezvous", &[(2, 4), (12, 16), (36, 40)]),
        ("first segment without tag", &[(3, 4), (8, 16), (24, 32)]),
        ("middle segment", &[(2, 5)]),
        ("credit", &[(2, 4), (12, 16)]),
        ("match acknowledgement", &[(2, 5)]),
        ("rendezvous refused", &[(3, 5)]),
        ("hello", &[(6, 8), (52, 56)]),
        ("hello refused", &[(3, 4), (6, 8)]),
        ("goodbye", &[(3, 4)]),
        ("keepalive", &[(3, 4)]),
        ("first piece of a remote write", &[(3, 5), (40, 48)]),
        ("last piece of a remote write with CQ data", &[(3, 5), (44, 48)]),
        ("remote read", &[(3, 5)]),
        ("remote data", &[(2, 5)]),
        ("end of a remote access", &[(3, 5)]),
        ("request for a connection", &[(6, 8), (52, 56)]),
        ("rejection", &[(2, 3)]),
    ];
    for (name, ranges) in reserved {
        let hex = GOLDEN.iter().find(|(golden, _, _)| *golden == name).unwrap().1;
        for at in ranges.iter().flat_map(|(from, to)| *from..*to) {
            for bit in 0..8 {
                let mut bytes = bytes(hex);
                bytes[at] ^= 1 << bit;
                let error = decode(&bytes).unwrap_err();
                assert!(matches!(error, WireError::Value { .. }), "{name}, byte {at}: {error}");
            }
        }
    }
}

#[test]
fn lies_about_lengths_are_named() {
    let case = |name: &str, at: usize, patch: &[u8]| {
        let mut bytes = bytes(GOLDEN.iter().find(|(golden, _, _)| *golden == name).unwrap().1);
        bytes[at..at + patch.len()].copy_from_slice(patch);
        decode(&bytes).unwrap_err().to_string()
    };
    let ones = [0xFF; 8];
    assert_eq!(
        case("rendezvous", 16, &ones),
        "va at offset 16 is 0xffffffffffffffff, expected at most 0xffffffffffefffff"
    );
    assert_eq!(
        case("rendezvous of 64-bit length", 32, &[0; 8]),
        "true length at offset 32 is 0x0, expected at least 0xffffffff"
    );
    assert_eq!(
        case("rendezvous", 28, &ones[..4]),
        "true length needs a message of at least 40 bytes, but it has 32"
    );
    assert_eq!(
        case("rendezvous of 64-bit length", 28, &[0; 4]),
        "RNDV makes a message of 32 bytes, but it has 40"
    );
    assert_eq!(
        case("first segment with tag", 16, &[0; 8]),
        "total length at offset 16 is 0x0, expected at least 0x4"
    );
    assert_eq!(
        case("last segment", 8, &ones),
        "segment offset at offset 8 is 0xffffffffffffffff, expected at most 0xfffffffffffffffe"
    );
    assert_eq!(
        case("remote read", 16, &ones),
        "address at offset 16 is 0xffffffffffffffff, expected at most 0xfffffffffffffff7"
    );
    assert_eq!(
        case("first piece of a remote write", 32, &ones),
        "offset in the stretch at offset 32 is 0xffffffffffffffff, expected at most 0x3"
    );
    assert_eq!(
        case("first piece of a remote write", 24, &[0; 8]),
        "the rest of the stretch makes a message of 48 bytes, but it has 53"
    );
    assert_eq!(
        case("first piece of a remote write", 2, &[2]),
        "flags at offset 2 is 0x2, expected the last piece only where the stretch ends"
    );
    assert_eq!(
        case("last piece of a remote write with CQ data", 2, &[1]),
        "flags at offset 2 is 0x1, expected CQ data only in the last piece"
    );
    assert_eq!(
        case("remote data", 8, &ones),
        "place of the bytes at offset 8 is 0xffffffffffffffff, expected at most 0xfffffffffffffffd"
    );
    assert_eq!(case("hello", 3, &[65]), "name length at offset 3 is 0x41, expected at most 0x40");
    assert_eq!(case("hello", 3, &[7]), "name needs a message of at least 63 bytes, but it has 62");
    assert_eq!(case("hello", 3, &[5]), "hello makes a message of 61 bytes, but it has 62");
    assert_eq!(case("hello", 16, &[0; 16]), "instance at offset 16 is 0x0, expected anything but 0");
}

#[test]
fn the_longest_stretch_of_memory_that_there_can_be_is_understood() {
    let mut bytes =
        bytes(GOLDEN.iter().find(|(golden, _, _)| *golden == "first piece of a remote write").unwrap().1);
    bytes[16..24].fill(0);
    bytes[24..32].fill(0xFF);
    assert!(judge(&bytes, 20));
}

#[test]
fn more_bytes_than_the_message_has_are_refused() {
    let eager = bytes(GOLDEN[0].1);
    let error = decode_partial(&eager, 20).unwrap_err();
    assert_eq!(error, WireError::Long { field: "bytes at hand", expected: 20, length: 21 });
}

#[test]
fn a_request_or_a_rejection_has_as_much_data_as_it_says() {
    let hello = &bytes(
        "01 01 0000  0000000b  00000040  00112233445566778899aabbccddeeff  0000000000004000 \
         0000000000100000 00000020 00000000",
    );
    for (kind, front) in [(0x37, hello.as_slice()), (0x38, &[])] {
        let message = |code, length, data: usize| {
            let mut message = vec![0, kind, code, length];
            message.extend_from_slice(front);
            message.extend(std::iter::repeat_n(0xDA, data));
            message
        };
        for data in 0..=64 {
            assert!(judge(&message(0, data as u8, data), 4), "{kind:#x} {data}");
        }
        for (length, data) in [(1, 0), (0, 1), (64, 63), (64, 65), (65, 65), (255, 64), (255, 255)] {
            assert!(!judge(&message(0, length, data), 4), "{kind:#x} {length} {data}");
        }
        assert!(!judge(&message(2, 0, 0), 2), "{kind:#x}: no such code");
    }
}
