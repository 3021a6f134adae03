//! Connections wait, or are told, and come about when there are descriptors.

use std::fs::File;
use std::time::{Duration, Instant};

use crate::{inside, over};
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{
    Address, Completed, Config, Endpoint, Failure, Level, Post, Send, SendRefused, Space,
};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, Tag};
use tagmatch::seam::Buffer;

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
    let (before, began) = (now, Instant::now());
    let mut is_sent = false;
    // Descriptors are there again.
    while !is_sent || called.depths(Space::Tagged).1 < 1 {
        now = before + look_later(began);
        caller.progress(now).unwrap();
        called.progress(now).unwrap();
        is_sent = is_sent || caller.send(&to(0)).is_ok();
    }
}

/// The time, once others had the processor: a simulated card is a thread, and patience must not end before it has its turn.
/// Who is never heard is waited for until the test's own time is over.
fn look_later(began: Instant) -> Duration {
    std::thread::yield_now();
    began.elapsed()
}

/// Whoever accepts may have the last one as well.
fn the_last_descriptor_is_a_connection() {
    let (mut caller, mut called) = (open(), open());
    caller.set_address(Address(0), called.name()).unwrap();
    let taken = all_but(2);
    let began = Instant::now();
    // There is one for each side.
    while caller.send(&to(0)).is_err() {
        let now = look_later(began);
        caller.progress(now).unwrap();
        called.progress(now).unwrap();
    }
    drop(taken);
}

/// Those that are heard go, and others have their descriptors. Who is heard is known by its number: a message of another one,
/// though sent, may be lost with it.
fn many_that_call_where_there_are_few_descriptors_are_all_heard() {
    const CALLERS: u32 = 12;
    let mut called = open();
    let mut callers: Vec<(u32, Endpoint, bool)> =
        (0..CALLERS).map(|number| (number, open(), false)).collect();
    for (number, caller, _) in &mut callers {
        caller.set_address(Address(0), called.name()).unwrap();
        called.post(&receive(u64::from(*number))).unwrap();
    }
    let taken = all_but(CALLERS as usize + 2);
    let began = Instant::now();
    while !callers.is_empty() {
        let now = look_later(began);
        called.progress(now).unwrap();
        for (number, caller, is_sent) in &mut callers {
            caller.progress(now).unwrap();
            *is_sent = *is_sent || caller.send(&Send { cq_data: Some(*number), ..to(0) }).is_ok();
        }
        while let Some(done) = called.poll_completion() {
            let Completed::Received { message, .. } = done.what else { panic!("{done:?}") };
            callers.retain(|(number, ..)| message.cq_data != Some(*number));
        }
    }
    drop(taken);
}

/// Of anything, into memory that stays.
fn receive(context: u64) -> Post {
    let place: &'static mut [u8] = vec![0; 8].leak();
    let buffer = Buffer::new(place.as_mut_ptr().expose_provenance() as u64, place.len() as u64);
    let (space, tag, ignore, kind) = (Space::Tagged, Tag(1), Ignore::NONE, Kind::Once);
    Post { space, source: None, tag, ignore, buffer, kind, context, flags: 0 }
}
