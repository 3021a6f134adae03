//! The receiver of a script: answers as the script says, and notes what is wrong with what it hears.

use std::collections::{HashMap, VecDeque};

use super::script::{Course, Form, Message, operation};
use crate::device::tests::RECEIVED_FROM;
use crate::device::transport::{CloseReason, Ear, Notice, Reaction};
use crate::ids::{DeviceId, LinkId, MessageToken, PeerId, Tag, TransferId};
use crate::seam::{Answer, Arrival, Data, DataTarget, Event, EventSink};
use crate::wire::{AppContext, Control};

/// See the module.
#[derive(Default)]
pub(super) struct Judge {
    pub(super) messages: Vec<Message>,
    /// Numbers of messages in the order in which their headers were given to the stream.
    pub(super) begun: Vec<usize>,
    /// How many of these have arrived.
    pub(super) arrived: usize,
    pub(super) states: HashMap<usize, State>,
    pub(super) closed: Option<CloseReason>,
    pub(super) path_lost: usize,
}

/// How far a message is with the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Unexpected.
    Held {
        token: MessageToken,
        in_hand: bool,
    },
    /// Its transfer is named by its number.
    UnderWay,
    Placed,
    /// Refused by the sender, or lost with the link.
    Failed,
    Dropped,
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judge").field("states", &self.states).finish_non_exhaustive()
    }
}

impl Judge {
    /// The next that arrives has this number.
    fn next(&mut self) -> usize {
        let number = self.begun[self.arrived];
        self.arrived += 1;
        number
    }

    fn transfer(number: usize) -> TransferId {
        TransferId { index: u32::try_from(number).expect("there are not so many"), generation: 5 }
    }

    pub(super) fn accept(&mut self, number: usize) -> Answer {
        let buffer = self.messages[number].buffer();
        Answer::Accept { buffer, transfer: Some(Self::transfer(number)) }
    }

    fn handle_arrival(&mut self, arrival: &Arrival, is_tagged: bool) -> Answer {
        let number = self.next();
        let message = &self.messages[number];
        let context = AppContext::from_bits(arrival.header.app_ctx).expect("it was good when it was sent");
        assert_eq!(context.operation, operation(number), "messages keep their order");
        let (tagged, may_be_in_hand) = match message.form {
            Form::Tagged => (true, true),
            Form::Untagged => (false, true),
            Form::Segments { is_tagged, .. } => (is_tagged, false),
            Form::ToBeRead { .. } => (true, false),
            Form::RemoteWrite | Form::Keepalive => panic!("{number} arrived to be matched"),
        };
        assert_eq!(is_tagged, tagged, "message {number}");
        assert!(may_be_in_hand || !arrival.in_hand, "message {number}");
        assert_eq!(arrival.source, RECEIVED_FROM);
        assert_eq!(arrival.header.length, message.payload.len() as u64, "message {number}");
        assert_eq!(arrival.header.tag, Tag(if tagged { number as u64 } else { 0 }));
        assert_eq!(arrival.header.immediate, message.cq_data, "message {number}");
        let (answer, state) = match message.course {
            Course::Accept if arrival.in_hand => (self.accept(number), State::Placed),
            Course::Accept => (self.accept(number), State::UnderWay),
            Course::Discard => (Answer::Discard, State::Dropped),
            Course::AcceptLater | Course::PlaceLater | Course::DiscardLater => {
                let (token, in_hand) = (arrival.message, arrival.in_hand);
                (Answer::Hold, State::Held { token, in_hand })
            }
        };
        assert_eq!(self.states.insert(number, state), None, "message {number} arrives once");
        answer
    }

    fn handle(&mut self, event: &Event, is_tagged: bool) -> Answer {
        match event {
            Event::Arrived(arrival) => return self.handle_arrival(arrival, is_tagged),
            Event::Data(data) => self.handle_data(data),
            Event::PathLost { peer } => {
                assert_eq!(*peer, RECEIVED_FROM);
                self.path_lost += 1;
            }
            other => panic!("{other:?}"),
        }
        Answer::Hold
    }

