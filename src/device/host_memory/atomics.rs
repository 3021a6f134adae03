//! Operations on values of the host's memory, each whole before another begins: of this process's devices among themselves,
//! and where the processor can change so many bytes at once, of its threads too.
//!
//! Not here: which operations there are (`atomics`), and who may ask for one.
#![allow(unsafe_code, reason = "this is where addresses of the host's are followed")]

use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::sync::{Mutex, PoisonError};

use super::{HostMemory, Stretch};
use crate::atomics::VALUE_BYTES_MAX;
use crate::seam::Buffer;
use crate::wire::RemoteAtomic;

impl HostMemory {
    /// Do an operation on each value of a buffer, and say what was there before, in the order of bytes of whoever asked.
    /// Nothing more is done, and told, from the first value on that is not whole in the buffer, or where addresses may not
    /// be followed.
    pub(in crate::device) fn operate(self, on: &Buffer, atomic: &RemoteAtomic<'_>) -> Vec<u8> {
        let (of, size) = (atomic.of, atomic.of.size());
        let is_foreign = atomic.is_little != cfg!(target_endian = "little");
        let mut operands = atomic.payload.arrived().to_vec();
        turn(&mut operands, of.part(), is_foreign);
        let length = usize::try_from(atomic.stretch.length).unwrap_or(0);
        let (operands, compares) = operands.split_at(length.min(operands.len()));
        let mut before = Vec::with_capacity(length);
        for at in (0..length).step_by(size) {
            let value = |values: &[u8]| {
                let mut value = [0; VALUE_BYTES_MAX];
                let from = values.get(at..).unwrap_or_default();
                value.iter_mut().zip(from.iter().take(size)).for_each(|(to, from)| *to = *from);
                value
            };
            let (operand, compare) = (value(operands), value(compares));
            let stretch = self.stretches(on, at as u64, size as u64).next();
            let Some(stretch) = stretch.filter(|stretch| stretch.length() == size) else { break };
            let was = change(stretch, |there| {
                let [operand, compare] =
                    [&operand, &compare].map(|value| value.get(..size).unwrap_or_default());
                atomic.op.apply(of, there, operand, compare);
            });
            before.extend(was.iter().take(size));
        }
        turn(&mut before, of.part(), is_foreign);
        before
    }
}

/// Turn the bytes of each part round, where they are to be.
fn turn(values: &mut [u8], part: usize, is_foreign: bool) {
    if is_foreign {
        values.chunks_exact_mut(part).for_each(<[u8]>::reverse);
    }
}

/// Change the value in a stretch, and say what it was.
fn change(stretch: Stretch, by: impl Fn(&mut [u8])) -> [u8; VALUE_BYTES_MAX] {
    let pointer = stretch.pointer();
    macro_rules! by_processor {
        ($atomic:ty, $of:ty) => {{
            // SAFETY: the stretch is the host's promise, and its address is a multiple of its length. Whoever else changes it
            // at this time does so by atomic operations, which is the application's promise (fi_atomic(3)).
            let place = unsafe { <$atomic>::from_ptr(pointer.cast()) };
            let mut was = place.load(Acquire);
            loop {
                let mut value = was.to_ne_bytes();
                by(&mut value);
                match place.compare_exchange_weak(was, <$of>::from_ne_bytes(value), AcqRel, Acquire) {
                    Ok(_) => break,
                    Err(now) => was = now,
                }
            }
            let mut before = [0; VALUE_BYTES_MAX];
            before[..size_of::<$of>()].copy_from_slice(&was.to_ne_bytes());
            before
        }};
    }
    match stretch.length() {
        length if !pointer.addr().is_multiple_of(length) => change_locked(stretch, by),
        1 => by_processor!(AtomicU8, u8),
        2 => by_processor!(AtomicU16, u16),
        4 => by_processor!(AtomicU32, u32),
        8 => by_processor!(AtomicU64, u64),
        _ => change_locked(stretch, by),
    }
}

/// The same for values that the processor cannot change at once: one after the other, of all devices of the process.
fn change_locked(stretch: Stretch, by: impl Fn(&mut [u8])) -> [u8; VALUE_BYTES_MAX] {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut value = [0; VALUE_BYTES_MAX];
    let length = stretch.length().min(VALUE_BYTES_MAX);
    // SAFETY: the stretch is the host's promise, and `value` has so many bytes.
    unsafe { ptr::copy_nonoverlapping(stretch.pointer(), value.as_mut_ptr(), length) };
    let before = value;
    by(value.get_mut(..length).unwrap_or_default());
    // SAFETY: as above.
    unsafe { ptr::copy_nonoverlapping(value.as_ptr(), stretch.pointer(), length) };
    before
}

