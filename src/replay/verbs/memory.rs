//! Real memory: what messages say, and where receives have it written.
//!
//! Not here: how bytes get from one to the other.

use std::collections::VecDeque;

use super::super::Fault;
use crate::device::verbs::VerbsDevice;
use crate::device::verbs::device::Registered;
use crate::device::verbs::memory::RemoteAccess;
use crate::seam::Buffer;

/// What every message's payload is taken from: bytes without a pattern, of which each message has its own stretch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Payload {
    bytes: Vec<u8>,
}

impl Payload {
    /// For messages of at most so many bytes.
    #[must_use]
    pub fn new(length_max: u64) -> Self {
        let length = usize::try_from(real_length(length_max)).unwrap_or(0) + WINDOW;
        let mut word = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            word
        };
        let bytes = (0..length.div_ceil(8)).flat_map(|_| next().to_le_bytes()).collect();
        Self { bytes }
    }

    /// All of it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where a message's stretch begins.
    #[must_use]
    pub const fn offset(message: u32) -> u64 {
        // 61 is odd: any 65,536 messages in a row have different stretches.
        message as u64 * 61 % WINDOW as u64
    }

    /// A message's stretch.
    #[must_use]
    pub fn of(&self, message: u32, length: u64) -> &[u8] {
        let start = usize::try_from(Self::offset(message)).unwrap_or(0);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.bytes.get(start..start.saturating_add(length)).unwrap_or_default()
    }
}

/// Bytes that a message or a receive of this length in a trace really has.
#[must_use]
pub fn real_length(length: u64) -> u64 {
    length.min(LENGTH_MAX)
}

/// The receives' memory, in registered pieces. Each receive has its own as long as it is posted, and a place is used
/// again as late as possible.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// By the logarithm of their size.
    free: Vec<VecDeque<Place>>,
    /// By the number of the receive.
    used: Vec<Option<(Place, u64)>>,
    scratch: Vec<u8>,
}

/// Where a receive's payload goes.
#[derive(Clone, Copy, Debug)]
struct Place {
    region: Registered,
    offset: u64,
}

impl Places {
    /// A buffer for a receive.
    pub(super) fn take(
        &mut self,
        device: &mut VerbsDevice,
        receive: u32,
        length: u64,
    ) -> Result<Buffer, Fault> {
        let length = real_length(length);
        let class = class(length);
        if self.free.len() <= class {
            self.free.resize_with(class + 1, VecDeque::new);
        }
        if self.free.get(class).is_none_or(VecDeque::is_empty) {
            self.grow(device, class)?;
        }
        let place = self.free.get_mut(class).and_then(VecDeque::pop_front);
        let place = place.ok_or_else(|| Fault::new("no memory for a receive"))?;
        let at = receive as usize;
        if self.used.len() <= at {
            self.used.resize(at + 1, None);
        }
        self.used[at] = Some((place, length));
        Ok(Buffer { address: place.region.buffer.address + place.offset, length, ..place.region.buffer })
    }

    /// The receive no longer needs it.
    pub(super) fn give_back(&mut self, receive: u32) {
        if let Some((place, length)) = self.used.get_mut(receive as usize).and_then(Option::take)
            && let Some(free) = self.free.get_mut(class(length))
        {
            free.push_back(place);
        }
    }

    /// Whether a receive holds this message: its first and its last bytes.
    pub(super) fn holds(
        &mut self,
        device: &VerbsDevice,
        receive: u32,
        payload: &Payload,
        message: u32,
        length: u64,
    ) -> bool {
        let Some(&Some((place, room))) = self.used.get(receive as usize) else { return false };
        let expected = payload.of(message, length.min(room));
        let Some(region) = device.region(place.region.id) else { return false };
        let ends = expected.len().min(CHECKED);
        let (first, last) = (&expected[..ends], &expected[expected.len() - ends..]);
        let last_at = (expected.len() - ends) as u64;
        self.scratch.resize(ends, 0);
        [(0, first), (last_at, last)]
            .into_iter()
            .all(|(at, bytes)| region.read(place.offset + at, &mut self.scratch) && self.scratch == bytes)
    }

    fn grow(&mut self, device: &mut VerbsDevice, class: usize) -> Result<(), Fault> {
        let size = 1_u64 << class;
        let length = size.max(PIECE);
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        let region = device.allocate(bytes, RemoteAccess::NONE).map_err(Fault::new)?;
        if let Some(free) = self.free.get_mut(class) {
            free.extend((0..length / size).map(|number| Place { region, offset: number * size }));
        }
        Ok(())
    }
}

fn class(length: u64) -> usize {
    length.max(PLACE_MIN).next_power_of_two().ilog2() as usize
}

/// Longer messages and receives of a trace are cut to this, so that a trace does not decide how much memory it takes.
const LENGTH_MAX: u64 = 1 << 20;
/// Bytes before the stretches repeat.
const WINDOW: usize = 1 << 16;
/// Bytes at each end of a payload that are compared.
const CHECKED: usize = 256;
/// A cache line, so that even receives of no bytes have an address of their own.
const PLACE_MIN: u64 = 64;
const PIECE: u64 = 1 << 20;
