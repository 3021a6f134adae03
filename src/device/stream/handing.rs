//! Streams that are handed over: a link leaves one transport as it is, to be the link of another.
//!
//! Not here: who wants that.

use std::io;

use super::StreamTransport;
use super::link::State;
use super::medium::Medium;
use crate::ids::LinkId;

impl<M: Medium> StreamTransport<M> {
    /// The stream of a link that is open, is nobody's yet, and on which nothing is under way either way. The link is no more,
    /// and nothing is told of that.
    pub(in crate::device) fn hand_out(&mut self, id: LinkId) -> Option<M::Stream> {
        let link = self.links.find(id).filter(|_| self.is_own())?;
        let is_still = link.state == State::Open
            && link.peer.is_none()
            && link.input.is_between()
            && link.out.waiting() == 0
            && link.takers.is_empty()
            && link.write_failure.is_none();
        if !is_still || self.epoll.remove(&link.stream).is_err() {
            return None;
        }
        self.links.remove(id).map(|link| link.stream)
    }

    /// A link of this stream, which is open.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(in crate::device) fn take_in(&mut self, stream: M::Stream) -> io::Result<LinkId> {
        let link = self.links.insert(stream, State::Open);
        let id = link.id;
        if let Err(error) = self.epoll.add(&link.stream, id.to_bits(), false) {
            self.links.remove(id);
            return Err(error);
        }
        Ok(id)
    }
}
