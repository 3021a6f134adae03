//! One world: the production engine over soft devices in step mode, a program, and the checker beside them.
//!
//! ```text
//!   Scope (what happens) ── actions ──► World ──► engine ⇄ devices
//!                              ▲          │ observations
//!   explore, schedules ────────┘          └──► monitor, book of receives and messages
//! ```
//!
//! Every [`Action`] is one thing that can happen next; what has to follow at once (commands down, completions up)
//! follows. Submitting at once loses nothing, since a device executes commands as late as it likes; nor does sending
//! everything at the start, since the acceptance of a message is what counts as its arrival.
//!
//! Receives are named by their number in the program, which is their context, and messages by theirs, which is their
//! `app_ctx`.
//!
//! Not here: which action is taken.

mod book;
mod canonical;
mod machine;
mod observed;
mod quiet;
pub mod scope;
mod soft;
mod user;

use std::sync::Arc;

use tagmatch::device::soft::{NoMemory, SoftDevice, Step};
use tagmatch::engine::{Config, Engine, Kind, Posting, Receive};
use tagmatch::ids::DeviceId;
use tagmatch::offload::{Fault, TagLayout};
use tagmatch::seam::{Answer, Command, Event, EventSink, Operation};

use crate::checker::{Monitor, Observation, Options, Violation};
use book::{Book, Decision};
use scope::Scope;

pub use canonical::Fingerprint;
pub use machine::{Accepted, Acceptor, Machine, Places, StepKind};

/// See the module.
#[derive(Clone, Debug)]
pub struct World<D = SoftDevice<NoMemory>> {
    scope: Arc<Scope>,
    engine: Engine,
    devices: Vec<D>,
    places: Places,
    /// A match by a device is a point: its acceptance.
    points: Option<Monitor>,
    /// A match by a device is an interval, and acceptance order counts.
    intervals: Option<Monitor>,
    book: Book,
    /// Everything observed, if somebody asked for it.
    history: Option<Vec<Observation>>,
    /// What happened in words, if somebody asked for it.
    log: Option<Vec<String>>,
}

/// One thing that can happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action<S = Step> {
    /// This thread of the user does its next thing.
    User(usize),
    /// A device does this.
    Step(usize, S),
    /// A device tells one event.
    Poll(usize),
    /// What is due for a device is submitted, where the scope leaves that to the schedule.
    Submit(usize),
}

/// What went wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Wrong {
    /// No order explains the run.
    #[error("order: {0}")]
    Order(Violation),
    /// The engine reports a fault of a device that keeps its contract.
    #[error("the engine reports a fault: {0}")]
    Fault(Fault),
    /// A device cannot do what the engine asks, or failed by it.
    #[error("a device refuses: {0}")]
    Refused(String),
    /// A receive ended as it must not.
    #[error("completion: {0}")]
    Completion(String),
    /// Nothing more can happen, and something is not done, or not given back.
    #[error("nothing more happens, but {0}")]
    Stuck(String),
}

impl From<Violation> for Wrong {
    fn from(violation: Violation) -> Self {
        Self::Order(violation)
    }
}

/// How a world starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Watch {
    /// Leave the monitors out: the history will be checked.
    pub unmonitored: bool,
    /// Keep the history.
    pub history: bool,
    /// Tell what happens in words.
    pub log: bool,
}

impl<D: Machine> World<D> {
    /// At its beginning: nothing is posted, everything is sent. One device for each path of the scope.
    ///
    /// # Errors
    /// The program makes no sense.
    pub fn over(scope: &Arc<Scope>, devices: Vec<D>, places: Places, watch: Watch) -> Result<Self, Wrong> {
        let mut engine = Engine::new(Config {
            layout: scope.layout.map(|source_bits| TagLayout { source_bits }),
            rules: scope.rules,
            counters_start: scope.counters_start,
            silent_adds_max: scope.silent_adds_max,
            kept_from: scope.kept_from,
            ..Config::default()
        });
        for (device, path) in devices.iter().zip(&scope.paths) {
            let capabilities = device.capabilities();
            let id = engine.add_device(capabilities).map_err(|error| Wrong::Refused(error.to_string()))?;
            for bounce in 0..path.bounces {
                engine.add_bounce_buffer(id, places.bounce(id, bounce, capabilities.eager_limit));
            }
        }
        if scope.added_by_hand != 0 {
            use_records(&mut engine, scope, places)?;
        }
        let options = Options { acceptance_order: scope.acceptance_order, ..Options::default() };
        let mut world = Self {
            engine,
            devices,
            places,
            points: (!watch.unmonitored && !scope.is_failing()).then(|| Monitor::new(Options::default())),
            intervals: (!watch.unmonitored && (scope.acceptance_order || scope.is_failing()))
                .then(|| Monitor::new(options)),
            book: Book::new(scope),
            history: watch.history.then(Vec::new),
            log: watch.log.then(Vec::new),
            scope: Arc::clone(scope),
        };
        // A TM-SRQ wants its buffers before anything comes.
        for at in 0..world.devices.len() {
            world.submit(at)?;
        }
        world.send_all()?;
        for at in 0..world.devices.len() {
            world.submit(at)?;
        }
        Ok(world)
    }

