use hodo_machine::Peer;

/// The numbers of the accepted peers of one kind. If there are two kinds, each has every second number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbering {
    first: usize,
    step: usize,
}

impl Default for Numbering {
    /// Returns the numbering of a single kind, which has all numbers.
    fn default() -> Self {
        Numbering { first: 0, step: 1 }
    }
}

impl Numbering {
    pub(crate) const EVEN: Self = Numbering { first: 0, step: 2 };
    pub(crate) const ODD: Self = Numbering { first: 1, step: 2 };

    /// Returns an index in a table of accepted peers: a free one, or the next one, for which the table grows.
    pub(crate) fn place<T>(self, free: &mut Vec<u32>, table: &mut Vec<Option<T>>) -> u32 {
        free.pop().unwrap_or_else(|| {
            let index = table.len().saturating_sub(self.first).next_multiple_of(self.step) + self.first;
            table.resize_with(index + 1, || None);
            index as u32
        })
    }
}

/// Returns the number of the accepted peer at this index.
pub(crate) const fn accepted(index: u32) -> Peer {
    Peer(Peer::FIRST_ACCEPTED + index)
}
