//! Operations on single values of a peer's memory (`fi_atomic(3)`): which there are, for which types, and what they make of
//! two values.
//!
//! Values are bytes in the order of this host. Nothing here is done to memory: see `device`.
#![forbid(unsafe_code)]

mod values;

/// What is done (`enum fi_op`). `memory` is the value there, `operand` what the caller sends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum AtomicOp {
    /// The lesser one (`FI_MIN`).
    Min = 0,
    /// The greater one (`FI_MAX`).
    Max = 1,
    /// The sum, which wraps (`FI_SUM`).
    Sum = 2,
    /// The product, which wraps (`FI_PROD`).
    Product = 3,
    /// 1 if any is not zero (`FI_LOR`).
    LogicalOr = 4,
    /// 1 if none is zero (`FI_LAND`).
    LogicalAnd = 5,
    /// Bits of any (`FI_BOR`).
    BitOr = 6,
    /// Bits of both (`FI_BAND`).
    BitAnd = 7,
    /// 1 if one of the two is zero (`FI_LXOR`).
    LogicalXor = 8,
    /// Bits of one of the two (`FI_BXOR`).
    BitXor = 9,
    /// Nothing: what is there is wanted (`FI_ATOMIC_READ`).
    Read = 10,
    /// The operand (`FI_ATOMIC_WRITE`).
    Write = 11,
    /// The operand where the value to compare with equals what is there (`FI_CSWAP`).
    SwapIfEqual = 12,
    /// The same where it does not (`FI_CSWAP_NE`).
    SwapIfNotEqual = 13,
    /// The same where it is at most what is there (`FI_CSWAP_LE`).
    SwapIfLessOrEqual = 14,
    /// The same where it is less (`FI_CSWAP_LT`).
    SwapIfLess = 15,
    /// The same where it is at least what is there (`FI_CSWAP_GE`).
    SwapIfGreaterOrEqual = 16,
    /// The same where it is greater (`FI_CSWAP_GT`).
    SwapIfGreater = 17,
    /// The operand's bits where the value to compare with has ones (`FI_MSWAP`).
    SwapMasked = 18,
    /// What is there less the operand, which wraps (`FI_DIFF`, API 2.0).
    Difference = 19,
}

/// What values are (`enum fi_datatype`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum AtomicType {
    /// `FI_INT8`
    I8 = 0,
    /// `FI_UINT8`
    U8 = 1,
    /// `FI_INT16`
    I16 = 2,
    /// `FI_UINT16`
    U16 = 3,
    /// `FI_INT32`
    I32 = 4,
    /// `FI_UINT32`
    U32 = 5,
    /// `FI_INT64`
    I64 = 6,
    /// `FI_UINT64`
    U64 = 7,
    /// `FI_FLOAT`
    F32 = 8,
    /// `FI_DOUBLE`
    F64 = 9,
    /// `FI_FLOAT_COMPLEX`: the real part first.
    Complex32 = 10,
    /// `FI_DOUBLE_COMPLEX`
    Complex64 = 11,
    /// `FI_INT128`
    I128 = 14,
    /// `FI_UINT128`
    U128 = 15,
}

/// By which calls an operation is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicCall {
    /// Nothing comes back (`fi_atomic`).
    Base,
    /// What was there before comes back (`fi_fetch_atomic`).
    Fetch,
    /// The same, and values to compare with go with it (`fi_compare_atomic`).
    Compare,
}

/// Bytes of the longest value.
pub const VALUE_BYTES_MAX: usize = 16;

impl AtomicOp {
    /// All of them, by their numbers.
    pub const ALL: [Self; 20] = [
        Self::Min,
        Self::Max,
        Self::Sum,
        Self::Product,
        Self::LogicalOr,
        Self::LogicalAnd,
        Self::BitOr,
        Self::BitAnd,
        Self::LogicalXor,
        Self::BitXor,
        Self::Read,
        Self::Write,
        Self::SwapIfEqual,
        Self::SwapIfNotEqual,
        Self::SwapIfLessOrEqual,
        Self::SwapIfLess,
        Self::SwapIfGreaterOrEqual,
        Self::SwapIfGreater,
        Self::SwapMasked,
        Self::Difference,
    ];

