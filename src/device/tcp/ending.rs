//! The end of links: what was under way on them is told, in order.

use std::io::Read as _;
use std::net::{Shutdown, TcpStream};

use super::out::Of;
use super::{LISTENER, TcpTransport};
use crate::device::transport::{CloseReason, Notice};
use crate::ids::LinkId;

impl TcpTransport {
    /// A link ends here and now. What had come of it was taken.
    pub(super) fn end(&mut self, id: LinkId, reason: CloseReason) {
        let Some(mut link) = self.links.remove(id) else { return };
        let parts = &mut self.parts;
        parts.inbox.lose(id);
        parts.lose_reads(id);
        let pending = &mut parts.inbox.pending;
        for of in link.out.give_up() {
            if let Of::Message(Some(context)) = of {
                pending.notice(Notice::Sent { context, result: Err(reason.clone()) });
            }
        }
        if let Some(peer) = link.peer {
            parts.peers.remove(&peer);
            pending.path_lost(peer);
        }
        pending.notice(Notice::Closed { link: id, reason });
        if self.is_listener_paused && self.epoll.add(&self.listener, LISTENER, false).is_ok() {
            self.is_listener_paused = false;
        }
    }

    /// All is out that was to go out before the end.
    pub(super) fn end_closing(&mut self, id: LinkId) {
        if let Some(link) = self.links.find(id)
            && link.write_failure.is_none()
            && link.stream.shutdown(Shutdown::Write).is_ok()
            && let Ok(stream) = link.stream.try_clone()
        {
            // Were it closed with bytes unread, the other side would lose what is still on its way there.
            let removed = self.epoll.remove(&link.stream);
            if removed.is_ok() {
                self.linger(stream);
            }
        }
        self.end(id, CloseReason::Here);
    }

    fn linger(&mut self, stream: TcpStream) {
        if self.lingering.len() >= LINGERING_MAX {
            self.lingering.pop_front();
        }
        self.lingering.push_back(stream);
    }

    /// Those whose other side is done, or broken, linger no longer.
    pub(super) fn sweep(&mut self) {
        let scratch = &mut self.scratch;
        self.lingering.retain_mut(|stream| match stream.read(scratch) {
            Ok(count) => count > 0,
            Err(error) => {
                matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)
            }
        });
    }

    /// Links that were to end while somebody was at work on them.
    pub(super) fn end_ending(&mut self) {
        while let Some((id, reason)) = self.parts.ending.pop() {
            self.end(id, reason);
        }
    }
}

/// Closed connections that are kept until the other side is done too; of more the oldest go.
const LINGERING_MAX: usize = 64;
