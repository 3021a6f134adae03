//! Messages between two endpoints: bursts of one kind, each with its receives, every completion checked.
//!
//! ```text
//!  standing receives (older, for other messages)          once
//!  ┌ unexpected ones: send ─▶ arrive ─▶ post               each
//!  └ the others:      post ─▶ send ─▶ complete             burst
//! ```
//!
//! What the receiver's own calls take is counted apart from all else: that is the host's time for matching and
//! completing, whatever carries the messages. Not here: which bursts (`curves`), between whom (`ends`).

use super::ends::{Ends, text};
use super::memory::{Pool, processor_time};
use crate::measure::Counter;
use std::time::{Duration, Instant};
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{Address, Completed, Level, Post, Send, SendRefused, Space};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, Tag};
use tagmatch::seam::Buffer;

/// What a burst is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Load {
    /// Bytes of a message.
    pub(super) size: u64,
    /// Older receives that none of the messages fits.
    pub(super) standing: u32,
    /// Messages.
    pub(super) messages: u32,
    /// How many receives of a hundred take any tag.
    pub(super) wildcards: u32,
    /// How many messages of a hundred are there before their receive.
    pub(super) unexpected: u32,
}

/// What a burst took.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Took {
    /// From the first call to the last completion.
    pub(super) all: Duration,
    /// Of that, for which this thread had the processor.
    pub(super) running: Duration,
    /// From the call that sends what was not sent before its receive.
    pub(super) from_sending: Duration,
    /// Processor time of the receiver's calls.
    pub(super) receiver: Duration,
    /// The same of the sender's.
    pub(super) sender: Duration,
}

/// Bursts of one kind between endpoints.
#[derive(Debug)]
pub(super) struct Bursts<'a> {
    pub(super) ends: Ends,
    load: Load,
    pool: &'a Pool,
    receives: Vec<Buffer>,
    message: Buffer,
    sent: u64,
    took: Took,
    /// Receives of this burst that are complete.
    complete: u32,
    /// The first context of this burst.
    first: u64,
    /// Receives were posted since the receiver moved on.
    has_posted: bool,
}

impl<'a> Bursts<'a> {
    /// Connected, and with the standing receives posted.
    pub(super) fn new(ends: Ends, load: Load, pool: &'a mut Pool) -> Result<Self, String> {
        pool.clear();
        let message = pool.take(load.size)?;
        let receives = (0..load.messages).map(|_| pool.take(load.size)).collect::<Result<_, _>>()?;
        let standing = (0..load.standing).map(|_| pool.take(8)).collect::<Result<Vec<_>, _>>()?;
        let took = Took::default();
        let (complete, first, sent) = (0, 0, 0);
        let has_posted = false;
        let mut bursts =
            Self { ends, load, pool, receives, message, sent, took, complete, first, has_posted };
        bursts.pool.fill(&message, PATTERN);
        // The connection first, so that no receive is asked for by a message that takes long.
        bursts.one(None)?;
        for (number, buffer) in standing.into_iter().enumerate() {
            let tag = Tag(STANDING | number as u64);
            bursts.post(tag, Ignore::NONE, buffer, u64::MAX)?;
            bursts.receive()?;
        }
        bursts.settle(&mut None)?;
        Ok(bursts)
    }

    /// From now on a burst is one message.
    pub(super) const fn one_at_a_time(&mut self) {
        self.load.messages = 1;
    }

    /// A burst whose payloads are checked.
    pub(super) fn checked(&mut self) -> Result<Took, String> {
        for buffer in &self.receives {
            self.pool.fill(buffer, 0);
        }
        let took = self.one(None)?;
        match self.receives.iter().find(|buffer| !self.pool.holds(buffer, PATTERN)) {
            None => Ok(took),
            Some(_) => Err("a message came with other bytes than were sent".into()),
        }
    }

    /// A burst: what it took. `counter` counts the instructions of the receiver's calls.
    pub(super) fn one(&mut self, mut counter: Option<&mut Counter>) -> Result<Took, String> {
        let Load { messages, unexpected, .. } = self.load;
        let early = u32::try_from(u64::from(messages) * u64::from(unexpected) / 100).unwrap_or(messages);
        (self.took, self.complete, self.first) = (Took::default(), 0, self.sent);
        let (begin, running) = (Instant::now(), processor_time());
        if early > 0 {
            self.send(early, &mut counter)?;
            self.until(&mut counter, |bursts| {
                bursts.ends.receiver.depths(Space::Tagged).1 >= early as usize
            })?;
            self.post_all(0..early, &mut counter)?;
        }
        self.post_all(early..messages, &mut counter)?;
        self.settle(&mut counter)?;
        let sending = Instant::now();
        self.send(messages - early, &mut counter)?;
        self.until(&mut counter, |bursts| bursts.complete >= messages)?;
        self.took.from_sending = sending.elapsed();
        self.took.all = begin.elapsed();
        self.took.running = processor_time().saturating_sub(running);
        // Sends that are over say so; nobody waits for them.
        while self.ends.sender().poll_completion().is_some() {}
        Ok(self.took)
    }

