//! The fabric between processes: each has a socket in the run directory, and packets go over it to the process that
//! they name.
//!
//! A process claims the lowest number that was never used, by a lock that ends with it. Packets to a process go over
//! a connection of this process's own, so that each direction keeps its order; a connection that ends, either of the two,
//! is how the other side's end is known. What a socket has no room for waits here. The other side may be anything: what is no
//! packet ends its connection.

use super::memory::ProcessMemory;
use crate::hca::{Hca, Packet};
use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

mod socket;
#[cfg(test)]
mod tests;

use socket::{Connection, Listener, Poller};

/// This process's place on the fabric.
#[derive(Debug)]
pub(crate) struct Fabric {
    folder: PathBuf,
    /// Held as long as the process lives.
    _claim: File,
    process: u8,
    listener: Listener,
    poller: Poller,
    /// Where packets come from, by the connection's number.
    incoming: HashMap<RawFd, Incoming>,
    /// Where packets go, by the process's number.
    outgoing: HashMap<u8, Outgoing>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Incoming {
    connection: Connection,
    /// Once it has said who it is.
    process: Option<u8>,
}

#[derive(Debug)]
struct Outgoing {
    connection: Connection,
    waiting: VecDeque<Vec<u8>>,
}

impl Fabric {
    /// Take a place.
    ///
    /// # Errors
    /// The run directory cannot be used, or all places are taken.
    pub(crate) fn join(folder: &Path) -> io::Result<Self> {
        let (process, claim) = claim(folder)?;
        let path = path(folder, process);
        // Of an earlier process of this number; nobody else uses it while the lock is ours.
        let _ = fs::remove_file(&path);
        let listener = Listener::bind(&path)?;
        let poller = Poller::new()?;
        poller.add(listener.descriptor())?;
        let (incoming, outgoing) = Default::default();
        let folder = folder.to_path_buf();
        let buffer = vec![0; PACKET_MAX];
        Ok(Self { folder, _claim: claim, process, listener, poller, incoming, outgoing, buffer })
    }

    /// This process's number.
    pub(crate) const fn process(&self) -> u8 {
        self.process
    }

    /// Readable when there is something to receive.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.poller.descriptor()
    }

    /// Send what the model has for others.
    pub(crate) fn send(&mut self, hca: &mut Hca<ProcessMemory>) {
        while let Some(packet) = hca.poll_packet() {
            let process = packet.process();
            if !self.connect(process) {
                hca.handle_undeliverable(packet);
                continue;
            }
            // What a process does not take in time is lost, as on a real fabric; RC sends it again.
            if let Some(outgoing) =
                self.outgoing.get_mut(&process).filter(|outgoing| outgoing.waiting.len() < WAITING_MAX)
            {
                let mut bytes = Vec::new();
                packet.encode(&mut bytes);
                outgoing.waiting.push_back(bytes);
            }
        }
        let mut lost = Vec::new();
        for (process, outgoing) in &mut self.outgoing {
            while let Some(bytes) = outgoing.waiting.front() {
                match outgoing.connection.send(bytes) {
                    Ok(true) => drop(outgoing.waiting.pop_front()),
                    Ok(false) => break,
                    Err(_) => {
                        lost.push(*process);
                        break;
                    }
                }
            }
        }
        for process in lost {
            self.lose(process, hca);
        }
    }

    /// Whether there is a connection to a process, made if need be.
    fn connect(&mut self, process: u8) -> bool {
        if self.outgoing.contains_key(&process) {
            return true;
        }
        let connection = Connection::connect(&path(&self.folder, process));
        let Some(connection) = connection.ok().filter(|new| matches!(new.send(&[self.process]), Ok(true)))
        else {
            return false;
        };
        // Nothing comes by it but its end, which may be the only one to show: who is killed need not have a connection here.
        if self.poller.add(connection.descriptor()).is_err() {
            return false;
        }
        self.outgoing.insert(process, Outgoing { connection, waiting: VecDeque::new() });
        true
    }

    fn lose(&mut self, process: u8, hca: &mut Hca<ProcessMemory>) {
        self.outgoing.remove(&process);
        hca.handle_process_lost(process);
    }

    /// Give what has come to the model. Says whether there was anything.
    pub(crate) fn receive(&mut self, hca: &mut Hca<ProcessMemory>) -> bool {
        let ready = self.poller.ready();
        for fd in &ready {
            if *fd == self.listener.descriptor() {
                self.accept();
            } else {
                self.read(*fd, hca);
            }
        }
        !ready.is_empty()
    }

    fn accept(&mut self) {
        while let Some(connection) = self.listener.accept() {
            if self.poller.add(connection.descriptor()).is_ok() {
                self.incoming.insert(connection.descriptor(), Incoming { connection, process: None });
            }
        }
    }

    fn read(&mut self, fd: RawFd, hca: &mut Hca<ProcessMemory>) {
        let Some(incoming) = self.incoming.get_mut(&fd) else {
            let mut outgoing = self.outgoing.iter();
            if let Some(process) = outgoing.find(|(_, to)| to.connection.descriptor() == fd) {
                self.lose(*process.0, hca);
            }
            return;
        };
        for _ in 0..READ_BATCH {
            let end = match incoming.connection.receive(&mut self.buffer) {
                Ok(Some(0)) | Err(_) => true,
                Ok(Some(length)) => !incoming.handle(&self.buffer[..length], hca),
                Ok(None) => return,
            };
            if end {
                // Closing it takes it out of the poller.
                let process = self.incoming.remove(&fd).and_then(|incoming| incoming.process);
                if let Some(process) = process {
                    self.lose(process, hca);
                }
                return;
            }
        }
    }
}

impl Incoming {
    /// Handle one message. False: it makes no sense.
    fn handle(&mut self, bytes: &[u8], hca: &mut Hca<ProcessMemory>) -> bool {
        if self.process.is_none() {
            self.process = bytes.first().copied().filter(|_| bytes.len() == 1);
            return self.process.is_some();
        }
        match Packet::decode(bytes) {
            Ok(packet) => hca.handle_packet(packet),
            Err(_) => return false,
        }
        true
    }
}

/// The socket of a process.
fn path(folder: &Path, process: u8) -> PathBuf {
    folder.join(format!("process-{process}"))
}

/// A number of one's own, with the lock that holds it.
fn claim(folder: &Path) -> io::Result<(u8, File)> {
    let counter =
        File::options().read(true).write(true).create(true).truncate(false).open(folder.join("used"))?;
    counter.lock()?;
    let mut used = Vec::new();
    (&counter).read_to_end(&mut used)?;
    // A byte for each number that was given out, so that numbers return as late as possible.
    for offset in 0..=u8::MAX {
        let process = u8::try_from(used.len() % 256).unwrap_or(0).wrapping_add(offset);
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(folder.join(format!("process-{process}.lock")))?;
        if lock.try_lock().is_ok() {
            let appended = vec![b'.'; usize::from(offset) + 1];
            io::Write::write_all(&mut &counter, &appended)?;
            return Ok((process, lock));
        }
    }
    Err(io::Error::from(io::ErrorKind::AddrInUse))
}

/// Packets that wait for one process.
const WAITING_MAX: usize = 4096;
/// More than any packet: the longest payload is a path MTU.
const PACKET_MAX: usize = 1 << 16;
/// Packets from one connection before others have their turn.
const READ_BATCH: usize = 256;
