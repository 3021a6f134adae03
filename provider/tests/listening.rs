//! Where an endpoint listens, whom it lets in, and that connections send at once. One test, alone in its process: it reads
//! which sockets the process has and changes the environment.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a call of C through a table of an object is to read the table and to call"
)]

mod common;

use common::pair::ANY;
use common::{ROUNDS, Received, Side, Wanted, fabric, minus};
use std::collections::HashSet;
use std::fs;
use tagmatch::provider::abi;

/// Addresses and ports at which this process listens, as the kernel writes them.
fn listening() -> Vec<String> {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    let links = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let own: HashSet<String> = links
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut found = Vec::new();
    for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        let table = fs::read_to_string(table).unwrap_or_default();
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields[3] == LISTEN && own.contains(fields[9]) {
                found.push(fields[1].to_owned());
            }
        }
    }
    found.sort_unstable();
    found
}

/// How many connected TCP sockets this process has; each of them sends at once what it is given.
fn connections_without_delay() -> usize {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let numbers = descriptors.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let connected = numbers.filter_map(|number| {
        let option = |level, name| {
            let (mut value, mut length) = (0_i32, 4);
            // SAFETY: whatever the number names, there is room for four bytes.
            let result =
                unsafe { libc::getsockopt(number, level, name, (&raw mut value).cast(), &raw mut length) };
            (result == 0).then_some(value)
        };
        let is_tcp = option(libc::SOL_SOCKET, libc::SO_PROTOCOL)? == libc::IPPROTO_TCP;
        let is_connected = is_tcp && option(libc::SOL_SOCKET, libc::SO_ACCEPTCONN)? == 0;
        is_connected.then(|| option(libc::IPPROTO_TCP, libc::TCP_NODELAY))
    });
    connected.map(|no_delay| assert_eq!(no_delay, Some(1), "Nagle's algorithm is on")).count()
}

/// 127.0.0.1 and the port of a name, as the kernel writes them.
fn loopback(side: &Side) -> String {
    let name = side.name();
    format!("0100007F:{:04X}", u16::from_be_bytes([name[2], name[3]]))
}

fn side(key: Option<&str>) -> Side {
    match key {
        // SAFETY: the one test of this program, whose main thread waits.
        Some(key) => unsafe { std::env::set_var(KEY, key) },
        // SAFETY: as above.
        None => unsafe { std::env::remove_var(KEY) },
    }
    Side::new()
}

/// Whether a message gets from one side to the other, or what the sender is told.
fn reach(from: &Side, to: &Side) -> Result<(), u64> {
    let (name, mut buffer) = (from.insert(&to.name()), [0; 8]);
    assert_eq!(to.receive(ANY, 1, 0, &mut buffer, 1), 0);
    for _ in 0..ROUNDS {
        match from.inject(name, 1, b"m", None) {
            0 => {
                let end = to.next(&[from]);
                assert!(matches!(end, Received::Ok { context: 1, length: 1, .. }), "{end:?}");
                return Ok(());
            }
            again if again == minus(abi::FI_EAGAIN) => {
                from.progress();
                to.progress();
            }
            other => {
                assert_eq!(to.cancel(1), 0);
                let end = to.next(&[from]);
                assert!(matches!(end, Received::Error { error: abi::FI_ECANCELED, .. }), "{end:?}");
                return Err(other.unsigned_abs() as u64);
            }
        }
    }
    panic!("neither sent nor refused");
}

#[test]
fn an_endpoint_listens_at_its_own_address_alone_and_lets_in_who_holds_the_key_of_the_job() {
    let library = fabric();
    assert_eq!(listening(), [""; 0], "nothing listens before there is an endpoint");
    let info = library.info(library.api(), |hints| common::side::ask(hints, &Wanted::default())).unwrap();
    assert_eq!(listening(), [""; 0], "an offer listens nowhere");
    // SAFETY: ours, and not used any more.
    unsafe { (library.freeinfo)(info) };

    let (plain, other) = (side(None), side(None));
    let mut own = [loopback(&plain), loopback(&other)];
    own.sort_unstable();
    assert_eq!(listening(), own, "each at its own address and nowhere else");
    assert_eq!(connections_without_delay(), 0);
    assert_eq!(reach(&plain, &other), Ok(()));
    assert_eq!(listening(), own, "connections listen nowhere");
    assert_eq!(connections_without_delay(), 2, "both ends of one");
    drop(other);
    assert_eq!(listening(), [loopback(&plain)]);

    let (first, second, stranger) = (side(Some(OURS)), side(Some(OURS)), side(Some(THEIRS)));
    assert_eq!(reach(&first, &second), Ok(()));
    assert_eq!(reach(&second, &first), Ok(()));
    for (from, to) in [(&stranger, &first), (&first, &stranger), (&plain, &first), (&first, &plain)] {
        assert_eq!(reach(from, to), Err(abi::FI_EACCES));
    }
    assert_eq!(reach(&first, &second), Ok(()), "whoever was refused has harmed nobody");
    // SAFETY: as in `side`.
    unsafe { std::env::set_var(KEY, "15 bytes of key") };
    let refused = library.info(library.api(), |hints| common::side::ask(hints, &Wanted::default()));
    assert_eq!(refused.err().map(isize::try_from), Some(Ok(minus(abi::FI_ENODATA))), "a key too short");
}

const KEY: &str = "FI_TAGMATCH_JOB_KEY";
const OURS: &str = "the key of our job";
const THEIRS: &str = "the key of another job";
/// The state of a socket that listens, in the kernel's tables.
const LISTEN: &str = "0A";
