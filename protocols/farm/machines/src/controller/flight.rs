//! How many bytes may be with a node: its credits, and no more than its line drains.

use core::time::Duration;

/// The time that events may stand in queues on the way to a node, beside what the way takes without any. More only fills the queues of
/// switches, which then lose packets, also others'.
const QUEUED: Duration = Duration::from_millis(5);
/// Events that a node may have however slow its line is: one arrives while the other is answered.
const EVENTS_MIN: usize = 2;
/// The part of the mean that each event has, and by which there is more where nothing stands in queues.
const WEIGHT: u64 = 8;

/// The bytes that are with a node, and how many of them its line drains in time.
///
/// The time of an event without that at the node is its time on the line, there and back. Where that is more than twice the least that
/// there was, and [`QUEUED`], events stand in queues. From then on as many bytes may be with the node as it answered in that time and its
/// own: its rate by the smallest round trip. Until events stand in queues its credits are the only bound.
#[derive(Debug)]
pub(crate) struct Flight {
    bytes: u64,
    max: u64,
    line_ns: u64,
}

impl Default for Flight {
    fn default() -> Self {
        Flight { bytes: 0, max: u64::MAX, line_ns: u64::MAX }
    }
}

impl Flight {
    /// Enters an event that is given to the node; returns the bytes that are with it then.
    #[inline]
    pub(crate) fn enter(&mut self, length: usize) -> u64 {
        self.bytes += length as u64;
        self.bytes
    }

    /// Notes that an event of this length was answered, which was away for so long and at the node for a part of it. With it `ahead` bytes
    /// were with the node when it was given.
    #[inline]
    pub(crate) fn answered(&mut self, (length, ahead): (usize, u64), away_ns: u64, at_node_ns: u64) {
        self.bytes = self.bytes.saturating_sub(length as u64);
        let at_node_ns = at_node_ns.min(away_ns);
        self.line_ns = self.line_ns.min(away_ns - at_node_ns);
        let within_ns = 2 * self.line_ns + QUEUED.as_nanos() as u64 + at_node_ns;
        if away_ns <= within_ns {
            if self.max < u64::MAX {
                self.max = self.max.saturating_add(length as u64 / WEIGHT + 1);
            }
            return;
        }
        let drained = (u128::from(ahead) * u128::from(within_ns) / u128::from(away_ns)) as u64;
        self.max = if self.max == u64::MAX { drained } else { self.max - self.max / WEIGHT + drained / WEIGHT };
    }

    /// Tells whether more than these events would stand in queues.
    #[inline]
    pub(crate) const fn is_full(&self, events: usize) -> bool {
        events >= EVENTS_MIN && self.bytes >= self.max
    }
}
