//! What the halves do with a port: fill lists, let messages pass and count the time, drain the lists.
//!
//! Every completion is checked: a receive that fits nothing must take nothing, and what waits in the lists must all be
//! matched in the end. Not here: what is done when (`lead`), and how often.

use super::control::stopped;
use super::groups::Groups;
use super::plan::{AHEAD, Ahead, DATA, FENCE, List, Loop, Pattern, Setup, Work};
use super::port::{Areas, Done, Port, SMALL, Sending, Wanted};
use std::time::Duration;
use tagmatch::seam::Buffer;

/// Which half this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// It has the clock, and sends first.
    Lead,
    Follow,
}

/// A contender that is open on this side.
pub(super) trait Open {
    fn name(&self) -> Vec<u8>;
    fn what(&self) -> String;
    fn meet(&mut self, name: &[u8]) -> Result<(), String>;
    /// How long the counted turns of a loop took, if this half leads.
    fn work(&mut self, work: &Work, role: Role) -> Result<Duration, String>;
}

/// A port with its memory, and what is under way.
#[derive(Debug)]
pub(super) struct Side<P> {
    port: P,
    areas: Areas,
    window: usize,
    /// Contexts of sends that are free.
    free: Vec<usize>,
    sends_max: usize,
    /// Since a loop or a fence began.
    received: usize,
    fences: usize,
    ahead: usize,
    /// Polls in which nothing came.
    idle: u32,
    /// Bytes of every message of the loop.
    length: usize,
}

/// How many contexts there are: receives of a window and one more, sends, the fence's receive, the list's.
pub(super) fn contexts(setup: &Setup) -> usize {
    2 * setup.window + 3 + setup.depth_max
}

impl<P: Port> Side<P> {
    pub(super) fn new(port: P, setup: &Setup) -> Result<Self, String> {
        let window = setup.window;
        let free: Vec<usize> = (window + 1..2 * window + 2).collect();
        let sends_max = free.len();
        let areas = Areas::new(setup)?;
        let (received, fences, ahead, idle, length) = (0, 0, 0, 0, 0);
        Ok(Self { port, areas, window, free, sends_max, received, fences, ahead, idle, length })
    }

    /// Move on, and note what is done.
    #[inline]
    fn step(&mut self) -> Result<bool, String> {
        match self.port.poll()? {
            Some(Done::Received { context, tag, length }) if context <= self.window => {
                if tag != DATA || length != self.length {
                    return Err(format!(
                        "a message of {length} bytes with the tag {tag:#x} came for one of {}",
                        self.length
                    ));
                }
                self.received += 1;
            }
            Some(Done::Received { context, tag, .. }) => self.aside(context, tag)?,
            Some(Done::Sent { context }) => self.free.push(context),
            None => return self.nothing(),
        }
        self.idle = 0;
        Ok(true)
    }

    /// Something of a fence or of a list was received.
    #[cold]
    fn aside(&mut self, context: usize, tag: u64) -> Result<(), String> {
        let first = 2 * self.window + 3;
        match tag & !(u64::MAX >> 16) {
            FENCE if context + 1 == first => self.fences += 1,
            AHEAD if context >= first => self.ahead += 1,
            _ => {
                return Err(format!(
                    "a message with the tag {tag:#x} was taken by a receive that it does not fit"
                ));
            }
        }
        Ok(())
    }

    #[inline]
    fn nothing(&mut self) -> Result<bool, String> {
        self.idle += 1;
        if self.idle < IDLE_MAX {
            return Ok(false);
        }
        self.idle = 0;
        // Who shares a processor with the other half lets that get on.
        std::thread::yield_now();
        if stopped() { Err("stopped".into()) } else { Ok(false) }
    }

