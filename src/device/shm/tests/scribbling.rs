//! A peer whose memory somebody writes into at random while messages go both ways: heads, tails, bytes, offers. Nothing is
//! written but into the buffers of its own messages, its link ends at worst, and others are served all the while.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use super::raw::{RING, eager, message};
use crate::device::Device as _;
use crate::device::shm::region::{Area, Region, WORDS};
use crate::device::shm::ring::Rings;
use crate::device::shm::stream::Hello;
use crate::device::shm::{ShmTransport, abstract_name, socket};
use crate::device::tests::{Memory, Random, framed, shared_memory};
use crate::device::transport::{CloseReason, Ear, Notice, Reaction, Transport};
use crate::ids::{DeviceId, LinkId, PeerId, Tag, TransferId};
use crate::seam::{Answer, Buffer, Event, EventSink};
use crate::wire::{AppContext, OperationId, RemoteMemory, Rendezvous, SendFlags};

const SCRIBBLER: PeerId = PeerId(3);
const HONEST: PeerId = PeerId(4);
const ROOM: usize = 64;
const GUARD: usize = 64;

/// What the victim hears: messages of the scribbler go into a buffer with bytes behind it that nobody may touch, those of
/// the honest peer come in order.
struct Hearing {
    place: Memory,
    binds: Option<PeerId>,
    incoming: Option<LinkId>,
    closed: Option<CloseReason>,
    honest: u64,
    transfers: u32,
}

impl EventSink for Hearing {
    fn handle_event(&mut self, _device: DeviceId, event: &Event) -> Answer {
        let Event::Arrived(arrival) = event else { return Answer::Hold };
        if arrival.source == HONEST {
            assert_eq!((arrival.header.tag, arrival.header.length), (Tag(self.honest), 5));
            self.honest += 1;
            return Answer::Discard;
        }
        self.transfers += 1;
        let transfer = TransferId { index: self.transfers, generation: 0 };
        let buffer = Buffer { length: ROOM as u64, ..self.place.buffer() };
        Answer::Accept { buffer, transfer: Some(transfer).filter(|_| !arrival.in_hand) }
    }
}

impl Ear for Hearing {
    fn handle_untagged_event(&mut self, device: DeviceId, event: &Event) -> Answer {
        self.handle_event(device, event)
    }

    fn handle_control(&mut self, _device: DeviceId, _link: LinkId, _message: &[u8]) -> Reaction {
        self.binds.take().map_or(Reaction::Continue, Reaction::Bind)
    }

    fn handle_notice(&mut self, _device: DeviceId, notice: Notice) {
        match notice {
            Notice::Incoming { link } => self.incoming = Some(link),
            Notice::Closed { reason, .. } => self.closed = Some(reason),
            Notice::Open { .. } | Notice::Sent { .. } => {}
        }
    }
}

/// The victim and an honest peer of it.
struct World {
    victim: ShmTransport,
    hearing: Hearing,
    honest: ShmTransport,
    honest_link: LinkId,
    said: u64,
}

impl World {
    fn new() -> Self {
        let (victim, mut honest) = (shared_memory(), shared_memory());
        let place = Memory::zeros(ROOM + GUARD);
        let hearing = Hearing { place, binds: None, incoming: None, closed: None, honest: 0, transfers: 0 };
        let honest_link = honest.open(victim.name()).expect("it listens");
        let mut world = Self { victim, hearing, honest, honest_link, said: 0 };
        let link = world.accepted();
        world.victim.bind(link, HONEST).expect("it is not bound");
        world.honest.bind(honest_link, PeerId(9)).expect("it is not bound");
        world
    }

    fn accepted(&mut self) -> LinkId {
        self.hearing.incoming = None;
        loop {
            self.victim.progress(50, &mut self.hearing).expect("it works");
            if let Some(link) = self.hearing.incoming {
                return link;
            }
        }
    }

