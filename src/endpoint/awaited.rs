//! Messages here whose senders wait to hear of them: what each has still to be told, until its message is received or
//! gone.
//!
//! The engines know such a message by a word of this side's in place of its sender's. A sender gives the number of its
//! operation to another as soon as it has heard what it waits for, while the message may be here still; and its next
//! life begins with the same numbers. So by its sender's number the end of one message could be told as another's.
//!
//! Not here: what is told when (`hearing`, `receiving`).

use std::collections::HashMap;

use crate::ids::{DeviceId, MessageToken, PeerId};
use crate::wire::OperationId;

/// What senders wait for, by the words of this side.
#[derive(Default)]
pub(super) struct Awaited {
    all: HashMap<u32, Wait>,
    next: u32,
}

/// What the sender of a message waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wait {
    pub(super) peer: PeerId,
    /// The sender's number.
    pub(super) operation: OperationId,
    /// Flags of [`crate::wire::SendFlags`]; 0 when nobody waits any more.
    pub(super) wants: u8,
    pub(super) device: DeviceId,
    pub(super) token: MessageToken,
}

impl Awaited {
    /// A word for a message that is here now. No other that is entered has it.
    pub(super) fn word(&mut self) -> u32 {
        loop {
            self.next = self.next.wrapping_add(1);
            let word = self.next << 8 | OURS;
            if !self.all.contains_key(&word) {
                return word;
            }
        }
    }

    /// Somebody waits to hear of the message with this word.
    pub(super) fn insert(&mut self, word: u32, wait: Wait) {
        self.all.insert(word, wait);
    }

    /// The message with this word is received, or gone. `None` where nobody has waited, and of words of senders.
    pub(super) fn take(&mut self, word: u32, source: PeerId) -> Option<Wait> {
        if !is_ours(word) || self.all.get(&word)?.peer != source {
            return None;
        }
        self.all.remove(&word)
    }

    /// A device has dropped a message of which not all had come.
    pub(super) fn forget(&mut self, device: DeviceId, token: MessageToken) {
        self.all.retain(|_, wait| (wait.device, wait.token) != (device, token));
    }

    /// This peer hears nothing any more. Its messages may be here, and keep their words.
    pub(super) fn lose(&mut self, peer: PeerId) {
        for wait in self.all.values_mut().filter(|wait| wait.peer == peer) {
            wait.wants = 0;
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

/// Whether a word is one of this side's. No sender's has this bit, but where a device took it as it came: then it names
/// nothing but that sender's own.
#[inline]
pub(super) const fn is_ours(word: u32) -> bool {
    word & OURS != 0
}

/// No flag of a sender's.
const OURS: u32 = 0x80;
const _: () = assert!(OURS & crate::wire::SendFlags::ALL.bits() as u32 == 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_dealt_again_only_when_its_message_is_gone() {
        let wait = Wait {
            peer: PeerId(1),
            operation: OperationId::default(),
            wants: 1,
            device: DeviceId(0),
            token: MessageToken(5),
        };
        let mut awaited = Awaited::default();
        let first = awaited.word();
        awaited.insert(first, wait);
        assert_eq!(awaited.take(first, PeerId(2)), None, "another's");
        awaited.lose(PeerId(1));
        awaited.next = (1 << 24) - 1;
        assert_eq!(awaited.word() >> 8, 0);
        let second = awaited.word();
        assert_ne!(second, first);
        awaited.insert(second, Wait { token: MessageToken(6), ..wait });
        assert_eq!(awaited.take(first, PeerId(1)), Some(Wait { wants: 0, ..wait }));
        assert_eq!(awaited.take(first, PeerId(1)), None);
        awaited.forget(DeviceId(1), MessageToken(6));
        assert_eq!(awaited.len(), 1);
        awaited.forget(DeviceId(0), MessageToken(6));
        assert_eq!(awaited.len(), 0);
    }
}
