//! The errors of the control path: `errno` values as the kernel gives them for the same mistake.

use std::fmt;

/// A value of `errno`, positive.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// An object that is not there (ib_uverbs answers so for unknown handles).
    pub const NOT_FOUND: Self = Self(22);
    /// EINVAL
    pub const INVALID: Self = Self(22);
    /// ENOMEM
    pub const NO_MEMORY: Self = Self(12);
    /// EFAULT
    pub const FAULT: Self = Self(14);
    /// EBUSY
    pub const BUSY: Self = Self(16);
    /// ENOSYS
    pub const NO_SYSTEM_CALL: Self = Self(38);
    /// EOPNOTSUPP
    pub const NOT_SUPPORTED: Self = Self(95);
    /// EPERM
    pub const NOT_PERMITTED: Self = Self(1);
}

impl fmt::Debug for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::INVALID => "EINVAL",
            Self::NO_MEMORY => "ENOMEM",
            Self::FAULT => "EFAULT",
            Self::BUSY => "EBUSY",
            Self::NO_SYSTEM_CALL => "ENOSYS",
            Self::NOT_SUPPORTED => "EOPNOTSUPP",
            Self::NOT_PERMITTED => "EPERM",
            Self(other) => return write!(formatter, "errno {other}"),
        };
        formatter.write_str(name)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

impl std::error::Error for Errno {}
