//! `fi_cm(3)`: names of endpoints; and of connected ones how their connection begins and ends.
//!
//! Not here: who listens (`passive`).

use libc::{c_int, c_void, size_t};

use super::endpoint::{Object, of};
use super::text;
use super::unsupported::NONE;
use crate::endpoint::{ConnectError, Endpoint};
use crate::provider::abi::{self, fi_ops_cm, fid, fid_ep, fid_pep};
use crate::provider::address::Name;
use crate::provider::arrays::many;
use crate::provider::clock::now;
use crate::provider::error::{Code, Outcome, code, fail, integer};
use crate::provider::info::own_address;

unsafe extern "C" fn set_name(fid: *mut fid, address: *mut c_void, length: size_t) -> c_int {
    integer(|| {
        if address.is_null() {
            return fail(abi::FI_EINVAL);
        }
        // SAFETY: the application's: an open endpoint.
        let object = unsafe { of(fid.cast()) };
        // SAFETY: the application's: so many bytes.
        let bytes = unsafe { many(address.cast::<u8>(), length) }?;
        let source = own_address(bytes, &object.domain.parameters)?;
        object.before_enable(|state| {
            state.source = source;
            Ok(0)
        })
    })
}

/// Before it is enabled there is a name only if a port was given.
unsafe extern "C" fn get_name(fid: *mut fid, address: *mut c_void, length: *mut size_t) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open endpoint.
        let object = unsafe { of(fid.cast()) };
        object.domain.with(|state| {
            let state = state.endpoint(object.index)?;
            let name = Name::new(state.source);
            let bytes = match &state.endpoint {
                Some(endpoint) => endpoint.name(),
                None if state.source.port() != 0 => name.bytes(),
                None => return fail(abi::FI_EOPBADSTATE),
            };
            // SAFETY: the application's: room of the length that it says.
            unsafe { text::write_name(bytes, address.cast(), length) }?;
            Ok(0)
        })
    })
}

unsafe extern "C" fn get_peer(ep: *mut fid_ep, address: *mut c_void, length: *mut size_t) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open endpoint.
        let object = unsafe { of(ep) };
        object.is_connected()?;
        object.domain.with(|state| {
            let endpoint = state.endpoint(object.index)?.endpoint.as_ref();
            let name = endpoint.and_then(Endpoint::peer_name).ok_or(code(abi::FI_ENOTCONN))?;
            // SAFETY: the application's: room of the length that it says.
            unsafe { text::write_name(name, address.cast(), length) }?;
            Ok(0)
        })
    })
}

/// The endpoint is enabled if it was not. What goes out at once does, so that who is called may be served by the same thread.
unsafe extern "C" fn connect(
    ep: *mut fid_ep,
    address: *const c_void,
    data: *const c_void,
    length: size_t,
) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open endpoint.
        let object = unsafe { of(ep) };
        object.is_connected()?;
        if address.is_null() {
            return fail(abi::FI_EINVAL);
        }
        // SAFETY: the application's: an address of one of these families, which begins with it.
        let name = unsafe { read_address(address.cast()) }?;
        // SAFETY: the application's: so many bytes, or null.
        let data = unsafe { many(data.cast::<u8>(), length) }?;
        object.enable_if_not()?;
        object.with_endpoint(|endpoint| {
            endpoint.tell_time(now());
            endpoint.connect(name.bytes(), data).map_err(|error| refusal(error, abi::FI_EISCONN))
        })
    })
}

unsafe extern "C" fn accept(ep: *mut fid_ep, data: *const c_void, length: size_t) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open endpoint.
        let object = unsafe { of(ep) };
        object.is_connected()?;
        // SAFETY: the application's: so many bytes, or null.
        let data = unsafe { many(data.cast::<u8>(), length) }?;
        object.enable_if_not()?;
        object.with_endpoint(|endpoint| {
            endpoint.tell_time(now());
            endpoint.accept(data).map_err(|error| refusal(error, abi::FI_EINVAL))
        })
    })
}

