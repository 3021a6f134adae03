//! What goes out: results to standard output, complaints to standard error, progress to a terminal.

use crate::End;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Write results. A reader that went away (`| head`) is no error.
pub(crate) fn write(text: &str, end: End) -> End {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => end,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => end,
        Err(error) => {
            complain(format_args!("cannot write to standard output: {error}"));
            End::Unusable
        }
    }
}

/// Write results as JSON.
pub(crate) fn write_json(value: &impl Serialize, end: End) -> End {
    match serde_json::to_string_pretty(value) {
        Ok(text) => write(&(text + "\n"), end),
        Err(error) => {
            complain(format_args!("cannot express the result as JSON: {error}"));
            End::Unusable
        }
    }
}

/// Tell the person what is wrong. If even that cannot be written, nobody is there to be told.
pub(crate) fn complain(what: impl Display) {
    let _ = writeln!(io::stderr().lock(), "tagmatch: {}", harmless(what));
}

/// A text in which names that come from elsewhere do nothing to a terminal.
pub(crate) fn harmless(what: impl Display) -> String {
    let mut text = String::new();
    for letter in what.to_string().chars() {
        if letter.is_control() && letter != '\n' {
            text.extend(letter.escape_default());
        } else {
            text.push(letter);
        }
    }
    text
}

/// A bar on a terminal; nothing elsewhere.
pub(crate) fn progress(steps: usize) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// For what has no number of steps: something that moves on a terminal; nothing elsewhere.
pub(crate) fn spinner() -> ProgressBar {
    let bar = progress(1);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
