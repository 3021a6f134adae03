//! Options of endpoints: `fi_getopt`, `fi_setopt` (`fi_endpoint(3)`).

use libc::{c_int, c_void, size_t};

use super::endpoint::of;
use crate::provider::abi::{self, fid};
use crate::provider::error::{fail, integer};
use crate::wire::ConnectData;

pub(super) unsafe extern "C" fn get(
    fid: *mut fid,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut size_t,
) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open endpoint.
        let object = unsafe { of(fid.cast()) };
        if u64::try_from(level) != Ok(abi::FI_OPT_ENDPOINT) {
            return fail(abi::FI_ENOPROTOOPT);
        }
        if value.is_null() || length.is_null() {
            return fail(abi::FI_EINVAL);
        }
        let size = object.domain.with(|state| {
            let state = state.endpoint(object.index)?;
            Ok(match u64::try_from(option).unwrap_or(u64::MAX) {
                abi::FI_OPT_MIN_MULTI_RECV => {
                    usize::try_from(state.multi_receive_least).unwrap_or(usize::MAX)
                }
                abi::FI_OPT_CM_DATA_SIZE if state.connection.is_some() => ConnectData::LENGTH_MAX,
                abi::FI_OPT_TX_SIZE => state.tx_size,
                abi::FI_OPT_RX_SIZE => state.rx_size,
                abi::FI_OPT_INJECT_MSG_SIZE | abi::FI_OPT_INJECT_TAGGED_SIZE => state.inject_size,
                abi::FI_OPT_MAX_MSG_SIZE | abi::FI_OPT_MAX_TAGGED_SIZE => usize::MAX >> 1,
                _ => return fail(abi::FI_ENOPROTOOPT),
            })
        })?;
        // SAFETY: the application's: the length of its room.
        let room = unsafe { length.replace(size_of::<usize>()) };
        if room < size_of::<usize>() {
            return fail(abi::FI_ETOOSMALL);
        }
        // SAFETY: the application's: room for a size.
        unsafe { value.cast::<usize>().write_unaligned(size) };
        Ok(0)
    })
}

pub(super) unsafe extern "C" fn set(
    fid: *mut fid,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: size_t,
) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open endpoint.
        let object = unsafe { of(fid.cast()) };
        if u64::try_from(level) != Ok(abi::FI_OPT_ENDPOINT) {
            return fail(abi::FI_ENOPROTOOPT);
        }
        if value.is_null() {
            return fail(abi::FI_EINVAL);
        }
        match u64::try_from(option).unwrap_or(u64::MAX) {
            abi::FI_OPT_MIN_MULTI_RECV if length == size_of::<usize>() => {
                // SAFETY: the application's: a size.
                let least = unsafe { value.cast::<usize>().read_unaligned() };
                object.domain.with(|state| {
                    state.endpoint(object.index)?.multi_receive_least = least as u64;
                    Ok(0)
                })
            }
            abi::FI_OPT_MIN_MULTI_RECV => fail(abi::FI_EINVAL),
            // Whatever is said about memory of accelerators and of neighbours, none is used.
            abi::FI_OPT_CUDA_API_PERMITTED | abi::FI_OPT_SHARED_MEMORY_PERMITTED => Ok(0),
            _ => fail(abi::FI_ENOPROTOOPT),
        }
    })
}
