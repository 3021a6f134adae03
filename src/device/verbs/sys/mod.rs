//! libibverbs, found at run time: its structures, constants, functions, and the inlines of its header.
//!
//! There is no link-time dependency and no header needed: [`library`] opens `libibverbs.so.1` when it is first asked
//! and looks every function up by its name (its default version). What the header inlines goes through the operations
//! of the context, after the checks that the header makes ([`inline`]).
//!
//! The names are those of `infiniband/verbs.h`. Everything here is raw: the wrappers around it are safe.

#![allow(
    non_camel_case_types,
    missing_docs,
    missing_debug_implementations,
    reason = "names and structures are those of infiniband/verbs.h, which documents them"
)]
#![allow(unsafe_code, reason = "calls of C functions, and structures that they fill")]

/// Compile-time assertions about the structures in [`types`].
macro_rules! layouts {
    ($($kind:ident $name:ident: $size:expr => { $($($field:ident).+: $offset:expr),* $(,)? })*) => {
        $(const _: () = {
            use super::types::$name;
            assert!(size_of::<$name>() == $size, concat!("the size of ", stringify!($name)));
            $(assert!(
                std::mem::offset_of!($name, $($field).+) == $offset,
                concat!("the place of ", stringify!($name.$($field).+))
            );)*
        };)*
    };
}

/// Constants, all of them 32 bits.
macro_rules! constants {
    ($($name:ident = $value:expr;)*) => {
        $(pub const $name: u32 = $value;)*
    };
}

pub mod inline;
mod library;
mod table;
pub mod types;

pub use library::{Library, LoadError, library};
pub use table::*;

/// Bytes of `pthread_mutex_t`.
const MUTEX: usize = size_of::<libc::pthread_mutex_t>();
