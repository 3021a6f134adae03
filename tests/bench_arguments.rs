//! How benches read their arguments (benches/common/arguments.rs), whose programs have no tests of their own.

#[path = "../benches/common/arguments.rs"]
#[allow(dead_code, reason = "the benches use all of it")]
mod arguments;
