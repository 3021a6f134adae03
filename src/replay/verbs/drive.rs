//! What moves a device on that does not move by itself: a simulated one.

use std::fmt;

/// What moves a simulated device on; a card moves [`ByItself`].
pub trait Drive: fmt::Debug {
    /// Whether there is such a device. Without, whoever wants something to happen can but wait.
    fn is_driving(&self) -> bool;

    /// Let it do all that it can but let timers expire. Whether there was anything.
    fn run(&mut self) -> bool;

    /// Let it do one of the things that are possible now, timers included; which, by this number, modulo how many
    /// there are. False: there is none.
    fn step(&mut self, choice: u64) -> bool;
}

/// For devices that move by themselves: a card, or a simulated one with a thread of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByItself;

impl Drive for ByItself {
    fn is_driving(&self) -> bool {
        false
    }

    fn run(&mut self) -> bool {
        false
    }

    fn step(&mut self, _: u64) -> bool {
        false
    }
}

#[cfg(target_os = "linux")]
impl Drive for crate::device::verbs::SimulatedHca {
    fn is_driving(&self) -> bool {
        true
    }

    fn run(&mut self) -> bool {
        Self::run(self) > 0
    }

    fn step(&mut self, choice: u64) -> bool {
        let count = u64::from(self.steps());
        count > 0 && Self::step(self, u32::try_from(choice % count).unwrap_or(0))
    }
}
