//! A soft device as a verbs program sees it: requests and work completions, no engine.
//!
//! A device is used either this way or as a [`Device`](crate::device::Device); entries that one side has put in mean
//! nothing to the other. Not here: the memory of unexpected buffers. A completion brings its message along.

use super::completion::Completion;
use super::device::{Output, SoftDevice};
use super::memory::Memory;
use super::message::SoftMessage;
use super::request::{DriverError, Errno, PostError, Refusal, Request};
use crate::ids::PeerId;
use crate::seam::DeviceError;

impl<M: Memory> SoftDevice<M> {
    /// `ibv_post_srq_ops`; on a device without a list EINVAL, as on any other SRQ (TM-CONTRACT 6).
    ///
    /// # Errors
    /// Names the request that failed; those before it are posted and will complete.
    pub fn post_srq_ops(&mut self, requests: &mut [Request]) -> Result<(), PostError> {
        match &mut self.matching {
            Some(matching) => matching.driver.post_srq_ops(requests),
            None => Err(PostError { refusal: Refusal::Errno(Errno::Invalid), bad: 0 }),
        }
    }

    /// `ibv_post_srq_recv` of one buffer.
    ///
    /// # Errors
    /// ENOMEM: no slot is free.
    pub fn post_srq_recv(&mut self, wr_id: u64) -> Result<(), Errno> {
        let posted = self.matching.as_mut().is_some_and(|matching| matching.driver.receives.post(wr_id));
        if posted { Ok(()) } else { Err(Errno::NoMemory) }
    }

    /// `ibv_start_poll` or `ibv_next_poll`: the oldest completion, and the message that lies in the buffer which it
    /// names, if it names one. `None`: ENOENT.
    ///
    /// # Errors
    /// The device failed, or wrote something that the driver can make nothing of.
    pub fn next_completion(&mut self) -> Result<Option<(Completion, Option<SoftMessage>)>, RawError> {
        while let Some(output) = self.outputs.pop_front() {
            match output {
                Output::Completion { cqe, message, broken: _ } => {
                    self.completions_used = self.completions_used.saturating_sub(1);
                    let Some(matching) = &mut self.matching else { continue };
                    let completion = matching.driver.poll(&cqe)?;
                    while matching.driver.take_released().is_some() {}
                    return Ok(Some((completion, message)));
                }
                // What an engine is told, and a verbs program has to find out.
                Output::Arrived(_) | Output::Data(_) | Output::Told(_) => {}
                Output::Failed => break,
            }
        }
        self.failure.clone().map_or(Ok(None), |failure| Err(RawError::Device(failure)))
    }

    /// `ibv_destroy_srq`. With QPs attached it is refused, but the command queue is gone by then (TM-CONTRACT 13).
    ///
    /// # Errors
    /// EBUSY.
    pub fn destroy_srq(&mut self, attached: usize) -> Result<(), Errno> {
        if let Some(matching) = &mut self.matching {
            matching.driver.destroy_command_queue();
        }
        if attached > 0 { Err(Errno::Busy) } else { Ok(()) }
    }

    /// Messages of this sender that were not received whole: its SENDs without a completion.
    #[must_use]
    pub fn messages_under_way(&self, peer: PeerId) -> usize {
        self.peers.find(peer).map_or(0, |peer| peer.queue.len() + usize::from(peer.receiving.is_some()))
    }
}

/// Polling failed for good.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RawError {
    /// The driver can make nothing of a completion, or a client broke the contract before.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The device is of no more use.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
