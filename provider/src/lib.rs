//! `libtagmatch-fi.so`: the libfabric provider `tagmatch`.
//!
//! libfabric loads every file ending in `-fi.so` of the folders in `FI_PROVIDER_PATH` and calls `fi_prov_ini`. cargo
//! names the library `libtagmatch_fi.so`; a link of the right name in a folder of its own is all that is needed, and
//! `tagmatch mpirun` and `tagmatch env` make one. All that it does is in `tagmatch::provider`.

use tagmatch::provider::abi::fi_provider;

/// What libfabric asks for after it has loaded the library: the same static structure at every call, which libfabric
/// writes to.
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *mut fi_provider {
    tagmatch::provider::provider()
}