    fn send_all(&mut self) -> Result<(), Wrong> {
        let scope = Arc::clone(&self.scope);
        for (number, message) in (0_u32..).zip(&scope.messages) {
            if scope.is_sent_later(message) {
                continue;
            }
            self.devices[usize::from(message.path)].send(number, message).map_err(Wrong::Refused)?;
            if let Some(layout) = scope.layout {
                let _same = self.engine.name_peer(message.source, message.tag.0 & layout);
            }
            if scope.paths_known {
                let _first = self.engine.set_path(message.source, DeviceId(message.path));
            }
        }
        Ok(())
    }

    /// Everything that can happen next.
    pub fn actions(&self, into: &mut Vec<Action<D::Step>>) {
        into.clear();
        for (at, device) in self.devices.iter().enumerate() {
            if !device.is_quiet() && self.engine.is_poll_allowed(device_id(at)) && !self.book.is_over(at) {
                into.push(Action::Poll(at));
            }
            into.extend(device.steps().into_iter().map(|step| Action::Step(at, step)));
            if self.book.is_due(at) {
                into.push(Action::Submit(at));
            }
        }
        let threads = 0..self.scope.threads.len();
        into.extend(threads.filter(|&thread| self.is_possible(thread)).map(Action::User));
    }

    /// Whether nothing can happen by itself: the user's move.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        (0..self.devices.len()).all(|at| {
            let device = &self.devices[at];
            let is_told =
                device.is_quiet() || !self.engine.is_poll_allowed(device_id(at)) || self.book.is_over(at);
            is_told && !self.book.is_due(at) && device.steps().is_empty()
        })
    }

    /// Do it, and see that all is well.
    ///
    /// # Errors
    /// What is not.
    pub fn apply(&mut self, action: Action<D::Step>) -> Result<(), Wrong> {
        if self.log.is_some() {
            let words = self.words(action);
            self.tell(|| words);
        }
        match action {
            Action::User(thread) => self.step_user(thread)?,
            Action::Step(at, step) => {
                self.devices[at].step(step);
            }
            Action::Poll(at) => self.poll(at)?,
            Action::Submit(at) => self.submit(at)?,
        }
        self.settle(action)
    }

    fn poll(&mut self, at: usize) -> Result<(), Wrong> {
        let (engine, book, log) = (&mut self.engine, &mut self.book, self.log.as_mut());
        let mut ear = Ear { engine, book, log, places: self.places, is_moving: self.scope.is_moving() };
        let told = self.devices[at].poll(1, &mut ear);
        let heard = std::mem::take(&mut self.book.heard);
        for (message, receive) in heard {
            self.handle_decided(message, receive)?;
        }
        match told {
            Ok(_) => Ok(()),
            Err(error) if self.book.is_failed(at) => {
                self.tell(|| format!("    device {at} is gone: {error}"));
                self.book.handle_over(at);
                Ok(())
            }
            Err(error) => Err(Wrong::Refused(error.to_string())),
        }
    }

    /// Commands down, completions up, and everything observed on the way.
    fn settle(&mut self, action: Action<D::Step>) -> Result<(), Wrong> {
        for at in 0..self.devices.len() {
            if self.scope.batched {
                self.postpone(at, action)?;
            } else {
                self.submit(at)?;
            }
            self.look_into(at)?;
        }
        self.handle_completions()?;
        self.handle_undecided()?;
        if self.book.is_anything_lost() {
            self.handle_vanished()?;
        }
        while let Some(fault) = self.engine.poll_fault() {
            let is_known = matches!(fault, Fault::Failed { device, .. }
                if self.book.is_failed(usize::from(device.0)));
            if !is_known {
                return Err(Wrong::Fault(fault));
            }
        }
        Ok(())
    }

    /// What the engine has decided is observed now, submitted later.
    fn postpone(&mut self, at: usize, action: Action<D::Step>) -> Result<(), Wrong> {
        let commands = self.engine.commands(device_id(at)).to_vec();
        match action {
            Action::User(_) | Action::Poll(_) => self.book.set_due(at, true),
            Action::Submit(_) if !commands.is_empty() => self.book.set_due(at, true),
            Action::Submit(_) | Action::Step(..) => {}
        }
        for command in &commands {
            if let Command::Answer { message, .. } = *command
                && self.book.is_held(at, message)
            {
                self.handle_command(at, command)?;
            } else if let Command::Add { handle, .. } = *command
                && let Some(context) = self.engine.context_of(device_id(at), handle)
            {
                self.book.handle_added(at, handle, u32::try_from(context).unwrap_or(u32::MAX));
            }
        }
        Ok(())
    }

    fn submit(&mut self, at: usize) -> Result<(), Wrong> {
        let id = device_id(at);
        self.book.set_due(at, false);
        let commands = self.engine.poll_commands(id);
        if commands.is_empty() {
            return Ok(());
        }
        let commands = commands.to_vec();
        for command in &commands {
            self.handle_command(at, command)?;
        }
        match self.devices[at].submit(&commands) {
            Ok(taken) if taken == commands.len() => {
                self.engine.handle_submitted(id, taken);
                Ok(())
            }
            Ok(taken) => Err(Wrong::Refused(format!(
                "device {at} has no room for {:?}: a resource was not counted",
                commands.get(taken)
            ))),
            // It took nothing, and what waits for it goes when the engine hears of its failure.
            Err(_) if self.book.is_failed(at) => Ok(()),
            Err(error) => Err(Wrong::Refused(error.to_string())),
        }
    }

    fn handle_command(&mut self, at: usize, command: &Command) -> Result<(), Wrong> {
        let id = device_id(at);
        match *command {
            Command::Add { handle, unexpected_count, .. } => {
                let context =
                    self.engine.context_of(id, handle).and_then(|context| u32::try_from(context).ok());
                // In a batch it may have ended since.
                let Some(receive) = context.or_else(|| self.book.receive_of(at, handle)) else {
                    return Err(Wrong::Refused(format!(
                        "ADD of {handle:?}, which no posted receive stands for"
                    )));
                };
                self.book.handle_added(at, handle, receive);
                self.tell(|| format!("    to device {at}: ADD r{receive}, count {unexpected_count:#06x}"));
            }
            Command::Del { handle, .. } => {
                let receive = self.book.receive_of(at, handle);
                self.tell(|| format!("    to device {at}: DEL {}", name(receive)));
            }
            Command::Sync { unexpected_count, .. } => {
                self.tell(|| format!("    to device {at}: SYNC, count {unexpected_count:#06x}"));
            }
            Command::Answer { message, answer } => {
                let Some(message) = self.book.take_token(at, message) else {
                    if self.scope.batched || self.book.is_failed(at) {
                        // Handled when it was queued.
                        return Ok(());
                    }
                    return Err(Wrong::Refused(format!("an answer for {message:?}, which is not held")));
                };
                if let Answer::Accept { buffer, .. } = answer {
                    self.handle_decided(message, self.places.receive_at(&buffer))?;
                } else {
                    self.tell(|| format!("    to device {at}: drop m{message}"));
                }
            }
            Command::Receive { .. } | Command::Read { .. } | Command::Copy { .. } => {}
        }
        Ok(())
    }

    fn tell(&mut self, words: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(words());
        }
    }

    pub(crate) fn words(&self, action: Action<D::Step>) -> String {
        match action {
            Action::User(thread) => self.words_of_user(thread),
            Action::Step(at, step) => format!("device {at} {}", self.devices[at].words(step)),
            Action::Poll(at) => format!("poll device {at}"),
            Action::Submit(at) => format!("submit to device {at}"),
        }
    }

    /// Everything observed, if it was kept.
    #[must_use]
    pub fn history(&self) -> Option<&[Observation]> {
        self.history.as_deref()
    }

    /// What happened since the last call, in words, if they are kept.
    pub(crate) fn take_log(&mut self) -> Vec<String> {
        self.log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What happened, in words, if they were kept.
    #[must_use]
    pub fn log(&self) -> &[String] {
        self.log.as_deref().unwrap_or_default()
    }

    /// What the action is, where a device does it.
    pub fn kind(&self, action: Action<D::Step>) -> Option<StepKind> {
        match action {
            Action::Step(at, step) => Some(self.devices[at].kind(step)),
            Action::User(_) | Action::Poll(_) | Action::Submit(_) => None,
        }
    }

    /// The devices.
    #[must_use]
    pub fn devices(&self) -> &[D] {
        &self.devices
    }

    /// The engine.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Which receive each message went to.
    #[must_use]
    pub fn receive_of(&self, message: u32) -> Option<u32> {
        match self.book.decisions.get(message as usize) {
            Some(&Decision::Receive(receive)) => Some(receive),
            _ => None,
        }
    }
}