    fn post_all(
        &mut self,
        which: std::ops::Range<u32>,
        counter: &mut Option<&mut Counter>,
    ) -> Result<(), String> {
        let begin = Running::new(counter);
        for number in which {
            let Some(&buffer) = self.receives.get(number as usize) else { break };
            let context = self.first + u64::from(number);
            let is_wild = is_one_of(number, self.load.wildcards);
            let ignore = if is_wild { Ignore(ANY_TAG) } else { Ignore::NONE };
            self.post(Tag(MEANT | tag_of(context)), ignore, buffer, context)?;
        }
        self.took.receiver += begin.end(counter);
        self.has_posted = true;
        Ok(())
    }

    fn post(&mut self, tag: Tag, ignore: Ignore, buffer: Buffer, context: u64) -> Result<(), String> {
        let space = Space::Tagged;
        let post = Post { space, source: None, tag, ignore, buffer, kind: Kind::Once, context, flags: 0 };
        self.ends.receiver.post(&post).map_err(text)
    }

    fn send(&mut self, messages: u32, counter: &mut Option<&mut Counter>) -> Result<(), String> {
        for left in (0..messages).rev() {
            let context = self.sent;
            let send = Send {
                space: Space::Tagged,
                to: Address(0),
                tag: Tag(MEANT | tag_of(context)),
                payload: Payload::Memory(self.message),
                cq_data: None,
                level: Level::Inject,
                more: left > 0,
                context: context | SENT,
                flags: 0,
            };
            let mut waited = Waited::default();
            loop {
                let begin = Running::new(&mut None);
                let sent = self.ends.sender().send(&send);
                self.took.sender += begin.end(&mut None);
                match sent {
                    Ok(()) => break,
                    Err(SendRefused::Again) => self.carry()?,
                    Err(refused) => return Err(text(refused)),
                }
                self.take(counter)?;
                waited.more("a message is not taken")?;
            }
            self.sent += 1;
        }
        self.ends.sender().flush();
        Ok(())
    }

    fn until(
        &mut self,
        counter: &mut Option<&mut Counter>,
        is_so: impl Fn(&Self) -> bool,
    ) -> Result<(), String> {
        let mut waited = Waited::default();
        while !is_so(self) {
            self.carry()?;
            self.take(counter)?;
            waited.more("messages do not come")?;
        }
        Ok(())
    }

    /// Until receives are where they are to wait: a device is told of them by the receiver's next calls, and answers.
    fn settle(&mut self, counter: &mut Option<&mut Counter>) -> Result<(), String> {
        let mut quiet = 0;
        for _ in 0..SETTLING_MAX {
            let told = self.take(counter)?;
            self.carry()?;
            quiet = if told == 0 { quiet + 1 } else { 0 };
            if quiet >= 2 {
                break;
            }
        }
        Ok(())
    }

    fn carry(&mut self) -> Result<(), String> {
        let begin = Running::new(&mut None);
        self.ends.carry()?;
        self.took.sender += begin.end(&mut None);
        Ok(())
    }

    /// The receiver moves on, and takes what is complete; how many things happened. A call that finds nothing is waiting,
    /// and not counted, but for the one that passes on what was posted.
    fn take(&mut self, counter: &mut Option<&mut Counter>) -> Result<usize, String> {
        let begin = Running::new(counter);
        let (told, before) = (self.ends.receive()?, self.complete);
        self.receive()?;
        let took = begin.end(counter);
        if told > 0 || self.complete > before || std::mem::take(&mut self.has_posted) {
            self.took.receiver += took;
        }
        Ok(told)
    }

