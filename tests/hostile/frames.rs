//! Frames by seed: what a good peer says, in any order; what refers to what was heard; what is wrong; and wrong bytes in
//! any of these.

use tagmatch::atomics::{AtomicCall, AtomicOp, AtomicType};
use tagmatch::ids::Tag;
use tagmatch::wire::{
    AppContext, Challenge, Control, Credits, Eager, EndpointName, Fin, Goodbye, Hello, HelloRefused,
    HelloRole, InstanceId, Keepalive, OperationId, Payload, PeerCapabilities, Proof, RefusedHello,
    RefusedRendezvous, RemoteAtomic, RemoteData, RemoteMemory, RemoteRead, RemoteStatus, RemoteStretch,
    RemoteWrite, Rendezvous, Segment, SegmentFirst, SendFlags, Untagged, UntaggedRendezvous,
};

/// Numbers by seed (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed ^ 0xD1CE)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }

    pub(crate) fn chance(&mut self, thousandths: usize) -> bool {
        self.below(1000) < thousandths
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn bits32(&mut self) -> u32 {
        u32::try_from(self.next() >> 32).unwrap()
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.next() >> 56).unwrap()
    }
}

/// What a frame is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Eager,
    Rendezvous,
    Untagged,
    UntaggedRendezvous,
    Begin,
    Continue,
    Fin,
    Notice,
    Credit,
    Keepalive,
    Read,
    ReadAnswer,
    RemoteWrite,
    RemoteRead,
    RemoteAtomic,
    RemoteAnswer,
    Goodbye,
    Greeting,
    StraySegment,
    TooLong,
    Garbage,
    Head,
}

impl Kind {
    pub(crate) const ALL: [Self; 22] = [
        Self::Eager,
        Self::Rendezvous,
        Self::Untagged,
        Self::UntaggedRendezvous,
        Self::Begin,
        Self::Continue,
        Self::Fin,
        Self::Notice,
        Self::Credit,
        Self::Keepalive,
        Self::Read,
        Self::ReadAnswer,
        Self::RemoteWrite,
        Self::RemoteRead,
        Self::RemoteAtomic,
        Self::RemoteAnswer,
        Self::Goodbye,
        Self::Greeting,
        Self::StraySegment,
        Self::TooLong,
        Self::Garbage,
        Self::Head,
    ];

    /// Those that may leave the connection as it is.
    const MILD: usize = 16;

    /// Whether it uses up credit.
    pub(crate) const fn is_message(self) -> bool {
        matches!(
            self,
            Self::Eager | Self::Rendezvous | Self::Untagged | Self::UntaggedRendezvous | Self::Begin
        )
    }
}

/// What one connection's peer is like: which frames it prefers, and how often it is wrong.
#[derive(Clone, Debug)]
pub(crate) struct Swarm {
    weights: [usize; 22],
    /// Thousandths of frames with wrong bytes.
    mutated: usize,
    /// Thousandths of answers that name what was never asked.
    forged: usize,
    /// Keeps to its credits.
    pub(crate) is_thrifty: bool,
    /// Reads nothing for as long as this.
    pub(crate) is_deaf: bool,
}

impl Swarm {
    pub(crate) fn new(random: &mut Random) -> Self {
        let mut weights = [0; 22];
        for (at, weight) in weights.iter_mut().enumerate() {
            *weight =
                if at < Kind::MILD { random.pick(&[0, 10, 40, 200]) } else { random.pick(&[0, 0, 0, 1]) };
        }
        weights[9] += 1;
        Self {
            weights,
            mutated: random.pick(&[0, 2, 10, 100]),
            forged: random.pick(&[0, 0, 5, 100]),
            is_thrifty: random.chance(900),
            is_deaf: random.chance(50),
        }
    }

    pub(crate) fn kind(&self, random: &mut Random) -> Kind {
        let mut at = random.below(self.weights.iter().sum());
        for (kind, weight) in Kind::ALL.into_iter().zip(self.weights) {
            if at < weight {
                return kind;
            }
            at -= weight;
        }
        Kind::Keepalive
    }
}

