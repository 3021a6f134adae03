//! Clients that come and go, many more at once than the server has descriptors for, some of them killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tagmatch::endpoint::{Completed, Config, ConnectionEvent, Endpoint, Level, Space};

use super::world::{LOOPBACK, host, memory, message, open, paths, post};

/// Of each wave one tenth is killed.
const WAVES: usize = 10;
const WAVE: usize = 200;
/// Descriptors that the server may have: two for each connection, and a few.
const DESCRIPTORS: u64 = 256;

#[test]
fn two_thousand_clients_come_and_go_every_tenth_killed_and_all_are_served_with_256_descriptors() {
    let mut server = start("coming::server", "");
    let name = line_of(&mut server, NAME);
    let to: Vec<u8> = name.split(' ').map(|byte| byte.parse().unwrap()).collect();
    for _ in 0..WAVES {
        let victims: Vec<_> = (0..WAVE / 10)
            .map(|_| {
                let name = name.clone();
                std::thread::spawn(move || {
                    let mut victim = start("coming::victim", &name);
                    line_of(&mut victim, SERVED);
                    victim.kill().unwrap();
                    victim.wait().unwrap();
                })
            })
            .collect();
        let mut clients: Vec<Client> = (0..WAVE - WAVE / 10).map(|_| Client::new(&to)).collect();
        let began = Instant::now();
        while !clients.is_empty() {
            assert!(began.elapsed() < PATIENCE, "{} of a wave are not served", clients.len());
            let mut is_even = false;
            clients.retain_mut(|client| {
                is_even = !is_even;
                !client.is_served(began.elapsed(), is_even)
            });
        }
        victims.into_iter().for_each(|victim| victim.join().unwrap());
    }
    assert!(server.wait().unwrap().success(), "it has seen all come and go, and nothing is left of them");
}

struct Client {
    endpoint: Endpoint,
    has_said: bool,
}

impl Client {
    fn new(to: &[u8]) -> Self {
        let mut endpoint = open(Config::default());
        endpoint.post(&post(Space::Untagged, 0, 10, 1)).unwrap();
        endpoint.connect(to, b"").unwrap();
        Self { endpoint, has_said: false }
    }

    /// Says something once it is connected, and goes when it is answered: with a word, or without.
    fn is_served(&mut self, now: Duration, says_goodbye: bool) -> bool {
        self.endpoint.progress(now).unwrap();
        if let Some(event) = self.endpoint.poll_connection() {
            assert_eq!(event, ConnectionEvent::Connected { data: Vec::new() });
        }
        let hello = message(Space::Untagged, 0, memory(b"hello"), Level::Inject, 2);
        self.has_said = self.has_said || self.endpoint.send(&hello).is_ok();
        let told = std::iter::from_fn(|| self.endpoint.poll_completion());
        let is_served = told.filter(|done| matches!(done.what, Completed::Received { .. })).count() > 0;
        if is_served && says_goodbye {
            self.endpoint.shutdown().unwrap();
        }
        is_served
    }
}

/// A part of this program, as a process of its own that says things.
fn start(test: &str, to: &str) -> Child {
    let mut program = Command::new(std::env::current_exe().unwrap());
    let program = program.args(["--exact", test, "--nocapture"]).env(PART, test).env(TO, to);
    program.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
}

/// What it says behind this word.
fn line_of(child: &mut Child, word: &str) -> String {
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map(Result::unwrap);
    let found = lines.find_map(|line| line.split_once(word).map(|(_, rest)| rest.to_owned()));
    found.unwrap_or_else(|| panic!("it never says {word}"))
}

/// Not a test where nobody asks for it: one that is served, says so, and waits to be killed.
#[test]
fn victim() {
    if std::env::var(PART).as_deref() != Ok("coming::victim") {
        return;
    }
    let to = std::env::var(TO).unwrap();
    let to: Vec<u8> = to.split(' ').map(|byte| byte.parse().unwrap()).collect();
    let mut client = Client::new(&to);
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if client.is_served(began.elapsed(), false) {
            println!("{SERVED}");
        }
    }
    panic!("nobody has killed it");
}

/// Not a test where nobody asks for it: it answers all who come, and ends when the last has gone.
#[test]
fn server() {
    if std::env::var(PART).as_deref() != Ok("coming::server") {
        return;
    }
    let limit = libc::rlimit { rlim_cur: DESCRIPTORS, rlim_max: DESCRIPTORS };
    // SAFETY: the place is ours.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    let mut passive = paths().listening(LOOPBACK, &Config::default(), host()).unwrap();
    let name: Vec<String> = passive.name().iter().map(u8::to_string).collect();
    println!("{NAME}{}", name.join(" "));
    let before = descriptors();
    let (hello, answer) = (memory(&[0; 10]), memory(b"served"));
    let (mut here, mut gone, mut most): (Vec<Endpoint>, usize, usize) = (Vec::new(), 0, 0);
    let began = Instant::now();
    while gone < WAVES * WAVE {
        assert!(began.elapsed() < 2 * PATIENCE, "{gone} have gone, {} are here", here.len());
        let now = began.elapsed();
        passive.progress(now).unwrap();
        if let Some(request) = passive.poll_request() {
            let mut called = Endpoint::called(Config::default(), request).unwrap();
            let receive = post(Space::Untagged, 0, 0, 1);
            called.post(&tagmatch::endpoint::Post { buffer: hello, ..receive }).unwrap();
            called.accept(b"").unwrap();
            here.push(called);
            most = most.max(here.len());
        }
        here.retain_mut(|endpoint| {
            endpoint.progress(now).unwrap();
            let told = std::iter::from_fn(|| endpoint.poll_completion());
            if told.filter(|done| matches!(done.what, Completed::Received { .. })).count() > 0 {
                endpoint.send(&message(Space::Untagged, 0, answer, Level::Inject, 2)).unwrap();
            }
            let is_gone = std::iter::from_fn(|| endpoint.poll_connection())
                .any(|event| event == ConnectionEvent::Shutdown);
            gone += usize::from(is_gone);
            !is_gone
        });
    }
    assert!(here.is_empty() && most > 50, "{most} at once");
    assert_eq!(descriptors(), before, "nothing is left open");
    assert!(passive.poll_request().is_none());
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

const PART: &str = "TAGMATCH_TEST_PART";
const TO: &str = "TAGMATCH_TEST_TO";
const NAME: &str = "it listens at ";
const SERVED: &str = "it is served";
const PATIENCE: Duration = Duration::from_secs(120);
