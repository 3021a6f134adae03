//! What operations make of values, by type.

use super::{AtomicOp, AtomicType};

pub(super) fn apply(op: AtomicOp, of: AtomicType, memory: &mut [u8], operand: &[u8], compare: &[u8]) {
    match of {
        AtomicType::I8 => on::<i8, 1>(op, memory, operand, compare),
        AtomicType::U8 => on::<u8, 1>(op, memory, operand, compare),
        AtomicType::I16 => on::<i16, 2>(op, memory, operand, compare),
        AtomicType::U16 => on::<u16, 2>(op, memory, operand, compare),
        AtomicType::I32 => on::<i32, 4>(op, memory, operand, compare),
        AtomicType::U32 => on::<u32, 4>(op, memory, operand, compare),
        AtomicType::I64 => on::<i64, 8>(op, memory, operand, compare),
        AtomicType::U64 => on::<u64, 8>(op, memory, operand, compare),
        AtomicType::I128 => on::<i128, 16>(op, memory, operand, compare),
        AtomicType::U128 => on::<u128, 16>(op, memory, operand, compare),
        AtomicType::F32 => on::<f32, 4>(op, memory, operand, compare),
        AtomicType::F64 => on::<f64, 8>(op, memory, operand, compare),
        AtomicType::Complex32 => on::<Complex<f32>, 8>(op, memory, operand, compare),
        AtomicType::Complex64 => on::<Complex<f64>, 16>(op, memory, operand, compare),
    }
}

/// `operand` and `compare` are zero where none is given: whoever has one gives it.
fn on<V: Value<N>, const N: usize>(op: AtomicOp, memory: &mut [u8], operand: &[u8], compare: &[u8]) {
    let Ok(place) = <&mut [u8; N]>::try_from(memory) else { return };
    let [there, operand, compare] = [&place[..], operand, compare]
        .map(|bytes| V::of(bytes.first_chunk().filter(|_| bytes.len() == N).copied().unwrap_or([0; N])));
    if let Some(value) = made(op, there, operand, compare) {
        *place = value.bytes();
    }
}

/// What is there afterwards, if it may be another than before.
fn made<V: Value<N>, const N: usize>(op: AtomicOp, there: V, operand: V, compare: V) -> Option<V> {
    let truth = |is_true| Some(V::truth(is_true));
    let swap = |is_it: bool| is_it.then_some(operand);
    match op {
        AtomicOp::Min => swap(operand < there),
        AtomicOp::Max => swap(operand > there),
        AtomicOp::Sum => Some(there.plus(operand)),
        AtomicOp::Product => Some(there.times(operand)),
        AtomicOp::Difference => Some(there.less(operand)),
        AtomicOp::LogicalOr => truth(there.is_true() || operand.is_true()),
        AtomicOp::LogicalAnd => truth(there.is_true() && operand.is_true()),
        AtomicOp::LogicalXor => truth(there.is_true() != operand.is_true()),
        AtomicOp::BitOr => there.bits(operand, V::ones(), |there, operand, _| there | operand),
        AtomicOp::BitAnd => there.bits(operand, V::ones(), |there, operand, _| there & operand),
        AtomicOp::BitXor => there.bits(operand, V::ones(), |there, operand, _| there ^ operand),
        AtomicOp::SwapMasked => {
            there.bits(operand, compare, |there, operand, mask| operand & mask | there & !mask)
        }
        AtomicOp::Read => None,
        AtomicOp::Write => Some(operand),
        AtomicOp::SwapIfEqual => swap(compare == there),
        AtomicOp::SwapIfNotEqual => swap(compare != there),
        AtomicOp::SwapIfLessOrEqual => swap(compare <= there),
        AtomicOp::SwapIfLess => swap(compare < there),
        AtomicOp::SwapIfGreaterOrEqual => swap(compare >= there),
        AtomicOp::SwapIfGreater => swap(compare > there),
    }
}

