//! The parser: one line in, at most one step out.
//!
//! A step is complete when its result line or the next event line has been seen, so that it comes out one line late
//! where it has no result. Not here: reading, decompressing, and whether the steps make sense together (`ledger`).

use super::fields::Words;
use super::header::{COUNTED, Header};
use super::problem::{Found, Malformed, Problem};
use super::{Event, MessageNumber, Outcome, PeekNumber, ReceiveNumber, Step};
use crate::ids::{Ignore, PeerId, Source, Tag};
use crate::matching::{Envelope, Pattern};

/// Turns the lines of a trace into steps. Its memory does not grow with the file.
#[derive(Clone, Debug)]
pub struct Parser {
    file: String,
    line: u64,
    header: Header,
    stage: Stage,
    receives: u32,
    messages: u32,
    peeks: u32,
    counted: [u64; COUNTED.len()],
}

#[derive(Clone, Debug)]
enum Stage {
    /// Nothing seen yet.
    Start,
    /// Headers so far.
    Headers,
    /// An event without a result so far.
    Open(Step),
    /// An event and its result.
    Closed(Event),
}

impl Parser {
    /// The longest line, in bytes, without its line feed.
    pub const LINE_BYTES_MAX: usize = 8192;

    /// A parser for a file of this name; the name is only for error messages.
    #[must_use]
    pub fn new(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line: 0,
            header: Header::default(),
            stage: Stage::Start,
            receives: 0,
            messages: 0,
            peeks: 0,
            counted: [0; COUNTED.len()],
        }
    }

    /// Take the next line, without its line feed, and give the step that is complete with it.
    ///
    /// # Errors
    /// The line breaks the grammar. The parser is of no use afterwards.
    pub fn handle_line(&mut self, line: &[u8]) -> Result<Option<Step>, Malformed> {
        self.line += 1;
        self.line_step(line).map_err(|problem| self.malformed(problem))
    }

    /// Take the end of the file, and give the last step if it was not complete before.
    ///
    /// # Errors
    /// The file ends where it must not, or counts otherwise than its headers.
    pub fn handle_end(&mut self) -> Result<Option<Step>, Malformed> {
        self.end_step().map_err(|problem| self.malformed(problem))
    }

    /// The headers seen so far: all of them once a step has come out.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The number of lines taken so far.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// The headers, when the file is at its end.
    #[must_use]
    pub fn into_header(self) -> Header {
        self.header
    }

    /// This problem in the line that was taken last.
    pub(super) fn malformed(&self, problem: Problem) -> Malformed {
        Malformed { file: self.file.clone(), line: self.line.max(1), problem }
    }

    fn line_step(&mut self, line: &[u8]) -> Result<Option<Step>, Problem> {
        if line.len() > Self::LINE_BYTES_MAX {
            return Err(Problem::LineLong { max: Self::LINE_BYTES_MAX });
        }
        if matches!(self.stage, Stage::Start) {
            if line != FIRST_LINE {
                return Err(Problem::Format(Found::new(line)));
            }
            self.stage = Stage::Headers;
            return self.header.handle_line(line).map(|()| None);
        }
        if line.starts_with(b"#") {
            return match self.stage {
                Stage::Start | Stage::Headers => self.header.handle_line(line).map(|()| None),
                Stage::Open(_) | Stage::Closed(_) => Err(Problem::HeaderLate(Found::new(line))),
            };
        }
        let mut words = Words::new(line);
        match words.word().unwrap_or_default() {
            b"match" | b"found" | b"none" | b"cancelled" | b"late" => self.result(line).map(Some),
            b"post" | b"arrive" | b"peek" | b"claim" | b"cancel" => self.event(line),
            word => Err(Problem::Word(Found::new(word))),
        }
    }

    fn end_step(&mut self) -> Result<Option<Step>, Problem> {
        if matches!(self.stage, Stage::Start) {
            return Err(Problem::Empty);
        }
        let last = self.take_open(Found::end_of_file())?;
        self.header.check_counts(&self.counted)?;
        Ok(last)
    }

    fn event(&mut self, line: &[u8]) -> Result<Option<Step>, Problem> {
        let before = self.take_open(Found::new(line))?;
        let mut words = Words::new(line);
        let word = words.word().unwrap_or_default();
        let (event, kind) = match word {
            b"post" => (self.post(&mut words)?, Kind::Post),
            b"arrive" => (self.arrive(&mut words)?, Kind::Arrive),
            b"peek" => (self.peek(&mut words)?, Kind::Peek),
            b"claim" => (self.claim(&mut words)?, Kind::Claim),
            _ => (self.cancel(&mut words)?, Kind::Cancel),
        };
        words.end()?;
        self.count(Kind::Event);
        self.count(kind);
        self.stage = Stage::Open(Step { line: self.line, event, expected: Outcome::Queued });
        Ok(before)
    }

    /// The event that waited for a result and has none.
    fn take_open(&mut self, found: Found) -> Result<Option<Step>, Problem> {
        let Stage::Open(step) = self.stage else {
            return Ok(None);
        };
        match step.event {
            Event::Post { .. } | Event::Arrive { .. } => {
                self.stage = Stage::Closed(step.event);
                Ok(Some(step))
            }
            Event::Peek { .. } | Event::Claim { .. } | Event::Cancel { .. } => Err(Problem::ResultMissing {
                event: step.event.word(),
                event_line: step.line,
                expected: step.event.results(),
                found,
            }),
        }
    }

    fn post(&mut self, words: &mut Words<'_>) -> Result<Event, Problem> {
        let receive = ReceiveNumber(next("receive", self.receives, words.number("the receive's number")?)?);
        let pattern = self.pattern(words)?;
        let length = words.decimal("len=", LENGTH)?;
        self.receives += 1;
        Ok(Event::Post { receive, pattern, length })
    }

    fn arrive(&mut self, words: &mut Words<'_>) -> Result<Event, Problem> {
        let message = MessageNumber(next("message", self.messages, words.number("the message's number")?)?);
        let tag = Tag(words.hexadecimal("tag=", TAG)?);
        let source = match words.source("src= and the sender's rank", false)? {
            Some(rank) => self.rank(rank)?,
            None => PeerId(0),
        };
        let length = words.decimal("len=", LENGTH)?;
        self.messages += 1;
        Ok(Event::Arrive { message, envelope: Envelope { tag, source }, length })
    }

    fn peek(&mut self, words: &mut Words<'_>) -> Result<Event, Problem> {
        let peek = PeekNumber(next("peek", self.peeks, words.number("the peek's number")?)?);
        let pattern = self.pattern(words)?;
        let claim = words.flag("claim")?;
        self.peeks += 1;
        Ok(Event::Peek { peek, pattern, claim })
    }

    fn claim(&mut self, words: &mut Words<'_>) -> Result<Event, Problem> {
        let receive = ReceiveNumber(next("receive", self.receives, words.number("the receive's number")?)?);
        let peek = PeekNumber(appeared("peek", self.peeks, words.number("the peek's number")?)?);
        let length = words.decimal("len=", LENGTH)?;
        self.receives += 1;
        Ok(Event::Claim { receive, peek, length })
    }

    fn cancel(&mut self, words: &mut Words<'_>) -> Result<Event, Problem> {
        let receive = appeared("receive", self.receives, words.number("the receive's number")?)?;
        Ok(Event::Cancel { receive: ReceiveNumber(receive) })
    }

    fn pattern(&self, words: &mut Words<'_>) -> Result<Pattern, Problem> {
        let tag = Tag(words.hexadecimal("tag=", TAG)?);
        let ignore = Ignore(words.hexadecimal("ignore=", IGNORE)?);
        let source = match words.source("src= and a rank or any", true)? {
            Some(rank) => Source::Peer(self.rank(rank)?),
            None => Source::Any,
        };
        Ok(Pattern { tag, ignore, source })
    }

    fn rank(&self, rank: u64) -> Result<PeerId, Problem> {
        let ranks = self.header.ranks().unwrap_or(u32::MAX);
        u32::try_from(rank)
            .ok()
            .filter(|&rank| rank < ranks)
            .map(PeerId)
            .ok_or(Problem::Rank { ranks, found: rank })
    }

    fn result(&mut self, line: &[u8]) -> Result<Step, Problem> {
        let step = match self.stage {
            Stage::Start | Stage::Headers => return Err(Problem::ResultFirst(Found::new(line))),
            Stage::Closed(event) => {
                return Err(Problem::ResultTwice { event: event.word(), found: Found::new(line) });
            }
            Stage::Open(step) => step,
        };
        let mut words = Words::new(line);
        let word = words.word().unwrap_or_default();
        let expected = match (word, step.event) {
            (b"match", Event::Post { receive, .. } | Event::Claim { receive, .. }) => {
                same("receive", receive.0, words.number("the receive's number")?)?;
                Outcome::Matched(receive, self.message(&mut words)?)
            }
            (b"match", Event::Arrive { message, .. }) => {
                let receive = appeared("receive", self.receives, words.number("the receive's number")?)?;
                same("message", message.0, words.number("the message's number")?)?;
                Outcome::Matched(ReceiveNumber(receive), message)
            }
            (b"found", Event::Peek { peek, .. }) => {
                same("peek", peek.0, words.number("the peek's number")?)?;
                Outcome::Found(self.message(&mut words)?)
            }
            (b"none", Event::Peek { peek, .. }) => {
                same("peek", peek.0, words.number("the peek's number")?)?;
                Outcome::Missed
            }
            (b"cancelled" | b"late", Event::Cancel { receive }) => {
                same("receive", receive.0, words.number("the receive's number")?)?;
                if word == b"late" { Outcome::Late } else { Outcome::Cancelled }
            }
            (_, event) => {
                return Err(Problem::ResultKind {
                    event: event.word(),
                    expected: event.results(),
                    found: Found::new(word),
                });
            }
        };
        words.end()?;
        if matches!(expected, Outcome::Matched(..)) {
            self.count(Kind::Match);
        }
        self.stage = Stage::Closed(step.event);
        Ok(Step { expected, ..step })
    }

    fn message(&self, words: &mut Words<'_>) -> Result<MessageNumber, Problem> {
        appeared("message", self.messages, words.number("the message's number")?).map(MessageNumber)
    }

    fn count(&mut self, kind: Kind) {
        if let Some(count) = self.counted.get_mut(kind as usize) {
            *count += 1;
        }
    }
}

