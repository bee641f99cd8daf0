use alloc::collections::VecDeque;
use core::time::Duration;
use hodo_machine::{Instant, Peer};

/// How long to wait before a connection is tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// The connections that a machine opens, by their numbers, and when.
#[derive(Debug)]
pub(crate) struct Dials(VecDeque<(Instant, u32)>);

impl Dials {
    /// So many at once, numbered from 0 on.
    pub(crate) fn first(count: usize) -> Self {
        Dials((0..count as u32).map(|number| (Instant::ZERO, number)).collect())
    }

    /// A connection is gone: one that was opened here is tried again.
    pub(crate) fn again(&mut self, now: Instant, peer: Peer) {
        if !peer.is_accepted() {
            self.0.push_back((now + AGAIN, peer.0));
        }
    }

    /// None is opened any more.
    pub(crate) fn stop(&mut self) {
        self.0.clear();
    }

    /// The number of one that is to be opened now.
    #[inline]
    pub(crate) fn due(&mut self, now: Instant) -> Option<u32> {
        let index = self.0.iter().position(|(at, _)| *at <= now)?;
        self.0.remove(index).map(|(_, number)| number)
    }

    /// When the next is to be opened.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.iter().map(|(at, _)| *at).min()
    }
}