/// Receives are posted and cancelled while no device may take any: as many records as the scope has receives were used
/// then. Only where that is so goes a receive down while it is posted.
fn use_records(engine: &mut Engine, scope: &Scope, places: Places) -> Result<(), Wrong> {
    let devices = || (0..scope.paths.len()).map(device_id);
    devices().for_each(|device| engine.set_offload(device, false));
    let mut ids = Vec::new();
    for number in 0..u32::try_from(scope.receives.len()).unwrap_or(u32::MAX) {
        let buffer = places.buffer(number, scope::EAGER_LIMIT);
        let receive = Receive { pattern: scope::any(0, 0), buffer, context: 0, kind: Kind::Once };
        match engine.post(&receive) {
            Posting::Queued(id) => ids.push(id),
            posting @ (Posting::Matched(_) | Posting::Placed(_)) => {
                return Err(Wrong::Completion(format!("{posting:?}, and nothing was sent")));
            }
        }
    }
    for id in ids {
        let _cancelled = engine.cancel(id);
    }
    while engine.poll_completion().is_some() {}
    devices().for_each(|device| engine.set_offload(device, true));
    Ok(())
}

/// Who is to hear of an observation.
#[derive(Clone, Copy)]
struct Monitors {
    points: bool,
    intervals: bool,
}

