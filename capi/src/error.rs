//! Errors as C sees them: 0 or more, or the negative of a code of `errno(3)`; and what was wrong, in words.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

use tagmatch::domain::Refusal;
use tagmatch::endpoint::{AddressError, EndpointError, Failure, NoClaim, PostError, SendRefused};
use tagmatch::seam::DataError;

/// What a call comes to.
pub(crate) type Outcome<T> = Result<T, Error>;

/// Why a call failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Error {
    /// A code of `errno(3)`, positive.
    pub(crate) code: c_int,
    /// What is wrong, with which value, and what to do.
    text: Cow<'static, str>,
}

impl Error {
    pub(crate) const fn new(code: c_int, text: &'static str) -> Self {
        Self { code, text: Cow::Borrowed(text) }
    }

    pub(crate) fn said(code: c_int, text: String) -> Self {
        Self { code, text: Cow::Owned(text) }
    }

    /// An argument that cannot be.
    pub(crate) fn argument(text: String) -> Self {
        Self::said(libc::EINVAL, text)
    }
}

/// Nothing came of it, which is no fault of anybody's: these calls are made often.
pub(crate) const AGAIN: Error = Error::new(libc::EAGAIN, "not now: go on with progress, and try again");
/// See [`AGAIN`].
pub(crate) const NO_MESSAGE: Error = Error::new(libc::ENOMSG, "no message that waits fits");
/// The library failed an assertion of its own.
pub(crate) const PANICKED: Error = Error::new(
    libc::ENOTRECOVERABLE,
    "the library failed within a call, and said why on standard error: close the object, it does nothing else any more",
);

thread_local! {
    static LAST: RefCell<Cow<'static, str>> = const { RefCell::new(Cow::Borrowed("")) };
    static GIVEN: RefCell<CString> = RefCell::default();
}

/// Note what was wrong, and say what the call returns.
pub(crate) fn note(error: Error) -> c_int {
    let Error { code, text } = error;
    // A thread that ends has nobody left to ask.
    let _ = LAST.try_with(|last| last.replace(text));
    -code
}

/// What was wrong with the last call of this thread that failed, in words for people: with which value, and what to do.
/// Empty before any has. Good until the next call of this function on the same thread. Not null. Any thread may call it at
/// any time.
#[unsafe(no_mangle)]
pub extern "C" fn tm_last_error() -> *const c_char {
    let text = LAST.try_with(|last| last.borrow().replace('\0', " ")).unwrap_or_default();
    let text = CString::new(text).unwrap_or_default();
    GIVEN
        .try_with(|given| {
            given.replace(text);
            given.borrow().as_ptr()
        })
        .unwrap_or(c"".as_ptr())
}

/// What a code means that a call of this library returned, or that stands in a completion: 0 or negative. A static text;
/// not null. Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn tm_strerror(code: c_int) -> *const c_char {
    let code = code.checked_neg().unwrap_or(c_int::MAX);
    MEANINGS
        .iter()
        .find(|(known, _)| *known == code)
        .map_or(c"an error of the system's: see errno(3)", |(_, text)| text)
        .as_ptr()
}

/// What codes mean here.
const MEANINGS: &[(c_int, &CStr)] = &[
    (0, c"success"),
    (libc::EAGAIN, c"not now: go on with progress, and try again"),
    (libc::EINVAL, c"an argument that cannot be"),
    (libc::EFAULT, c"null where memory was needed, or memory that is none of this process"),
    (libc::E2BIG, c"a structure of a newer version, with fields set that this library does not know"),
    (libc::EBUSY, c"another call on the same object has not returned"),
    (libc::ENOTRECOVERABLE, c"the library failed within an earlier call: the object can only be closed"),
    (libc::ENODEV, c"there is no such device"),
    (libc::ENOENT, c"there is no such operation, claim or name (any more)"),
    (libc::ENOSPC, c"there are as many as there can be"),
    (libc::ENOMSG, c"no message that waits fits"),
    (libc::ECANCELED, c"the operation was cancelled"),
    (libc::EMSGSIZE, c"the message is longer than what it goes into, or than what can be sent so"),
    (libc::EADDRNOTAVAIL, c"the number stands for no peer, or the address is none of this host"),
    (libc::EADDRINUSE, c"somebody listens at this address already"),
    (libc::ECONNREFUSED, c"nobody listens there"),
    (libc::ECONNRESET, c"the connection to the peer was lost"),
    (libc::ETIMEDOUT, c"not in the time that is allowed"),
    (libc::EACCES, c"the peer was turned away, or turned this one away"),
    (libc::EPROTO, c"the peer broke the protocol"),
    (libc::EREMOTEIO, c"the payload could not be read"),
    (libc::EIO, c"the device failed"),
];

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Panicked => PANICKED,
            Refusal::Reentered => Self::new(
                libc::EBUSY,
                "another call on this object has not returned: calls on one object come one after the other, and none \
                 from its own callbacks submit and place",
            ),
            // There is no queue here.
            Refusal::Full | _ => AGAIN,
        }
    }
}

