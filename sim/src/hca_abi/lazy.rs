//! A device that is made when a program first opens it: the preloaded library's way, which must not do more than it
//! has to in the many processes that never look for a device.

use super::device::Device;
use super::registry;
use std::sync::{Arc, OnceLock};

/// Makes the device of a number, or none.
type Make = fn(u32) -> Option<Arc<Device>>;

static MAKE: OnceLock<Make> = OnceLock::new();

/// From now on devices come out of `make`. The first call counts.
pub(crate) fn set(make: Make) {
    // A second library in one process leaves the devices to the first.
    let _ = MAKE.set(make);
}

/// Make a device.
pub(crate) fn make(index: u32) -> Option<Arc<Device>> {
    MAKE.get().and_then(|make| make(index))
}

/// Whether there is, or would be, a device of this number.
pub(crate) fn is_simulated(index: u32) -> bool {
    (index == 0 && MAKE.get().is_some()) || registry::has(index)
}

/// Whether there is, or would be, any device.
pub(crate) fn is_any_simulated() -> bool {
    MAKE.get().is_some() || registry::has_any()
}
