//! The structures, operation tables and constants of libfabric, with its names (API 2.6).
//!
//! No header is needed to build this, and no library: an application calls a provider through tables of functions.
//! Everything here is raw; what fills and reads it is in the modules beside.

#![allow(
    non_camel_case_types,
    missing_docs,
    missing_debug_implementations,
    reason = "names and structures are those of rdma/fabric.h and its companions, which document them"
)]

/// Compile-time assertions about the structures in [`types`].
macro_rules! fabric_layouts {
    ($($name:ident: $old:expr, $size:expr => { $($field:ident: $offset:expr),* $(,)? })*) => {
        $(const _: () = {
            use super::types::$name;
            assert!(size_of::<$name>() == $size, concat!("the size of ", stringify!($name)));
            assert!($old <= $size);
            $(assert!(
                std::mem::offset_of!($name, $field) == $offset,
                concat!("the place of ", stringify!($name.$field))
            );)*
        };)*
    };
}

/// Constants, all of them 64 bits: flags mostly. Where one is compared with a smaller field, that is widened.
macro_rules! fabric_constants {
    ($($name:ident = $value:expr;)*) => {
        $(pub const $name: u64 = $value;)*
    };
}

/// The same of those that came later.
macro_rules! later_constants {
    ($($name:ident = $value:expr;)*) => {
        $(pub const $name: u64 = $value;)*
    };
}

mod endpoint;
mod table;
pub mod types;

pub use table::*;
pub use types::*;

/// `FI_VERSION(major, minor)`.
#[must_use]
pub const fn version(major: u32, minor: u32) -> u32 {
    (major << 16) | minor
}

/// How the layouts were checked when this was built: words for `tagmatch info`.
pub const LAYOUTS: &str = env!("TAGMATCH_FABRIC_LAYOUTS");
