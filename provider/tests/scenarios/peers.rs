//! Peers that come, go and come back: B14 (closing), B28, B29, B32.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::LONG;
use super::common::pair::{ANY, Pair, pattern};
use super::common::{ROUNDS, Received, Side, Wanted, minus};
use super::order::Random;
use tagmatch::provider::abi;

/// Close a side, while others go on.
pub(super) fn close(side: Side, others: &[&Side]) {
    std::thread::scope(|scope| {
        let closing = scope.spawn(move || drop(side));
        while !closing.is_finished() {
            others.iter().for_each(|other| other.progress());
        }
        closing.join().unwrap();
    });
}

pub(super) fn port(name: &[u8]) -> u16 {
    u16::from_be_bytes([name[2], name[3]])
}

pub(super) fn at(port: u16) -> Side {
    Side::with(Wanted { port, ..Wanted::default() })
}

/// Send until it has arrived at whoever is there now, which has a receive for it: a send that was lost says so in one
/// entry, and is sent again.
fn send_surely(from: &Side, to: u64, tag: u64, payload: &'static [u8], other: &Side) -> Received {
    let (mut is_sent, mut is_delivered, mut end) = (false, false, None);
    for _ in 0..ROUNDS {
        if !is_sent {
            // Complete when it is there: a loss is not hidden by a queue that took it.
            let flags = abi::FI_DELIVERY_COMPLETE | abi::FI_COMPLETION;
            let result = from.send_message(to, tag, &[payload], 0, 70, flags);
            let may_be = [abi::FI_EAGAIN, abi::FI_ECONNREFUSED, abi::FI_ECONNRESET].map(minus);
            assert!(result == 0 || may_be.contains(&result), "{result}");
            is_sent = result == 0;
        }
        match from.poll() {
            Some(Received::Error { context: 70, .. }) => is_sent = false,
            Some(Received::Ok { context: 70, .. }) => is_delivered = true,
            Some(other) => panic!("{other:?}"),
            None => {}
        }
        if let Some(said) = other.poll() {
            assert_eq!(end.replace(said), None, "it arrived twice");
        }
        if is_delivered && let Some(end) = end {
            return end;
        }
    }
    panic!("it has never arrived: {end:?}");
}

#[test]
fn b14_discarding_a_message_by_rendezvous_releases_its_sender() {
    let pair = Pair::new();
    let payload = pattern(LONG, 1);
    for is_claimed in [false, true] {
        pair.a.send_surely(&[&pair.b], |a| a.send(pair.to_b, 8, &payload, 3));
        pair.unexpected(&[]);
        (0..20).for_each(|_| pair.a.progress());
        assert_eq!(pair.a.poll(), None, "it has to be read");
        let flags = if is_claimed { abi::FI_CLAIM } else { abi::FI_DISCARD };
        pair.peek(8, 4, flags);
        assert_eq!(pair.received(), (4, 8, LONG));
        if is_claimed {
            let flags = abi::FI_CLAIM | abi::FI_DISCARD;
            assert_eq!(pair.b.receive_message(8, 0, None, 4, flags), 0);
            assert_eq!(pair.received().0, 4);
        }
        pair.sent(3);
        assert_eq!(pair.a.poll(), None);
    }
}

#[test]
fn b14_closing_the_receiver_of_a_message_that_nobody_took_ends_its_sender_once() {
    let pair = Pair::new();
    let payload = pattern(LONG, 1);
    pair.a.send_surely(&[&pair.b], |a| a.send(pair.to_b, 8, &payload, 3));
    pair.unexpected(&[]);
    let Pair { a, b, .. } = pair;
    close(b, &[&a]);
    let end = a.next(&[]);
    assert!(matches!(end, Received::Error { context: 3, error, .. } if error != 0), "{end:?}");
    (0..50).for_each(|_| assert_eq!(a.poll(), None));
}

#[test]
fn b18_a_cancelled_receive_takes_nothing_and_the_message_goes_to_the_next() {
    let pair = Pair::new();
    let (mut first, mut second) = ([0xEE; 8], [0; 8]);
    for source in [ANY, pair.to_a] {
        assert_eq!(pair.b.receive(source, 1, 0, &mut first, 1), 0);
        assert_eq!(pair.b.receive(ANY, 1, 0, &mut second, 2), 0);
        assert_eq!(pair.b.cancel(1), 0);
        assert_eq!(pair.failed(), (1, abi::FI_ECANCELED));
        pair.send(1, b"m");
        assert_eq!(pair.received(), (2, 1, 1));
        assert_eq!((first, second[0]), ([0xEE; 8], b'm'));
    }
}