/// The code of a failure, positive.
pub(crate) fn code_of(failure: Failure) -> c_int {
    match failure {
        Failure::Refused | Failure::Rejected => libc::ECONNREFUSED,
        Failure::NotConnected => libc::ENOTCONN,
        Failure::Lost => libc::ECONNRESET,
        Failure::TimedOut => libc::ETIMEDOUT,
        Failure::NotAccepted | Failure::NoRegion | Failure::NotAllowed => libc::EACCES,
        Failure::OutOfBounds => libc::EINVAL,
        Failure::Protocol => libc::EPROTO,
        Failure::ReadFailed => libc::EREMOTEIO,
        Failure::Memory => libc::EFAULT,
        Failure::System { errno } => errno,
        // And kinds that are added later, until something better is said of them here.
        Failure::Device | _ => libc::EIO,
    }
}

/// The code of data that did not come, positive.
pub(crate) fn code_of_data(error: DataError) -> c_int {
    match error {
        DataError::PathLost => libc::ECONNRESET,
        DataError::DeviceFailed => libc::EIO,
        DataError::Completion { .. } | _ => libc::EREMOTEIO,
    }
}

impl From<EndpointError> for Error {
    fn from(error: EndpointError) -> Self {
        let code = if matches!(error, EndpointError::JobKey { .. }) { libc::EINVAL } else { libc::EIO };
        Self::said(code, error.to_string())
    }
}

impl From<AddressError> for Error {
    fn from(error: AddressError) -> Self {
        let code = if matches!(error, AddressError::TooLarge(_)) { libc::ENOSPC } else { libc::EINVAL };
        Self::said(code, error.to_string())
    }
}

impl From<PostError> for Error {
    fn from(error: PostError) -> Self {
        match error {
            PostError::Endpoint(error) => error.into(),
            error @ (PostError::Address(_) | _) => Self::said(libc::EADDRNOTAVAIL, error.to_string()),
        }
    }
}

impl From<SendRefused> for Error {
    fn from(error: SendRefused) -> Self {
        let text = error.to_string();
        match error {
            SendRefused::Again => AGAIN,
            SendRefused::Address(_) => Self::said(libc::EADDRNOTAVAIL, text),
            SendRefused::Unreachable(failure) => Self::said(code_of(failure), text),
            SendRefused::Uneven { .. } => Self::said(libc::EINVAL, text),
            SendRefused::TooLong { .. } => Self::said(libc::EMSGSIZE, text),
            SendRefused::NoOperation => Self::said(libc::EOPNOTSUPP, text),
            SendRefused::Endpoint(error) => error.into(),
            _ => Self::said(libc::EIO, text),
        }
    }
}

impl From<NoClaim> for Error {
    fn from(error: NoClaim) -> Self {
        Self::said(libc::ENOENT, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pointer: *const c_char) -> String {
        // SAFETY: both functions give strings that end, and stay until the next call.
        let text = unsafe { CStr::from_ptr(pointer) };
        text.to_str().expect("what is said is UTF-8").to_owned()
    }

    #[test]
    fn what_was_wrong_is_said_to_the_thread_that_was_told_so_and_to_no_other() {
        assert_eq!(text(tm_last_error()), "");
        assert_eq!(note(Error::argument("length 7 is odd".into())), -libc::EINVAL);
        assert_eq!(text(tm_last_error()), "length 7 is odd");
        let other = std::thread::spawn(|| text(tm_last_error())).join();
        assert_eq!(other.expect("it does not panic"), "");
    }

    #[test]
    fn every_code_has_one_meaning_and_others_have_one_too() {
        for (place, (code, _)) in MEANINGS.iter().enumerate() {
            assert!(MEANINGS[..place].iter().all(|(other, _)| other != code), "{code}");
        }
        assert_eq!(text(tm_strerror(0)), "success");
        assert_eq!(text(tm_strerror(-libc::ENOMSG)), "no message that waits fits");
        for odd in [c_int::MIN, c_int::MAX, -4000, 1] {
            assert_eq!(text(tm_strerror(odd)), "an error of the system's: see errno(3)", "{odd}");
        }
    }
}
