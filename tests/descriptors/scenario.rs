//! Connections wait, or are told, and come about when there are descriptors.

use std::fs::File;
use std::time::Duration;

use crate::{inside, over};
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{Address, Config, Endpoint, Failure, Level, Send, SendRefused, Space};
use tagmatch::ids::Tag;

fn open() -> Endpoint {
    over::open(Config::default(), 0)
}

const fn to(address: u64) -> Send<'static> {
    Send {
        space: Space::Tagged,
        to: Address(address),
        tag: Tag(1),
        payload: Payload::Copied(b"hello"),
        cq_data: None,
        level: Level::Inject,
        more: false,
        context: 0,
        flags: 0,
    }
}

/// All that this process may still have, but `spare`.
fn all_but(spare: usize) -> Vec<File> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the place is ours.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_cur = limit.rlim_max.min(256);
    // SAFETY: the place is ours.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    let mut all: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    all.truncate(all.len() - spare);
    all
}

#[test]
fn who_connects_waits_for_descriptors_and_who_is_to_be_connected_is_told_what_is_short() {
    inside(
        "scenario::who_connects_waits_for_descriptors_and_who_is_to_be_connected_is_told_what_is_short",
        run_short,
    );
}

fn run_short() {
    the_last_descriptor_is_a_connection();
    many_that_call_where_there_are_few_descriptors_are_all_heard();
    let (mut caller, mut called, other) = (open(), open(), open());
    caller.set_address(Address(0), called.name()).unwrap();
    caller.set_address(Address(1), other.name()).unwrap();
    let mut now = Duration::ZERO;
    // The caller has the last one.
    let taken = all_but(1);
    assert_eq!(caller.send(&to(0)), Err(SendRefused::Again));
    for _ in 0..1000 {
        now += Duration::from_micros(1);
        caller.progress(now).unwrap();
        called.progress(now).unwrap();
    }
    assert_eq!((called.statistics().connected, called.statistics().connect_failed), (0, 0));
    assert!(called.next_deadline().is_some_and(|at| at <= now + Duration::from_millis(10)), "it looks again");
    let mut refusal = Err(SendRefused::Again);
    while refusal == Err(SendRefused::Again) {
        now += Duration::from_millis(100);
        caller.progress(now).unwrap();
        assert!(now < Duration::from_secs(60), "it is told at some time");
        refusal = caller.send(&to(1));
    }
    assert_eq!(refusal, Err(SendRefused::Unreachable(Failure::System { errno: libc::EMFILE })));
    drop(taken);
    let mut is_sent = false;
    for _ in 0..1_000_000 {
        now += Duration::from_micros(1);
        caller.progress(now).unwrap();
        called.progress(now).unwrap();
        is_sent = is_sent || caller.send(&to(0)).is_ok();
        if is_sent && called.depths(Space::Tagged).1 == 1 {
            return;
        }
    }
    panic!("descriptors are there again, and nobody is heard");
}

/// Whoever accepts may have the last one as well.
fn the_last_descriptor_is_a_connection() {
    let (mut caller, mut called) = (open(), open());
    caller.set_address(Address(0), called.name()).unwrap();
    let taken = all_but(2);
    let mut now = Duration::ZERO;
    while caller.send(&to(0)).is_err() {
        now += Duration::from_micros(10);
        assert!(now < Duration::from_secs(1), "there is one for each side");
        caller.progress(now).unwrap();
        called.progress(now).unwrap();
    }
    drop(taken);
}

/// Those that are heard go, and others have their descriptors.
fn many_that_call_where_there_are_few_descriptors_are_all_heard() {
    const CALLERS: usize = 12;
    let mut called = open();
    let mut callers: Vec<Endpoint> = (0..CALLERS).map(|_| open()).collect();
    for caller in &mut callers {
        caller.set_address(Address(0), called.name()).unwrap();
    }
    let taken = all_but(CALLERS + 2);
    let mut now = Duration::ZERO;
    let mut is_sent = [false; CALLERS];
    let mut heard = 0;
    while !callers.is_empty() {
        now += Duration::from_micros(20);
        assert!(now < Duration::from_secs(20), "{} are not heard", callers.len());
        called.progress(now).unwrap();
        for (caller, is_sent) in callers.iter_mut().zip(&mut is_sent) {
            caller.progress(now).unwrap();
            *is_sent = *is_sent || caller.send(&to(0)).is_ok();
        }
        let there = called.depths(Space::Tagged).1;
        // One of those that are heard goes.
        if there > heard
            && let Some(at) = is_sent.iter().position(|is_sent| *is_sent)
        {
            heard += 1;
            drop(callers.remove(at));
            is_sent[at..].rotate_left(1);
            is_sent[CALLERS - 1] = false;
        }
    }
    drop(taken);
}
