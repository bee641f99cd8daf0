//! Much of one message is gathered in the kernel, so that it wakes its receiver seldom.
//!
//! The sender of a large array pays for each wake-up of the receiver, which would read and sleep again for every packet. While a machine
//! offers its own place for much of one message, the kernel wakes it for [`GATHERED`] bytes (`SO_RCVLOWAT`), or after [`LOOK_UP`](super::LOOK_UP).

use super::Streams;
use crate::sys;
use hodo_machine::Peer;
use std::os::fd::AsFd;

/// The bytes of a message that are waited for together.
const GATHERED: usize = 256 << 10;
/// The bytes that a message lacks, at least, before any are gathered: of less, too few wake-ups would be spared.
const MUCH: usize = 4 << 20;
/// The bytes that one receive has to bring before more are gathered: a slow sender's are passed on as they come.
const FAST: usize = 64 << 10;

/// The stream whose bytes are gathered, or may be from the next sleep on.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    candidate: Option<Peer>,
    gathered: Option<Peer>,
}

impl Streams {
    /// Records that a receive brought bytes of a message that lacks some more.
    #[inline]
    pub(super) fn landed(&mut self, peer: Peer, bytes: usize, lacking: usize) {
        if lacking >= MUCH && bytes >= FAST {
            self.gathering.candidate = Some(peer);
        } else if self.gathering.candidate == Some(peer) {
            self.gathering.candidate = None;
        }
        if self.gathering.gathered == Some(peer) && (bytes < GATHERED || lacking < 2 * GATHERED) {
            self.gather_no_more();
        }
    }

    /// Gathers from now on, if a large message is coming in fast. Returns whether bytes are gathered: the next sleep may then last no longer
    /// than [`LOOK_UP`](super::LOOK_UP).
    #[inline]
    pub(crate) fn gather(&mut self) -> bool {
        if let Some(peer) = self.gathering.candidate.take()
            && self.gathering.gathered != Some(peer)
        {
            self.gather_no_more();
            self.gathering.gathered = self.wake_for(peer, GATHERED).then_some(peer);
        }
        self.gathering.gathered.is_some()
    }

    /// Lets every byte wake the receiver again.
    #[inline]
    pub(crate) fn gather_no_more(&mut self) {
        self.gathering.candidate = None;
        if let Some(peer) = self.gathering.gathered.take() {
            self.wake_for(peer, 1);
        }
    }

    /// Forgets a stream that is gone.
    pub(super) fn gather_not(&mut self, peer: Peer) {
        self.gathering.candidate.take_if(|candidate| *candidate == peer);
        self.gathering.gathered.take_if(|gathered| *gathered == peer);
    }

    fn wake_for(&mut self, peer: Peer, bytes: usize) -> bool {
        let Some(stream) = self.stream(peer) else { return false };
        sys::set_option(stream.fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes as i32).is_ok()
    }
}