#[test]
fn b28_b29_a_peer_that_restarts_under_its_name_is_heard_and_reached_and_so_is_one_inserted_again() {
    let b = Side::new();
    let mut a = Side::lasting();
    let name = a.name();
    let mut to_a = b.insert(&name);
    let mut to_b = a.insert(&b.name());
    let mut buffer = [0; 8];
    for round in 0..6u64 {
        // Whoever has come back speaks first, or is spoken to first.
        let speak = |from: &Side, to: u64, other: &Side, buffer: &mut [u8]| {
            assert_eq!(other.receive(ANY, round, 0, buffer, 5), 0);
            let end = send_surely(from, to, round, b"new", other);
            assert!(matches!(end, Received::Ok { context: 5, length: 3, .. }), "{end:?}");
        };
        if round % 2 == 0 {
            speak(&a, to_b, &b, &mut buffer);
            speak(&b, to_a, &a, &mut buffer);
        } else {
            speak(&b, to_a, &a, &mut buffer);
            speak(&a, to_b, &b, &mut buffer);
        }
        if round % 3 == 2 {
            assert_eq!(b.remove(to_a), 0);
            to_a = b.insert(&name);
        }
        close(a, &[&b]);
        a = at(port(&name));
        assert_eq!(a.name(), name);
        to_b = a.insert(&b.name());
    }
    (0..20).for_each(|_| assert_eq!(b.poll(), None, "no late error"));
}

#[test]
fn b29_a_peer_that_never_starts_is_told_and_harms_nobody() {
    let pair = Pair::new();
    let gone = Side::new();
    let to_gone = pair.a.insert(&gone.name());
    close(gone, &[]);
    let mut refused = 0;
    for _ in 0..ROUNDS {
        match pair.a.send(to_gone, 1, b"lost", 1) {
            again if again == minus(abi::FI_EAGAIN) => pair.a.progress(),
            other => {
                assert_eq!(other, minus(abi::FI_ECONNREFUSED));
                refused += 1;
            }
        }
        if refused == 3 {
            break;
        }
    }
    assert_eq!(refused, 3);
    let mut buffer = [0; 8];
    assert_eq!(pair.b.receive(ANY, 2, 0, &mut buffer, 2), 0);
    pair.send(2, b"here");
    assert_eq!(pair.received(), (2, 2, 4));
}

#[test]
fn b32_a_delivered_message_outlives_its_sender() {
    let pair = Pair::new();
    let flags = abi::FI_DELIVERY_COMPLETE;
    pair.a.send_surely(&[&pair.b], |a| a.send_message(pair.to_b, 5, &[b"bye"], 0, 1, flags));
    pair.sent(1);
    let Pair { a, b, .. } = pair;
    close(a, &[&b]);
    (0..1000).for_each(|_| b.progress());
    let mut buffer = [0; 8];
    assert_eq!(b.receive(ANY, 5, 0, &mut buffer, 4), 0);
    let end = b.next(&[]);
    assert!(matches!(end, Received::Ok { context: 4, length: 3, .. }), "{end:?}");
    assert_eq!(&buffer[..3], b"bye");
}

/// A process of its own: it says its name, and sends and receives until it is killed.
struct Victim {
    process: Child,
    name: Vec<u8>,
    /// Open as long as the victim is to live.
    _input: ChildStdin,
}

/// The variables that make a process a victim: whose peer it is, and its port.
const SURVIVOR: &str = "TAGMATCH_TEST_SURVIVOR";
const PORT: &str = "TAGMATCH_TEST_PORT";