    /// The one of this number.
    #[must_use]
    pub fn of(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Whether a value to compare with belongs to it.
    #[must_use]
    pub const fn compares(self) -> bool {
        matches!(
            self,
            Self::SwapIfEqual
                | Self::SwapIfNotEqual
                | Self::SwapIfLessOrEqual
                | Self::SwapIfLess
                | Self::SwapIfGreaterOrEqual
                | Self::SwapIfGreater
                | Self::SwapMasked
        )
    }

    /// Values that go with it for each one there.
    #[must_use]
    pub const fn operands(self) -> u64 {
        if matches!(self, Self::Read) {
            0
        } else if self.compares() {
            2
        } else {
            1
        }
    }

    /// Whether there is such a call of it for values of a type.
    #[must_use]
    pub const fn is_valid(self, of: AtomicType, call: AtomicCall) -> bool {
        let is_call = match call {
            AtomicCall::Base => !self.compares() && !matches!(self, Self::Read),
            AtomicCall::Fetch => !self.compares(),
            AtomicCall::Compare => self.compares(),
        };
        let is_of_type = match of.kind() {
            Kind::Integer => true,
            Kind::Float => !self.is_of_bits(),
            Kind::Complex => !self.is_of_bits() && !self.is_of_order(),
        };
        is_call && is_of_type
    }

    /// Whether it can be done on values of a type, where what was there is wanted or is not: what compares always tells that.
    #[must_use]
    pub const fn can_be_asked(self, of: AtomicType, fetches: bool) -> bool {
        let call = match (self.compares(), fetches) {
            (true, false) => return false,
            (true, true) => AtomicCall::Compare,
            (false, true) => AtomicCall::Fetch,
            (false, false) => AtomicCall::Base,
        };
        self.is_valid(of, call)
    }

    const fn is_of_bits(self) -> bool {
        matches!(self, Self::BitOr | Self::BitAnd | Self::BitXor | Self::SwapMasked)
    }

    const fn is_of_order(self) -> bool {
        matches!(
            self,
            Self::Min
                | Self::Max
                | Self::SwapIfLessOrEqual
                | Self::SwapIfLess
                | Self::SwapIfGreaterOrEqual
                | Self::SwapIfGreater
        )
    }

    /// What is there after it: `memory` becomes that. `operand` and `compare` are values of the same type; what belongs to
    /// the operation alone is looked at. Nothing happens where a slice is not as long as a value, or there is no such
    /// operation for the type.
    pub fn apply(self, of: AtomicType, memory: &mut [u8], operand: &[u8], compare: &[u8]) {
        values::apply(self, of, memory, operand, compare);
    }
}

/// What can be done with values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Integer,
    Float,
    Complex,
}

impl AtomicType {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::F32,
        Self::F64,
        Self::Complex32,
        Self::Complex64,
        Self::I128,
        Self::U128,
    ];

    /// The one of this number.
    #[must_use]
    pub fn of(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|of| u64::from(*of as u8) == number)
    }

    /// Bytes of a value.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::Complex32 => 8,
            Self::Complex64 | Self::I128 | Self::U128 => 16,
        }
    }

    /// Bytes that stand in one order of bytes: a value's, of a complex one a part's.
    #[must_use]
    pub const fn part(self) -> usize {
        match self.kind() {
            Kind::Complex => self.size() / 2,
            Kind::Integer | Kind::Float => self.size(),
        }
    }

    const fn kind(self) -> Kind {
        match self {
            Self::F32 | Self::F64 => Kind::Float,
            Self::Complex32 | Self::Complex64 => Kind::Complex,
            Self::I8
            | Self::U8
            | Self::I16
            | Self::U16
            | Self::I32
            | Self::U32
            | Self::I64
            | Self::U64
            | Self::I128
            | Self::U128 => Kind::Integer,
        }
    }
}
