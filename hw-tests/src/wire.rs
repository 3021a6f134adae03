//! What joins senders to the description: how what they send reaches it, and where it reads the data of a rendezvous.
//!
//! Not here: what a message means. A wire carries bytes.

use std::collections::{HashMap, VecDeque};

use crate::port::{PortError, sizes};

/// The sender, the bytes of a message, and its immediate data.
pub(crate) type Arrived = (u8, Vec<u8>, Option<u32>);

/// A wire with senders at its other end.
pub(crate) trait Wire {
    /// A sender, with a QP in the receiver's SRQ.
    fn connect(&mut self, sender: u8) -> Result<(), PortError>;

    /// A sender posts a SEND.
    fn send(&mut self, sender: u8, bytes: &[u8], immediate: Option<u32>) -> Result<(), PortError>;

    /// All that was sent and was not handed over yet, in the order in which it was sent. Waits for it.
    fn arrived(&mut self) -> Result<Vec<Arrived>, PortError>;

    /// Waits until so many SENDs of a sender have completed, and that without an error.
    fn await_sent(&mut self, sender: u8, count: usize) -> Result<(), PortError>;

    /// Puts the data of a rendezvous into memory of a sender: its address and key.
    fn source(&mut self, sender: u8, bytes: &[u8]) -> Result<(u64, u32), PortError>;

    /// The key of a sender's memory.
    fn key(&self, sender: u8) -> u32;

    /// Read from the memory of the sender that has this key. `None`: that failed.
    fn read(&mut self, address: u64, key: u32, length: u64) -> Option<Vec<u8>>;

    /// Send a FIN back to a sender.
    fn finish(&mut self, sender: u8, fin: &[u8]) -> Result<(), PortError>;

    /// So many FINs that have reached a sender. Waits for them.
    fn finished(&mut self, sender: u8, count: usize) -> Result<Vec<Vec<u8>>, PortError>;

    /// The receive QP of a sender goes to ERR, or is destroyed: what it sends is lost.
    fn fail(&mut self, sender: u8) -> Result<(), PortError>;
}

/// No wire: senders are in this process.
#[derive(Debug, Default)]
pub(crate) struct Direct {
    sent: Vec<Arrived>,
    finished: HashMap<u8, VecDeque<Vec<u8>>>,
    /// By sender: how many requests, and their data.
    sources: HashMap<u8, (u32, Vec<u8>)>,
}

impl Wire for Direct {
    fn connect(&mut self, _sender: u8) -> Result<(), PortError> {
        Ok(())
    }

    fn send(&mut self, sender: u8, bytes: &[u8], immediate: Option<u32>) -> Result<(), PortError> {
        self.sent.push((sender, bytes.to_vec(), immediate));
        Ok(())
    }

    fn arrived(&mut self) -> Result<Vec<Arrived>, PortError> {
        Ok(std::mem::take(&mut self.sent))
    }

    fn await_sent(&mut self, _sender: u8, _count: usize) -> Result<(), PortError> {
        Ok(())
    }

    fn source(&mut self, sender: u8, bytes: &[u8]) -> Result<(u64, u32), PortError> {
        let empty = || (0, vec![0; sizes::SOURCE as usize]);
        let (count, memory) = self.sources.entry(sender).or_insert_with(empty);
        let place = *count * sizes::SOURCE_STRIDE % sizes::SOURCE;
        *count += 1;
        let start = place as usize;
        let target = memory.get_mut(start..start + bytes.len());
        target
            .ok_or_else(|| PortError("the data of a rendezvous is too long".to_owned()))?
            .copy_from_slice(bytes);
        Ok((base(sender) + u64::from(place), self.key(sender)))
    }

    fn key(&self, sender: u8) -> u32 {
        FIRST_KEY + u32::from(sender)
    }

    fn read(&mut self, address: u64, key: u32, length: u64) -> Option<Vec<u8>> {
        let sender = u8::try_from(key.checked_sub(FIRST_KEY)?).ok()?;
        let start = usize::try_from(address.checked_sub(base(sender))?).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        let (_, memory) = self.sources.get(&sender)?;
        memory.get(start..end).map(<[u8]>::to_vec)
    }

    fn finish(&mut self, sender: u8, fin: &[u8]) -> Result<(), PortError> {
        self.finished.entry(sender).or_default().push_back(fin.to_vec());
        Ok(())
    }

    fn finished(&mut self, sender: u8, count: usize) -> Result<Vec<Vec<u8>>, PortError> {
        let finished = self.finished.entry(sender).or_default();
        let count = count.min(finished.len());
        Ok(finished.drain(..count).collect())
    }

    fn fail(&mut self, _sender: u8) -> Result<(), PortError> {
        Ok(())
    }
}

/// Where the memory of a sender begins: not at 0, so that a forgotten address shows.
fn base(sender: u8) -> u64 {
    0x1000_0000 + u64::from(sender) * u64::from(sizes::SOURCE)
}

const FIRST_KEY: u32 = 0x700;