    fn receive(&mut self) -> Result<(), String> {
        while let Some(completion) = self.ends.receiver.poll_completion() {
            match completion.what {
                Completed::Sent => {}
                Completed::Received { message, placed, .. } => {
                    let is_right = message.tag == Tag(MEANT | tag_of(completion.context))
                        && placed == self.load.size
                        && (self.first..self.sent).contains(&completion.context);
                    if !is_right {
                        return Err(format!("receive {} took {message:?}", completion.context));
                    }
                    self.complete += 1;
                }
                other @ (Completed::Released
                | Completed::Peeked(_)
                | Completed::NoMessage
                | Completed::Cancelled
                | Completed::Written
                | Completed::Read
                | Completed::WrittenByPeer { .. }
                | Completed::OperatedByPeer { .. }
                | Completed::ReadByPeer { .. }
                | Completed::Failed(_)) => return Err(format!("an operation ended with {other:?}")),
            }
        }
        Ok(())
    }
}

/// Whether a number is one of a share of a hundred, evenly dealt.
const fn is_one_of(number: u32, share: u32) -> bool {
    let number = number as u64 + 1;
    number * share as u64 / 100 > (number - 1) * share as u64 / 100
}

const fn tag_of(context: u64) -> u64 {
    context & ANY_TAG
}

/// Processor time that runs, and instructions with it.
struct Running(Duration);

impl Running {
    fn new(counter: &mut Option<&mut Counter>) -> Self {
        if let Some(counter) = counter {
            counter.go_on();
        }
        Self(processor_time())
    }

    fn end(self, counter: &mut Option<&mut Counter>) -> Duration {
        let took = processor_time().saturating_sub(self.0);
        if let Some(counter) = counter {
            counter.pause();
        }
        took
    }
}

/// How long something did not happen.
#[derive(Default)]
struct Waited {
    times: u32,
    since: Option<Instant>,
}

impl Waited {
    fn more(&mut self, what: &str) -> Result<(), String> {
        self.times += 1;
        if !self.times.is_multiple_of(1024) {
            return Ok(());
        }
        // Others may have to do something for it.
        std::thread::yield_now();
        let since = self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < PATIENCE { Ok(()) } else { Err(format!("{what} for {} s", PATIENCE.as_secs())) }
    }
}

/// Tags of what is measured, and of receives that none of it fits.
const MEANT: u64 = 1 << 40;
const STANDING: u64 = 2 << 40;
/// Bits of a tag that tell messages apart.
const ANY_TAG: u64 = (1 << 32) - 1;
/// Contexts of sends: not those of receives.
const SENT: u64 = 1 << 63;
/// What messages hold.
const PATTERN: u8 = 0xA7;
/// Rounds in which posted receives have to get to a device; a card takes far fewer.
const SETTLING_MAX: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::super::ends::{Matcher, Wire};
    use super::*;

    fn shares(wire: &Wire, matcher: Matcher, load: Load) -> (u64, u64) {
        let mut pool = Pool::new(8 << 20);
        let mut bursts = Bursts::new(Ends::open(wire, matcher, 1).unwrap(), load, &mut pool).unwrap();
        bursts.checked().unwrap();
        bursts.one(None).unwrap();
        let statistics = bursts.ends.receiver.statistics();
        (statistics.matched_by_device, statistics.received)
    }

    const LOAD: Load = Load { size: 64, standing: 5, messages: 10, wildcards: 30, unexpected: 0 };

    #[test]
    fn a_share_of_a_hundred_is_that_many_of_a_hundred() {
        for share in [0, 1, 25, 50, 99, 100] {
            assert_eq!((0..100).filter(|&number| is_one_of(number, share)).count(), share as usize);
        }
    }

    #[test]
    fn the_list_matches_what_is_posted_before_and_software_what_comes_before_its_receive() {
        for wire in [Wire::Memory, Wire::Tcp] {
            assert_eq!(shares(&wire, Matcher::Software, LOAD), (0, 30), "{wire:?}");
            assert_eq!(shares(&wire, Matcher::Soft(64), LOAD), (30, 30), "{wire:?}");
            let late = Load { unexpected: 100, ..LOAD };
            assert_eq!(shares(&wire, Matcher::Soft(64), late), (0, 30), "{wire:?}");
        }
    }

    #[test]
    fn messages_that_are_read_by_the_receiver_come_whole() {
        let load = Load { size: 100_000, standing: 0, messages: 3, wildcards: 0, unexpected: 50 };
        for wire in [Wire::Memory, Wire::Tcp] {
            for matcher in [Matcher::Software, Matcher::Soft(16)] {
                assert_eq!(shares(&wire, matcher, load).1, 9, "{wire:?} {matcher:?}");
            }
        }
    }

    #[test]
    fn a_list_that_is_full_of_older_receives_matches_nothing() {
        let load = Load { standing: 16, ..LOAD };
        let (matched, _) = shares(&Wire::Memory, Matcher::Soft(16), load);
        assert!(matched <= 10, "{matched}: but for the burst that came before they were posted");
    }
}
