//! One target under libFuzzer, which keeps what reaches code that nothing reached before. By hand: docs/testing.md has the
//! command, since the whole program must be built with counters.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tagmatch_fuzz::{Target, target};

fuzz_target!(|input: &[u8]| {
    (chosen().run)(input);
});

fn chosen() -> &'static Target {
    static CHOSEN: OnceLock<&'static Target> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let name = std::env::var("TAGMATCH_FUZZ_TARGET").unwrap_or_default();
        target(&name).unwrap_or_else(|| {
            eprintln!("TAGMATCH_FUZZ_TARGET={name} names no target");
            std::process::exit(2)
        })
    })
}
