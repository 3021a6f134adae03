//! What a call of libfabric's returns: 0 or more, or the negative of an error code. A panic becomes a code too.

use std::panic::{AssertUnwindSafe, catch_unwind};

use libc::{c_int, ssize_t};

use super::abi;
use crate::domain::Refusal;
use crate::endpoint::{AddressError, EndpointError, Failure, NoClaim, PostError, SendRefused};
use crate::seam::DeviceError;

/// An error code of `fi_errno(3)`, positive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Code(pub(super) c_int);

/// What a call comes to.
pub(super) type Outcome<T> = Result<T, Code>;

/// One of the constants `FI_E…`.
#[expect(clippy::cast_possible_truncation, reason = "codes are below 512")]
pub(super) const fn code(value: u64) -> Code {
    Code(value as c_int)
}

/// The error itself, to be returned.
pub(super) const fn fail<T>(value: u64) -> Outcome<T> {
    Err(code(value))
}

/// The body of a call that returns an `int`.
pub(super) fn integer(body: impl FnOnce() -> Outcome<c_int>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(Code(code))) => -code,
        Err(_) => -code(abi::FI_EOTHER).0,
    }
}

/// The body of a call that returns an `ssize_t`.
#[inline]
pub(super) fn size(body: impl FnOnce() -> Outcome<usize>) -> ssize_t {
    sized(|| signed(body()))
}

/// The same of a body that has its outcome in one word. The calls of every message and every poll have it so from the
/// state on: an [`Outcome`] is put together in memory from narrow pieces and read back in wide ones, which is waited for.
#[inline]
pub(super) fn sized(body: impl FnOnce() -> ssize_t) -> ssize_t {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(-(code(abi::FI_EOTHER).0 as ssize_t))
}

/// What a call returns for an outcome.
#[inline]
pub(super) const fn signed(outcome: Outcome<usize>) -> ssize_t {
    match outcome {
        Ok(value) => value.cast_signed(),
        Err(Code(code)) => -(code as ssize_t),
    }
}

/// The body of a call that returns something else: `otherwise`, if it cannot say.
pub(super) fn value<T>(otherwise: T, body: impl FnOnce() -> Outcome<T>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(_)) | Err(_) => otherwise,
    }
}

impl From<Refusal> for Code {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full => code(abi::FI_EAGAIN),
            Refusal::Panicked => code(abi::FI_EOTHER),
            // The application breaks what it promised with its threading level.
            Refusal::Reentered => code(abi::FI_EBUSY),
        }
    }
}

impl From<EndpointError> for Code {
    fn from(error: EndpointError) -> Self {
        match error {
            EndpointError::Device(DeviceError::Forked) => code(abi::FI_EPERM),
            EndpointError::Device(_) | EndpointError::Join(_) | EndpointError::JobKey { .. } => {
                code(abi::FI_EIO)
            }
        }
    }
}

impl From<AddressError> for Code {
    fn from(error: AddressError) -> Self {
        match error {
            AddressError::TooLarge(_) => code(abi::FI_ENOSPC),
            AddressError::Length(_) | AddressError::Taken(_) => code(abi::FI_EINVAL),
        }
    }
}

impl From<PostError> for Code {
    fn from(error: PostError) -> Self {
        match error {
            PostError::Address(_) => code(abi::FI_EADDRNOTAVAIL),
            PostError::Endpoint(error) => error.into(),
        }
    }
}

impl From<SendRefused> for Code {
    fn from(error: SendRefused) -> Self {
        match error {
            SendRefused::Again => code(abi::FI_EAGAIN),
            SendRefused::Address(_) => code(abi::FI_EADDRNOTAVAIL),
            SendRefused::Unreachable(failure) => failure.into(),
            SendRefused::Uneven { .. } => code(abi::FI_EINVAL),
            SendRefused::NoOperation => code(abi::FI_EOPNOTSUPP),
            SendRefused::TooLong { .. } => code(abi::FI_EMSGSIZE),
            SendRefused::Endpoint(error) => error.into(),
        }
    }
}

impl From<NoClaim> for Code {
    fn from(_: NoClaim) -> Self {
        code(abi::FI_EINVAL)
    }
}

impl From<Failure> for Code {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused | Failure::Rejected => code(abi::FI_ECONNREFUSED),
            Failure::NotConnected => Self(libc::ENOTCONN),
            Failure::Lost => code(abi::FI_ECONNRESET),
            Failure::TimedOut => code(abi::FI_EHOSTUNREACH),
            Failure::NotAccepted => code(abi::FI_EACCES),
            Failure::Protocol => code(abi::FI_ECONNABORTED),
            // The system's codes are libfabric's.
            Failure::Memory => Self(libc::EFAULT),
            Failure::System { errno } => Self(errno),
            Failure::NoRegion | Failure::NotAllowed => code(abi::FI_EACCES),
            Failure::OutOfBounds => code(abi::FI_EINVAL),
            Failure::ReadFailed | Failure::Device => code(abi::FI_EIO),
        }
    }
}
