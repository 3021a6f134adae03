//! What a device did that it may not do.

use crate::ids::{DeviceId, MessageToken, TagHandle, TransferId};
use crate::seam::{DeviceError, Operation};

use super::entry::Place;

/// What comes of something that a device may not do. A fault is rare and large: whoever finds one pays for it.
pub(crate) type Checked<T> = Result<T, Box<Fault>>;

/// A device broke the contract, or failed. What it names may be anything that a hostile device can say.
///
/// After a fault the device gets no further receives; what it holds is recalled by the owner's decision
/// ([`crate::engine::Engine::set_offload`]) or ends with [`crate::seam::Event::DeviceFailed`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// An event names a device that the engine does not have.
    #[error("{device:?} is not a device of this engine")]
    UnknownDevice {
        /// As the event said.
        device: DeviceId,
    },
    /// An event names an entry that the device does not hold.
    #[error("{device:?} named {handle:?} in {event}, but holds no such entry")]
    UnknownHandle {
        /// Which device.
        device: DeviceId,
        /// As the event said.
        handle: TagHandle,
        /// Which event.
        event: &'static str,
    },
    /// An event names a transfer that is not under way.
    #[error("{device:?} named {transfer:?} in a data event, but no such transfer is under way there")]
    UnknownTransfer {
        /// Which device.
        device: DeviceId,
        /// As the event said.
        transfer: TransferId,
    },
    /// An event names a message that the host does not hold.
    #[error("{device:?} named {message:?} in a data event, but the host holds no such message")]
    UnknownMessage {
        /// Which device.
        device: DeviceId,
        /// As the event said.
        message: MessageToken,
    },
    /// A completion came that was not due.
    #[error("{device:?} completed {operation:?}, but {due:?} was due")]
    UnknownCompletion {
        /// Which device.
        device: DeviceId,
        /// As the completion said.
        operation: Operation,
        /// What should have come.
        due: Option<Operation>,
    },
    /// An event came for an entry in a state that does not expect it.
    #[error("{device:?} told {event} of {handle:?}, which is {place:?}")]
    Unexpected {
        /// Which device.
        device: DeviceId,
        /// Which entry.
        handle: TagHandle,
        /// Which event.
        event: &'static str,
        /// The entry's state.
        place: Place,
    },
    /// The device matched, or failed to give back, a receive that software had used for a message which the same
    /// device had called unexpected: one of two messages is lost.
    #[error(
        "{device:?} consumed {handle:?}, which software had used for a message that the device called unexpected"
    )]
    ConsumedTwice {
        /// Which device.
        device: DeviceId,
        /// Which entry.
        handle: TagHandle,
    },
    /// The device matched a message that the receive does not take.
    #[error(
        "{device:?} matched {handle:?} with a message that does not fit it: tag {tag:#x}, peer {source_peer}"
    )]
    WrongMatch {
        /// Which device.
        device: DeviceId,
        /// Which entry.
        handle: TagHandle,
        /// The message's tag.
        tag: u64,
        /// Its sender.
        source_peer: u32,
    },
    /// A message arrived in a buffer that was not posted.
    #[error("{device:?} used more buffers than were posted")]
    NoBufferPosted {
        /// Which device.
        device: DeviceId,
    },
    /// A message was called unexpected by a device that does not match.
    #[error("{device:?} counted an unexpected message, but has no tags")]
    CountWithoutTags {
        /// Which device.
        device: DeviceId,
    },
    /// A message came from a device that had said that it failed.
    #[error("{device:?} told of a message after it had failed")]
    AfterFailure {
        /// Which device.
        device: DeviceId,
    },
    /// The device failed.
    #[error("{device:?} failed: {error}")]
    Failed {
        /// Which device.
        device: DeviceId,
        /// What it said.
        error: DeviceError,
    },
}