    fn handle_data(&mut self, data: &Data) {
        let is_held = |state: &State, token| matches!(state, State::Held { token: of, .. } if *of == token);
        let number = match data.target {
            DataTarget::Transfer(transfer) => transfer.index as usize,
            DataTarget::Entry(handle) => panic!("there is no list, and no {handle:?}"),
            DataTarget::Message(token) => {
                assert!(data.error.is_some(), "of what is held only its loss is told");
                let mut states = self.states.iter();
                states.find_map(|(number, state)| is_held(state, token).then_some(*number)).expect("held")
            }
        };
        let is_transfer = matches!(data.target, DataTarget::Transfer(_));
        assert!(!is_transfer || self.states[&number] == State::UnderWay, "{:?}", self.states[&number]);
        assert_eq!(data.length, self.messages[number].payload.len() as u64, "message {number}");
        let end = if data.error.is_none() { State::Placed } else { State::Failed };
        self.states.insert(number, end);
    }

    /// Messages that are held, and by which names: number, token, and whether all of it is here.
    pub(super) fn held(&self) -> Vec<(usize, MessageToken, bool)> {
        let held = |(&number, &state): (&usize, &State)| match state {
            State::Held { token, in_hand } => Some((number, token, in_hand)),
            State::UnderWay | State::Placed | State::Failed | State::Dropped => None,
        };
        let mut held: Vec<_> = self.states.iter().filter_map(held).collect();
        // In an order that is the same for the same seed.
        held.sort_by_key(|(number, ..)| *number);
        held
    }

    /// Whether everything was given, and has arrived and ended.
    pub(super) fn is_done(&self, active: &[VecDeque<Vec<u8>>]) -> bool {
        active.is_empty() && self.arrived == self.messages.len() && self.is_settled()
    }

    /// Nothing is under way.
    pub(super) fn is_settled(&self) -> bool {
        !self.states.values().any(|state| matches!(state, State::UnderWay | State::Held { .. }))
    }

    /// Everything that arrived has come to the end that it was to have. Where the link was cut it may have failed.
    pub(super) fn check(&self, is_cut: bool) {
        for (&number, &state) in &self.states {
            let Message { course, form, .. } = self.messages[number];
            let of = format!("message {number}, {form:?}, {course:?}: {state:?}");
            match state {
                State::Placed => self.messages[number].check_placed(&of),
                State::Dropped => {
                    assert!(
                        form == Form::Keepalive || matches!(course, Course::Discard | Course::DiscardLater),
                        "{of}"
                    );
                }
                State::Failed => assert!(is_cut || form == Form::ToBeRead { is_refused: true }, "{of}"),
                State::Held { .. } | State::UnderWay => panic!("{of}"),
            }
        }
    }
}

impl EventSink for Judge {
    fn handle_event(&mut self, _device: DeviceId, event: &Event) -> Answer {
        self.handle(event, true)
    }
}

impl Ear for Judge {
    fn handle_untagged_event(&mut self, _device: DeviceId, event: &Event) -> Answer {
        self.handle(event, false)
    }

    fn handle_remote(&mut self, _: DeviceId, source: PeerId, message: &Control<'_>, in_hand: bool) -> Answer {
        let number = self.next();
        let Control::RemoteWrite(write) = message else { panic!("{message:?}") };
        assert_eq!((write.operation, source), (operation(number), RECEIVED_FROM));
        assert_eq!(write.payload.length(), self.messages[number].payload.len() as u64);
        let (answer, state) = match self.messages[number].course {
            Course::Accept if in_hand => (self.accept(number), State::Placed),
            Course::Accept => (self.accept(number), State::UnderWay),
            _ => (Answer::Discard, State::Dropped),
        };
        assert_eq!(self.states.insert(number, state), None);
        answer
    }

    fn handle_remote_data(&mut self, _device: DeviceId, data: &Data) {
        self.handle_data(data);
    }

    fn handle_control(&mut self, _device: DeviceId, _link: LinkId, message: &[u8]) -> Reaction {
        let number = self.next();
        let control = crate::wire::decode(message).expect("it is good");
        let crate::wire::Message::Control(Control::Keepalive(keepalive)) = control else {
            panic!("{control:?}")
        };
        assert_eq!(keepalive.sequence, operation(number).value());
        assert_eq!(self.states.insert(number, State::Dropped), None);
        Reaction::Continue
    }

    fn handle_notice(&mut self, _device: DeviceId, notice: Notice) {
        match notice {
            Notice::Closed { reason, .. } => self.closed = Some(reason),
            Notice::Incoming { .. } | Notice::Open { .. } => {}
            other @ Notice::Sent { .. } => panic!("{other:?}"),
        }
    }
}
