//! `FI_THREAD_SAFE`: one endpoint that four threads use at once, each with every kind of call.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::common::pair::Pair;
use super::common::{Received, Side, Wanted, minus};
use super::order::Random;
use tagmatch::provider::abi;

const THREADS: u64 = 4;
const STEPS: usize = 6000;
/// Longer than what is injected.
const LENGTHS: [usize; 4] = [8, 100, 5000, 40_000];

/// What was said, by whichever thread heard it.
#[derive(Default)]
struct Heard {
    ends: Mutex<HashMap<u64, Received>>,
    count: AtomicU64,
}

impl Heard {
    /// One read, by anybody.
    fn hear(&self, side: &Side) {
        if let Some(end) = side.poll() {
            let again = self.ends.lock().unwrap().insert(end.context(), end);
            assert!(again.is_none(), "two ends: {again:?}, {end:?}");
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn of(&self, context: u64) -> Option<Received> {
        self.ends.lock().unwrap().get(&context).copied()
    }

    /// The end of an operation, while everything goes on.
    fn until(&self, context: u64, pair: &Pair) -> Received {
        for _ in 0..super::common::ROUNDS {
            if let Some(end) = self.of(context) {
                return end;
            }
            self.hear(&pair.a);
            self.hear(&pair.b);
        }
        panic!("{context:#x} never ended");
    }
}

/// What one thread did: receives in the order in which they were posted, and how many messages it sent.
struct Done {
    receives: Vec<(u64, Box<[u8]>)>,
    sends: Vec<(u64, Box<[u8]>)>,
    looks: Vec<u64>,
}

/// Everything at once, on both sides: messages with this thread's tag from A to B.
fn work(thread: u64, pair: &Pair, heard: &Heard) -> Done {
    let mut random = Random(thread);
    let mut contexts = (thread + 1) << 32;
    let mut context = || {
        contexts += 1;
        contexts
    };
    let mut done = Done { receives: Vec::new(), sends: Vec::new(), looks: Vec::new() };
    for _ in 0..STEPS {
        match random.below(10) {
            0..3 => {
                let mut buffer = vec![0; 40_000].into_boxed_slice();
                let context = context();
                assert_eq!(pair.b.receive(pair.to_a, thread, 0, &mut buffer, context), 0);
                done.receives.push((context, buffer));
            }
            3..6 => {
                let number = done.sends.len() as u64;
                let mut payload = vec![u8::try_from(thread).unwrap(); LENGTHS[random.below(4)]];
                payload[..8].copy_from_slice(&number.to_be_bytes());
                let payload = payload.into_boxed_slice();
                let context = context();
                match pair.a.send(pair.to_b, thread, &payload, context) {
                    0 => done.sends.push((context, payload)),
                    again => assert_eq!(again, minus(abi::FI_EAGAIN)),
                }
            }
            6 => {
                if let Some((context, _)) = done.receives.last() {
                    assert_eq!(pair.b.cancel(*context), 0);
                }
            }
            7 => {
                // Nobody sends with this tag.
                let context = context();
                assert_eq!(pair.b.receive_message(1000, 0, None, context, abi::FI_PEEK), 0);
                done.looks.push(context);
            }
            8 => heard.hear(&pair.a),
            _ => heard.hear(&pair.b),
        }
    }
    done
}

#[test]
fn four_threads_send_receive_cancel_peek_and_read_at_once_and_every_operation_ends_once() {
    let wanted = Wanted { threading: abi::FI_THREAD_SAFE, ..Wanted::default() };
    let (pair, heard) = (Pair::with(wanted), Heard::default());
    let done: Vec<Done> = std::thread::scope(|scope| {
        let (pair, heard) = (&pair, &heard);
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || work(thread, pair, heard))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (mut matched, mut cancelled, mut sent) = (0, 0, 0);
    for (thread, mut done) in (0..).zip(done) {
        sent += done.sends.len();
        for context in done.looks {
            let end = heard.until(context, &pair);
            assert!(matches!(end, Received::Error { error: abi::FI_ENOMSG, .. }), "{end:?}");
        }
        // Messages that are left are received, then receives that are left are cancelled.
        for extra in 0..done.sends.len() as u64 {
            let mut buffer = vec![0; 40_000].into_boxed_slice();
            let context = (thread + 1) << 32 | 1 << 31 | extra;
            assert_eq!(pair.b.receive(pair.to_a, thread, 0, &mut buffer, context), 0);
            done.receives.push((context, buffer));
        }
        for (context, _) in &done.sends {
            let end = heard.until(*context, &pair);
            assert!(matches!(end, Received::Ok { .. }), "{end:?}");
        }
        // A receive that has no message when all are there gets none.
        let mut next = 0u64;
        for (context, buffer) in &done.receives {
            if next == done.sends.len() as u64 && heard.of(*context).is_none() {
                assert_eq!(pair.b.cancel(*context), 0);
            }
            match heard.until(*context, &pair) {
                Received::Ok { length, tag, .. } => {
                    let (_, payload) = &done.sends[usize::try_from(next).unwrap()];
                    assert_eq!((tag, length), (thread, payload.len()));
                    assert_eq!(buffer[..length], payload[..], "message {next} of thread {thread}");
                    next += 1;
                    matched += 1;
                }
                Received::Error { error, .. } => {
                    assert_eq!(error, abi::FI_ECANCELED);
                    cancelled += 1;
                }
            }
        }
        assert_eq!(next, done.sends.len() as u64, "thread {thread}: all that was sent was received");
    }
    println!(
        "{sent} messages, {matched} receives took one, {cancelled} were cancelled, {:?} ends",
        heard.count
    );
    assert!(matched > 1000 && cancelled > 1000, "{matched} {cancelled}");
}