impl Monitors {
    const BOTH: Self = Self { points: true, intervals: true };
}

/// Hears what a device says before the engine does.
struct Ear<'a> {
    engine: &'a mut Engine,
    book: &'a mut Book,
    log: Option<&'a mut Vec<String>>,
    places: Places,
    is_moving: bool,
}

impl EventSink for Ear<'_> {
    fn handle_event(&mut self, device: DeviceId, event: &Event) -> Answer {
        let at = usize::from(device.0);
        if let Some(log) = &mut self.log {
            log.push(format!("    from device {at}: {}", self.book.words(at, event)));
        }
        match event {
            Event::Matched(matched) => {
                if let Some(receive) = self.book.receive_of(at, matched.handle) {
                    self.book.heard.push((matched.app_ctx, receive));
                }
            }
            Event::Arrived(_)
            | Event::Data(_)
            | Event::Operation(_)
            | Event::Untagged { .. }
            | Event::Released(_)
            | Event::SetAside { .. }
            | Event::PathLost { .. }
            | Event::DeviceFailed(_) => {}
        }
        let answer = self.engine.handle_event(device, event);
        if let Event::PathLost { peer } = *event
            && self.is_moving
        {
            // The owner's part: all that came by it was told.
            self.engine.clear_path(peer);
            self.book.told_lost.push(peer);
        }
        if let Event::Arrived(arrival) = event {
            match answer {
                Answer::Accept { buffer, .. } => {
                    self.book.heard.push((arrival.header.app_ctx, self.places.receive_at(&buffer)));
                }
                Answer::Hold => self.book.handle_held(at, arrival.message, arrival.header.app_ctx),
                Answer::Discard => {}
            }
        }
        answer
    }
}

fn name(receive: Option<u32>) -> String {
    receive.map_or_else(|| "an unknown entry".to_owned(), |receive| format!("r{receive}"))
}

fn words_of(operation: Operation, receive: impl Fn(tagmatch::ids::TagHandle) -> Option<u32>) -> String {
    match operation {
        Operation::Add(handle) => format!("ADD {}", name(receive(handle))),
        Operation::Del(handle) => format!("DEL {}", name(receive(handle))),
        Operation::Sync => "SYNC".to_owned(),
    }
}

fn device_id(at: usize) -> DeviceId {
    DeviceId(u8::try_from(at).unwrap_or(u8::MAX))
}
