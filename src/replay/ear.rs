//! Between engine and devices, for who must know which message and receive of the trace they speak of.
//!
//! Not here: the replay.

use std::collections::HashMap;

use super::offload::receive_at;
use crate::device::Device as _;
use crate::device::soft::{NoMemory, SoftDevice};
use crate::engine::Engine;
use crate::ids::{DeviceId, MessageToken, TagHandle};
use crate::seam::{Answer, Buffer, Event, EventSink, Placer};

/// Names that devices use, in the trace's numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    /// Messages that devices hold.
    pub(super) tokens: HashMap<(DeviceId, MessageToken), u32>,
    /// Entries, by the context of their receive.
    pub(super) entries: HashMap<(DeviceId, TagHandle), u32>,
    /// Messages whose receive is known.
    pub(super) decided: HashMap<u32, u32>,
}

/// Hears what a device says before the engine does.
pub(super) struct Ear<'a> {
    pub(super) engine: &'a mut Engine,
    pub(super) book: &'a mut Book,
}

impl EventSink for Ear<'_> {
    fn handle_event(&mut self, device: DeviceId, event: &Event) -> Answer {
        let answer = self.engine.handle_event(device, event);
        if let Event::Arrived(arrival) = event {
            match answer {
                Answer::Accept { buffer, .. } => {
                    self.book.decided.insert(arrival.header.app_ctx, receive_at(&buffer));
                }
                Answer::Hold => {
                    self.book.tokens.insert((device, arrival.message), arrival.header.app_ctx);
                }
                Answer::Discard => {}
            }
        }
        answer
    }
}

/// Writes at once what a device holds in full.
pub(super) struct Hand<'a> {
    pub(super) devices: &'a mut [SoftDevice<NoMemory>],
    pub(super) book: &'a mut Book,
}

impl Placer for Hand<'_> {
    fn place(&mut self, device: DeviceId, message: MessageToken, buffer: &Buffer) -> bool {
        let soft = self.devices.get_mut(usize::from(device.0));
        let is_placed = soft.is_some_and(|soft| soft.place_held(message, buffer));
        if is_placed {
            self.book.tokens.remove(&(device, message));
        }
        is_placed
    }
}
