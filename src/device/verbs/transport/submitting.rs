//! Commands, told on to the device or done by the inbox.

use super::{VerbsTransport, of_device};
use crate::device::Device as _;
use crate::ids::{Ignore, PeerId, Tag, TagHandle};
use crate::seam::{Add, Answer, Buffer, Command, DeviceError};

impl VerbsTransport {
    /// Take commands in order, and say how many.
    pub(super) fn submit_all(&mut self, commands: &[Command]) -> Result<usize, DeviceError> {
        let mut taken = 0;
        while let Some(command) = commands.get(taken) {
            match command {
                Command::Add { .. } | Command::Del { .. } | Command::Sync { .. } => {
                    let (offered, done) = self.submit_list(commands.get(taken..).unwrap_or_default())?;
                    taken += done;
                    if done < offered {
                        break;
                    }
                }
                Command::Receive { .. }
                | Command::Answer { .. }
                | Command::Read { .. }
                | Command::Copy { .. } => {
                    if !self.submit_one(command)? {
                        break;
                    }
                    taken += 1;
                }
            }
        }
        Ok(taken)
    }

    /// List operations go down together: how many there are one after the other, and how many were taken.
    fn submit_list(&mut self, commands: &[Command]) -> Result<(usize, usize), DeviceError> {
        let mut list = std::mem::take(&mut self.scratch);
        list.clear();
        let mut count = self.unlisted.count();
        for command in commands {
            match *command {
                Command::Add { handle, tag, ignore, buffer, unexpected_count, signalled } => {
                    let buffer = self.list(handle, tag, ignore, buffer);
                    let add = Command::Add { handle, tag, ignore, buffer, unexpected_count, signalled };
                    list.push(self.unlisted.in_place_of(&add, &mut count));
                }
                Command::Del { .. } | Command::Sync { .. } => {
                    list.push(self.unlisted.in_place_of(command, &mut count));
                }
                Command::Receive { .. }
                | Command::Answer { .. }
                | Command::Read { .. }
                | Command::Copy { .. } => break,
            }
        }
        let taken = self.device.submit(&list);
        let offered = list.len();
        self.scratch = list;
        let taken = taken?;
        for command in commands.iter().take(taken) {
            self.unlisted.taken(command);
        }
        Ok((offered, taken))
    }

    /// The buffer of a receive as the device is to know it. One that cannot be registered, and what overlaps its receive,
    /// the list does without.
    fn list(&mut self, handle: TagHandle, tag: Tag, ignore: Ignore, buffer: Buffer) -> Buffer {
        let overlaps = self.unlisted.stands_aside(handle, tag, ignore);
        if !overlaps && let Ok(buffer) = self.registrations.list(handle, buffer) {
            return buffer;
        }
        self.unlisted.keep(handle, tag, ignore, overlaps);
        buffer
    }

    /// An ADD by itself. While the list does without some receives, a command will do it.
    #[inline]
    pub(super) fn add_now(&mut self, add: &Add<'_>) -> bool {
        if self.unlisted.len() > 0 {
            return false;
        }
        let Ok(buffer) = self.registrations.list(add.handle, *add.buffer) else { return false };
        let is_added = self.device.add(&Add { buffer: &buffer, ..*add });
        if is_added {
            self.unlisted.set_count(add.unexpected_count);
        } else {
            self.registrations.released(add.handle);
        }
        is_added
    }

    fn submit_one(&mut self, command: &Command) -> Result<bool, DeviceError> {
        let passed_on = match *command {
            Command::Answer { message, answer } => match of_device(message) {
                None => {
                    self.inbox.answer(message, &answer);
                    self.act();
                    return Ok(true);
                }
                // Of those that the device does not hold any more everything was told.
                Some(_) if answer == Answer::Hold || !self.held.forget(message) => return Ok(true),
                Some(message) => Command::Answer { message, answer },
            },
            Command::Read { transfer, peer, tag, app_ctx, remote, buffer } => {
                let link = self.peers.get(&peer).and_then(|link| self.links.find(*link));
                let peer = link.map_or(NO_PATH, super::link::Link::path);
                Command::Read { transfer, peer, tag, app_ctx, remote, buffer }
            }
            Command::Add { .. }
            | Command::Del { .. }
            | Command::Sync { .. }
            | Command::Receive { .. }
            | Command::Copy { .. } => *command,
        };
        Ok(self.device.submit(&[passed_on])? == 1)
    }
}

/// The device has no queue pairs of this name.
const NO_PATH: PeerId = PeerId(u32::MAX);
