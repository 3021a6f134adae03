//! What happens in a world, apart from when: devices, messages, receives, and what the user does with them.
//!
//! Not here: schedules.

use tagmatch::device::soft::Switches;
use tagmatch::ids::{Ignore, PeerId, Source, Tag};
use tagmatch::matching::{Envelope, Pattern};
use tagmatch::offload::Rules;

/// A program: everything but the schedule.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// What it is called in reports.
    pub name: String,
    /// The devices, by number.
    pub paths: Vec<Path>,
    /// The messages, by number. Those of one sender are sent in this order.
    pub messages: Vec<Message>,
    /// The receives, by number.
    pub receives: Vec<Receive>,
    /// What the user does: each of these lists in its order, and any order between them.
    pub threads: Vec<Vec<Op>>,
    /// Bits of a tag that name the sender, as a promise to the engine; senders are named by their messages' tags.
    pub layout: Option<u64>,
    /// The engine is told which device each sender's messages come through.
    pub paths_known: bool,
    /// Where all counters of unexpected messages start.
    pub counters_start: u16,
    /// The offload rules in force.
    pub rules: Rules,
    /// So many ADDs in a row may ask for no completion ([`tagmatch::engine::Config`]).
    pub silent_adds_max: u8,
    /// How many receives from anybody that other paths served keep more of them in software; 0: none do
    /// ([`tagmatch::engine::Config`]).
    pub kept_from: u8,
    /// Commands are submitted when the schedule says so, and not at once: batches form.
    pub batched: bool,
    /// What a device holds in full is written while its receive is posted, and not by a command.
    pub placing: bool,
    /// By receive, its bit: where it can go down while it is posted, the user's hand puts it into the list, and not a
    /// command.
    pub added_by_hand: u64,
    /// Hold the run to the acceptance order across senders as well, every arrival an interval (one TM device).
    pub acceptance_order: bool,
}

/// A device.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Entries of its list; 0: it does not match.
    pub tags: u32,
    /// `max_ops`; the command slots are the next power of two.
    pub operations: u32,
    /// Bounce buffers that the engine gets for it.
    pub bounces: u32,
    /// Whether it reads the data of matched rendezvous itself.
    pub rendezvous: bool,
    /// How it reads the doubtful points of the contract.
    pub switches: Switches,
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Who sends it.
    pub source: PeerId,
    /// Its tag.
    pub tag: Tag,
    /// The device that it comes through.
    pub path: u8,
    /// Packets it comes in, if it is eager.
    pub packets: u32,
    /// Bytes.
    pub length: u64,
    /// Whether it is a rendezvous.
    pub rendezvous: bool,
}

/// A receive.
#[derive(Clone, Copy, Debug)]
pub struct Receive {
    /// What it takes.
    pub pattern: Pattern,
    /// Bytes of its buffer.
    pub length: u64,
    /// A multi-receive: it takes one message behind the other until less than so many bytes are left.
    pub least: Option<u64>,
}

/// One thing that the user, or fate, does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Post this receive.
    Post(u32),
    /// Cancel this receive, once it was posted.
    Cancel(u32),
    /// Look at the unexpected list.
    Peek(Pattern),
    /// Look, and keep what is found under this number.
    Claim(u32, Pattern),
    /// Receive what was kept under this number in this receive; nothing, if nothing was.
    ReceiveClaimed(u32, u32),
    /// Drop what was kept under this number.
    Discard(u32),
    /// Let a device take receives, or no more.
    Switch(u8, bool),
    /// The path to this sender is lost.
    Lose(PeerId),
    /// Once that was told, and the engine lets it, this sender comes back by this path, and sends its messages there.
    Move(PeerId, u8),
    /// This device fails.
    Fail(u8),
}

impl Path {
    /// A device of so many tags, with command slots enough.
    #[must_use]
    pub fn matching(tags: u32) -> Self {
        Self {
            tags,
            operations: (2 * tags + 2).max(8),
            bounces: 0,
            rendezvous: true,
            switches: Switches::default(),
        }
    }

    /// A device that does not match.
    #[must_use]
    pub fn plain() -> Self {
        Self { tags: 0, operations: 0, ..Self::matching(0) }
    }

    /// The same with another number of operations.
    #[must_use]
    pub fn with_operations(self, operations: u32) -> Self {
        Self { operations, ..self }
    }

    /// The same with other readings.
    #[must_use]
    pub fn with_switches(self, switches: Switches) -> Self {
        Self { switches, ..self }
    }
}

impl Message {
    /// An eager message of one packet.
    #[must_use]
    pub const fn eager(source: u32, tag: u64, path: u8) -> Self {
        let (source, tag) = (PeerId(source), Tag(tag));
        Self { source, tag, path, packets: 1, length: 8, rendezvous: false }
    }

    /// An eager message of several packets.
    #[must_use]
    pub const fn packets(self, packets: u32) -> Self {
        Self { packets, ..self }
    }

    /// The same as a rendezvous of so many bytes.
    #[must_use]
    pub const fn rendezvous(self, length: u64) -> Self {
        Self { rendezvous: true, length, ..self }
    }

    /// What it is matched by.
    #[must_use]
    pub const fn envelope(&self) -> Envelope {
        Envelope { tag: self.tag, source: self.source }
    }
}

/// A pattern: from anybody, exactly this tag but for the bits ignored.
#[must_use]
pub const fn any(tag: u64, ignore: u64) -> Pattern {
    Pattern { tag: Tag(tag), ignore: Ignore(ignore), source: Source::Any }
}

