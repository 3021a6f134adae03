//! An engine over cards (the real libmlx5 on simulated HCAs), moved on by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use tagmatch::device::Device;
use tagmatch::engine::{CancelOutcome, Config, End, Engine, Kind, Posting, Receive, Received};
use tagmatch::ids::{DeviceId, PeerId, ReceiveId, Tag};
use tagmatch::matching::Pattern;
use tagmatch_sim::driver::{Bench, Card};
use tagmatch_sim::hca::Counts;
use tagmatch_sim::world::scope::{Message, Path, Scope};
use tagmatch_sim::world::{Machine, Places, StepKind};

/// The path that matches, by convention the first one.
pub(crate) const NIC: usize = 0;
/// The path that does not, by convention the second one.
pub(crate) const PLAIN: usize = 1;
pub(crate) const PEER: u32 = 1;

pub(crate) struct Desk {
    pub(crate) engine: Engine,
    // Before the bench.
    pub(crate) cards: Vec<Card>,
    pub(crate) bench: Bench,
    places: Places,
    ids: BTreeMap<u32, ReceiveId>,
    ends: BTreeMap<u32, Vec<End>>,
    sent: BTreeMap<u32, Message>,
}

impl Desk {
    /// With messages of peer 1 to come through the first path and of peer 2 through the second, if there is one.
    pub(crate) fn new(paths: &[Path]) -> Self {
        Self::with(paths, Config::default())
    }

    /// With an engine set up so, and cards whose counters start where its own do.
    pub(crate) fn with(paths: &[Path], config: Config) -> Self {
        let mut scope = Scope::new("by hand");
        scope.paths = paths.to_vec();
        scope.counters_start = config.counters_start;
        for path in 0..u8::try_from(paths.len()).unwrap() {
            // Room for what is read from the sender.
            let message = Message { length: 1 << 16, ..Message::eager(peer(path.into()).0, 0, path) };
            scope.messages.push(message.rendezvous(1 << 16));
        }
        let bench = Bench::new(paths.len(), 128).unwrap();
        let cards = bench.cards(&Arc::new(scope)).unwrap();
        let places = bench.memory().places();
        let mut engine = Engine::new(config);
        for (card, path) in cards.iter().zip(paths) {
            let capabilities = card.capabilities();
            let id = engine.add_device(capabilities).unwrap();
            for bounce in 0..path.bounces {
                let buffer = places.bounce(id, bounce, capabilities.eager_limit);
                assert!(engine.add_bounce_buffer(id, buffer));
            }
        }
        let (ids, ends, sent) = Default::default();
        let mut desk = Self { engine, cards, bench, places, ids, ends, sent };
        desk.submit();
        desk
    }

    /// Post this receive; its buffer is that of its number.
    pub(crate) fn post(&mut self, receive: u32, pattern: Pattern, length: u64) {
        self.post_into(receive, pattern, receive, length);
    }

    /// Post this receive into the buffer of that number.
    pub(crate) fn post_into(&mut self, receive: u32, pattern: Pattern, buffer: u32, length: u64) {
        let buffer = self.places.buffer(buffer, length);
        let posted = Receive { pattern, buffer, context: receive.into(), kind: Kind::Once };
        self.ends.remove(&receive);
        if let Posting::Queued(id) = self.engine.post(&posted) {
            self.ids.insert(receive, id);
        }
    }

    pub(crate) fn cancel(&mut self, receive: u32) -> CancelOutcome {
        self.engine.cancel(self.ids[&receive])
    }

    /// Send the message of this number.
    pub(crate) fn send(&mut self, number: u32, path: usize, tag: u64, length: u64) {
        let message = Message::eager(peer(path).0, tag, u8::try_from(path).unwrap());
        self.send_as(number, Message { length, ..message });
    }

    pub(crate) fn send_as(&mut self, number: u32, message: Message) {
        self.sent.insert(number, message);
        self.cards[usize::from(message.path)].send(number, &message).unwrap();
    }

    /// Commands down.
    pub(crate) fn submit(&mut self) {
        for (at, card) in self.cards.iter_mut().enumerate() {
            let id = DeviceId(u8::try_from(at).unwrap());
            let commands = self.engine.poll_commands(id);
            let count = commands.len();
            assert_eq!(card.submit(commands), Ok(count), "everything is counted");
            self.engine.handle_submitted(id, count);
        }
    }

    /// Events up; how many.
    pub(crate) fn poll(&mut self) -> usize {
        let mut told = 0;
        for card in &mut self.cards {
            told += card.poll(1000, &mut self.engine).unwrap();
        }
        while let Some(completion) = self.engine.poll_completion() {
            let receive = u32::try_from(completion.context).unwrap();
            self.ends.entry(receive).or_default().push(completion.end);
        }
        assert_eq!(self.engine.poll_fault(), None);
        told
    }