static TURN: Mutex<()> = Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomics::{AtomicOp, AtomicType};
    use crate::wire::{OperationId, Payload, RemoteStretch};

    fn operate(bytes: &mut [u8], op: AtomicOp, of: AtomicType, payload: &[u8], is_little: bool) -> Vec<u8> {
        // SAFETY: the buffer is a slice that stays.
        let memory = unsafe { HostMemory::trusted() };
        let length = payload.len() as u64 / op.operands();
        let buffer = Buffer::new(bytes.as_mut_ptr().expose_provenance() as u64, bytes.len() as u64);
        let atomic = RemoteAtomic {
            operation: OperationId::MAX,
            is_last: true,
            fetches: true,
            is_little,
            stretch: RemoteStretch { key: 0, address: 0, length },
            place: 0,
            op,
            of,
            payload: Payload::new(payload),
        };
        memory.operate(&buffer, &atomic)
    }

    const LITTLE: bool = cfg!(target_endian = "little");

    #[test]
    fn each_value_is_changed_and_what_was_there_is_told_aligned_or_not() {
        for skip in 0..4 {
            let mut memory = [0_u8; 32];
            let place = memory[skip..].as_ptr().align_offset(4) + skip + skip;
            let (there, _) = memory[place..].split_at_mut(8);
            there.copy_from_slice(&[7_u32.to_ne_bytes(), u32::MAX.to_ne_bytes()].concat());
            let operands = [1_u32, 2].map(u32::to_ne_bytes).concat();
            let before = operate(there, AtomicOp::Sum, AtomicType::U32, &operands, LITTLE);
            assert_eq!(before, [7_u32, u32::MAX].map(u32::to_ne_bytes).concat());
            assert_eq!(there, [8_u32, 1].map(u32::to_ne_bytes).concat());
        }
    }

    #[test]
    fn a_caller_of_the_other_order_of_bytes_sends_and_gets_its_own() {
        let mut there = 0x0102_0304_u32.to_ne_bytes();
        let swapped = |value: u32| {
            let mut bytes = value.to_ne_bytes();
            bytes.reverse();
            bytes
        };
        let payload = [swapped(5), swapped(0x0102_0304)].concat();
        let before = operate(&mut there, AtomicOp::SwapIfEqual, AtomicType::U32, &payload, !LITTLE);
        assert_eq!(before, swapped(0x0102_0304));
        assert_eq!(there, 5_u32.to_ne_bytes());
        let mut complex = [1.0_f32.to_ne_bytes(), 2.0_f32.to_ne_bytes()].concat();
        let foreign = |value: f32| swapped(value.to_bits());
        let payload = [foreign(10.0), foreign(20.0)].concat();
        operate(&mut complex, AtomicOp::Sum, AtomicType::Complex32, &payload, !LITTLE);
        assert_eq!(complex, [11.0_f32, 22.0].map(f32::to_ne_bytes).concat());
    }

    #[test]
    fn nothing_is_done_past_the_end_of_the_memory() {
        let mut there = [9_u64.to_ne_bytes(), [0xee; 8]].concat();
        let operands = [1_u64, 1].map(u64::to_ne_bytes).concat();
        let before = operate(&mut there[..12], AtomicOp::Sum, AtomicType::U64, &operands, LITTLE);
        assert_eq!(before, 9_u64.to_ne_bytes());
        assert_eq!(there, [10_u64.to_ne_bytes(), [0xee; 8]].concat());
    }

    #[test]
    fn threads_that_add_at_once_lose_nothing() {
        for of in [AtomicType::U64, AtomicType::U128] {
            let mut total = vec![0_u8; of.size()];
            let address = total.as_mut_ptr().expose_provenance() as u64;
            let mut one = vec![0; of.size()];
            one[if LITTLE { 0 } else { of.size() - 1 }] = 1;
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        // SAFETY: the vector stays, and nobody else touches it meanwhile.
                        let memory = unsafe { HostMemory::trusted() };
                        let stretch = RemoteStretch { key: 0, address: 0, length: of.size() as u64 };
                        let atomic = RemoteAtomic {
                            operation: OperationId::MAX,
                            is_last: true,
                            fetches: false,
                            is_little: LITTLE,
                            stretch,
                            place: 0,
                            op: AtomicOp::Sum,
                            of,
                            payload: Payload::new(&one),
                        };
                        for _ in 0..1000 {
                            memory.operate(&Buffer::new(address, of.size() as u64), &atomic);
                        }
                    });
                }
            });
            let sum = if LITTLE { u64::from(total[0]) + 256 * u64::from(total[1]) } else { 0 };
            assert!(!LITTLE || sum == 3000, "{sum} of {of:?}");
        }
    }
}
