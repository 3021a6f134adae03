//! The user's memory: a stretch for each receive and each bounce buffer, written by devices and looked at afterwards.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::world::Places;
use crate::world::scope::Scope;

/// See the module. Kept for ever, since devices know its address.
#[derive(Debug)]
pub struct UserMemory {
    bytes: &'static [AtomicU8],
    receives: u32,
}

impl UserMemory {
    /// For so many receives.
    #[must_use]
    pub fn new(receives: u32) -> Self {
        let stretches = receives as usize + usize::from(BOUNCES) * DEVICES_MAX;
        let bytes = (0..stretches << SHIFT).map(|_| AtomicU8::new(CANARY)).collect::<Vec<_>>();
        Self { bytes: bytes.leak(), receives }
    }

    /// Where receives lie.
    #[must_use]
    pub fn places(&self) -> Places {
        let base = self.address();
        let bounces = base + (u64::from(self.receives) << SHIFT);
        // Each card puts its own key in its place.
        Places { base, shift: SHIFT, key: 1, bounces, bounces_of_device: BOUNCES.into() }
    }

    /// The first byte.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.bytes.as_ptr().expose_provenance() as u64
    }

    /// In bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Nothing is in the stretches that a scope's receives have.
    pub fn clear(&self, scope: &Scope) {
        let used = scope.receives.len() << SHIFT;
        for byte in self.bytes.iter().take(used) {
            byte.store(CANARY, Ordering::Relaxed);
        }
    }

    /// The message of this number, `sent` bytes long, lies in this buffer, and nothing lies behind the buffer.
    ///
    /// # Errors
    /// What is there instead.
    pub fn check(&self, number: u32, sent: u64, address: u64, length: u64) -> Result<(), String> {
        let start = usize::try_from(address.wrapping_sub(self.address())).unwrap_or(usize::MAX);
        let end = start.saturating_add(1 << SHIFT);
        let stretch = self.bytes.get(start..end).ok_or("it is not in a receive's memory")?;
        let received = sent.min(length);
        for (place, byte) in (0_u64..).zip(stretch) {
            let found = byte.load(Ordering::Relaxed);
            let expected = match place {
                place if place < received => byte_of(number, place),
                // A request that was handed back may have left its headers there.
                place if place < length => continue,
                _ => CANARY,
            };
            if found != expected {
                return Err(format!("byte {place} of {received} is {found:#04x} instead of {expected:#04x}"));
            }
        }
        Ok(())
    }
}

/// A byte of a message's payload.
pub(super) fn byte_of(number: u32, place: u64) -> u8 {
    let [low, ..] = (u64::from(number).wrapping_mul(31).wrapping_add(place.wrapping_mul(7))).to_le_bytes();
    low
}

const CANARY: u8 = 0xee;
/// Stretches of 1024 bytes.
const SHIFT: u32 = 10;
const BOUNCES: u8 = 16;
const DEVICES_MAX: usize = 4;
