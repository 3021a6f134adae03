//! Devices that tell what they may not, beside whatever users do.
//!
//! However a device lies, every receive for one message ends once at the most, and with a message whose tag fits
//! where software decided; and when all devices have failed and all
//! receives were cancelled, each has ended: nothing is lost with a device. The owner keeps its own promises: commands are
//! submitted in order, and no more than there are.

use std::collections::HashMap;

use arbitrary::{Arbitrary, Result, Unstructured};
use tagmatch::engine::{ClaimId, Completion, Config, End, Engine, Kind, Posting, Receive, Received};
use tagmatch::ids::{
    DeviceId, GroupId, Ignore, MessageToken, PeerId, ReceiveId, Source, Tag, TagHandle, TransferId,
};
use tagmatch::matching::Pattern;
use tagmatch::offload::TagLayout;
use tagmatch::seam::{
    Answer, Arrival, Buffer, Capabilities, Command, Data, DataError, DataTarget, DeviceError, Event,
    EventSink, Header, Match, MatchStage, Operation, OperationDone, Remote,
};

pub(super) fn run(bytes: &[u8]) -> bool {
    let mut input = Unstructured::new(bytes);
    let Ok(mut world) = World::new(&mut input) else { return false };
    // The input ends at some time, and what is read of it then is zeros.
    while !input.is_empty() && world.step(&mut input).is_ok() {}
    world.end();
    world.posted > 0
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    // Long enough for some hundred steps each.
    let mut numbers = crate::inputs::Numbers::new(5);
    let mut drawn = |length: usize| (0..length).map(|_| numbers.next().to_le_bytes()[0]).collect();
    (0..64).map(|round| drawn(64 + 24 * round)).collect()
}

struct World {
    engine: Engine,
    devices: u8,
    /// How often each receive for one message has ended, by context.
    ended: HashMap<u64, u32>,
    /// What each that was posted looks for.
    patterns: HashMap<u64, Pattern>,
    receives: Vec<ReceiveId>,
    claims: Vec<ClaimId>,
    handles: Vec<TagHandle>,
    transfers: Vec<TransferId>,
    tokens: u64,
    posted: u64,
}

impl World {
    fn new(input: &mut Unstructured<'_>) -> Result<Self> {
        let layout = bool::arbitrary(input)?.then_some(TagLayout { source_bits: 0xF0 });
        let counters_start = *input.choose(&[0, 1, 0x7FFF, 0xFFFD, 0xFFFF])?;
        let silent_adds_max = *input.choose(&[0, 1, 31])?;
        let mut engine = Engine::new(Config { layout, counters_start, silent_adds_max, ..Config::default() });
        let devices = input.int_in_range(1..=2)?;
        for _ in 0..devices {
            let tags = *input.choose(&[0, 1, 3, 8])?;
            let capabilities = Capabilities {
                tags,
                command_slots: *input.choose(&[1, 2, 64])?,
                completions: 128,
                unexpected_buffers: 33,
                eager_limit: *input.choose(&[0, 16, 1024])?,
                buffer_length_max: 1 << 20,
                registration: false,
                rendezvous: bool::arbitrary(input)?,
            };
            engine.add_device(capabilities).expect("it makes sense");
        }
        if bool::arbitrary(input)? {
            let _ = engine.add_bounce_buffer(DeviceId(0), Buffer::new(0x9000, 1024));
        }
        let (ended, patterns, receives, claims) = (HashMap::new(), HashMap::new(), Vec::new(), Vec::new());
        let (handles, transfers) = (Vec::new(), Vec::new());
        Ok(Self {
            engine,
            devices,
            ended,
            patterns,
            receives,
            claims,
            handles,
            transfers,
            tokens: 0,
            posted: 0,
        })
    }

    fn step(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        match input.int_in_range(0..=15)? {
            0..=3 => self.post(input)?,
            4 => self.cancel(input)?,
            5 => self.look(input)?,
            6 => self.rename(input)?,
            7 | 8 => self.submit(input)?,
            9 => self.hear(),
            _ => self.tell(input)?,
        }
        Ok(())
    }

    fn device(&self, input: &mut Unstructured<'_>) -> Result<DeviceId> {
        // Now and then one that is none.
        Ok(DeviceId(input.int_in_range(0..=15)? % (self.devices + 1)))
    }

    fn post(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        self.posted += 1;
        let is_once = input.int_in_range(0..=7)? > 0;
        let kind = if is_once { Kind::Once } else { Kind::Multi { least: u64::from(u8::arbitrary(input)?) } };
        let receive =
            Receive { pattern: pattern(input)?, buffer: buffer(input)?, context: self.posted, kind };
        self.patterns.insert(self.posted, receive.pattern);
        if is_once {
            self.ended.insert(self.posted, 0);
        }
        if let Posting::Queued(id) = self.engine.post(&receive) {
            self.receives.push(id);
        }
        Ok(())
    }

