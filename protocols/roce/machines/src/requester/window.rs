//! How many packets may be in flight.
//!
//! The standard has no such window: its links lose nothing for lack of room. Over UDP, what does not fit into a socket buffer on
//! the way is lost, and all behind it has to be sent again, which would not fit either. So losses narrow the window and
//! acknowledgements widen it, as in TCP (RFC 5681). It begins as wide as it may be.

/// The narrowest window after a loss that was noticed by what arrived behind it. If it were smaller, fewer losses would be, and each of
/// the others takes a timeout.
const LEAST: u32 = 8;

/// The packets that may be in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    now: u32,
    most: u32,
    /// Below this it widens by one for each packet that is acknowledged, above by one for each whole window.
    threshold: u32,
    /// Packets acknowledged since it was widened.
    acknowledged: u32,
}

impl Window {
    pub(super) const fn new(most: u32) -> Window {
        Window { now: most, most, threshold: most, acknowledged: 0 }
    }

    /// Returns the packets that may be in flight.
    #[inline]
    pub(super) const fn packets(&self) -> u32 {
        self.now
    }

    /// Widens it because packets were acknowledged.
    #[inline]
    pub(super) fn widen(&mut self, packets: u32) {
        if self.now < self.most {
            self.widen_by(packets);
        }
    }

    #[cold]
    fn widen_by(&mut self, packets: u32) {
        if self.now < self.threshold {
            self.now = (self.now + packets).min(self.threshold);
            return;
        }
        self.acknowledged += packets;
        if self.acknowledged >= self.now {
            self.acknowledged = 0;
            self.now += 1;
        }
    }

    /// Narrows it because a packet is missing and others behind it have arrived.
    pub(super) fn narrow(&mut self) {
        self.threshold = (self.now / 2).max(LEAST).min(self.most);
        (self.now, self.acknowledged) = (self.threshold, 0);
    }

    /// Narrows it because nothing has arrived for a while: the further, the more often in a row, down to one packet.
    pub(super) fn close(&mut self) {
        let before = self.now;
        self.narrow();
        self.now = if before > LEAST { LEAST } else { (before / 2).max(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrows_with_losses_and_widens_with_acknowledgements() {
        let mut window = Window::new(64);
        window.widen(1000);
        assert_eq!(window.packets(), 64);
        window.narrow();
        assert_eq!(window.packets(), 32);
        // By one for each window.
        window.widen(31);
        assert_eq!(window.packets(), 32);
        window.widen(1);
        assert_eq!(window.packets(), 33);
        window.close();
        assert_eq!(window.packets(), LEAST);
        // By one for each packet, up to half of what was lost.
        window.widen(5);
        assert_eq!(window.packets(), LEAST + 5);
        window.widen(100);
        assert_eq!(window.packets(), 16);
        window.close();
        assert_eq!(window.packets(), LEAST);
        (0..10).for_each(|_| window.close());
        assert_eq!(window.packets(), 1);
        for _ in 0..10_000 {
            window.widen(1);
        }
        assert_eq!(window.packets(), 64);
    }

    #[test]
    fn one_packet_is_the_least_if_it_is_the_most() {
        let mut window = Window::new(1);
        window.narrow();
        window.close();
        window.widen(7);
        assert_eq!(window.packets(), 1);
    }
}
