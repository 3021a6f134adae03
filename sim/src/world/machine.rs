//! What a world needs of its devices: a device that moves on step by step, tells what it accepts, and can be looked
//! into when nothing happens any more.
//!
//! Not here: the devices ([`super::soft`], and [`crate::driver`] with the real driver).

use std::fmt;
use std::hash::Hash;

use tagmatch::device::Device;
use tagmatch::ids::{DeviceId, PeerId, TagHandle};
use tagmatch::seam::Buffer;

use super::scope::Message;

/// See the module.
pub trait Machine: Device + fmt::Debug {
    /// One thing that it can do.
    type Step: Copy + Eq + Hash + fmt::Debug;

    /// Everything that is possible now.
    fn steps(&self) -> Vec<Self::Step>;

    /// Do one step.
    fn step(&mut self, step: Self::Step);

    /// What a step is.
    fn kind(&self, step: Self::Step) -> StepKind;

    /// A step in words, behind "device 0".
    fn words(&self, step: Self::Step) -> String;

    /// Whether nothing is left to be polled.
    fn is_quiet(&self) -> bool;

    /// The messages accepted since the last call, in their order.
    fn take_accepted(&mut self) -> Vec<Accepted>;

    /// The message of this number is sent, through this device. Its word is its number.
    ///
    /// # Errors
    /// It cannot be sent.
    fn send(&mut self, number: u32, message: &Message) -> Result<(), String>;

    /// The path from this peer breaks.
    fn fail_path(&mut self, peer: PeerId);

    /// The device breaks.
    fn fail(&mut self);

    /// The entries of its list, where it has one; `None` among them: one that was never added.
    fn listed(&self) -> Option<Vec<Option<TagHandle>>>;

    /// Command slots in use, where it has a list.
    fn slots_used(&self) -> Option<u64>;

    /// To be asked when nothing can happen by itself: whether everything was given back.
    ///
    /// # Errors
    /// What was not.
    fn check_quiet(&self) -> Result<(), String>;

    /// The message of this number, `sent` bytes long, is complete in this buffer.
    ///
    /// # Errors
    /// It is not.
    fn check_data(&self, number: u32, sent: u64, address: u64, length: u64) -> Result<(), String>;
}

/// The kinds of steps, by what they do to matching.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StepKind {
    /// A list operation is executed.
    Command,
    /// A message may be accepted.
    Accept,
    /// Everything else.
    Data,
}

/// A message was accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Accepted {
    /// Its number.
    pub message: u32,
    /// Who takes it.
    pub by: Acceptor,
}

/// See [`Accepted::by`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Acceptor {
    /// An entry of the device's list.
    Entry(TagHandle),
    /// The host will decide.
    Host,
}

/// Where the receives' buffers lie: each has a stretch of addresses of its own, so that an address tells the receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places {
    /// The first receive's.
    pub base: u64,
    /// A stretch has two to the power of this bytes.
    pub shift: u32,
    /// What devices know the memory by; 0 where none needs that.
    pub key: u32,
    /// The first bounce buffer of the first device.
    pub bounces: u64,
    /// Stretches for bounce buffers that each device has.
    pub bounces_of_device: u64,
}

impl Places {
    /// Where this receive's buffer begins.
    #[must_use]
    pub fn address_of(&self, receive: u32) -> u64 {
        self.base + (u64::from(receive) << self.shift)
    }

    /// Whose a buffer is.
    #[must_use]
    pub fn receive_at(&self, buffer: &Buffer) -> u32 {
        u32::try_from(buffer.address.wrapping_sub(self.base) >> self.shift).unwrap_or(u32::MAX)
    }

    /// This receive's buffer.
    #[must_use]
    pub fn buffer(&self, receive: u32, length: u64) -> Buffer {
        Buffer { key: self.key, ..Buffer::new(self.address_of(receive), length) }
    }

    /// This device's bounce buffer of this number.
    #[must_use]
    pub fn bounce(&self, device: DeviceId, number: u32, length: u64) -> Buffer {
        let place = u64::from(device.0) * self.bounces_of_device + u64::from(number);
        Buffer { key: self.key, ..Buffer::new(self.bounces + (place << self.shift), length) }
    }
}
