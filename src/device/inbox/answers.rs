//! Answers to messages that are held, and the end of the link that brought messages.

use super::message::{Message, Place};
use super::{Action, Inbox, Wanted};
use crate::ids::{LinkId, MessageToken};
use crate::seam::{Answer, Buffer};

impl Inbox {
    /// The answer to a message that is held.
    pub(in crate::device) fn answer(&mut self, token: MessageToken, answer: &Answer) {
        let Some(index) = self.held(token) else {
            return match *answer {
                Answer::Accept { transfer, .. } => self.pending.answered(token, transfer),
                Answer::Discard => self.pending.answered(token, None),
                Answer::Hold => {}
            };
        };
        match *answer {
            Answer::Accept { buffer, transfer: Some(transfer) } => {
                let Some(message) = self.messages.get_mut(index) else { return };
                let (space, link, total) = (message.space, message.link, message.total);
                let place = Place::Placing { buffer, transfer };
                match std::mem::replace(&mut message.place, place) {
                    Place::Held(bytes) => {
                        self.memory.write(&buffer, 0, &bytes);
                        let is_whole = message.is_whole();
                        self.forget_kept(index);
                        if is_whole {
                            self.messages.remove(index);
                            self.pending.data(space, transfer, total, None);
                        }
                    }
                    Place::Request { remote, done } => {
                        self.forget_kept(index);
                        self.messages.remove(index);
                        // A request is held no longer than its link.
                        let Some(link) = link else { return };
                        let wanted = Wanted { link, space, transfer, remote, buffer, done };
                        self.actions.push_back(Action::Read(wanted));
                    }
                    place @ (Place::Placing { .. } | Place::Dropping) => message.place = place,
                }
            }
            // Without a transfer nobody wants to know.
            Answer::Accept { transfer: None, .. } | Answer::Discard => self.discard(index),
            Answer::Hold => {}
        }
    }

    fn discard(&mut self, index: usize) {
        self.forget_kept(index);
        let Some(message) = self.messages.get_mut(index) else { return };
        if let (Place::Request { done, .. }, Some(link)) = (&message.place, message.link) {
            self.actions.push_back(Action::Tell(link, *done));
        }
        if matches!(message.place, Place::Request { .. }) || message.is_whole() {
            self.messages.remove(index);
        } else {
            message.place = Place::Dropping;
        }
    }

    /// Write the payload of a message that is held and all here, and forget it. False: there is no such message.
    pub(in crate::device) fn place_held(&mut self, token: MessageToken, buffer: &Buffer) -> bool {
        let Some(index) = self.held(token) else { return false };
        let Some(Message { place: Place::Held(bytes), arrived, total, .. }) = self.messages.get(index) else {
            return false;
        };
        if arrived < total {
            return false;
        }
        self.memory.write(buffer, 0, bytes);
        self.forget_kept(index);
        self.messages.remove(index);
        true
    }

    /// The next action cannot be done: its link is gone.
    pub(in crate::device) fn give_up_action(&mut self) {
        if let Some(Action::Read(wanted)) = self.actions.pop_front() {
            self.pending.lost(wanted.space, wanted.transfer, wanted.remote.length);
        }
    }

    /// A link is gone: what it has not brought whole is lost. What is here whole stays.
    pub(in crate::device) fn lose(&mut self, link: LinkId) {
        self.assembling.remove(&link);
        let of_link = |(_, message): &(usize, &Message)| message.link == Some(link);
        let indexes: Vec<usize> = self.messages.iter().filter(of_link).map(|(index, _)| index).collect();
        for index in indexes {
            let Some(message) = self.messages.get_mut(index) else { continue };
            message.link = None;
            let (space, total) = (message.space, message.total);
            let token = Message::token(index, message.serial);
            match &message.place {
                Place::Held(_) if message.is_whole() => continue,
                Place::Held(_) | Place::Request { .. } => {
                    self.pending.message_lost(space, token, total);
                }
                Place::Placing { transfer, .. } => {
                    self.pending.lost(space, *transfer, total);
                }
                Place::Dropping => {}
            }
            self.forget_kept(index);
            self.messages.remove(index);
        }
    }

    fn held(&self, token: MessageToken) -> Option<usize> {
        let (index, serial) = Message::parts(token);
        let message = self.messages.get(index).filter(|message| message.serial == serial)?;
        matches!(message.place, Place::Held(_) | Place::Request { .. }).then_some(index)
    }

    /// It is kept no longer.
    fn forget_kept(&mut self, index: usize) {
        let Some(message) = self.messages.get_mut(index) else { return };
        let (peer, gone) = (message.source, std::mem::take(&mut message.kept));
        let Some(kept) = self.kept.get_mut(&peer) else { return };
        kept.messages = kept.messages.saturating_sub(gone.messages);
        kept.bytes = kept.bytes.saturating_sub(gone.bytes);
        kept.requests = kept.requests.saturating_sub(gone.requests);
        if *kept == super::Kept::default() {
            self.kept.remove(&peer);
        }
    }
}
