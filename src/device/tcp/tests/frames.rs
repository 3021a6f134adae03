//! Frames and addresses as bytes: docs/wire.md in numbers.

use crate::device::stream::frame::{Head, Kind, ReadRequest, numbered};
use crate::device::tcp::address;

#[test]
fn heads_are_eight_bytes() {
    let golden = [
        (Kind::Message, 0x0102_0304, [1, 2, 3, 4, 1, 0, 0, 0]),
        (Kind::MessageWithImmediate, 16, [0, 0, 0, 16, 2, 0, 0, 0]),
        (Kind::Read, 32, [0, 0, 0, 32, 3, 0, 0, 0]),
        (Kind::ReadData, u32::MAX, [255, 255, 255, 255, 4, 0, 0, 0]),
        (Kind::ReadRefused, 8, [0, 0, 0, 8, 5, 0, 0, 0]),
        (Kind::ReadWithdrawn, 8, [0, 0, 0, 8, 6, 0, 0, 0]),
    ];
    for (kind, length, bytes) in golden {
        let head = Head { kind, length };
        assert_eq!(head.to_bytes(), bytes);
        assert_eq!(Head::decode(&bytes), Ok(Some(head)));
        assert_eq!(Head::decode(&bytes[..7]), Ok(None));
    }
    for bad in [[0, 0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 7, 0, 0, 0], [0, 0, 0, 1, 1, 0, 0, 1]] {
        assert!(Head::decode(&bad).is_err());
    }
}

#[test]
fn reads_are_forty_bytes() {
    let request = ReadRequest {
        number: 0x0102_0304_0506_0708,
        address: 0x1112_1314_1516_1718,
        length: 0x2122_2324_2526_2728,
        key: 0x3132_3334,
    };
    let mut golden = vec![0, 0, 0, 32, 3, 0, 0, 0];
    golden.extend(1..=8_u8);
    golden.extend(0x11..=0x18_u8);
    golden.extend(0x21..=0x28_u8);
    golden.extend([0x31, 0x32, 0x33, 0x34, 0, 0, 0, 0]);
    assert_eq!(request.to_bytes().as_slice(), golden);
    let body: [u8; 32] = golden[8..].try_into().expect("32 bytes");
    assert_eq!(ReadRequest::decode(&body), Ok(request));
    for (at, value) in [(31, 1), (8, 0xFF)] {
        let mut bad = body;
        bad[at] = value;
        assert!(ReadRequest::decode(&bad).is_err(), "{at}");
    }
    let mut empty = body;
    empty[16..24].fill(0);
    assert!(ReadRequest::decode(&empty).is_err());
}

#[test]
fn data_and_refusals_begin_with_the_number() {
    let golden = [0, 0, 0, 13, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    assert_eq!(numbered(Kind::ReadData, 9, 5), golden);
    assert_eq!(numbered(Kind::ReadRefused, 9, 0)[..5], [0, 0, 0, 8, 5]);
}

#[test]
fn addresses_are_what_the_system_calls_take() {
    let four = address::to_bytes(&"1.2.3.4:258".parse().expect("an address"));
    let mut golden = address::AF_INET.to_ne_bytes().to_vec();
    golden.extend([1, 2, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(four, golden);
    for text in ["1.2.3.4:5", "[::1]:80", "[fe80::1%7]:9"] {
        let address = text.parse().expect("an address");
        let bytes = address::to_bytes(&address);
        assert_eq!(address::from_bytes(&bytes), Some(address));
        assert_eq!(address::from_bytes(&bytes[1..]), None);
        assert_eq!(address::from_bytes(&bytes[..bytes.len() - 1]), None);
    }
    assert_eq!(address::from_bytes(&[0xFF; 16]), None);
}
