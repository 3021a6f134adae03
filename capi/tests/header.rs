//! The header that is committed is what the sources say.
#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]

use std::path::Path;

/// Written anew with `TAGMATCH_BLESS=1`.
#[test]
fn the_committed_header_is_the_generated_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config =
        cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap_or_else(|error| panic!("{error}"));
    let generated = cbindgen::Builder::new()
        .with_config(config)
        .with_crate(folder)
        .generate()
        .unwrap_or_else(|error| panic!("{error}"));
    let mut text = Vec::new();
    generated.write(&mut text);
    let text = String::from_utf8(text).expect("a header is text");
    let place = folder.join("tagmatch.h");
    if std::env::var_os("TAGMATCH_BLESS").is_some() {
        std::fs::write(&place, &text).expect("the header can be written");
    }
    let committed = std::fs::read_to_string(&place).expect("capi/tagmatch.h is there");
    let different = text.lines().zip(committed.lines()).position(|(new, old)| new != old);
    assert!(
        text == committed,
        "capi/tagmatch.h is not what the sources say, from line {:?} on: TAGMATCH_BLESS=1 writes it anew",
        different.map(|line| line + 1)
    );
}
