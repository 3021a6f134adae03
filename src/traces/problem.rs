//! What can be wrong with a trace, with the words that say so.
//!
//! Not here: input that cannot be read at all; see `read`.

use std::fmt;

/// A trace that breaks its grammar: where, and what was expected there.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct Malformed {
    /// The file, as it was named by whoever opened it.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a line of a trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The first line does not say that this is a trace.
    #[error("expected \"# format: fi-tagged-trace 1\" as the first line, found {0}")]
    Format(Found),
    /// The file has no line at all.
    #[error("expected \"# format: fi-tagged-trace 1\" as the first line, found an empty file")]
    Empty,
    /// A line that begins with `#` is no header.
    #[error("expected a header \"# key: value\", found {0}")]
    HeaderSyntax(Found),
    /// A header stands behind an event.
    #[error(
        "expected an event or a result line, found the header {0}: all headers come before the first event"
    )]
    HeaderLate(Found),
    /// A header is there twice.
    #[error("expected every header once, found \"{key}\" again")]
    HeaderTwice {
        /// Its key.
        key: String,
    },
    /// A header's value cannot be understood.
    #[error("expected {expected} in the header \"{key}\", found {found}")]
    HeaderValue {
        /// Its key.
        key: String,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: Found,
    },
    /// More headers than any trace has.
    #[error("expected at most {max} headers, found one more")]
    HeadersMany {
        /// The limit.
        max: usize,
    },
    /// A line that is longer than any line of a trace.
    #[error("expected a line of at most {max} bytes, found a longer one")]
    LineLong {
        /// The limit.
        max: usize,
    },
    /// The last line has no end.
    #[error(
        "expected a line feed at the end of the last line, found the end of the file: it may be cut short"
    )]
    LineUnfinished,
    /// The word that begins the line is unknown.
    #[error("expected an event (post, arrive, peek, claim, cancel) or a result line, found {0}")]
    Word(Found),
    /// A field of the line is missing or malformed.
    #[error("expected {expected}, found {found}")]
    Field {
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: Found,
    },
    /// Something stands behind the last field.
    #[error("expected the end of the line, found {0}")]
    Trailing(Found),
    /// A number is not the next in order of appearance.
    #[error("expected {what} {expected}, the next in order of appearance, found {found}")]
    NotNext {
        /// Of what it is the number.
        what: &'static str,
        /// The next.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// A number that has not appeared yet.
    #[error(
        "expected a {what} that has appeared before (there are {appeared}, counted from 0), found {found}"
    )]
    NotYet {
        /// Of what it is the number.
        what: &'static str,
        /// How many have appeared.
        appeared: u64,
        /// What is there.
        found: u64,
    },
    /// A source that is no rank of this run.
    #[error("expected a rank below {ranks} (header \"ranks\"), found {found}")]
    Rank {
        /// How many there are.
        ranks: u32,
        /// What is there.
        found: u64,
    },
    /// A result line without an event before it.
    #[error("expected an event first, found the result line {0}")]
    ResultFirst(Found),
    /// A second result line behind one event.
    #[error("expected at most one result line behind {event}, found a second one: {found}")]
    ResultTwice {
        /// The event's word.
        event: &'static str,
        /// What is there.
        found: Found,
    },
    /// A result that cannot come of this event.
    #[error("expected {expected} behind {event}, found {found}")]
    ResultKind {
        /// The event's word.
        event: &'static str,
        /// What could be there.
        expected: &'static str,
        /// What is there.
        found: Found,
    },
    /// A result that names another event's number.
    #[error("expected the result of {what} {expected}, found that of {what} {found}")]
    ResultOther {
        /// What kind of number it is.
        what: &'static str,
        /// The event's.
        expected: u64,
        /// The result's.
        found: u64,
    },
    /// An event that needs a result has none.
    #[error("expected {expected} behind the {event} in line {event_line}, found {found}")]
    ResultMissing {
        /// The event's word.
        event: &'static str,
        /// Its line.
        event_line: u64,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: Found,
    },
    /// A header counts otherwise than the file.
    #[error("expected {declared} of \"{key}\" as the header says, found {counted} at the end of the file")]
    Count {
        /// The header's key.
        key: &'static str,
        /// Its value.
        declared: u64,
        /// What was counted.
        counted: u64,
    },
    /// A message is used that is no longer on the unexpected list.
    #[error("expected a message that is still unexpected, found message {message}, which {state}")]
    MessageGone {
        /// Which.
        message: u32,
        /// What had happened to it.
        state: &'static str,
    },
    /// A receive is used in a state that does not allow it.
    #[error("expected a receive that {expected}, found receive {receive}, which {state}")]
    ReceiveState {
        /// Which.
        receive: u32,
        /// What it should have been.
        expected: &'static str,
        /// What had happened to it.
        state: &'static str,
    },
    /// A claim of a message that its peek did not bind.
    #[error("expected message {expected}, which peek {peek} bound, found message {found}")]
    ClaimOther {
        /// The peek.
        peek: u32,
        /// What it bound.
        expected: u32,
        /// What is there.
        found: u32,
    },
    /// A claim through a peek that binds no message (any more).
    #[error(
        "expected a peek that found a message with \"claim\" and was not claimed before, found peek {peek}"
    )]
    ClaimUnbound {
        /// The peek.
        peek: u32,
    },
    /// A message that is longer than the receive that takes it.
    #[error(
        "expected a message of at most {receive_length} bytes for receive {receive}, found message {message} of {length}"
    )]
    Truncation {
        /// The receive.
        receive: u32,
        /// Its length in bytes.
        receive_length: u64,
        /// The message.
        message: u32,
        /// Its length in bytes.
        length: u64,
    },
}

/// A piece of the input for an error message: quoted, made printable, and cut where it is long.
#[derive(Clone, PartialEq, Eq)]
pub struct Found(String);

impl Found {
    /// A piece of a line.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let (shown, more) = match bytes.get(..SHOWN_BYTES_MAX) {
            Some(head) if bytes.len() > SHOWN_BYTES_MAX => (head, "..."),
            _ => (bytes, ""),
        };
        Self(format!("\"{}{more}\"", shown.escape_ascii()))
    }

    /// The end of the line where something was expected.
    pub(crate) fn end_of_line() -> Self {
        Self("the end of the line".into())
    }

    /// The end of the file where something was expected.
    pub(crate) fn end_of_file() -> Self {
        Self("the end of the file".into())
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const SHOWN_BYTES_MAX: usize = 48;
