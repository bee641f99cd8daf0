use hodo_machine::Peer;

/// The numbers of the accepted peers of one kind, used again: the last one that became free first. If there are two
/// kinds, each has every second number.
#[derive(Debug)]
pub(crate) struct Numbering {
    next: u32,
    step: u32,
    free: Vec<u32>,
}

impl Default for Numbering {
    /// Returns the numbering of a single kind, which has all numbers.
    fn default() -> Self {
        Numbering { next: 0, step: 1, free: Vec::new() }
    }
}

impl Numbering {
    /// Gives only even numbers from now on.
    pub(crate) fn be_even(&mut self) {
        (self.next, self.step) = (self.next.next_multiple_of(2), 2);
    }

    /// Gives only odd numbers from now on.
    pub(crate) fn be_odd(&mut self) {
        (self.next, self.step) = (self.next | 1, 2);
    }

    /// Returns the next peer, for which `table` has a place then.
    pub(crate) fn take<T>(&mut self, table: &mut Vec<Option<T>>) -> Peer {
        let number = self.free.pop().unwrap_or_else(|| {
            let number = self.next;
            self.next += self.step;
            number
        });
        if table.len() <= number as usize {
            table.resize_with(number as usize + 1, || None);
        }
        Peer::accepted(number)
    }

    /// Makes the number of a peer that is gone free for another one.
    pub(crate) fn release(&mut self, peer: Peer) {
        self.free.push(peer.index() as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_kinds_share_no_number_and_numbers_are_used_again() {
        let (mut even, mut odd) = (Numbering::default(), Numbering::default());
        let (mut streams, mut datagrams) = (Vec::<Option<()>>::new(), Vec::<Option<()>>::new());
        assert_eq!(odd.take(&mut datagrams), Peer::accepted(0), "while there was one kind");
        even.be_even();
        odd.be_odd();
        let mut numbers = [(); 3].map(|()| [even.take(&mut streams).index(), odd.take(&mut datagrams).index()]);
        assert_eq!(numbers, [[0, 1], [2, 3], [4, 5]]);
        assert_eq!((streams.len(), datagrams.len()), (5, 6));
        even.release(Peer::accepted(2));
        numbers[0] = [(); 2].map(|()| even.take(&mut streams).index());
        assert_eq!(numbers[0], [2, 6]);
    }
}
