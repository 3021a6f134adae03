//! `tagmatch bench`: what it measures, its tables, files there and back, comparisons and what they refuse, files that are
//! not what they should be, and its page in a real browser.
//!
//! What it says of time is not tested. Simulated cards: sim/preload/tests; soft RoCE: tests/rxe.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are outside test functions")]

#[path = "bench/compare.rs"]
mod compare;
#[path = "bench/hostile.rs"]
mod hostile;
#[path = "bench/measuring.rs"]
mod measuring;
#[path = "bench/page.rs"]
mod page;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tagmatch"));
    command.arg("bench").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn complaints(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", complaints(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A run over all that is in this process: curves and a few traces.
fn measured() -> &'static Value {
    static MEASURED: OnceLock<Value> = OnceLock::new();
    MEASURED.get_or_init(|| {
        let mut all = json(&bench(&["--device", "soft,tcp", "--json", "--only", "unexpected messages"]));
        for only in ["depth", "minife", "list"] {
            let more = json(&bench(&["--device", "soft,tcp", "--json", "--only", only]));
            for (device, more) in
                all["devices"].as_array_mut().unwrap().iter_mut().zip(array(&more["devices"]))
            {
                device["points"].as_array_mut().unwrap().extend(array(&more["points"]).iter().cloned());
            }
            all["rows"].as_array_mut().unwrap().extend(array(&more["rows"]).iter().cloned());
        }
        all
    })
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A run in a file of its own, which is there as long as this.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn of(name: &str, run: &Value) -> Self {
        Self::new(name, &run.to_string())
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