/// A value of `N` bytes.
trait Value<const N: usize>: Copy + PartialOrd {
    fn of(bytes: [u8; N]) -> Self;
    fn bytes(self) -> [u8; N];
    fn truth(is_true: bool) -> Self;
    fn is_true(self) -> bool;
    fn plus(self, other: Self) -> Self;
    fn less(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;

    /// Bytes of ones.
    fn ones() -> Self {
        Self::of([0xff; N])
    }

    /// Of two and a mask, byte by byte. `None`: bits of this type mean nothing.
    fn bits(self, _operand: Self, _mask: Self, _of: impl Fn(u8, u8, u8) -> u8) -> Option<Self> {
        None
    }
}

macro_rules! integers {
    ($($of:ty: $size:literal),*) => {$(
        impl Value<$size> for $of {
            fn of(bytes: [u8; $size]) -> Self {
                Self::from_ne_bytes(bytes)
            }
            fn bytes(self) -> [u8; $size] {
                self.to_ne_bytes()
            }
            fn truth(is_true: bool) -> Self {
                Self::from(is_true)
            }
            fn is_true(self) -> bool {
                self != 0
            }
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn less(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn bits(self, operand: Self, mask: Self, of: impl Fn(u8, u8, u8) -> u8) -> Option<Self> {
                let (mut there, operand, mask) = (self.bytes(), operand.bytes(), mask.bytes());
                for ((there, operand), mask) in there.iter_mut().zip(operand).zip(mask) {
                    *there = of(*there, operand, mask);
                }
                Some(Self::of(there))
            }
        }
    )*};
}

integers!(i8: 1, u8: 1, i16: 2, u16: 2, i32: 4, u32: 4, i64: 8, u64: 8, i128: 16, u128: 16);

macro_rules! floats {
    ($($of:ty: $size:literal),*) => {$(
        impl Value<$size> for $of {
            fn of(bytes: [u8; $size]) -> Self {
                Self::from_ne_bytes(bytes)
            }
            fn bytes(self) -> [u8; $size] {
                self.to_ne_bytes()
            }
            fn truth(is_true: bool) -> Self {
                if is_true { 1.0 } else { 0.0 }
            }
            fn is_true(self) -> bool {
                self != 0.0
            }
            fn plus(self, other: Self) -> Self {
                self + other
            }
            fn less(self, other: Self) -> Self {
                self - other
            }
            fn times(self, other: Self) -> Self {
                self * other
            }
        }

        impl Value<{ 2 * $size }> for Complex<$of> {
            fn of(bytes: [u8; 2 * $size]) -> Self {
                let (real, imaginary) = bytes.split_at($size);
                let part = |bytes: &[u8]| bytes.first_chunk().map_or(0.0, |bytes| <$of>::from_ne_bytes(*bytes));
                Self { real: part(real), imaginary: part(imaginary) }
            }
            fn bytes(self) -> [u8; 2 * $size] {
                let mut bytes = [0; 2 * $size];
                bytes[..$size].copy_from_slice(&self.real.to_ne_bytes());
                bytes[$size..].copy_from_slice(&self.imaginary.to_ne_bytes());
                bytes
            }
            fn truth(is_true: bool) -> Self {
                Self { real: if is_true { 1.0 } else { 0.0 }, imaginary: 0.0 }
            }
            fn is_true(self) -> bool {
                self.real != 0.0 || self.imaginary != 0.0
            }
            fn plus(self, other: Self) -> Self {
                Self { real: self.real + other.real, imaginary: self.imaginary + other.imaginary }
            }
            fn less(self, other: Self) -> Self {
                Self { real: self.real - other.real, imaginary: self.imaginary - other.imaginary }
            }
            fn times(self, other: Self) -> Self {
                Self {
                    real: self.real * other.real - self.imaginary * other.imaginary,
                    imaginary: self.real * other.imaginary + self.imaginary * other.real,
                }
            }
        }
    )*};
}

floats!(f32: 4, f64: 8);

/// A complex value. It has no order: what asks for one is no operation for it.
#[derive(Clone, Copy, PartialEq)]
struct Complex<F> {
    real: F,
    imaginary: F,
}

impl<F: PartialEq> PartialOrd for Complex<F> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (self == other).then_some(std::cmp::Ordering::Equal)
    }
}

#[cfg(test)]
mod tests {
    use super::super::AtomicCall;
    use super::*;

    fn on<const N: usize>(
        op: AtomicOp,
        of: AtomicType,
        there: [u8; N],
        operand: [u8; N],
        compare: [u8; N],
    ) -> [u8; N] {
        let mut memory = there;
        op.apply(of, &mut memory, &operand, &compare);
        memory
    }

    fn i32s(op: AtomicOp, there: i32, operand: i32, compare: i32) -> i32 {
        let [there, operand, compare] = [there, operand, compare].map(i32::to_ne_bytes);
        i32::from_ne_bytes(on(op, AtomicType::I32, there, operand, compare))
    }

