//! What goes from inside to the person outside: output of the command as it comes, and what there is to say of the run.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

/// Takes what a run has to say.
pub trait Relay {
    /// Bytes of the command's standard output; from which machine, if there are several.
    fn output(&mut self, host: Option<u32>, bytes: &[u8]);
    /// Bytes of the command's standard error.
    fn errors(&mut self, host: Option<u32>, bytes: &[u8]);
    /// Something about the run itself, in sentences.
    fn note(&mut self, text: &str);
    /// Work that takes a while: what it is, and how many steps of how many are done. At the end both are equal.
    fn progress(&mut self, what: &str, done: u64, of: u64);
}

/// Writes to the streams of this process, and whose words they are before each line where there are several.
#[derive(Debug)]
pub struct Streams<F> {
    note: F,
}

impl<F: FnMut(Said<'_>)> Streams<F> {
    /// What is not the command's own goes to `note`.
    pub const fn new(note: F) -> Self {
        Self { note }
    }
}

/// Keeps everything that is said, as one text.
#[derive(Clone, Default, Debug)]
pub struct Transcript(pub String);

impl Relay for Transcript {
    fn output(&mut self, _: Option<u32>, bytes: &[u8]) {
        self.0 += &String::from_utf8_lossy(bytes);
    }

    fn errors(&mut self, host: Option<u32>, bytes: &[u8]) {
        self.output(host, bytes);
    }

    fn note(&mut self, text: &str) {
        self.0 += text;
        self.0.push('\n');
    }

    fn progress(&mut self, _: &str, _: u64, _: u64) {}
}

/// What is said about a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Said<'a> {
    /// In sentences.
    Note(&'a str),
    /// Work that takes a while: what, how many steps are done, of how many.
    Progress(&'a str, u64, u64),
}

impl<F: FnMut(Said<'_>)> Relay for Streams<F> {
    fn output(&mut self, host: Option<u32>, bytes: &[u8]) {
        write(io::stdout().lock(), host, bytes);
    }

    fn errors(&mut self, host: Option<u32>, bytes: &[u8]) {
        write(io::stderr().lock(), host, bytes);
    }

    fn note(&mut self, text: &str) {
        (self.note)(Said::Note(text));
    }

    fn progress(&mut self, what: &str, done: u64, of: u64) {
        (self.note)(Said::Progress(what, done, of));
    }
}

/// A reader that went away is not told of.
fn write(mut out: impl io::Write, host: Option<u32>, bytes: &[u8]) {
    let _ = match host {
        None => out.write_all(bytes),
        Some(host) => out.write_all(&labelled(host, bytes)),
    };
    let _ = out.flush();
}

/// Each line with the machine's number before it.
fn labelled(host: u32, bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    lines.flat_map(|line| [format!("[{host}] ").as_bytes(), line].concat()).collect()
}

/// A file that grows while it is read.
#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    place: u64,
    /// The beginning of a line that is not complete.
    rest: Vec<u8>,
}

impl Tail {
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path, place: 0, rest: Vec::new() }
    }

    /// Hand on what is new, in whole lines; the last one in any case if it is the end, or if it is very long.
    pub(crate) fn copy(&mut self, is_end: bool, to: &mut dyn FnMut(&[u8])) {
        if let Ok(mut file) = File::open(&self.path)
            && file.seek(SeekFrom::Start(self.place)).is_ok()
        {
            let before = self.rest.len();
            // What could be read is there, whatever came then.
            let _ = file.read_to_end(&mut self.rest);
            self.place += (self.rest.len() - before) as u64;
        }
        let lines = self.rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1);
        let take = if is_end || self.rest.len() > LINE_MAX { self.rest.len() } else { lines };
        if take > 0 {
            to(&self.rest[..take]);
            self.rest.drain(..take);
        }
    }
}

const LINE_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::RunDirectory;
    use std::io::Write as _;

    #[test]
    fn a_file_that_grows_is_handed_on_once_and_in_lines() {
        let folder = RunDirectory::new().unwrap();
        let path = folder.path().join("out");
        let mut tail = Tail::new(path.clone());
        let mut seen = Vec::new();
        let mut look = |is_end| {
            let mut new = Vec::new();
            tail.copy(is_end, &mut |bytes| new.extend(bytes));
            seen.push(String::from_utf8(new).unwrap());
        };
        look(false);
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one\ntw").unwrap();
        look(false);
        look(false);
        file.write_all(b"o\nthree").unwrap();
        look(false);
        look(true);
        assert_eq!(seen, ["", "one\n", "", "two\n", "three"]);
    }

    #[test]
    fn lines_of_several_machines_are_told_apart() {
        assert_eq!(labelled(1, b"a\n\nb"), b"[1] a\n[1] \n[1] b");
    }
}
