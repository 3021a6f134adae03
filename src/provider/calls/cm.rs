//! `fi_cm(3)`: names of endpoints. Nothing is offered of connected endpoints.

use libc::{c_int, c_void, size_t};

use super::endpoint::of;
use super::text;
use super::unsupported::NONE;
use crate::provider::abi::{self, fi_ops_cm, fid};
use crate::provider::address::Name;
use crate::provider::arrays::many;
use crate::provider::error::{fail, integer};
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

pub(super) static OPS: fi_ops_cm = fi_ops_cm {
    size: size_of::<fi_ops_cm>(),
    setname: set_name,
    getname: get_name,
    getpeer: NONE,
    connect: NONE,
    listen: NONE,
    accept: NONE,
    reject: NONE,
    shutdown: NONE,
    join: NONE,
};
