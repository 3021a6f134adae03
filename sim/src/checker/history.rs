//! What is observed of a run, and a text form of it: one observation a line.
//!
//! Not here: who observes, and what is correct.
//!
//! ```text
//! post r0 tag=5 ignore=0 src=any            queued        (also src=1, src=group:1; "stay": multi-receive)
//! post r1 tag=5 ignore=0 src=1 took m3      it took that unexpected message at once
//! peek tag=5 ignore=f src=any found m3      ("none" instead of "found m3"; "claim": it leaves the list)
//! accept m0 src=1 sent=0 tag=5 path=0       its header was accepted
//! device m0 r1                              the device that accepted it matched it
//! decide m0 r1                              the engine decided: to that receive
//! decide m0 unexpected                      or: none fits
//! cancel r0                                 called
//! cancelled r0                              answered: it will not be completed
//! late r0                                   answered: it was, or will be completed
//! release r0                                a multi-receive buffer is full
//! lost 1                                    what that peer sent and no receive took may vanish
//! vanish m0                                 and this did
//! join 1 group=2                            that peer is in that group from now on
//! ```
//! Tags and ignore masks are hexadecimal, all else is decimal. Empty lines and what follows `#` are skipped.

use std::fmt;

use tagmatch::ids::{GroupId, Ignore, PeerId, Source, Tag};
use tagmatch::matching::{Envelope, Pattern, Stay};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }
    };
}

name!(
    /// The recorder's number of a receive. It may be used again after the receive has ended, and each cancel of it.
    ReceiveName "r"
);
name!(
    /// The recorder's number of a message. It may be used again after the message has been received or has vanished.
    MessageName "m"
);

/// One thing that one observer saw. Their sequence is real time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Observation {
    /// A receive was posted.
    Post {
        /// Its name.
        receive: ReceiveName,
        /// What it looks for.
        pattern: Pattern,
        /// Whether it is a multi-receive.
        stay: Stay,
        /// The unexpected message that it took at once, and then it is **not** on the posted list. A multi-receive
        /// that took one is posted again under the same name until it takes none.
        took: Option<MessageName>,
    },
    /// The unexpected list was looked at. Peek and discard is a claim to the matcher; what becomes of a claimed
    /// message is no business of the matcher any more.
    Peek {
        /// What for.
        pattern: Pattern,
        /// The message found.
        found: Option<MessageName>,
        /// Whether it left the list.
        claim: bool,
    },
    /// A device or the host accepted the header of a message: its arrival begins.
    Accepted {
        /// Its name.
        message: MessageName,
        /// What it is matched by. Its source is its sender.
        envelope: Envelope,
        /// Which of its sender's messages it is: counted from 0 without gaps, over all paths.
        sent: u32,
        /// The device or other way it came, for [`acceptance_order`](super::Options::acceptance_order).
        path: u8,
    },
    /// The device matched it when it accepted it. To stand right behind the acceptance.
    MatchedByDevice {
        /// The message.
        message: MessageName,
        /// Its receive.
        receive: ReceiveName,
    },
    /// The engine decided where it goes: its arrival ends. A post or peek that finds an undecided message decides it.
    Decided {
        /// The message.
        message: MessageName,
        /// Its receive, or none: it is unexpected.
        receive: Option<ReceiveName>,
    },
    /// A cancel begins. Another one of the same receive joins it, and has no answer of its own.
    CancelCalled {
        /// Of which receive.
        receive: ReceiveName,
    },
    /// A cancel ends.
    CancelAnswered {
        /// Of which receive.
        receive: ReceiveName,
        /// It is gone and will not be completed; else it was completed, or will be.
        cancelled: bool,
    },
    /// A multi-receive left the list; a point. To stand right behind the match that filled it.
    Released {
        /// Which.
        receive: ReceiveName,
    },
    /// A peer is lost: what it sent and no receive took may vanish.
    PeerLost {
        /// Which.
        peer: PeerId,
    },
    /// An undecided message of a lost peer will never be decided; or it was unexpected, and leaves the list: a point.
    Vanished {
        /// Which.
        message: MessageName,
    },
    /// A peer is in a group from now on. It must have no undecided messages. What waits on either list is matched
    /// by later posts and arrivals only.
    GroupJoined {
        /// Which peer.
        peer: PeerId,
        /// Which group.
        group: GroupId,
    },
}

struct Pat(Pattern);

impl fmt::Display for Pat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tag={:x} ignore={:x} src=", self.0.tag.0, self.0.ignore.0)?;
        match self.0.source {
            Source::Any => f.write_str("any"),
            Source::Peer(peer) => write!(f, "{}", peer.0),
            Source::Group(group) => write!(f, "group:{}", group.0),
        }
    }
}

impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Post { receive, pattern, stay, took } => {
                write!(f, "post {receive} {}", Pat(pattern))?;
                if stay == Stay::Posted {
                    f.write_str(" stay")?;
                }
                took.map_or(Ok(()), |message| write!(f, " took {message}"))
            }
            Self::Peek { pattern, found, claim } => {
                write!(f, "peek {}", Pat(pattern))?;
                if claim {
                    f.write_str(" claim")?;
                }
                match found {
                    Some(message) => write!(f, " found {message}"),
                    None => f.write_str(" none"),
                }
            }
            Self::Accepted { message, envelope, sent, path } => write!(
                f,
                "accept {message} src={} sent={sent} tag={:x} path={path}",
                envelope.source.0, envelope.tag.0
            ),
            Self::MatchedByDevice { message, receive } => write!(f, "device {message} {receive}"),
            Self::Decided { message, receive: Some(receive) } => write!(f, "decide {message} {receive}"),
            Self::Decided { message, receive: None } => write!(f, "decide {message} unexpected"),
            Self::CancelCalled { receive } => write!(f, "cancel {receive}"),
            Self::CancelAnswered { receive, cancelled: true } => write!(f, "cancelled {receive}"),
            Self::CancelAnswered { receive, cancelled: false } => write!(f, "late {receive}"),
            Self::Released { receive } => write!(f, "release {receive}"),
            Self::PeerLost { peer } => write!(f, "lost {}", peer.0),
            Self::Vanished { message } => write!(f, "vanish {message}"),
            Self::GroupJoined { peer, group } => write!(f, "join {} group={}", peer.0, group.0),
        }
    }
}

