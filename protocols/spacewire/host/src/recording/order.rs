//! Records that wait until all earlier ones are there.

use hodo_spacewire::Picos;

/// Bytes of records that wait at most. Beyond it the earliest ones go on, though others may belong before them.
const HELD_MAX: usize = 64 << 20;
/// Bytes that a record takes beside its own.
const ENTRY: usize = size_of::<Entry>();
/// How much time of the network passes between two rounds of sorting, which take as long for few records as for this many.
const ROUND: Picos = Picos::from_nanos(1_000_000);

/// A record: what one end of a link sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) at: Picos,
    pub(super) link: usize,
    /// Which end of the link sent it.
    pub(super) from: usize,
    pub(super) kind: u8,
    pub(super) end: u8,
    /// Where its bytes begin among all, and how many they are.
    begin: usize,
    length: usize,
}

/// Records in the order in which they were made, which become one in the order of time.
#[derive(Debug, Default)]
pub(super) struct Order {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    /// When the last round was.
    sorted: Picos,
}

impl Order {
    /// Adds a record.
    pub(super) fn add(&mut self, at: Picos, (link, from): (usize, usize), kind: u8, end: u8, data: &[u8]) {
        let (begin, length) = (self.bytes.len(), data.len());
        self.bytes.extend_from_slice(data);
        self.entries.push(Entry { at, link, from, kind, end, begin, length });
    }

    /// Writes the records before a time, of which there are no more. Now and then is enough.
    pub(super) fn settle(&mut self, before: Picos, write: impl FnMut(&Entry, &[u8])) {
        let held = self.bytes.len() + self.entries.len() * ENTRY;
        if before >= self.sorted + ROUND || held > HELD_MAX {
            self.sorted = before;
            self.write_before(before, write);
        }
    }

    /// Writes all records before a time, and beyond it what is too much to wait.
    pub(super) fn write_before(&mut self, before: Picos, mut write: impl FnMut(&Entry, &[u8])) {
        // Those of one time stay in the order in which they were made.
        self.entries.sort_by_key(|entry| entry.at);
        let mut count = self.entries.partition_point(|entry| entry.at < before);
        let held = |entries: &[Entry]| entries.iter().map(|entry| entry.length + ENTRY).sum::<usize>();
        if held(&self.entries[count..]) > HELD_MAX {
            count = self.entries.len();
        }
        for entry in &self.entries[..count] {
            write(entry, &self.bytes[entry.begin..][..entry.length]);
        }
        self.entries.drain(..count);
        let mut left = Vec::with_capacity(self.entries.iter().map(|entry| entry.length).sum());
        for entry in &mut self.entries {
            let begin = left.len();
            left.extend_from_slice(&self.bytes[entry.begin..][..entry.length]);
            entry.begin = begin;
        }
        self.bytes = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_leave_in_the_order_of_time_once_no_earlier_one_can_come() {
        let mut order = Order::default();
        let mut written: Vec<u8> = Vec::new();
        let at = |micros: u64| Picos::from_nanos(1_000 * micros);
        for (number, micros) in (0..).zip([900, 100, 1_500, 100, 3_000]) {
            order.add(at(micros), (0, 0), 0, 0, &[number]);
        }
        order.settle(at(999), |_, bytes| written.push(bytes[0]));
        assert!(written.is_empty(), "a round takes a millisecond");
        order.settle(at(1_600), |_, bytes| written.push(bytes[0]));
        assert_eq!(written, [1, 3, 0, 2]);
        order.add(at(1_700), (0, 0), 0, 0, &[5]);
        order.write_before(Picos::MAX, |_, bytes| written.push(bytes[0]));
        assert_eq!(written[4..], [5, 4]);
    }

    #[test]
    fn what_waits_has_a_bound() {
        let (mut order, mut count) = (Order::default(), 0);
        for _ in 0..70 {
            order.add(Picos(1), (0, 0), 0, 0, &vec![0; 1 << 20]);
            order.settle(Picos::ZERO, |_, _| count += 1);
        }
        assert_eq!((count, order.entries.len()), (64, 6));
    }
}