    /// The honest peer says one thing more, and it is heard.
    fn step(&mut self) {
        let header = super::raw::header(u8::try_from(self.said % 256).expect("it is small"));
        let mut whole = header;
        whole[8..].copy_from_slice(&self.said.to_be_bytes());
        let mut ear = crate::device::tests::Recorder::default();
        let _ = self.honest.send(self.honest_link, &message(&whole, b"hello")).expect("there is a link");
        self.said += 1;
        while self.hearing.honest < self.said {
            self.honest.progress(50, &mut ear).expect("it works");
            self.victim.flush().expect("it works");
            self.victim.progress(50, &mut self.hearing).expect("it works");
        }
        let behind = &self.hearing.place.bytes()[ROOM..];
        assert!(behind.iter().all(|byte| *byte == 0), "written past a buffer");
    }
}

/// Something that an honest peer might say.
fn frame(random: &mut Random) -> Vec<u8> {
    if random.below(3) > 0 {
        return eager(1, &vec![1; random.below(300)]);
    }
    // A request to read what may be offered or not.
    let context = AppContext { operation: OperationId::new(5).expect("it is small"), flags: SendFlags::NONE };
    let length = random.below(200_000) as u64;
    let memory =
        RemoteMemory { address: 0, key: 1 + u32::try_from(random.below(130)).expect("it is small"), length };
    let mut bytes = [0; 64];
    let length = Rendezvous { context, tag: Tag(1), memory }.encode(&mut bytes).expect("it is good");
    framed(&bytes[..length])
}

fn any(random: &mut Random) -> u64 {
    let high = random.below(1 << 32) as u64;
    [0, 1, 1 + random.below(1000) as u64, RING as u64 + 1, u64::MAX, high << 32 | high][random.below(6)]
}

/// Write whatever, wherever, until it is over.
fn scribble(region: &Region, random: &mut Random, is_over: &AtomicBool) {
    while !is_over.load(SeqCst) {
        match random.below(40) {
            // What both sides count.
            0 => region.word([0, 1, 16, 32, 33, 48][random.below(6)]).store(any(random), SeqCst),
            1..20 => region.word(64 + random.below(WORDS - 64)).store(any(random), SeqCst),
            _ => {
                let bytes = any(random).to_ne_bytes();
                let area = [Area::First, Area::Second][random.below(2)];
                region.put(area, random.below(RING) as u64, &bytes[..random.below(9)]);
            }
        }
        thread::yield_now();
    }
}

/// One link, until it ends.
fn attack(world: &mut World, seed: u64) {
    let stream = socket::connect(&abstract_name(world.victim.name())).expect("it listens");
    let (region, file) = Region::create(RING).expect("there is memory");
    socket::pass(&stream, &Hello { ring_bytes: RING }.to_bytes(), &file).expect("there is room");
    let link = world.accepted();
    world.victim.bind(link, SCRIBBLER).expect("it is not bound");
    world.hearing.closed = None;
    let other = Region::open(&file, RING).expect("it is what was made");
    let again = Region::open(&file, RING).expect("it is what was made");
    let (mut rings, mut random) = (Rings::new(region, true), Random(seed));
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(move || scribble(&other, &mut Random(seed + 1000), is_over));
        let source = Memory::new(vec![5; 300]);
        for _ in 0..200 {
            if world.hearing.closed.is_some() {
                break;
            }
            // It has lost count itself, perhaps.
            let _ = rings.write(&frame(&mut random));
            let _ = rings.read(&mut [0; 4096]);
            let header = super::raw::header(2);
            let _ = world.victim.send(link, &message(&header, &[2; 200]));
            if let Ok(remote) = world.victim.expose(link, source.buffer()) {
                world.step();
                world.victim.withdraw(&remote);
            }
            world.step();
        }
        is_over.store(true, SeqCst);
    });
    // If it has not ended yet, this is what ends it.
    again.word(0).store(u64::MAX, SeqCst);
    while world.hearing.closed.is_none() {
        world.step();
    }
}

#[test]
fn whoever_scribbles_over_what_is_shared_ends_its_own_link_at_worst() {
    let mut world = World::new();
    for seed in 0..100 {
        attack(&mut world, seed);
    }
    assert_eq!(world.victim.link_count(), 1, "the honest peer's");
    assert!(world.hearing.transfers > 0, "some messages of theirs came");
}