unsafe extern "C" fn shutdown(ep: *mut fid_ep, flags: u64) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open endpoint.
        let object = unsafe { of(ep) };
        object.is_connected()?;
        if flags != 0 {
            return fail(abi::FI_EBADFLAGS);
        }
        object.with_endpoint(|endpoint| match endpoint.shutdown() {
            // It is over already: who was shut down need not know before it shuts down.
            Err(ConnectError::NotNow) if endpoint.peer_name().is_some() => Ok(()),
            outcome => outcome.map_err(|error| refusal(error, abi::FI_ENOTCONN)),
        })
    })
}

impl Object {
    /// # Errors
    /// `FI_ENOSYS`: it is no connected endpoint.
    fn is_connected(&self) -> Outcome<()> {
        self.domain.with(|state| match state.endpoint(self.index)?.connection {
            Some(_) => Ok(()),
            None => fail(abi::FI_ENOSYS),
        })
    }

    /// Ask the endpoint, and report what comes of it at once.
    fn with_endpoint(&self, call: impl FnOnce(&mut Endpoint) -> Outcome<()>) -> Outcome<c_int> {
        self.domain.with(|state| {
            call(state.endpoint(self.index)?.enabled()?)?;
            state.report(self.index);
            for _ in 0..TURNS {
                state.progress(self.index, now());
            }
            state.tell_waiting(self.index);
            Ok(0)
        })
    }
}

/// What a call for a connection is answered, where this stands for the wrong time for it.
fn refusal(error: ConnectError, wrong_time: u64) -> Code {
    match error {
        ConnectError::NotNow => code(wrong_time),
        ConnectError::Gone => code(abi::FI_ECONNABORTED),
        ConnectError::Address(_) => code(abi::FI_EINVAL),
        // The system's codes are libfabric's.
        ConnectError::System { errno } => Code(errno),
        ConnectError::Endpoint(error) => error.into(),
    }
}

/// # Safety
/// A `sockaddr` of as many bytes as its family has.
///
/// # Errors
/// `FI_EINVAL`: of another family.
unsafe fn read_address(address: *const u8) -> Outcome<Name> {
    // SAFETY: the caller's: it begins with the family.
    let family = unsafe { address.cast::<u16>().read_unaligned() };
    let length = crate::provider::address::length_of_family(family).ok_or(code(abi::FI_EINVAL))?;
    // SAFETY: the caller's.
    let bytes = unsafe { many(address, length) }?;
    Name::decode(bytes).ok_or(code(abi::FI_EINVAL))
}

pub(super) unsafe extern "C" fn no_peer(_: *mut fid_ep, _: *mut c_void, _: *mut size_t) -> c_int {
    integer(|| fail(abi::FI_ENOSYS))
}

pub(super) unsafe extern "C" fn no_connect(
    _: *mut fid_ep,
    _: *const c_void,
    _: *const c_void,
    _: size_t,
) -> c_int {
    integer(|| fail(abi::FI_ENOSYS))
}

pub(super) unsafe extern "C" fn no_accept(_: *mut fid_ep, _: *const c_void, _: size_t) -> c_int {
    integer(|| fail(abi::FI_ENOSYS))
}

pub(super) unsafe extern "C" fn no_shutdown(_: *mut fid_ep, _: u64) -> c_int {
    integer(|| fail(abi::FI_ENOSYS))
}

unsafe extern "C" fn no_listen(_: *mut fid_pep) -> c_int {
    integer(|| fail(abi::FI_ENOSYS))
}

unsafe extern "C" fn no_reject(_: *mut fid_pep, _: *mut fid, _: *const c_void, _: size_t) -> c_int {
    integer(|| fail(abi::FI_ENOSYS))
}

pub(super) static OPS: fi_ops_cm = fi_ops_cm {
    size: size_of::<fi_ops_cm>(),
    setname: set_name,
    getname: get_name,
    getpeer: get_peer,
    connect,
    listen: no_listen,
    accept,
    reject: no_reject,
    shutdown,
    join: NONE,
};

/// A connection within the host stands, and the request is out, after so many turns.
const TURNS: usize = 3;
