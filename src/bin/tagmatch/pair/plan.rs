//! What two halves say to each other: who is measured, and one piece of work after the other.
//!
//! All of it comes from another process, with `--listen` from any that reaches it, so that it is checked before it is
//! used. Not here: how it is carried (`control`), and how work is done (`work`).

use serde::{Deserialize, Serialize};

/// What a message has in the upper half of its tag, as an MPI has a communicator there.
pub(super) const DATA: u64 = 1 << 48;
/// The same of what waits in lists and fits no message that is measured.
pub(super) const AHEAD: u64 = 2 << 48;
/// The same of what shows that all before it has come.
pub(super) const FENCE: u64 = 3 << 48;
/// The bits that an "any tag" receive does not look at.
pub(super) const ANY_TAG: u64 = (1 << 32) - 1;

/// Over what this project's own messages go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Over {
    /// Memory that both processes share.
    #[default]
    Shm,
    /// TCP.
    Tcp,
    /// A verbs device; with `--through libfabric` alone.
    Verbs,
}

/// By which way this project's own messages are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Through {
    /// The endpoint of the library.
    #[default]
    Endpoint,
    /// The provider's file, loaded by the installed libfabric.
    Libfabric,
}

/// Who is measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Contender {
    /// This project.
    Own(Through, Over),
    /// A provider of libfabric by its name.
    Provider(String),
    /// UCX, over what fits the medium that is measured.
    Ucx(Over),
}

impl Contender {
    /// As a column is headed.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Own(..) => "tagmatch",
            Self::Provider(name) => name,
            Self::Ucx(_) => "ucx",
        }
    }
}

/// What waits in the lists of both sides while messages pass by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum List {
    /// Receives of one source and one tag.
    Specific,
    /// Receives of one tag and any source.
    AnySource,
    /// Receives of one source and any tag, in another communicator.
    AnyTag,
    /// Messages that nobody takes.
    Unexpected,
}

impl List {
    /// In words.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Specific => "receives",
            Self::AnySource => "receives, any source",
            Self::AnyTag => "receives, any tag",
            Self::Unexpected => "messages, unexpected",
        }
    }
}

/// A list, and how many are in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Ahead {
    pub(super) list: List,
    pub(super) depth: usize,
}

/// What is measured in one loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pattern {
    /// One message there, one back.
    PingPong,
    /// So many there, then a word back.
    Windows { window: usize },
}

/// A loop of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Loop {
    pub(super) pattern: Pattern,
    pub(super) bytes: usize,
    /// Turns that are counted: round trips, or windows.
    pub(super) count: usize,
    /// Turns before these.
    pub(super) warm: usize,
    /// Compare what arrives.
    pub(super) is_checked: bool,
}

/// Something that both halves do at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Work {
    /// Fill the lists.
    Fill(Ahead),
    /// Let all that is in them be matched.
    Drain(Ahead),
    /// Let messages pass.
    Loop(Loop),
}

/// How everything is set up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) contenders: Vec<Contender>,
    pub(super) bytes_max: usize,
    pub(super) depth_max: usize,
    pub(super) window: usize,
    /// The processor for the follower; none: as it is.
    pub(super) cpu: Option<usize>,
}

impl Setup {
    /// Whether it can be done. What another machine sends is not believed.
    pub(super) fn check(&self) -> Result<(), String> {
        let limits = [
            ("bytes", self.bytes_max, 0..=BYTES_MAX),
            ("depth", self.depth_max, 0..=DEPTH_MAX),
            ("window", self.window, 1..=WINDOW_MAX),
            ("contenders", self.contenders.len(), 1..=CONTENDERS_MAX),
        ];
        for (name, value, range) in limits {
            if !range.contains(&value) {
                return Err(format!("{name}: {value} is not in {}..={}", range.start(), range.end()));
            }
        }
        Ok(())
    }

    /// Whether a piece of work fits this set-up.
    pub(super) fn check_work(&self, work: &Work) -> Result<(), String> {
        let is_possible = match work {
            Work::Fill(ahead) | Work::Drain(ahead) => ahead.depth <= self.depth_max,
            Work::Loop(l) => {
                let window = match l.pattern {
                    Pattern::PingPong => 1,
                    Pattern::Windows { window } => window,
                };
                l.bytes <= self.bytes_max && (1..=self.window).contains(&window) && l.count > 0
            }
        };
        if is_possible { Ok(()) } else { Err(format!("{work:?} does not fit {self:?}")) }
    }
}

/// One line between the halves.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The leader's first: who it is, and what comes.
    Greeting { speaks: String, setup: Setup },
    /// Open an endpoint.
    Open { contender: usize },
    /// The answer: its name, and in words what it is.
    Opened { name: Vec<u8>, what: String },
    /// The name of the other half's.
    Meet { contender: usize, name: Vec<u8> },
    /// Do this with it.
    Work { contender: usize, work: Work },
    /// What was asked for is done.
    Done,
    /// It cannot be done; this half ends.
    Failed { why: String },
    /// All is done.
    End,
}

/// What both halves must say.
pub(super) fn speaks() -> String {
    format!("tagmatch pair 1 of {} {}", env!("CARGO_PKG_VERSION"), env!("TAGMATCH_COMMIT"))
}

/// The longest message.
pub(super) const BYTES_MAX: usize = 64 << 20;
/// The longest list.
pub(super) const DEPTH_MAX: usize = 1 << 20;
/// The widest window.
pub(super) const WINDOW_MAX: usize = 4096;
/// Who is measured beside each other at most.
pub(super) const CONTENDERS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> Setup {
        let contenders = vec![Contender::Own(Through::Endpoint, Over::Tcp)];
        Setup { contenders, bytes_max: 64, depth_max: 8, window: 4, cpu: None }
    }

    #[test]
    fn lines_come_out_as_they_went_in() {
        let work = Work::Loop(Loop {
            pattern: Pattern::Windows { window: 4 },
            bytes: 8,
            count: 2,
            warm: 1,
            is_checked: true,
        });
        let lines = [
            Line::Greeting { speaks: speaks(), setup: setup() },
            Line::Opened { name: vec![0, 255], what: "a".into() },
            Line::Work { contender: 0, work },
            Line::End,
        ];
        for line in lines {
            let text = serde_json::to_string(&line).unwrap();
            assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
        }
    }

    #[test]
    fn what_is_beyond_limits_is_refused() {
        assert_eq!(setup().check(), Ok(()));
        let wrong = Setup { depth_max: DEPTH_MAX + 1, ..setup() };
        assert_eq!(wrong.check(), Err("depth: 1048577 is not in 0..=1048576".into()));
        assert!(Setup { contenders: Vec::new(), ..setup() }.check().is_err());
        let ahead = |depth| Work::Fill(Ahead { list: List::AnyTag, depth });
        assert_eq!(setup().check_work(&ahead(8)), Ok(()));
        assert!(setup().check_work(&ahead(9)).is_err());
        let passing = |bytes, window, count| {
            let pattern = Pattern::Windows { window };
            Work::Loop(Loop { pattern, bytes, count, warm: 0, is_checked: false })
        };
        assert_eq!(setup().check_work(&passing(64, 4, 1)), Ok(()));
        for wrong in [passing(65, 4, 1), passing(8, 5, 1), passing(8, 0, 1), passing(8, 1, 0)] {
            assert!(setup().check_work(&wrong).is_err(), "{wrong:?}");
        }
    }
}
