//! Streams that the machine has no room for: their bytes stay in the kernel, whose flow control holds the far end back.

use super::{Streams, slot};
use hodo_machine::{Machine, Peer};
use std::os::fd::AsFd;

impl Streams {
    /// Receives nothing more from a stream until the machine has room for it.
    #[cold]
    pub(super) fn pause(&mut self, peer: Peer) {
        let Some(Some(stream)) = slot(&mut self.opened, &mut self.accepted, peer) else { return };
        if std::mem::replace(&mut stream.paused, true) {
            return;
        }
        self.paused.push(peer);
        self.solo = None;
        if std::mem::take(&mut stream.watched) {
            self.poller.remove(stream.fd.as_fd(), u64::from(peer.0));
        } else {
            self.unwatched.retain(|unwatched| *unwatched != peer);
        }
        self.gather_not(peer);
        self.watch_paused(peer);
    }

    /// Goes on with the streams that the machine has room for again.
    #[inline]
    pub(crate) fn resume<M: Machine>(&mut self, machine: &M) {
        if !self.paused.is_empty() {
            self.resume_some(machine);
        }
    }

    #[cold]
    fn resume_some<M: Machine>(&mut self, machine: &M) {
        let mut paused = std::mem::take(&mut self.paused);
        paused.retain(|peer| {
            let Some(Some(stream)) = slot(&mut self.opened, &mut self.accepted, *peer) else { return false };
            if !stream.paused || !machine.has_room(*peer) {
                return stream.paused;
            }
            stream.paused = false;
            if std::mem::take(&mut stream.watched) {
                self.poller.remove(stream.fd.as_fd(), u64::from(peer.0));
            }
            self.unwatched.push(*peer);
            self.solo = None;
            false
        });
        self.paused = paused;
    }

    /// Watches a paused stream while bytes wait for room, and not otherwise: its end would be reported again and again.
    pub(super) fn watch_paused(&mut self, peer: Peer) {
        let Some(Some(stream)) = slot(&mut self.opened, &mut self.accepted, peer) else { return };
        stream.waiting = stream.connecting || !stream.backlog.is_empty();
        if stream.waiting == stream.watched {
            return;
        }
        if stream.waiting {
            // A stream that cannot be watched is dead, which reading reports.
            stream.watched = self.poller.add_for_room(stream.fd.as_fd(), u64::from(peer.0)).is_ok();
        } else {
            stream.watched = false;
            self.poller.remove(stream.fd.as_fd(), u64::from(peer.0));
        }
    }
}
