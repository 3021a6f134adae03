//! What a probe works with: the calls of a port, and no expectations.

use crate::port::{Abilities, TmPort};
use crate::runner::{Runner, is_unexpected};
use crate::script::{Advance, Completion, Message, Operation, Setup, flags, opcode, status};

/// See the module.
pub(super) struct Asking<'a> {
    runner: Runner<'a>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(port: &'a mut dyn TmPort, abilities: Abilities) -> Self {
        Self { runner: Runner::new(port, abilities) }
    }

    pub(super) fn set_up(&mut self, setup: &Setup) -> Result<(), String> {
        self.runner.set_up(setup)
    }

    pub(super) const fn is_stepping(&self) -> bool {
        self.runner.abilities.stepping
    }

    /// What was recorded: the last of it.
    pub(super) fn seen(&self) -> Vec<String> {
        let records = &self.runner.records;
        records.iter().skip(records.len().saturating_sub(SHOWN)).map(ToString::to_string).collect()
    }

    /// A sender whose receive QP has a send queue.
    pub(super) fn connect_with_send_queue(&mut self, sender: u8) -> Result<(), String> {
        self.runner.port.connect(sender, true).map_err(|error| error.0)
    }

    pub(super) fn post(&mut self, operations: &[Operation]) -> Result<Option<(i32, usize)>, String> {
        self.runner.post_freely(operations)
    }

    pub(super) fn send(&mut self, message: &Message) -> Result<(), String> {
        self.runner.send(message)
    }

    pub(super) fn receives(&mut self, number: u32) -> Result<(), String> {
        self.runner.receives(number, number)
    }

    pub(super) fn drain(&mut self) -> Result<Vec<Completion>, String> {
        self.runner.drain()
    }

    /// Take so many completions, without waiting for more: for what is done many times.
    pub(super) fn drain_some(&mut self, number: usize) -> Result<Vec<Completion>, String> {
        self.runner.drain_some(number)
    }

    /// Send, and take whatever completes.
    pub(super) fn drain_after(&mut self, message: &Message) -> Result<Vec<Completion>, String> {
        self.send(message)?;
        self.drain()
    }

    /// Post, and take whatever completes.
    pub(super) fn drain_posted(&mut self, operations: &[Operation]) -> Result<Vec<Completion>, String> {
        self.post(operations)?;
        self.drain()
    }

    /// What is there without waiting for more.
    pub(super) fn take(&mut self) -> Result<Option<Completion>, String> {
        let completion = self.runner.port.start_poll().map_err(|error| error.0)?;
        if let Some(completion) = &completion {
            self.runner.port.end_poll();
            self.runner.take_freely(completion);
        }
        Ok(completion)
    }

    /// Whether a FIN has reached a sender since the last call.
    pub(super) fn is_finished(&mut self, sender: u8) -> Result<bool, String> {
        self.runner.port.received(sender).map(|received| !received.is_empty()).map_err(|error| error.0)
    }

    pub(super) fn advance(&mut self, step: Advance) -> Result<bool, String> {
        self.runner.port.advance(step).map_err(|error| error.0)
    }

    pub(super) fn sent(&mut self, sender: u8) -> Result<Vec<u32>, String> {
        self.runner.port.sent(sender).map_err(|error| error.0)
    }

    pub(super) fn buffer(&self, number: u32, length: u32) -> Vec<u8> {
        self.runner.port.tagged_buffer(number, length)
    }
}

/// The match of a receive, whole or not.
pub(super) fn matched(completions: &[Completion], receive: u32) -> bool {
    let is_match = |it: &&Completion| it.flags & flags::MATCH != 0 && it.wr_id == u64::from(receive);
    completions.iter().any(|completion| is_match(&completion))
}

/// Messages that were counted.
pub(super) fn unexpected(completions: &[Completion]) -> usize {
    completions.iter().filter(|completion| is_unexpected(completion)).count()
}

/// Messages without a tag.
pub(super) fn untagged(completions: &[Completion]) -> usize {
    completions.iter().filter(|it| it.status == status::SUCCESS && it.opcode == opcode::NO_TAG).count()
}

/// The device's count, as the last list operation tells it.
pub(super) fn phase(completions: &[Completion]) -> Option<u16> {
    let operation = |it: &&Completion| matches!(it.opcode, opcode::ADD | opcode::DEL | opcode::SYNC);
    completions.iter().rfind(operation).and_then(|it| u16::try_from(it.word >> 16).ok())
}

const SHOWN: usize = 40;