    fn cancel(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        let id = if self.receives.is_empty() || bool::arbitrary(input)? {
            ReceiveId::from_bits(u64::arbitrary(input)?)
        } else {
            *input.choose(&self.receives)?
        };
        let _ = self.engine.cancel(id);
        Ok(())
    }

    fn look(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        let pattern = pattern(input)?;
        match input.int_in_range(0..=4)? {
            0 => drop(self.engine.peek(&pattern)),
            1 => drop(self.engine.discard(&pattern)),
            2 => self.claims.extend(self.engine.claim(&pattern).map(|(claim, _)| claim)),
            kind => {
                let claim = match self.claims.pop() {
                    Some(claim) => claim,
                    None => ClaimId::from_bits(u64::arbitrary(input)?),
                };
                if kind == 3 {
                    let _ = self.engine.discard_claimed(claim);
                } else {
                    self.posted += 1;
                    if self.engine.receive_claimed(claim, buffer(input)?, self.posted) {
                        self.ended.insert(self.posted, 0);
                    }
                }
            }
        }
        Ok(())
    }

    fn rename(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        let (one, other) = (peer(input)?, peer(input)?);
        match input.int_in_range(0..=5)? {
            0 => drop(self.engine.set_path(one, DeviceId(other.0.to_le_bytes()[0] % self.devices))),
            1 => self.engine.clear_path(one),
            2 => self.engine.resolve(one, other),
            3 => self.engine.set_group(one, bool::arbitrary(input)?.then_some(GroupId(other.0))),
            4 => drop(self.engine.name_peer(one, u64::from(u8::arbitrary(input)?) & 0xF0)),
            _ => self.engine.set_offload(self.device(input)?, bool::arbitrary(input)?),
        }
        Ok(())
    }

    fn submit(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        let device = DeviceId(input.int_in_range(0..=self.devices - 1)?);
        let commands = self.engine.poll_commands(device).to_vec();
        let taken =
            if bool::arbitrary(input)? { commands.len() } else { input.int_in_range(0..=commands.len())? };
        for command in &commands[..taken] {
            match command {
                Command::Add { handle, .. } | Command::Del { handle, .. } => self.handles.push(*handle),
                Command::Answer { answer, .. } => self.note(answer),
                Command::Read { transfer, .. } | Command::Copy { transfer, .. } => {
                    self.transfers.push(*transfer)
                }
                Command::Sync { .. } | Command::Receive { .. } => {}
            }
        }
        self.engine.handle_submitted(device, taken);
        Ok(())
    }

    fn note(&mut self, answer: &Answer) {
        if let Answer::Accept { transfer: Some(transfer), .. } = answer {
            self.transfers.push(*transfer);
        }
    }

    fn tell(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        let device = self.device(input)?;
        let event = self.event(input)?;
        let answer = self.engine.handle_event(device, &event);
        self.note(&answer);
        Ok(())
    }

    fn event(&mut self, input: &mut Unstructured<'_>) -> Result<Event> {
        let immediate = bool::arbitrary(input)?.then_some(7);
        Ok(match input.int_in_range(0..=15)? {
            0..=4 => Event::Arrived(self.arrival(input)?),
            5..=7 => Event::Matched(Match {
                handle: self.handle(input)?,
                source: peer(input)?,
                tag: tag(input)?,
                app_ctx: u32::arbitrary(input)?,
                length: length(input)?,
                immediate,
                stage: match input.int_in_range(0..=3)? {
                    0 => MatchStage::DataFollows,
                    1 => MatchStage::SoftwareRendezvous(remote(input)?),
                    _ => MatchStage::Complete,
                },
                released: bool::arbitrary(input)?,
            }),
            8 | 9 => {
                let error = bool::arbitrary(input)?.then_some(DataError::PathLost);
                Event::Data(Data { target: self.target(input)?, length: length(input)?, immediate, error })
            }
            10 | 11 => Event::Operation(OperationDone {
                operation: match input.int_in_range(0..=4)? {
                    0 | 1 => Operation::Add(self.handle(input)?),
                    2 | 3 => Operation::Del(self.handle(input)?),
                    _ => Operation::Sync,
                },
                success: bool::arbitrary(input)?,
                phase: *input.choose(&[0, 1, 2, 3, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF])?,
                sync_requested: bool::arbitrary(input)?,
            }),
            12 => Event::Released(self.handle(input)?),
            13 => Event::SetAside { handle: self.handle(input)?, overlaps: bool::arbitrary(input)? },
            14 => {
                let (source, message) = (peer(input)?, MessageToken(self.tokens));
                Event::Untagged { source, message, length: length(input)?, counted: bool::arbitrary(input)? }
            }
            // A device fails seldom, or nothing more would come of the rest.
            _ if input.int_in_range(0..=15)? == 0 => Event::DeviceFailed(DeviceError::Removed),
            _ => Event::PathLost { peer: peer(input)? },
        })
    }

