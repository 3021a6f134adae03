//! A network in one process, by seed: delays, messages whose payload comes later than their header, queues that are
//! full, connections that cross, are refused, cut or half dead; with memory of its own, so that nothing here follows
//! an address.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::device::transport::{CloseReason, Ear};
use crate::ids::{DeviceId, LinkId};
use crate::seam::{Buffer, DeviceError, Event, Remote};

/// Numbers by seed (splitmix64).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// How the network behaves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weather {
    /// The longest delay of a message, in ms.
    pub(super) delay: u64,
    /// Percent of messages whose payload comes after their header.
    pub(super) split: u64,
    /// Percent of sends that find no room.
    pub(super) full: u64,
    /// Percent of sends from memory that are done later.
    pub(super) posted: u64,
    /// Nobody takes what was sent before a link was closed: such links do not end by themselves.
    pub(super) holds: bool,
}

/// Something on its way to one end of a connection.
#[derive(Clone, Debug)]
pub(super) enum Wire {
    Opened,
    Incoming,
    Message { header: Vec<u8>, payload: Vec<u8>, immediate: Option<u32> },
    Read { token: u64, remote: Remote },
    Answer { token: u64, bytes: Option<Vec<u8>> },
    Closed(CloseReason),
}

#[derive(Debug, Default)]
pub(super) struct Connection {
    /// The nodes at both ends; none: it is gone without a word.
    pub(super) ends: [Option<(usize, LinkId)>; 2],
    pub(super) queues: [VecDeque<(u64, Wire)>; 2],
}

/// All of it.
#[derive(Debug)]
pub(super) struct World {
    pub(super) now: u64,
    pub(super) random: Random,
    pub(super) weather: Weather,
    /// Who listens, by name.
    pub(super) listening: HashMap<Vec<u8>, usize>,
    /// Names at which nothing answers, not even with a refusal.
    pub(super) silent: HashSet<Vec<u8>>,
    pub(super) connections: Vec<Connection>,
    pub(super) memory: Vec<u8>,
    pub(super) nodes: usize,
    /// Connections that were made.
    pub(super) opened: usize,
    /// Nodes whose transport fails next.
    pub(super) faults: HashMap<usize, Fault>,
    /// Where memory begins that cannot be sent from.
    pub(super) unreadable: HashSet<u64>,
    /// Percent of memory that cannot be registered for others to read.
    pub(super) unexposed: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(super) fn new(seed: u64, weather: Weather) -> Self {
        Self(Arc::new(Mutex::new(World {
            now: 0,
            random: Random::new(seed),
            weather,
            listening: HashMap::new(),
            silent: HashSet::new(),
            connections: Vec::new(),
            memory: vec![0; 64],
            nodes: 0,
            opened: 0,
            faults: HashMap::new(),
            unreadable: HashSet::new(),
            unexposed: 0,
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory that holds these bytes.
    pub(super) fn allocate(&self, bytes: &[u8]) -> Buffer {
        let mut world = self.lock();
        let address = world.memory.len() as u64;
        world.memory.extend_from_slice(bytes);
        Buffer::new(address, bytes.len() as u64)
    }

    pub(super) fn read(&self, address: u64, length: u64) -> Vec<u8> {
        self.lock().read(address, length)
    }
}

impl World {
    pub(super) fn read(&self, address: u64, length: u64) -> Vec<u8> {
        let (from, length) = (usize::try_from(address).unwrap(), usize::try_from(length).unwrap());
        self.memory[from..from + length].to_vec()
    }

    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) {
        let from = usize::try_from(address).unwrap();
        self.memory[from..from + bytes.len()].copy_from_slice(bytes);
    }

    /// Put something on its way to an end.
    pub(super) fn push(&mut self, connection: usize, end: usize, wire: Wire) {
        let delay = self.random.below(self.weather.delay + 1);
        let before = self.connections[connection].queues[end].back().map_or(0, |(due, _)| *due);
        let due = before.max(self.now + delay);
        let other = &mut self.connections[connection];
        if other.ends[end].is_some() {
            other.queues[end].push_back((due, wire));
        }
    }

    /// A connection is cut: something of what was on its way is lost.
    pub(super) fn cut(&mut self, connection: usize) {
        for end in 0..2 {
            let length = self.connections[connection].queues[end].len() as u64;
            let kept = self.random.below(length + 1);
            self.connections[connection].queues[end].truncate(usize::try_from(kept).unwrap());
            self.push(connection, end, Wire::Closed(CloseReason::System { errno: 104 }));
        }
    }

    /// A node dies. Told at once by its operating system, or, with the machine, not at all.
    pub(super) fn kill(&mut self, node: usize, told: bool) {
        self.listening.retain(|_, listener| *listener != node);
        for connection in 0..self.connections.len() {
            for end in 0..2 {
                if self.connections[connection].ends[end].is_some_and(|(at, _)| at == node) {
                    self.connections[connection].ends[end] = None;
                    self.connections[connection].queues[end].clear();
                    if told {
                        let reason = CloseReason::System { errno: 104 };
                        self.push(connection, 1 - end, Wire::Closed(reason));
                    }
                }
            }
        }
    }
}

/// How a transport fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// A call says so, once.
    Error,
    /// An event does.
    Event,
    /// It says what is not so, of messages with a tag or without.
    Says(bool, Event),
}

impl Fault {
    /// In a turn of the transport's.
    pub(super) fn strike(self, ear: &mut dyn Ear, device: DeviceId) -> Result<usize, DeviceError> {
        let (tagged, event) = match self {
            Self::Error => return Err(DeviceError::Removed),
            Self::Event => (true, Event::DeviceFailed(DeviceError::Removed)),
            Self::Says(tagged, event) => (tagged, event),
        };
        super::placing::tell(ear, device, tagged, &event);
        Ok(1)
    }
}