/// What was heard on a connection, and what was said, that later frames may name.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// Operations that wait for a word, with their flags.
    pub(crate) operations: Vec<u32>,
    /// Requests to read.
    pub(crate) requests: Vec<Fin>,
    /// Keys, and bytes behind them.
    pub(crate) keys: Vec<(u32, u64)>,
    /// Operations of requests without a tag.
    pub(crate) untagged_requests: Vec<u32>,
    /// Reads that were asked for: number, bytes.
    pub(crate) reads: Vec<(u64, u64)>,
    /// Reads of memory that were asked for: operation, place, bytes.
    pub(crate) remote_reads: Vec<(u32, u64, u64)>,
    /// Operations of writes that are to be answered.
    pub(crate) remote_writes: Vec<u32>,
    /// What may be sent.
    pub(crate) balance: Credits,
    /// Messages in segments under way: operation, here, total.
    segments: Vec<(u32, u64, u64)>,
}

/// Bytes of payload: of what use they are is nobody's business.
const BYTES: [u8; 8192] = [0xBA; 8192];
/// Memory that peers of the endpoint under attack may access.
pub(crate) const REGION: RemoteStretch = RemoteStretch { key: 5, address: 0x1000, length: 24_000 };
/// The eager limit of the endpoint under attack.
pub(crate) const EAGER_LIMIT: usize = 4096;