    fn arrival(&mut self, input: &mut Unstructured<'_>) -> Result<Arrival> {
        // A name of a message is used again now and then.
        if input.int_in_range(0..=15)? > 0 {
            self.tokens += 1;
        }
        let remote = if input.int_in_range(0..=3)? == 0 { Some(remote(input)?) } else { None };
        let header = Header {
            tag: tag(input)?,
            length: length(input)?,
            app_ctx: u32::arbitrary(input)?,
            immediate: None,
            remote,
        };
        let (in_hand, counted) = (bool::arbitrary(input)?, bool::arbitrary(input)?);
        Ok(Arrival { message: MessageToken(self.tokens), source: peer(input)?, header, in_hand, counted })
    }

    fn handle(&self, input: &mut Unstructured<'_>) -> Result<TagHandle> {
        if self.handles.is_empty() || input.int_in_range(0..=7)? == 0 {
            return Ok(TagHandle {
                index: u32::from(u8::arbitrary(input)? % 12),
                generation: input.int_in_range(0..=2)?,
            });
        }
        input.choose(&self.handles).copied()
    }

    fn target(&self, input: &mut Unstructured<'_>) -> Result<DataTarget> {
        Ok(match input.int_in_range(0..=3)? {
            0 => DataTarget::Message(MessageToken(
                self.tokens.saturating_sub(u64::from(u8::arbitrary(input)? % 4)),
            )),
            1 => DataTarget::Entry(self.handle(input)?),
            _ if self.transfers.is_empty() => DataTarget::Transfer(TransferId { index: 0, generation: 1 }),
            _ => DataTarget::Transfer(*input.choose(&self.transfers)?),
        })
    }

    fn hear(&mut self) {
        while let Some(Completion { context, end }) = self.engine.poll_completion() {
            // What a device has matched lies in the buffer already, whatever it is; that is a fault.
            if let (End::Received(received @ Received { matched_by: None, .. }), Some(pattern)) =
                (end, self.patterns.get(&context))
            {
                let differs = (received.tag.0 ^ pattern.tag.0) & pattern.ignore.mask();
                assert_eq!(differs, 0, "receive {context} of {pattern:?} holds {received:?}");
            }
            if let Some(ended) = self.ended.get_mut(&context) {
                *ended += 1;
                assert_eq!(*ended, 1, "receive {context} ended again: {end:?}");
                assert_ne!(end, End::Released, "receive {context} is for one message");
            }
        }
        while self.engine.poll_fault().is_some() {}
    }

    /// All devices fail, all receives are cancelled.
    fn end(&mut self) {
        for device in 0..self.devices {
            let event = Event::DeviceFailed(DeviceError::Removed);
            let _ = self.engine.handle_event(DeviceId(device), &event);
            let taken = self.engine.poll_commands(DeviceId(device)).len();
            self.engine.handle_submitted(DeviceId(device), taken);
        }
        for id in std::mem::take(&mut self.receives) {
            let _ = self.engine.cancel(id);
        }
        self.hear();
        let left: Vec<_> = self.ended.iter().filter(|(_, ended)| **ended == 0).collect();
        assert!(left.is_empty(), "these receives never ended: {left:?}");
        assert_eq!(self.engine.depths().0, 0, "receives are posted still");
    }
}

fn pattern(input: &mut Unstructured<'_>) -> Result<Pattern> {
    let ignore = Ignore(*input.choose(&[0, 0, 0, 1, 3, 0xF0, u64::MAX])?);
    let source = match input.int_in_range(0..=4)? {
        0 | 1 => Source::Any,
        2 => Source::Group(GroupId(peer(input)?.0)),
        _ => Source::Peer(peer(input)?),
    };
    Ok(Pattern { tag: tag(input)?, ignore, source })
}

fn tag(input: &mut Unstructured<'_>) -> Result<Tag> {
    Ok(Tag(u64::from(u8::arbitrary(input)?) & 0x33))
}

fn peer(input: &mut Unstructured<'_>) -> Result<PeerId> {
    Ok(PeerId(input.int_in_range(0..=3)?))
}

fn length(input: &mut Unstructured<'_>) -> Result<u64> {
    input.choose(&[0, 1, 8, 16, 17, 1024, 5000, u64::MAX]).copied()
}

fn buffer(input: &mut Unstructured<'_>) -> Result<Buffer> {
    Ok(Buffer::new(u64::from(u8::arbitrary(input)?) << 12, *input.choose(&[0, 1, 16, 100, 1024, 4096])?))
}

fn remote(input: &mut Unstructured<'_>) -> Result<Remote> {
    Ok(Remote { address: u64::arbitrary(input)?, key: u32::arbitrary(input)?, length: length(input)? })
}
