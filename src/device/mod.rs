//! Devices: what carries messages, and perhaps matches them.
//!
//! A device is polled by its owner and tells its events to an [`EventSink`]; it takes commands in batches.
//! It imports [`crate::ids`], [`crate::seam`] and [`crate::wire`] only: devices and engine never import each other.

pub mod host_memory;
mod inbox;
pub mod loopback;
#[cfg(target_os = "linux")]
pub mod shm;
#[cfg(target_os = "linux")]
mod sockets;
pub mod soft;
#[cfg(target_os = "linux")]
mod stream;
#[cfg(target_os = "linux")]
pub mod tcp;
#[cfg(test)]
mod tests;
pub mod transport;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod verbs;

#[cfg(all(target_os = "linux", feature = "libfabric"))]
pub(crate) use sockets::sys::check_file_length;

use crate::ids::MessageToken;
use crate::seam::{Add, Buffer, Capabilities, Command, DeviceError, EventSink};

/// What every device does.
///
/// All calls belong to the owner of the domain: one thread at a time (TM-CONTRACT 6.2).
pub trait Device {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Take commands, in order, and say how many were taken. Fewer than offered means: poll, then offer the rest
    /// again. What was taken will be executed, at the latest after [`Self::flush`].
    ///
    /// # Errors
    /// The device failed; nothing of the batch was taken.
    fn submit(&mut self, commands: &[Command]) -> Result<usize, DeviceError>;

    /// Start everything that was taken (one doorbell for a batch).
    ///
    /// # Errors
    /// The device failed.
    fn flush(&mut self) -> Result<(), DeviceError>;

    /// Write the payload of a message that is held, and whose arrival said
    /// [`in_hand`](crate::seam::Arrival::in_hand): at most `buffer.length` bytes, before this returns. Then the message
    /// is forgotten, and nothing more is said of it. False: this device cannot do that, or does not have the message
    /// (any more); nothing has changed, and the answer is to come by a command.
    ///
    /// It takes no part in the order of commands: nothing that was submitted can speak of that message. For the owner
    /// to pass on from [`Placer::place`](crate::seam::Placer::place).
    fn place_held(&mut self, message: MessageToken, buffer: &Buffer) -> bool {
        let _ = (message, buffer);
        false
    }

    /// Take an ADD and start it, as [`Self::submit`] would the command and [`Self::flush`] behind it. Only while every
    /// command that the engine has given out was taken. False: that cannot be done here and now; nothing has changed, and
    /// a command will do it. For the owner to pass on from [`Placer::add`](crate::seam::Placer::add).
    fn add(&mut self, add: &Add<'_>) -> bool {
        let _ = add;
        false
    }

    /// Tell at most `max` events, and say how many were told. No command may be submitted from within.
    ///
    /// # Errors
    /// The device failed; events told before that stand.
    fn poll(&mut self, max: usize, sink: &mut dyn EventSink) -> Result<usize, DeviceError>;
}