/// A frame around a message.
pub(crate) fn framed(immediate: Option<u32>, message: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(message.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend([if immediate.is_some() { 2 } else { 1 }, 0, 0, 0]);
    bytes.extend(immediate.into_iter().flat_map(u32::to_be_bytes));
    bytes.extend_from_slice(message);
    bytes
}

fn control(control: &Control<'_>) -> Vec<u8> {
    let mut out = [0; 9000];
    let length = control.encode(&mut out).unwrap();
    framed(None, &out[..length])
}

fn read_frame(kind: u8, number: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(8 + payload.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend([kind, 0, 0, 0]);
    bytes.extend(number.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A hello of somebody with this name.
pub(crate) fn hello(role: HelloRole, name: &[u8], instance: u128, random: &mut Random) -> Vec<u8> {
    let capabilities = if random.chance(300) { PeerCapabilities::NONE } else { PeerCapabilities::ALL };
    let (min, max) = if random.chance(20) { (2, 9) } else { (1, 1) };
    control(&Control::Hello(Hello {
        role,
        version_min: min,
        version_max: max,
        capabilities,
        instance: InstanceId::new(instance).unwrap(),
        eager_limit: random.pick(&[0, 100, 4096, u64::MAX]),
        credits: Credits {
            headers: random.pick(&[1, 100, u32::MAX]),
            eager_messages: random.pick(&[0, 100, u32::MAX]),
            eager_bytes: random.pick(&[0, 100_000, u64::MAX]),
        },
        name: EndpointName::new(name).unwrap(),
    }))
}

/// The number of an operation, as a notice names it.
fn operation(random: &mut Random, swarm: &Swarm, known: &mut Vec<u32>) -> Option<OperationId> {
    if known.is_empty() || random.chance(swarm.forged) {
        return random.chance(swarm.forged.max(5)).then(|| OperationId::new(random.bits32() >> 8)).flatten();
    }
    let at = random.below(known.len());
    OperationId::new(known.swap_remove(at))
}

/// The next frame, of this kind if there is something to say of it.
pub(crate) fn frame(kind: Kind, swarm: &Swarm, heard: &mut Heard, random: &mut Random) -> Option<Vec<u8>> {
    let lengths = [0, 1, 64, 65, 1000, EAGER_LIMIT];
    let flags = random.pick(&[0_u32, 0, 0, 1, 2, 3, 4, 7]);
    let own = OperationId::new(u32::try_from(random.below(40)).unwrap()).unwrap();
    let context = AppContext { operation: own, flags: AppContext::from_bits(flags).unwrap().flags };
    let has_data = context.flags.contains(SendFlags::CQ_DATA);
    let data = has_data.then(|| random.bits32());
    let tag = Tag(random.below(4) as u64);
    let memory = RemoteMemory {
        address: random.pick(&[0, 1, 1 << 20, u64::MAX >> 1]),
        key: random.bits32() % 8,
        length: random.pick(&[0, 1, 100, 5000, 1 << 20, 1 << 40]),
    };
    let length = random.pick(&lengths);
    let bytes = &BYTES[..length];
    let mut out = [0; 9000];
    let bytes = match kind {
        Kind::Eager => {
            let eager = Eager { context, tag, payload: Payload::new(bytes) };
            let length = eager.encode(&mut out).unwrap();
            framed(data, &out[..length])
        }
        Kind::Rendezvous => {
            let length = Rendezvous { context, tag, memory }.encode(&mut out).unwrap();
            framed(data, &out[..length])
        }
        Kind::Untagged => {
            control(&Control::Untagged(Untagged { context, cq_data: data, payload: Payload::new(bytes) }))
        }
        Kind::UntaggedRendezvous => {
            control(&Control::UntaggedRendezvous(UntaggedRendezvous { context, cq_data: data, memory }))
        }
        Kind::Begin => begin(swarm, heard, random, context, data)?,
        Kind::Continue => go_on(heard, random)?,
        Kind::Fin => {
            if heard.requests.is_empty() {
                return None;
            }
            let at = random.below(heard.requests.len());
            let mut fin = heard.requests.swap_remove(at);
            heard.keys.retain(|(key, _)| *key != fin.rvh.rkey);
            if random.chance(swarm.forged) {
                fin.rvh.rkey ^= 1;
            }
            framed(None, &fin.to_bytes())
        }
        Kind::Notice => {
            let control = &match random.below(5) {
                0 => Control::MatchAcknowledged(operation(random, swarm, &mut heard.operations)?),
                1 => Control::Delivered(operation(random, swarm, &mut heard.operations)?),
                2 => Control::Discarded(operation(random, swarm, &mut heard.operations)?),
                3 => Control::RendezvousDone(operation(random, swarm, &mut heard.untagged_requests)?),
                _ => {
                    let operation = operation(random, swarm, &mut heard.untagged_requests)?;
                    let reason = random.pick(&[RefusedRendezvous::ReadFailed, RefusedRendezvous::Cancelled]);
                    Control::RendezvousRefused { operation, reason }
                }
            };
            self::control(control)
        }
        Kind::Credit => {
            let huge = random.chance(swarm.forged);
            let headers = if huge { u32::MAX } else { random.bits32() % 10 };
            control(&Control::Credit(Credits { headers, eager_messages: 1, eager_bytes: 100 }))
        }
        Kind::Keepalive => control(&Control::Keepalive(Keepalive {
            is_answer: random.chance(500),
            sequence: random.bits32(),
        })),
        Kind::Read => {
            let (key, behind) = if heard.keys.is_empty() || random.chance(300) {
                (random.bits32() % 100, 100)
            } else {
                random.pick(&heard.keys)
            };
            let mut bytes = vec![0, 0, 0, 32, 3, 0, 0, 0];
            bytes.extend((random.below(300) as u64).to_be_bytes());
            bytes.extend(random.pick(&[0, 0, 1, behind / 2, behind, 1 << 40]).to_be_bytes());
            bytes.extend(random.pick(&[1, behind.max(1), behind + 1, u64::MAX >> 1]).to_be_bytes());
            bytes.extend(key.to_be_bytes());
            bytes.extend([0; 4]);
            bytes
        }
        Kind::ReadAnswer => answer(swarm, heard, random)?,
        Kind::RemoteWrite => remote_write(random, own),
        Kind::RemoteRead => {
            let stretch = stretch(random);
            let place = random.pick(&[0, 1, u64::MAX - stretch.length]);
            let read = RemoteRead { operation: own, is_last: random.chance(500), stretch, place };
            control(&Control::RemoteRead(read))
        }
        Kind::RemoteAtomic => remote_atomic(random, own),
        Kind::RemoteAnswer => remote_answer(swarm, heard, random)?,
        Kind::Goodbye => control(&Control::Goodbye(random.pick(&[
            Goodbye::Closing,
            Goodbye::Failed,
            Goodbye::ProtocolError,
            Goodbye::Idle,
        ]))),
        Kind::Greeting => greeting(random),
        Kind::StraySegment => {
            let segment = Segment {
                operation: own,
                offset: 1 + random.next() % 100,
                payload: Payload::new(&BYTES[..1 + length]),
            };
            let last = random.chance(500);
            control(&if last { Control::SegmentLast(segment) } else { Control::SegmentMiddle(segment) })
        }
        Kind::TooLong => {
            let eager = Eager { context, tag, payload: Payload::new(&BYTES[..EAGER_LIMIT + 1]) };
            let length = eager.encode(&mut out).unwrap();
            framed(data, &out[..length])
        }
        Kind::Garbage => (0..random.below(200)).map(|_| random.byte()).collect(),
        Kind::Head => {
            let mut bytes = random.bits32().to_be_bytes().to_vec();
            bytes.extend([random.byte() % 8, 0, 0, 0]);
            bytes
        }
    };
    Some(mutated(bytes, swarm, random))
}

fn begin(
    swarm: &Swarm,
    heard: &mut Heard,
    random: &mut Random,
    context: AppContext,
    cq_data: Option<u32>,
) -> Option<Vec<u8>> {
    let operation = context.operation.value();
    if heard.segments.len() > 60 || heard.segments.iter().any(|(other, ..)| *other == operation) {
        return None;
    }
    let length = 1 + random.below(EAGER_LIMIT);
    let total = length as u64 + 1 + random.next() % 20_000;
    heard.segments.push((operation, length as u64, total));
    // Without a tag more often: with one it is a breach where a device matches.
    let tag = random.chance(swarm.forged.max(200)).then_some(Tag(random.below(4) as u64));
    let payload = Payload::new(&BYTES[..length]);
    Some(control(&Control::SegmentFirst(SegmentFirst {
        context,
        tag,
        total_length: total,
        cq_data,
        payload,
    })))
}

fn go_on(heard: &mut Heard, random: &mut Random) -> Option<Vec<u8>> {
    if heard.segments.is_empty() {
        return None;
    }
    let at = random.below(heard.segments.len());
    let (id, offset, total) = heard.segments[at];
    let left = total - offset;
    let length = if random.chance(300) { 1 + random.below(EAGER_LIMIT) } else { EAGER_LIMIT };
    let length = usize::try_from(left).unwrap().min(length);
    let is_last = length as u64 == left;
    if is_last {
        heard.segments.swap_remove(at);
    } else {
        heard.segments[at].1 += length as u64;
    }
    let segment =
        Segment { operation: OperationId::new(id).unwrap(), offset, payload: Payload::new(&BYTES[..length]) };
    Some(control(&if is_last { Control::SegmentLast(segment) } else { Control::SegmentMiddle(segment) }))
}

/// Data for a read, a piece of it, or a refusal.
fn answer(swarm: &Swarm, heard: &mut Heard, random: &mut Random) -> Option<Vec<u8>> {
    if heard.reads.is_empty() {
        return random.chance(swarm.forged / 10).then(|| read_frame(4, random.next() % 300, b"forged"));
    }
    let at = random.below(heard.reads.len());
    let (number, left) = heard.reads[at];
    if random.chance(200) || left > 1 << 21 {
        heard.reads.swap_remove(at);
        return Some(read_frame(random.pick(&[5, 6]), number, b""));
    }
    let more = u64::from(random.chance(swarm.forged / 10));
    let length = usize::try_from(left + more).unwrap().min(1 + random.below(BYTES.len()));
    heard.reads[at].1 = left.saturating_sub(length as u64);
    if heard.reads[at].1 == 0 {
        heard.reads.swap_remove(at);
    }
    Some(read_frame(4, number, &BYTES[..length]))
}

/// Memory of the endpoint's, or nearly.
fn stretch(random: &mut Random) -> RemoteStretch {
    let RemoteStretch { key, address, length } = REGION;
    let key = random.pick(&[key, key, key, key, key + 1, u64::MAX]);
    let address =
        random.pick(&[address, address, address + 1, address + length - 1, address - 1, 0, 1 << 63]);
    let length = random.pick(&[0, 1, 100, 3000, length, length + 1, 1 << 40]);
    RemoteStretch { key, address, length }
}

/// A piece of a write, of any part of its stretch.
fn remote_write(random: &mut Random, operation: OperationId) -> Vec<u8> {
    let stretch = stretch(random);
    let most = usize::try_from(stretch.length).unwrap().min(EAGER_LIMIT);
    let length = if most == 0 { 0 } else { 1 + random.below(most) };
    let left = stretch.length - length as u64;
    let offset = random.pick(&[0, left, left / 2]);
    let is_last = offset == left && random.chance(500);
    let cq_data = (is_last && random.chance(500)).then(|| random.bits32());
    let payload = Payload::new(&BYTES[..length]);
    control(&Control::RemoteWrite(RemoteWrite { operation, is_last, stretch, offset, cq_data, payload }))
}

/// An operation on values, of all its kinds.
fn remote_atomic(random: &mut Random, operation: OperationId) -> Vec<u8> {
    let of = random.pick(&AtomicType::ALL);
    let call = random.pick(&[AtomicCall::Base, AtomicCall::Fetch, AtomicCall::Compare]);
    let ops: Vec<AtomicOp> = AtomicOp::ALL.into_iter().filter(|op| op.is_valid(of, call)).collect();
    let op = random.pick(&ops);
    let size = of.size() as u64;
    let most = RemoteAtomic::STRETCH_MAX / size;
    let length = size * random.pick(&[1, 1, 2, most]);
    let RemoteStretch { key, address, .. } = stretch(random);
    let address = address.min(u64::MAX - length);
    let fetches = call != AtomicCall::Base;
    let payload = Payload::new(&BYTES[..usize::try_from(length * op.operands()).unwrap()]);
    control(&Control::RemoteAtomic(RemoteAtomic {
        operation,
        is_last: random.chance(500),
        fetches,
        is_little: random.chance(900),
        stretch: RemoteStretch { key, address, length },
        place: if fetches { random.pick(&[0, 1, u64::MAX - length]) } else { 0 },
        op,
        of,
        payload,
    }))
}

/// What a read or a write of the endpoint's waits for, or what it does not.
fn remote_answer(swarm: &Swarm, heard: &mut Heard, random: &mut Random) -> Option<Vec<u8>> {
    let status = random.pick(&[
        RemoteStatus::Done,
        RemoteStatus::NoRegion,
        RemoteStatus::OutOfBounds,
        RemoteStatus::NotAllowed,
        RemoteStatus::Failed,
    ]);
    if heard.remote_reads.is_empty() || random.chance(500) {
        let operation = operation(random, swarm, &mut heard.remote_writes)?;
        return Some(control(&Control::RemoteDone { operation, status }));
    }
    let at = random.below(heard.remote_reads.len());
    let (operation, place, left) = heard.remote_reads[at];
    let operation = OperationId::new(operation).unwrap();
    if left == 0 || random.chance(100) {
        heard.remote_reads.swap_remove(at);
        let status = if left == 0 { RemoteStatus::Done } else { status };
        return Some(control(&Control::RemoteDone { operation, status }));
    }
    let length = usize::try_from(left).unwrap().min(1 + random.below(EAGER_LIMIT));
    heard.remote_reads[at] = (operation.value(), place + length as u64, left - length as u64);
    if heard.remote_reads[at].2 == 0 {
        heard.remote_reads.swap_remove(at);
    }
    let place = if random.chance(swarm.forged / 4) { place + 1 } else { place };
    Some(control(&Control::RemoteData(RemoteData {
        operation,
        place,
        payload: Payload::new(&BYTES[..length]),
    })))
}

/// What belongs to the beginning of a connection, or would.
pub(crate) fn greeting(random: &mut Random) -> Vec<u8> {
    let role = if random.chance(500) { HelloRole::Request } else { HelloRole::Answer };
    match random.below(4) {
        0 => {
            let mut name = vec![0; random.below(65)];
            name.fill_with(|| random.byte());
            hello(role, &name, 1 + u128::from(random.next()), random)
        }
        1 => {
            let reason = random.pick(&[
                RefusedHello::Version,
                RefusedHello::Crossed,
                RefusedHello::Connected,
                RefusedHello::Busy,
                RefusedHello::Closing,
                RefusedHello::NoKey,
                RefusedHello::Oneself,
            ]);
            control(&Control::HelloRefused(HelloRefused { reason, version_min: 1, version_max: 1 }))
        }
        2 => control(&Control::Challenge(Challenge { number: [random.byte(); 32] })),
        _ => {
            let (number, code) = ([random.byte(); 32], [random.byte(); 32]);
            control(&Control::Proof(Proof { role, number, code }))
        }
    }
}

/// Perhaps with wrong bytes.
pub(crate) fn mutated(mut bytes: Vec<u8>, swarm: &Swarm, random: &mut Random) -> Vec<u8> {
    if bytes.is_empty() || !random.chance(swarm.mutated) {
        return bytes;
    }
    for _ in 0..=random.below(3) {
        // Headers more often than payloads.
        let within = if random.chance(800) { bytes.len().min(40) } else { bytes.len() };
        let place = random.below(within);
        match random.below(8) {
            0..4 => bytes[place] = random.byte(),
            4..6 => bytes[place] ^= 1 << random.below(8),
            6 => bytes.insert(place, random.byte()),
            _ => bytes.truncate(place.max(1)),
        }
    }
    bytes
}