    #[test]
    fn integers_are_as_fi_atomic_says() {
        for (op, there, operand, expected) in [
            (AtomicOp::Min, -1, 1, -1),
            (AtomicOp::Min, 1, -1, -1),
            (AtomicOp::Max, -1, 1, 1),
            (AtomicOp::Sum, i32::MAX, 1, i32::MIN),
            (AtomicOp::Difference, i32::MIN, 1, i32::MAX),
            (AtomicOp::Product, 1 << 30, 4, 0),
            (AtomicOp::Product, -3, 7, -21),
            (AtomicOp::LogicalOr, 0, -5, 1),
            (AtomicOp::LogicalOr, 0, 0, 0),
            (AtomicOp::LogicalAnd, 2, 4, 1),
            (AtomicOp::LogicalAnd, 2, 0, 0),
            (AtomicOp::LogicalXor, 2, 4, 0),
            (AtomicOp::LogicalXor, 0, 4, 1),
            (AtomicOp::BitOr, 0b1100, 0b1010, 0b1110),
            (AtomicOp::BitAnd, 0b1100, 0b1010, 0b1000),
            (AtomicOp::BitXor, 0b1100, 0b1010, 0b0110),
            (AtomicOp::Read, 5, 9, 5),
            (AtomicOp::Write, 5, 9, 9),
        ] {
            assert_eq!(i32s(op, there, operand, 0), expected, "{op:?} of {there} and {operand}");
        }
    }

    #[test]
    fn a_swap_compares_the_callers_value_with_what_is_there() {
        for (op, below, equal, above) in [
            (AtomicOp::SwapIfEqual, false, true, false),
            (AtomicOp::SwapIfNotEqual, true, false, true),
            (AtomicOp::SwapIfLessOrEqual, true, true, false),
            (AtomicOp::SwapIfLess, true, false, false),
            (AtomicOp::SwapIfGreaterOrEqual, false, true, true),
            (AtomicOp::SwapIfGreater, false, false, true),
        ] {
            for (compare, swaps) in [(6, below), (7, equal), (8, above)] {
                assert_eq!(i32s(op, 7, 100, compare), if swaps { 100 } else { 7 }, "{op:?} with {compare}");
            }
        }
        assert_eq!(i32s(AtomicOp::SwapMasked, 0x1234_5678, 0x7bcd_ef01, 0x00ff_00ff), 0x12cd_5601);
    }

    #[test]
    fn floats_have_no_bits_and_complex_values_no_order() {
        let double = |op, there: f64, operand: f64| {
            f64::from_ne_bytes(on(op, AtomicType::F64, there.to_ne_bytes(), operand.to_ne_bytes(), [0; 8]))
        };
        assert_eq!([double(AtomicOp::Sum, 1.5, 2.0), double(AtomicOp::Max, -1.0, f64::NAN)], [3.5, -1.0]);
        assert_eq!(double(AtomicOp::BitOr, 1.0, 2.0), 1.0, "there is no such operation");
        assert!(!AtomicOp::BitOr.is_valid(AtomicType::F64, AtomicCall::Base));
        assert!(!AtomicOp::SwapMasked.is_valid(AtomicType::F32, AtomicCall::Compare));
        let complex = |real: f32, imaginary: f32| {
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&real.to_ne_bytes());
            bytes[4..].copy_from_slice(&imaginary.to_ne_bytes());
            bytes
        };
        let product =
            on(AtomicOp::Product, AtomicType::Complex32, complex(1.0, 2.0), complex(3.0, -1.0), [0; 8]);
        assert_eq!(product, complex(5.0, 5.0));
        let truth =
            on(AtomicOp::LogicalAnd, AtomicType::Complex32, complex(0.0, 2.0), complex(3.0, 0.0), [0; 8]);
        assert_eq!(truth, complex(1.0, 0.0));
        assert!(!AtomicOp::Min.is_valid(AtomicType::Complex32, AtomicCall::Base));
        assert!(AtomicOp::SwapIfNotEqual.is_valid(AtomicType::Complex64, AtomicCall::Compare));
    }

    #[test]
    fn every_type_has_its_number_and_its_size_and_every_operation_its_calls() {
        for (number, size) in [1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 0, 0, 16, 16, 0].into_iter().enumerate() {
            assert_eq!(AtomicType::of(number as u64).map_or(0, AtomicType::size), size, "type {number}");
        }
        for (number, op) in AtomicOp::ALL.into_iter().enumerate() {
            assert_eq!(op as usize, number);
            let calls = [AtomicCall::Base, AtomicCall::Fetch, AtomicCall::Compare];
            let valid = calls.map(|call| op.is_valid(AtomicType::U64, call));
            let expected = match op.operands() {
                0 => [false, true, false],
                1 => [true, true, false],
                _ => [false, false, true],
            };
            assert_eq!(valid, expected, "{op:?}");
        }
        assert_eq!((AtomicOp::of(20), AtomicOp::of(u64::MAX)), (None, None));
    }

    #[test]
    fn a_value_of_another_length_is_left_alone() {
        let mut memory = [1_u8; 4];
        AtomicOp::Sum.apply(AtomicType::U64, &mut memory, &[1; 8], &[]);
        assert_eq!(memory, [1; 4]);
        for of in AtomicType::ALL {
            let mut memory = vec![0; of.size()];
            AtomicOp::Write.apply(of, &mut memory, &vec![0; of.size()], &[]);
            assert_eq!(memory, vec![0; of.size()]);
        }
    }
}
