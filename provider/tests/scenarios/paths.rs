//! Over which path the messages of this program's peers go, and that a peer of each is there where paths are mixed.

use super::common::pair::{ANY, Pair};
use super::common::{Received, Side, begin_paths, is_shared};

/// Whether this process has mapped memory that it shares with others.
fn has_shared_memory() -> bool {
    std::fs::read_to_string("/proc/self/maps").unwrap().contains("/memfd:tagmatch")
}

#[test]
fn peers_share_memory_where_this_program_says_so_and_else_none() {
    begin_paths();
    let pair = Pair::new();
    let mut buffer = [0; 8];
    assert_eq!(pair.b.receive(ANY, 1, 0, &mut buffer, 1), 0);
    pair.send(1, b"hello");
    assert_eq!(pair.received(), (1, 1, 5));
    // While others of the process come and go, this pair is there.
    assert_eq!(has_shared_memory(), is_shared());
    // Nothing stays of who is killed, since nothing has a name.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let names = descriptors.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let named: Vec<_> = names.filter(|name| name.starts_with("/dev/shm")).collect();
    assert!(named.is_empty() && !maps.contains(" /dev/shm/"), "{named:?}");
}

#[test]
fn one_endpoint_has_itself_shared_memory_and_the_network_and_keeps_one_order_of_each_sender() {
    const MESSAGES: u64 = 200;
    begin_paths();
    let sides = [Side::new(), Side::new(), Side::new()];
    let names = sides.each_ref().map(Side::name);
    let receiver = &sides[0];
    let numbers: Vec<u64> = names.iter().map(|name| receiver.insert(name)).collect();
    let to: Vec<u64> = sides.iter().map(|side| side.insert(&names[0])).collect();
    let others: Vec<&Side> = sides.iter().collect();
    for number in 0..MESSAGES {
        for (side, to) in sides.iter().zip(&to) {
            let text = number.to_le_bytes();
            side.send_surely(&others, |side| side.inject(*to, 5, &text, Some(number)));
        }
    }
    let mut next = [0_u64; 3];
    let mut buffer = [0; 8];
    for _ in 0..3 * MESSAGES {
        assert_eq!(receiver.receive(ANY, 5, 0, &mut buffer, 7), 0);
        let Received::Ok { source, data, .. } = receiver.next(&others) else { panic!("an error") };
        let from = numbers.iter().position(|number| *number == source).unwrap();
        assert_eq!((data, buffer), (next[from], next[from].to_le_bytes()), "from {from}");
        next[from] += 1;
    }
    assert_eq!(next, [MESSAGES; 3]);
    assert_eq!(has_shared_memory(), is_shared());
}
