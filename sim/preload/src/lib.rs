//! `libtagmatch_hca.so`: the simulated ConnectX for `LD_PRELOAD` under any program that uses verbs.
//!
//! `tagmatch hca -- PROGRAM` does what is needed. By hand: `LD_PRELOAD=…/libtagmatch_hca.so ibv_devinfo`.
//! All that it does is in `tagmatch_sim::hca_abi`.

use core::ffi::{c_int, c_uint};
use tagmatch_sim::hca_abi::preload;

tagmatch_sim::hca_hooks!();

/// Called when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = preload::load;

/// How many steps the device can do now. With the option `drive=steps` the program finds these functions by `dlsym`.
#[unsafe(no_mangle)]
pub extern "C" fn tagmatch_hca_steps() -> c_uint {
    preload::steps()
}

/// Do the step of this place among [`tagmatch_hca_steps`]: 1 if it was done, 0 if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn tagmatch_hca_step(place: c_uint) -> c_int {
    preload::step(place)
}

/// Do steps until none but timers is possible, at most `limit`: how many were done.
#[unsafe(no_mangle)]
pub extern "C" fn tagmatch_hca_run(limit: c_uint) -> c_uint {
    preload::run(limit)
}
