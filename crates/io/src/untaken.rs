use hodo_machine::{Instant, Peer};
use std::time::Duration;

/// Closed streams that have not yet taken all that was sent to them, and since when each has been waiting.
#[derive(Debug, Default)]
pub(crate) struct Untaken(Vec<(Peer, Option<Instant>)>);

impl Untaken {
    pub(crate) fn note(&mut self, peer: Peer) {
        self.0.push((peer, None));
    }

    pub(crate) fn forget(&mut self, peer: Peer) {
        self.0.retain(|(noted, _)| *noted != peer);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a stream that has waited for `within`; the wait of each begins with the first call after it was noted.
    pub(crate) fn overdue(&mut self, now: Instant, within: Duration) -> Option<Peer> {
        let mut noted = self.0.iter_mut();
        noted.find_map(|(peer, since)| (now - *since.get_or_insert(now) >= within).then_some(*peer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_time() {
        let (mut untaken, second) = (Untaken::default(), Duration::from_secs(1));
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        untaken.note(Peer(1));
        assert_eq!(untaken.overdue(at(10), second), None);
        untaken.note(Peer(2));
        assert_eq!(untaken.overdue(at(11), second), Some(Peer(1)));
        untaken.forget(Peer(1));
        assert_eq!(untaken.overdue(at(11), second), None);
        assert_eq!(untaken.overdue(at(12), second), Some(Peer(2)));
        untaken.forget(Peer(2));
        assert!(untaken.is_empty());
    }
}