/// The text form of a history, which [`parse`] reads.
#[must_use]
pub fn print(history: &[Observation]) -> String {
    history.iter().map(|observation| format!("{observation}\n")).collect()
}

/// A line that is no observation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: expected {expected}")]
pub struct HistoryError {
    /// Which line, from 1.
    pub line: usize,
    /// What was looked for in it.
    pub expected: &'static str,
}

/// Reads the text form.
///
/// # Errors
/// The first line that cannot be read.
pub fn parse(text: &str) -> Result<Vec<Observation>, HistoryError> {
    let mut history = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let mut words = Words { words };
        let read = words.observation().and_then(|observation| words.end(observation));
        history.push(read.map_err(|expected| HistoryError { line: index + 1, expected })?);
    }
    Ok(history)
}

/// What is left of a line.
struct Words<'a> {
    words: Vec<&'a str>,
}

type Read<T> = Result<T, &'static str>;

impl Words<'_> {
    fn observation(&mut self) -> Read<Observation> {
        Ok(match self.words.remove(0) {
            "post" => {
                let (receive, pattern) = (self.receive()?, self.pattern()?);
                let stay = if self.flag("stay") { Stay::Posted } else { Stay::Once };
                let took = if self.flag("took") { Some(self.message()?) } else { None };
                Observation::Post { receive, pattern, stay, took }
            }
            "peek" => {
                let (pattern, claim) = (self.pattern()?, self.flag("claim"));
                let found = if self.flag("found") {
                    Some(self.message()?)
                } else if self.flag("none") {
                    None
                } else {
                    return Err("\"found\" or \"none\"");
                };
                Observation::Peek { pattern, found, claim }
            }
            "accept" => {
                let message = self.message()?;
                let source = PeerId(self.number("src=", "src=peer")?);
                let sent = self.number("sent=", "sent=number")?;
                let envelope = Envelope { tag: Tag(self.hex("tag=", "tag=hex")?), source };
                let path = self.number("path=", "path=number")?;
                Observation::Accepted { message, envelope, sent, path }
            }
            "device" => Observation::MatchedByDevice { message: self.message()?, receive: self.receive()? },
            "decide" => {
                let message = self.message()?;
                let receive = if self.flag("unexpected") { None } else { Some(self.receive()?) };
                Observation::Decided { message, receive }
            }
            "cancel" => Observation::CancelCalled { receive: self.receive()? },
            "cancelled" => Observation::CancelAnswered { receive: self.receive()?, cancelled: true },
            "late" => Observation::CancelAnswered { receive: self.receive()?, cancelled: false },
            "release" => Observation::Released { receive: self.receive()? },
            "lost" => Observation::PeerLost { peer: PeerId(self.number("", "a peer")?) },
            "vanish" => Observation::Vanished { message: self.message()? },
            "join" => Observation::GroupJoined {
                peer: PeerId(self.number("", "a peer")?),
                group: GroupId(self.number("group=", "group=number")?),
            },
            _ => return Err("an observation"),
        })
    }

    fn end(&self, observation: Observation) -> Read<Observation> {
        if self.words.is_empty() { Ok(observation) } else { Err("the end of the line") }
    }

    fn flag(&mut self, word: &str) -> bool {
        let here = self.words.first() == Some(&word);
        if here {
            self.words.remove(0);
        }
        here
    }

    fn value(&mut self, prefix: &str, expected: &'static str) -> Read<&str> {
        if self.words.is_empty() {
            return Err(expected);
        }
        self.words.remove(0).strip_prefix(prefix).ok_or(expected)
    }

    fn number<T: std::str::FromStr>(&mut self, prefix: &str, expected: &'static str) -> Read<T> {
        self.value(prefix, expected)?.parse().map_err(|_| expected)
    }

    fn hex(&mut self, prefix: &str, expected: &'static str) -> Read<u64> {
        u64::from_str_radix(self.value(prefix, expected)?, 16).map_err(|_| expected)
    }

    fn receive(&mut self) -> Read<ReceiveName> {
        self.number("r", "a receive (r0)").map(ReceiveName)
    }

    fn message(&mut self) -> Read<MessageName> {
        self.number("m", "a message (m0)").map(MessageName)
    }

    fn pattern(&mut self) -> Read<Pattern> {
        let tag = Tag(self.hex("tag=", "tag=hex")?);
        let ignore = Ignore(self.hex("ignore=", "ignore=hex")?);
        let expected = "src=any, src=peer or src=group:number";
        let source = match self.value("src=", expected)? {
            "any" => Source::Any,
            other => match other.strip_prefix("group:") {
                Some(group) => Source::Group(GroupId(group.parse().map_err(|_| expected)?)),
                None => Source::Peer(PeerId(other.parse().map_err(|_| expected)?)),
            },
        };
        Ok(Pattern { tag, ignore, source })
    }
}
