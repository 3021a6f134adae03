//! Whoever waits is woken.

use std::sync::atomic::Ordering;

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::region::{LONG, Region};
use super::ring::Rings;
use super::{Reading, read, write};
use crate::{explore, fails_without_fences};

/// The socket beside the rings, as far as it wakes and ends.
#[derive(Debug)]
pub(super) struct Socket {
    /// Whether it has something to read, and whether it has ended.
    state: Mutex<(bool, bool)>,
    changes: Condvar,
}

impl Socket {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new((false, false)), changes: Condvar::new() })
    }

    pub(super) fn wake(&self) {
        self.state.lock().expect("no panic").0 = true;
        self.changes.notify_one();
    }

    pub(super) fn end(&self) {
        self.state.lock().expect("no panic").1 = true;
        self.changes.notify_one();
    }

    pub(super) fn is_over(&self) -> bool {
        self.state.lock().expect("no panic").1
    }

    /// Until it is readable; what it has to read is read. That nobody ends this is found as a deadlock.
    pub(super) fn wait(&self) {
        let mut state = self.state.lock().expect("no panic");
        while *state == (false, false) {
            state = self.changes.wait(state).expect("no panic");
        }
        state.0 = false;
    }
}

fn one_waits_for(messages: &'static [&'static [u8]]) -> impl Fn() + Sync + Send + 'static {
    move || {
        let [writer, reader] = Region::pair(8, [LONG; 2], None);
        let (mut writer, mut reader) = (Rings::new(writer, true), Rings::new(reader, false));
        let socket = Socket::new();
        let waking = socket.clone();
        let writing = thread::spawn(move || {
            for message in messages {
                assert!(write(&mut writer, message));
                if writer.is_to_wake() {
                    waking.wake();
                }
            }
        });
        let mut got = Vec::new();
        while got.len() < messages.concat().len() {
            if !read(&mut reader, Reading::Peeking, &mut got) && reader.may_wait() {
                socket.wait();
            }
        }
        assert_eq!(got, messages.concat());
        writing.join().expect("it ended");
    }
}

#[test]
fn whoever_waits_is_woken() {
    explore(Some(3), one_waits_for(&[b"a"]));
    explore(Some(2), one_waits_for(&[b"ab", b"c"]));
}

#[test]
fn somebody_waits_for_ever_without_the_fences() {
    fails_without_fences(Ordering::SeqCst, None, one_waits_for(&[b"a"]));
}