impl Victim {
    fn start(survivor: &[u8], port: u16) -> Self {
        let prefix = module_path!().split_once("::").map_or("", |(_, rest)| rest);
        let name: Vec<String> = survivor.iter().map(u8::to_string).collect();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("{prefix}::victim"), "--nocapture"])
            .env(SURVIVOR, name.join(" "))
            .env(PORT, port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        let line = said.lines().map(Result::unwrap).find(|line| line.contains(SAYS)).unwrap();
        let (_, name) = line.split_once(SAYS).unwrap();
        let name = name.split(' ').map(|byte| byte.parse().unwrap()).collect();
        Self { process, name, _input: input }
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

const SAYS: &str = "victim is ";

/// Not a test of its own: what a victim does.
#[test]
fn victim() {
    let Ok(survivor) = std::env::var(SURVIVOR) else { return };
    let side = at(std::env::var(PORT).unwrap().parse().unwrap());
    let own: Vec<String> = side.name().iter().map(u8::to_string).collect();
    println!("{SAYS}{}", own.join(" "));
    std::io::stdout().flush().unwrap();
    let survivor: Vec<u8> = survivor.split(' ').map(|byte| byte.parse().unwrap()).collect();
    let to = side.insert(&survivor);
    let payload = pattern(LONG, 1);
    let mut buffer = vec![0; LONG];
    assert_eq!(side.receive(ANY, 50, 0, &mut buffer, 1), 0);
    // Whoever started it kills it; if that one is gone, its input ends.
    let mut watched = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
    loop {
        for length in [8, 900, 16_384, LONG] {
            let _ = side.send(to, 5, &payload[..length], 2);
            for _ in 0..10 {
                let _ = side.poll();
            }
        }
        // SAFETY: one descriptor.
        if unsafe { libc::poll(&raw mut watched, 1, 0) } != 0 {
            std::process::exit(0);
        }
    }
}

#[test]
fn b28_b32_a_killed_peer_ends_what_it_had_begun_once_and_comes_back_under_its_name() {
    let (survivor, other) = (Side::new(), Side::new());
    let from_other = other.insert(&survivor.name());
    let (mut port, mut random) = (0, Random(7));
    let mut address = None;
    let mut lost = 0;
    let mut buffers = vec![vec![0u8; LONG]; 4];
    let payload = pattern(LONG, 3);
    for round in 0..10 {
        let victim = Victim::start(&survivor.name(), port);
        port = self::port(&victim.name);
        let from = *address.get_or_insert_with(|| survivor.insert(&victim.name));
        for (context, buffer) in (1..).zip(&mut buffers) {
            assert_eq!(survivor.receive(from, 5, 0, buffer, context), 0);
        }
        // One of ours too is under way, of which nobody takes all.
        survivor.send_surely(&[], |s| {
            let result = s.send(from, 60, &payload, 10);
            let late = [abi::FI_ECONNRESET, abi::FI_ECONNREFUSED].map(minus);
            if late.contains(&result) { minus(abi::FI_EAGAIN) } else { result }
        });
        // So much is received before it dies.
        let mut ended = std::collections::HashSet::new();
        let mut hear = |end: Received| {
            assert!(ended.insert(end.context()), "round {round}: {end:?} is a second end");
            match end {
                Received::Ok { context, .. } => assert!(context < 10, "nobody took it"),
                Received::Error { error, .. } => assert_ne!(error, abi::FI_ETRUNC, "{end:?}"),
            }
            u64::from(matches!(end, Received::Error { .. }))
        };
        for _ in 0..random.below(3000) {
            survivor.poll().map(&mut hear);
        }
        victim.kill();
        // Its sends end; a receive that had no message yet stays.
        while !ended_with(&mut hear, &survivor, 10, &mut lost) {}
        for context in 1..5 {
            assert_eq!(survivor.cancel(context), 0);
        }
        for _ in 0..200 {
            if let Some(end) = survivor.poll() {
                lost += hear(end);
            }
        }
        assert!((1..5).all(|context| ended.contains(&context)), "round {round}: {ended:?}");
        // What the dead one sent and nobody took is nobody's, or is dropped by whoever looks at it.
        for tag in [5, 50] {
            assert_eq!(survivor.receive_message(tag, 0, None, 99, abi::FI_PEEK | abi::FI_DISCARD), 0);
            let _ = survivor.next(&[]);
        }
        // Others notice nothing.
        assert_eq!(survivor.receive(ANY, 7, 0, &mut buffers[0], 20), 0);
        other.send_surely(&[&survivor], |o| o.inject(from_other, 7, b"ok", None));
        let end = survivor.next(&[&other]);
        assert!(matches!(end, Received::Ok { context: 20, length: 2, .. }), "round {round}: {end:?}");
    }
    println!("{lost} operations failed in 10 rounds");
    assert!(lost >= 10);
}

/// Hear the next end, if there is one: whether it was that of this context.
fn ended_with(hear: &mut impl FnMut(Received) -> u64, survivor: &Side, context: u64, lost: &mut u64) -> bool {
    let Some(end) = survivor.poll() else { return false };
    *lost += hear(end);
    end.context() == context
}
