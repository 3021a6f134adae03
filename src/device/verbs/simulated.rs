//! The controls of a simulated card that was preloaded under this process (package tagmatch-hca) and is not moved on
//! by a thread of its own.
//!
//! Not here: starting a process with it (`tagmatch hca`).

use std::ffi::CStr;
use std::mem;

use libc::{c_int, c_uint};

/// What the preloaded library exports.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedHca {
    steps: extern "C" fn() -> c_uint,
    step: extern "C" fn(c_uint) -> c_int,
    run: extern "C" fn(c_uint) -> c_uint,
}

impl SimulatedHca {
    /// The one of this process, if it has one.
    #[must_use]
    pub fn find() -> Option<Self> {
        let steps = symbol(c"tagmatch_hca_steps")?;
        let step = symbol(c"tagmatch_hca_step")?;
        let run = symbol(c"tagmatch_hca_run")?;
        Some(Self {
            // SAFETY: the library's function of this name has this type (sim/preload/src/lib.rs).
            steps: unsafe { mem::transmute::<*mut libc::c_void, extern "C" fn() -> c_uint>(steps) },
            // SAFETY: as above.
            step: unsafe { mem::transmute::<*mut libc::c_void, extern "C" fn(c_uint) -> c_int>(step) },
            // SAFETY: as above.
            run: unsafe { mem::transmute::<*mut libc::c_void, extern "C" fn(c_uint) -> c_uint>(run) },
        })
    }

    /// How many things it can do now, timers included.
    #[must_use]
    pub fn steps(&self) -> u32 {
        (self.steps)()
    }

    /// Do the one of this place. False: there is none.
    pub fn step(&self, place: u32) -> bool {
        (self.step)(place) != 0
    }

    /// Do all that is possible but timers: how much that was.
    pub fn run(&self) -> u32 {
        (self.run)(c_uint::MAX)
    }
}

fn symbol(name: &CStr) -> Option<*mut libc::c_void> {
    // SAFETY: a name that ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}