    /// Until this is so.
    #[inline]
    fn until(&mut self, is_so: impl Fn(&Self) -> bool) -> Result<(), String> {
        while !is_so(self) {
            self.step()?;
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self, tag: u64, length: usize) -> Result<(), String> {
        loop {
            if let Some(context) = self.free.pop() {
                let sending = self.port.send(tag, &self.areas.sent, length, context)?;
                if sending != Sending::Underway {
                    self.free.push(context);
                }
                if sending != Sending::Again {
                    return Ok(());
                }
            }
            self.step()?;
        }
    }

    #[inline]
    fn post(&mut self, wanted: Wanted, buffer: &Buffer, context: usize) -> Result<(), String> {
        while !self.port.post(wanted, buffer, context)? {
            self.step()?;
        }
        Ok(())
    }

    #[inline]
    fn post_data(&mut self, number: usize) -> Result<(), String> {
        let buffer = Buffer { length: self.length as u64, ..self.areas.received };
        self.post(Wanted::exactly(DATA), &buffer, number)
    }

    fn has_sent(&self) -> bool {
        self.free.len() == self.sends_max
    }

    /// All that both sides have sent before has come.
    fn fence(&mut self) -> Result<(), String> {
        let want = self.fences + 1;
        self.post_fence()?;
        self.send(FENCE, SMALL)?;
        self.until(|side| side.fences == want && side.has_sent())
    }

    #[inline]
    fn post_fence(&mut self) -> Result<(), String> {
        let buffer = self.areas.fence;
        self.post(Wanted::exactly(FENCE), &buffer, 2 * self.window + 2)
    }

    fn fill(&mut self, ahead: Ahead) -> Result<(), String> {
        for number in 0..ahead.depth {
            if ahead.list == List::Unexpected {
                self.send(AHEAD | number as u64, SMALL)?;
            } else {
                self.post_ahead(ahead.list, number)?;
            }
        }
        self.fence()
    }

    fn post_ahead(&mut self, list: List, number: usize) -> Result<(), String> {
        let buffer = self.areas.ahead;
        self.post(Wanted::ahead(list, number), &buffer, 2 * self.window + 3 + number)
    }

    fn drain(&mut self, ahead: Ahead) -> Result<(), String> {
        if self.ahead > 0 {
            return Err(format!("{} receives ahead, which fit nothing, took a message", self.ahead));
        }
        for number in 0..ahead.depth {
            if ahead.list == List::Unexpected {
                self.post_ahead(ahead.list, number)?;
            } else {
                self.send(AHEAD | number as u64, SMALL)?;
            }
        }
        self.until(|side| side.ahead >= ahead.depth)?;
        self.ahead = 0;
        self.fence()
    }

    fn pass(&mut self, l: &Loop, role: Role) -> Result<Duration, String> {
        (self.length, self.received) = (l.bytes, 0);
        let (own, other) = if role == Role::Lead { (LEAD, FOLLOW) } else { (FOLLOW, LEAD) };
        if l.is_checked {
            self.areas.write(own);
        }
        let time = match (l.pattern, role) {
            (Pattern::PingPong, Role::Lead) => self.ping(l)?,
            (Pattern::PingPong, Role::Follow) => self.pong(l)?,
            (Pattern::Windows { window }, Role::Lead) => self.send_windows(l, window)?,
            (Pattern::Windows { window }, Role::Follow) => self.receive_windows(l, window)?,
        };
        self.until(Self::has_sent)?;
        let is_receiver = l.pattern == Pattern::PingPong || role == Role::Follow;
        if l.is_checked && is_receiver && !self.areas.holds(l.bytes, other) {
            return Err(format!("a message of {} bytes did not come as it was sent", l.bytes));
        }
        Ok(time)
    }

    fn ping(&mut self, l: &Loop) -> Result<Duration, String> {
        let turns = l.warm + l.count;
        let mut groups = Groups::new(l.count);
        self.post_data(0)?;
        for turn in 0..turns {
            if turn == l.warm {
                groups.start();
            }
            self.send(DATA, l.bytes)?;
            self.until(|side| side.received > turn && side.has_sent())?;
            if turn + 1 < turns {
                self.post_data(0)?;
            }
            if turn >= l.warm {
                groups.turn();
            }
        }
        Ok(groups.time())
    }

    fn pong(&mut self, l: &Loop) -> Result<Duration, String> {
        let turns = l.warm + l.count;
        self.post_data(0)?;
        for turn in 0..turns {
            self.until(|side| side.received > turn && side.has_sent())?;
            if turn + 1 < turns {
                self.post_data(0)?;
            }
            self.send(DATA, l.bytes)?;
        }
        Ok(Duration::ZERO)
    }

    /// Each window is sent when the receiver has said that its receives are posted.
    fn send_windows(&mut self, l: &Loop, window: usize) -> Result<Duration, String> {
        let mut groups = Groups::new(l.count);
        self.fence()?;
        for turn in 0..l.warm + l.count {
            if turn == l.warm {
                groups.start();
            }
            let want = self.fences + 1;
            self.post_fence()?;
            for _ in 0..window {
                self.send(DATA, l.bytes)?;
            }
            self.until(|side| side.fences == want && side.has_sent())?;
            if turn >= l.warm {
                groups.turn();
            }
        }
        Ok(groups.time())
    }

    fn receive_windows(&mut self, l: &Loop, window: usize) -> Result<Duration, String> {
        let turns = l.warm + l.count;
        self.post_window(window)?;
        self.fence()?;
        for turn in 1..=turns {
            self.until(|side| side.received == turn * window)?;
            if turn < turns {
                self.post_window(window)?;
            }
            self.send(FENCE, SMALL)?;
        }
        Ok(Duration::ZERO)
    }

    fn post_window(&mut self, window: usize) -> Result<(), String> {
        (0..window).try_for_each(|number| self.post_data(number))
    }
}

impl<P: Port> Open for Side<P> {
    fn name(&self) -> Vec<u8> {
        self.port.name()
    }

    fn what(&self) -> String {
        self.port.what()
    }

    fn meet(&mut self, name: &[u8]) -> Result<(), String> {
        self.port.meet(name)
    }

    fn work(&mut self, work: &Work, role: Role) -> Result<Duration, String> {
        match work {
            Work::Fill(ahead) => self.fill(*ahead).map(|()| Duration::ZERO),
            Work::Drain(ahead) => self.drain(*ahead).map(|()| Duration::ZERO),
            Work::Loop(l) => self.pass(l, role),
        }
    }
}

/// Polls that find nothing before others get the processor.
const IDLE_MAX: u32 = 1024;
/// What messages consist of, by who sends them.
const LEAD: u8 = 0x5a;
const FOLLOW: u8 = 0xc3;
