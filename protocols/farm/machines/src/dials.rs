use alloc::vec::Vec;
use core::time::Duration;
use hodo_machine::{BackOff, Instant, Peer, Timers};

/// How long to wait before a connection is tried again, at first and at most.
const AGAIN: Duration = Duration::from_millis(100);
const AGAIN_MAX: Duration = Duration::from_secs(2);

/// The connections that a machine opens, by their numbers, and when.
#[derive(Debug)]
pub(crate) struct Dials {
    due: Timers<u32>,
    back_off: Vec<BackOff>,
}

impl Dials {
    /// Dials this many connections at once, numbered from 0 on.
    pub(crate) fn first(count: usize, seed: u64) -> Self {
        let mut due = Timers::default();
        (0..count as u32).for_each(|number| due.arm(number, Instant::ZERO));
        let back_off = |number: u64| BackOff::new(AGAIN, AGAIN_MAX, seed.wrapping_add(number));
        Dials { due, back_off: (0..count as u64).map(back_off).collect() }
    }

    /// Dials a lost connection again, if it was opened here.
    pub(crate) fn again(&mut self, now: Instant, peer: Peer) {
        if let Some(back_off) = self.back_off.get_mut(peer.0 as usize) {
            self.due.arm(peer.0, now + back_off.failed());
        }
    }

    /// Notes that the far end has greeted.
    pub(crate) fn reached(&mut self, peer: Peer) {
        if let Some(back_off) = self.back_off.get_mut(peer.0 as usize) {
            back_off.succeeded();
        }
    }

    /// Stops dialling.
    pub(crate) fn stop(&mut self) {
        self.due.clear();
    }

    /// Returns the number of a connection that is to be opened now.
    #[inline]
    pub(crate) fn due(&mut self, now: Instant) -> Option<u32> {
        self.due.pop_due(now)
    }

    /// Returns when the next connection is to be opened.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.due.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_tried_again_ever_more_seldom_until_it_greets() {
        let (mut dials, mut now) = (Dials::first(2, 7), Instant::ZERO);
        assert_eq!((dials.due(now), dials.due(now), dials.due(now)), (Some(0), Some(1), None));
        let mut waits = |dials: &mut Dials, number| {
            dials.again(now, Peer(number));
            let at = dials.deadline().unwrap();
            let wait = at - now;
            now = at;
            assert_eq!(dials.due(now), Some(number));
            wait.as_millis()
        };
        for most in [100, 200, 400, 800, 1600, 2000, 2000, 2000] {
            let wait = waits(&mut dials, 0);
            assert!((most * 3 / 4..=most).contains(&wait), "{wait} of {most}");
        }
        assert_ne!(waits(&mut dials, 0), waits(&mut dials, 0), "never quite the same");
        assert!(waits(&mut dials, 1) <= 100, "each by itself");
        dials.reached(Peer(0));
        assert!(waits(&mut dials, 0) <= 100);
        dials.again(now, Peer(Peer::FIRST_ACCEPTED));
        assert_eq!(dials.deadline(), None, "who came by itself comes again by itself");
    }
}
