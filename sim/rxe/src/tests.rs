//! What the tests share.

use crate::{Options, Relay};
use std::path::PathBuf;

pub(crate) fn options() -> Options {
    Options { directory: "/".into(), ..Options::new(Vec::new()) }
}

/// Keeps what it is told.
#[derive(Default, Debug)]
pub(crate) struct Notes {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) notes: Vec<String>,
    /// Made when there is output: what a script waits for.
    pub(crate) seen: Option<PathBuf>,
}

impl Relay for Notes {
    fn output(&mut self, host: Option<u32>, bytes: &[u8]) {
        self.out += &text(host, bytes);
        if let Some(seen) = &self.seen {
            std::fs::write(seen, "").unwrap();
        }
    }

    fn errors(&mut self, host: Option<u32>, bytes: &[u8]) {
        self.err += &text(host, bytes);
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.into());
    }

    fn progress(&mut self, _: &str, _: u64, _: u64) {}
}

fn text(host: Option<u32>, bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).into_owned();
    host.map_or(text.clone(), |host| format!("[{host}] {text}"))
}
