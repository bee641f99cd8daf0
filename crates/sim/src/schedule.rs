use crate::connection::End;
use hodo_machine::{Closed, Instant};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Something that will happen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Happening {
    /// The datagram under this key arrives.
    Datagram(u32),
    /// The segment of this number that this end sent arrives; by which of its sender's transmissions.
    Segment(End, u32, u64),
    /// Handles an acknowledgement that this end waits for.
    Acknowledged(End),
    /// Checks whether nothing was acknowledged to this end for too long.
    Timeout(End),
    /// The segment of this number is sent again.
    Resend(End, u32),
    /// This end's wish to connect arrives.
    Asked(End),
    /// The answer to this end's wish to connect arrives.
    Answered(End),
    /// This end learns that its peer is out of reach.
    Failed(End, Closed),
    /// This end learns that its stream was reset.
    Broken(End),
    /// This end's unsent bytes may go out now.
    Pump(End),
    /// This end may send datagrams again.
    Drained(End),
    /// The queue of this wire has room for another segment.
    Room(u32),
    /// The stream of this end is reset.
    Cut(End),
    /// Every stream that this wire carries is reset.
    CutWire(u32),
    /// A node's processor is done with the notice on top of its inbox; of which of its machines.
    Work(u32, u32),
    /// A machine is polled late; which of those at its node.
    Poll(u32, u32),
    /// A machine's deadline.
    Timer(u32),
}

/// The future, in order of time; at one time, in the order in which it was scheduled.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    heap: BinaryHeap<Entry>,
    number: u64,
}

impl Schedule {
    pub(crate) fn at(&mut self, at: Instant, happening: Happening) {
        self.number += 1;
        self.heap.push(Entry { at, number: self.number, happening });
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.at)
    }

    pub(crate) fn pop(&mut self) -> Option<(Instant, Happening)> {
        self.heap.pop().map(|entry| (entry.at, entry.happening))
    }
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    number: u64,
    happening: Happening,
}

impl Ord for Entry {
    /// Compares in reverse, because the standard heap has its greatest on top.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_time_and_then_order() {
        let mut schedule = Schedule::default();
        for (at, key) in [(5, 0), (3, 1), (5, 2), (3, 3), (4, 4)] {
            schedule.at(Instant::from_nanos(at), Happening::Datagram(key));
        }
        let order: Vec<u32> = std::iter::from_fn(|| schedule.pop())
            .map(|(_, happening)| if let Happening::Datagram(key) = happening { key } else { u32::MAX })
            .collect();
        assert_eq!(order, [1, 3, 4, 0, 2]);
    }
}
