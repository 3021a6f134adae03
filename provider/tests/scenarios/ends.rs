//! A process that ends without `fi_close`: what it was told to be transmitted is there.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use super::common::pair::{ANY, pattern};
use super::common::{Received, Side, minus};
use tagmatch::provider::abi;

/// Where a sender sends to.
const TO: &str = "TAGMATCH_TEST_TO";
/// Together less than a socket holds, so that nobody has to read meanwhile.
const LENGTHS: [usize; 5] = [0, 8, 200, 1000, 4000];
const COUNT: u64 = 20;
const HELLO: u64 = 1000;
const TALK: u64 = 1001;

fn payload(number: u64) -> Vec<u8> {
    pattern(LENGTHS[usize::try_from(number).unwrap() % LENGTHS.len()], u8::try_from(number).unwrap())
}

/// The next completion, as long as somebody may bring it about: processes take their time to start.
fn next_while(side: &Side, mut may_come: impl FnMut() -> bool) -> Received {
    loop {
        if let Some(received) = side.poll() {
            return received;
        }
        assert!(may_come(), "nothing came");
        std::thread::yield_now();
    }
}

/// Not a test of its own: says its name, waits for an answer, sends, and is killed by itself when all is transmitted.
#[test]
fn sender() {
    let Ok(name) = std::env::var(TO) else { return };
    let name: Vec<u8> = name.split(' ').map(|byte| byte.parse().unwrap()).collect();
    let side = Side::new();
    let to = side.insert(&name);
    let mut answer = [0; 8];
    assert_eq!(side.receive(ANY, HELLO, 0, &mut answer, HELLO), 0);
    side.send_surely(&[], |side| side.inject(to, HELLO, &side.name(), None));
    let parent = std::os::unix::process::parent_id();
    let has_parent = || std::os::unix::process::parent_id() == parent;
    next_while(&side, has_parent);
    let payloads: Vec<Vec<u8>> = (0..COUNT).map(payload).collect();
    for (number, payload) in (0..).zip(&payloads) {
        let flags = abi::FI_TRANSMIT_COMPLETE | abi::FI_COMPLETION;
        side.send_surely(&[], |side| side.send_message(to, number, &[payload], 0, number, flags));
    }
    for _ in 0..COUNT {
        let end = next_while(&side, has_parent);
        assert!(matches!(end, Received::Ok { .. }), "{end:?}");
    }
    // SAFETY: no memory is passed.
    unsafe { libc::raise(libc::SIGKILL) };
}

fn start(to: &Side) -> Child {
    let prefix = module_path!().split_once("::").map_or("", |(_, rest)| rest);
    let name: Vec<String> = to.name().iter().map(u8::to_string).collect();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", &format!("{prefix}::sender")])
        .env(TO, name.join(" "))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn what_was_transmitted_arrives_though_its_sender_was_killed_without_a_close() {
    for round in 0..6 {
        let side = Side::new();
        let mut name = [0; 64];
        assert_eq!(side.receive(ANY, HELLO, 0, &mut name, HELLO), 0);
        let mut child = start(&side);
        let hello = next_while(&side, || child.try_wait().unwrap().is_none());
        let Received::Ok { length, .. } = hello else { panic!("{hello:?}") };
        let to = side.insert(&name[..length]);
        side.send_surely(&[], |side| side.inject(to, HELLO, b"go", None));
        // What it never reads is sent to it all the while, and nothing is read here, or all is.
        let status = loop {
            let said = side.inject(to, TALK, &[0; 100], None);
            let may_be = [0, minus(abi::FI_EAGAIN), minus(abi::FI_ECONNRESET), minus(abi::FI_ECONNREFUSED)];
            assert!(may_be.contains(&said), "{said}");
            if round % 2 == 1 {
                side.progress();
            }
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
        };
        assert_eq!(status.signal(), Some(libc::SIGKILL), "it saw all of its sends complete");
        for number in 0..COUNT {
            let (sent, mut buffer) = (payload(number), vec![0; 4000]);
            assert_eq!(side.receive(ANY, number, 0, &mut buffer, number), 0);
            let end = side.next(&[]);
            let Received::Ok { context, length, .. } = end else {
                panic!("round {round}, {number}: {end:?}")
            };
            assert_eq!((context, &buffer[..length]), (number, &sent[..]), "round {round}");
        }
    }
}