/// Places in the counts; as in [`COUNTED`].
#[derive(Clone, Copy)]
enum Kind {
    Event,
    Post,
    Arrive,
    Claim,
    Peek,
    Cancel,
    Match,
}

/// A number that must be the next one. The last of 2^32 is never given away, so that counts fit.
fn next(what: &'static str, expected: u32, found: u64) -> Result<u32, Problem> {
    if found == u64::from(expected) && expected < u32::MAX {
        Ok(expected)
    } else {
        Err(Problem::NotNext { what, expected: u64::from(expected), found })
    }
}

/// A number that must have appeared.
fn appeared(what: &'static str, count: u32, found: u64) -> Result<u32, Problem> {
    u32::try_from(found).ok().filter(|&number| number < count).ok_or(Problem::NotYet {
        what,
        appeared: u64::from(count),
        found,
    })
}

/// A number that must be the event's.
fn same(what: &'static str, expected: u32, found: u64) -> Result<(), Problem> {
    if found == u64::from(expected) {
        Ok(())
    } else {
        Err(Problem::ResultOther { what, expected: u64::from(expected), found })
    }
}

const FIRST_LINE: &[u8] = b"# format: fi-tagged-trace 1";
const TAG: &str = "tag= and a lower-case hexadecimal number of at most 64 bits without leading zeros";
const IGNORE: &str = "ignore= and a lower-case hexadecimal number of at most 64 bits without leading zeros";
const LENGTH: &str = "len= and a decimal number of bytes";
