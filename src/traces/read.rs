//! Reading traces: plain, gzip or zstd, told apart by their first bytes and not by their names.
//!
//! The text is never held whole: a line at a time goes to the parser. How much text comes out of a compressed file
//! is bounded, so that a small file cannot ask for endless work.

use super::parser::Parser;
use super::problem::{Malformed, Problem};
use super::zstd::Frames;
use super::{Header, Step};
use flate2::bufread::MultiGzDecoder;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

/// The longest text, in bytes, that is read from one file unless the caller says otherwise. The largest recorded
/// trace has 3 MB.
pub const TEXT_BYTES_MAX: u64 = 256 << 20;

/// How a trace is stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Encoding {
    /// As text.
    Plain,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("{file}: cannot be read: {source}")]
    Io {
        /// Its name.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The compressed data is damaged or cut short.
    #[error("{file}: the {encoding} data is damaged or cut short: {source}")]
    Damaged {
        /// Its name.
        file: String,
        /// How it is stored.
        encoding: Encoding,
        /// What the decoder said.
        source: io::Error,
    },
    /// More text than is allowed.
    #[error("{file}: more than {bytes_max} bytes of text: too large for a trace to be read")]
    TooLarge {
        /// Its name.
        file: String,
        /// The limit.
        bytes_max: u64,
    },
    /// The text breaks the grammar of traces.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// The steps of a trace, one by one, as they are read.
pub struct Steps {
    file: String,
    encoding: Encoding,
    input: Box<dyn BufRead>,
    parser: Parser,
    buffer: Vec<u8>,
    bytes: u64,
    bytes_max: u64,
    finished: bool,
}

impl Steps {
    /// Open a file.
    ///
    /// # Errors
    /// It cannot be opened, or its first bytes cannot be read.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let file = path.display().to_string();
        match File::open(path) {
            Ok(input) => Self::new(file, input),
            Err(source) => Err(ReadError::Io { file, source }),
        }
    }

    /// Read from anywhere; the name is only for error messages.
    ///
    /// # Errors
    /// The first bytes cannot be read.
    pub fn new(file: impl Into<String>, input: impl Read + 'static) -> Result<Self, ReadError> {
        let file = file.into();
        let (encoding, input) = match decode(input) {
            Ok(decoded) => decoded,
            Err(source) => return Err(ReadError::Io { file, source }),
        };
        Ok(Self {
            parser: Parser::new(file.clone()),
            file,
            encoding,
            input,
            buffer: Vec::new(),
            bytes: 0,
            bytes_max: TEXT_BYTES_MAX,
            finished: false,
        })
    }

    /// The same with another limit on the text, in bytes.
    #[must_use]
    pub const fn with_bytes_max(mut self, bytes_max: u64) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    /// How the trace is stored.
    #[must_use]
    pub const fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The headers seen so far: all of them once a step has come out.
    #[must_use]
    pub const fn header(&self) -> &Header {
        self.parser.header()
    }

    /// The number of lines read so far.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.parser.line()
    }

    /// The headers, when all steps are out.
    #[must_use]
    pub fn into_header(self) -> Header {
        self.parser.into_header()
    }

    /// Say that the line read last is wrong.
    pub(super) fn malformed(&self, line: u64, problem: Problem) -> ReadError {
        Malformed { line, ..self.parser.malformed(problem) }.into()
    }

    fn step(&mut self) -> Result<Option<Step>, ReadError> {
        loop {
            if !self.read_line()? {
                self.finished = true;
                return Ok(self.parser.handle_end()?);
            }
            if let Some(step) = self.parser.handle_line(&self.buffer)? {
                return Ok(Some(step));
            }
        }
    }

    /// Read the next line, without its line feed, into the buffer. False: there is none.
    fn read_line(&mut self) -> Result<bool, ReadError> {
        self.buffer.clear();
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(source) if source.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(self.unreadable(source)),
            };
            if available.is_empty() {
                return if self.buffer.is_empty() {
                    Ok(false)
                } else {
                    Err(self.next_line(Problem::LineUnfinished))
                };
            }
            let end = available.iter().position(|&byte| byte == b'\n');
            let (text, used) = match end {
                Some(end) => (available.get(..end).unwrap_or_default(), end + 1),
                None => (available, available.len()),
            };
            if self.buffer.len() + text.len() > Parser::LINE_BYTES_MAX {
                return Err(self.next_line(Problem::LineLong { max: Parser::LINE_BYTES_MAX }));
            }
            self.buffer.extend_from_slice(text);
            self.input.consume(used);
            self.bytes = self.bytes.saturating_add(used as u64);
            if self.bytes > self.bytes_max {
                return Err(ReadError::TooLarge { file: self.file.clone(), bytes_max: self.bytes_max });
            }
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    /// A problem in the line that is being read and that the parser has not seen.
    fn next_line(&self, problem: Problem) -> ReadError {
        self.malformed(self.parser.line() + 1, problem)
    }

    fn unreadable(&self, source: io::Error) -> ReadError {
        let file = self.file.clone();
        match self.encoding {
            Encoding::Plain => ReadError::Io { file, source },
            encoding @ (Encoding::Gzip | Encoding::Zstd) => ReadError::Damaged { file, encoding, source },
        }
    }
}

impl Iterator for Steps {
    type Item = Result<Step, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let step = self.step();
        self.finished |= step.is_err();
        step.transpose()
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps")
            .field("encoding", &self.encoding)
            .field("parser", &self.parser)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

/// Look at the first bytes, and put the decoder for them in front of all.
fn decode(mut input: impl Read + 'static) -> io::Result<(Encoding, Box<dyn BufRead>)> {
    let mut magic = Vec::with_capacity(MAGIC_BYTES);
    input.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut magic)?;
    let encoding = match magic.as_slice() {
        [0x1f, 0x8b, ..] => Encoding::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Encoding::Zstd,
        _ => Encoding::Plain,
    };
    let whole = BufReader::new(Cursor::new(magic).chain(input));
    let input: Box<dyn BufRead> = match encoding {
        Encoding::Plain => Box::new(whole),
        Encoding::Gzip => Box::new(BufReader::new(MultiGzDecoder::new(whole))),
        Encoding::Zstd => Box::new(BufReader::new(Frames::new(whole))),
    };
    Ok((encoding, input))
}

const MAGIC_BYTES: usize = 4;