    /// Everything happens.
    pub(crate) fn run(&mut self) {
        loop {
            self.submit();
            let steps: usize = self.cards.iter_mut().map(Card::run).sum();
            if steps + self.poll() == 0 {
                return;
            }
        }
    }

    /// The senders' next message through this path is accepted, at its first packet, and nothing else of matching
    /// happens.
    pub(crate) fn accept(&mut self, path: usize) {
        let card = &mut self.cards[path];
        for _ in 0..1000 {
            let steps = card.steps();
            let accept = steps.iter().find(|step| card.kind(**step) == StepKind::Accept);
            if let Some(&accept) = accept {
                card.step(accept);
                return;
            }
            let other = steps.iter().find(|step| card.kind(**step) == StepKind::Data);
            card.step(*other.expect("a message is on its way"));
        }
        panic!("no message comes");
    }

    /// One list operation is executed.
    pub(crate) fn command(&mut self, path: usize) {
        let card = &mut self.cards[path];
        let steps = card.steps();
        let command = steps.iter().find(|step| card.kind(**step) == StepKind::Command);
        card.step(*command.expect("a command is posted"));
    }

    /// How the receive ended, once.
    pub(crate) fn end(&self, receive: u32) -> End {
        let ends = self.ends.get(&receive).map_or(&[][..], |ends| &ends[..]);
        assert_eq!(ends.len(), 1, "receive {receive}: {ends:?}");
        ends[0]
    }

    pub(crate) fn is_open(&self, receive: u32) -> bool {
        self.ends.get(&receive).is_none_or(Vec::is_empty)
    }

    /// The message in the receive, its bytes compared.
    pub(crate) fn received(&self, receive: u32) -> Received {
        let End::Received(received) = self.end(receive) else { panic!("{:?}", self.end(receive)) };
        received
    }

    /// The receive, of so many bytes, holds this message and nothing behind its end.
    pub(crate) fn assert_holds(&self, receive: u32, length: u64, number: u32) -> Received {
        let received = self.received(receive);
        let sent = self.sent[&number];
        assert_eq!((received.app_ctx, received.length), (number, sent.length), "receive {receive}");
        assert_eq!((received.tag, received.placed), (sent.tag, sent.length.min(length)));
        let card = &self.cards[usize::from(sent.path)];
        assert_eq!(
            card.check_data(number, sent.length, received.address, length),
            Ok(()),
            "receive {receive}"
        );
        received
    }

    /// Entries in the NIC's list, as the engine, and as the device says.
    pub(crate) fn listed(&self) -> usize {
        let listed = self.cards[NIC].listed().map_or(0, |entries| entries.len());
        assert_eq!(listed, self.engine.listed(DeviceId(0)).len());
        listed
    }

    pub(crate) fn hardware_phase(&self) -> u16 {
        let number = self.cards[NIC].receiver().tag_matching().unwrap().number().unwrap();
        self.bench.hca(NIC).unwrap().with(|hca| hca.matching_list(number).unwrap().hardware_phase())
    }

    /// The NIC matches the next message.
    pub(crate) fn expect_match(&mut self, receive: u32, number: u32) {
        self.post(receive, exact(7), LONG);
        self.run();
        self.send(number, NIC, 7, 40);
        self.run();
        let received = self.assert_holds(receive, LONG, number);
        assert_eq!(received.matched_by, Some(DeviceId(0)), "message {number} was not matched by the NIC");
    }

    /// Everything comes to its end and is given back, and so are the devices.
    pub(crate) fn close(mut self) {
        self.run();
        for card in &self.cards {
            assert_eq!(card.check_quiet(), Ok(()));
        }
        self.listed();
        self.cards.clear();
        assert!(self.bench.objects().iter().all(|objects| *objects == Counts::default()));
    }
}

/// The peer whose messages come through a path.
pub(crate) fn peer(path: usize) -> PeerId {
    PeerId(PEER + u32::try_from(path).unwrap())
}

pub(crate) fn exact(tag: u64) -> Pattern {
    tagmatch_sim::world::scope::any(tag, 0)
}

pub(crate) fn eager(path: usize, tag: u64, length: u64) -> Message {
    Message { length, tag: Tag(tag), ..Message::eager(peer(path).0, tag, u8::try_from(path).unwrap()) }
}

/// The longest eager message.
pub(crate) const LONG: u64 = tagmatch_sim::driver::EAGER_LIMIT;
