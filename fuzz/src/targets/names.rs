//! Addresses as peers and users give them. An address of queue pairs is what it encodes to; one of an endpoint stands for
//! somebody or is refused, and a number never stands for two.

use tagmatch::device::verbs::address::ConnectInfo;
use tagmatch::endpoint::{Address, AddressError, Config, Endpoint};

pub(super) fn run(bytes: &[u8]) -> bool {
    let info = ConnectInfo::decode(bytes);
    match &info {
        Ok(info) => assert_eq!(info.to_bytes().as_slice(), bytes, "{info:?}"),
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
    info.is_ok() | enter(bytes)
}

/// The bytes are a list of entries: a number, a length, and a name.
fn enter(mut bytes: &[u8]) -> bool {
    let config = Config { seed: Some([1; 32]), ..Config::default() };
    let mut endpoint = Endpoint::new(config, Vec::new()).expect("nothing is asked of transports");
    let mut taken = std::collections::HashMap::new();
    while let [number, length, rest @ ..] = bytes {
        let number = Address(if *number == 0xFF { u64::MAX } else { u64::from(*number % 8) });
        let (name, behind) = rest.split_at(usize::from(*length).min(rest.len()));
        bytes = behind;
        if *length == 0xFF {
            endpoint.remove_address(number);
            taken.remove(&number.0);
            continue;
        }
        match endpoint.set_address(number, name) {
            Ok(()) => {
                let before = taken.insert(number.0, name);
                assert!(before.is_none_or(|before| before == name), "{number:?} stood for another");
            }
            Err(AddressError::Length(length)) => assert!(length == 0 || length > 64),
            Err(AddressError::Taken(_)) => assert_ne!(taken.get(&number.0), Some(&name)),
            Err(other) => assert!(!other.to_string().is_empty()),
        }
    }
    !taken.is_empty()
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut info = vec![0; ConnectInfo::LENGTH];
    info[..8].copy_from_slice(b"TMvb\x01\x01\x00\x03");
    for at in [9, 10, 15, 19, 23, 27, 31] {
        info[at] = 1;
    }
    let mut ethernet = info.clone();
    (ethernet[5], ethernet[6], ethernet[9]) = (2, 1, 0);
    ethernet[32..].copy_from_slice(&[0xFE; 16]);
    let ipv4 = [2, 0, 0x1F, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut ipv6 = vec![10, 0, 0x1F, 0x90];
    ipv6.extend([0; 24]);
    let mut entries = vec![0, 16];
    entries.extend(ipv4);
    entries.extend([1, 28]);
    entries.extend(&ipv6);
    entries.extend([0, 0xFF, 1, 4, 1, 2, 3, 4]);
    vec![info, ethernet, ipv4.to_vec(), ipv6, entries]
}