/// A pattern: from this peer.
#[must_use]
pub const fn from(peer: u32, tag: u64, ignore: u64) -> Pattern {
    Pattern { tag: Tag(tag), ignore: Ignore(ignore), source: Source::Peer(PeerId(peer)) }
}

impl Scope {
    /// Nothing happens.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            threads: vec![Vec::new()],
            counters_start: 0xfffe,
            silent_adds_max: 1,
            ..Self::default()
        }
    }

    /// One more device.
    #[must_use]
    pub fn path(mut self, path: Path) -> Self {
        self.paths.push(path);
        self
    }

    /// One more message.
    #[must_use]
    pub fn message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    /// One more receive, posted behind those before it.
    #[must_use]
    pub fn post(mut self, pattern: Pattern) -> Self {
        let number = u32::try_from(self.receives.len()).unwrap_or(u32::MAX);
        self.receives.push(Receive { pattern, length: EAGER_LIMIT, least: None });
        self.threads[0].push(Op::Post(number));
        self
    }

    /// The last receive is shorter than what devices take.
    #[must_use]
    pub fn short(mut self) -> Self {
        if let Some(receive) = self.receives.last_mut() {
            receive.length = EAGER_LIMIT / 2;
        }
        self
    }

    /// The last receive is a multi-receive with room for so many messages of 8 bytes.
    #[must_use]
    pub fn multi(mut self, messages: u64) -> Self {
        if let Some(receive) = self.receives.last_mut() {
            (receive.length, receive.least) = (8 * messages, Some(8));
        }
        self
    }

    /// Behind the posts so far, this.
    #[must_use]
    pub fn then(mut self, op: Op) -> Self {
        self.threads[0].push(op);
        self
    }

    /// At any time, this.
    #[must_use]
    pub fn meanwhile(mut self, op: Op) -> Self {
        self.threads.push(vec![op]);
        self
    }

    /// At any time, this is claimed under this number, and then received in a receive of its own.
    #[must_use]
    pub fn claimed(mut self, claim: u32, pattern: Pattern) -> Self {
        let number = u32::try_from(self.receives.len()).unwrap_or(u32::MAX);
        self.receives.push(Receive { pattern, length: EAGER_LIMIT, least: None });
        self.threads.push(vec![Op::Claim(claim, pattern), Op::ReceiveClaimed(claim, number)]);
        self
    }

    /// At any time, this is claimed under this number, and then dropped.
    #[must_use]
    pub fn discarded(mut self, claim: u32, pattern: Pattern) -> Self {
        self.threads.push(vec![Op::Claim(claim, pattern), Op::Discard(claim)]);
        self
    }

    /// At any time, a cancel of this receive.
    #[must_use]
    pub fn cancel(self, receive: u32) -> Self {
        self.meanwhile(Op::Cancel(receive))
    }

    /// At any time, the path to a sender is lost, and then it comes back by another.
    #[must_use]
    pub fn comes_back(mut self, peer: u32, path: u8) -> Self {
        self.threads.push(vec![Op::Lose(PeerId(peer)), Op::Move(PeerId(peer), path)]);
        self
    }

    /// Whether this message is sent only once its sender has come back.
    pub(super) fn is_sent_later(&self, message: &Message) -> bool {
        self.threads.iter().flatten().any(|op| *op == Op::Move(message.source, message.path))
    }

    /// Whether a sender may come back by another path.
    pub(super) fn is_moving(&self) -> bool {
        self.threads.iter().flatten().any(|op| matches!(op, Op::Move(..)))
    }

    /// The engine knows which device each sender uses.
    #[must_use]
    pub fn paths_known(mut self) -> Self {
        self.paths_known = true;
        self
    }

    /// These bits of each tag name its sender.
    #[must_use]
    pub fn layout(mut self, source_bits: u64) -> Self {
        self.layout = Some(source_bits);
        self
    }

    /// Only one TM device: acceptance order counts too.
    #[must_use]
    pub fn in_acceptance_order(mut self) -> Self {
        self.acceptance_order = true;
        self
    }

    /// Whether this receive is put into a list while it is posted, where it can be.
    pub(super) const fn is_added_by_hand(&self, receive: u32) -> bool {
        self.added_by_hand >> (receive % u64::BITS) & 1 == 1
    }

    /// A device fails. Then what it had matched and not told is void: its matches are intervals.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.threads.iter().flatten().any(|op| matches!(op, Op::Fail(_)))
    }

    /// Commands are submitted whenever the schedule says so.
    #[must_use]
    pub fn in_batches(mut self) -> Self {
        self.batched = true;
        self
    }

    /// Receives are put into lists while they are posted.
    #[must_use]
    pub fn by_hand(mut self) -> Self {
        self.name += ", by hand";
        self.added_by_hand = u64::MAX;
        self
    }

    /// The same with ADDs that ask for no completion as long as there are command slots.
    #[must_use]
    pub fn in_silence(mut self) -> Self {
        self.name += ", in silence";
        self.silent_adds_max = u8::MAX;
        for path in self.paths.iter_mut().filter(|path| path.tags > 0) {
            path.operations = 32;
        }
        self
    }

    /// Other rules.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Every device reads the contract so.
    #[must_use]
    pub fn with_switches(mut self, switches: Switches) -> Self {
        for path in &mut self.paths {
            path.switches = switches;
        }
        self
    }
}

/// The longest eager message, in bytes, and the length of receives.
pub const EAGER_LIMIT: u64 = 64;
