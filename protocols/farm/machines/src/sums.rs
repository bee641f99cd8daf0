use crate::ledger::Ledger;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use twox_hash::XxHash3_64;

/// Events of one piece.
const PIECE: usize = 1024;
/// The sum of an event that never came.
const NEVER: u32 = 0;
/// The sum of one that came without data that could be compared.
const BARE: u32 = 1;

/// The checksums of the events that came last, so that a number which comes again is told from one that other data has. It takes
/// so many bytes at most, and forgets those first that came first.
#[derive(Debug, Clone)]
pub(crate) struct Sums {
    /// By run, and by number.
    pieces: BTreeMap<(u32, u64), Piece>,
    /// The pieces in the order in which they came.
    order: VecDeque<(u32, u64)>,
    bytes: usize,
    bytes_max: usize,
    /// A table that is not in use.
    spare: Option<Box<[u32; PIECE]>>,
    /// Runs, the last ones, and the event below which some of each may have been forgotten.
    forgotten: BTreeMap<u32, u64>,
}

/// The sums of successive numbers.
#[derive(Debug, Clone)]
enum Piece {
    /// A few of them, in order.
    List(Vec<(u16, u32)>),
    /// Any of them.
    Table(Box<[u32; PIECE]>),
}

impl Piece {
    /// Sums from which on a table takes less than a list.
    const LIST_MAX: usize = PIECE / 2;

    fn of(&self, at: usize) -> u32 {
        match self {
            Piece::Table(table) => table[at],
            Piece::List(list) => {
                list.binary_search_by_key(&at, |(at, _)| usize::from(*at)).map_or(NEVER, |place| list[place].1)
            }
        }
    }

    /// Tells whether most of the numbers came, by some of them.
    fn is_full(&self) -> bool {
        const LOOKED_AT: usize = 16;
        let came = |table: &[u32; PIECE]| {
            table.iter().step_by(PIECE / LOOKED_AT).filter(|sum| **sum != NEVER).count() > LOOKED_AT * 3 / 4
        };
        matches!(self, Piece::Table(table) if came(table))
    }

    /// Returns its bytes of memory: of a list with its places among the pieces and in their order.
    fn bytes(&self) -> usize {
        const AROUND: usize = 112;
        match self {
            Piece::List(list) => AROUND + list.capacity() * size_of::<(u16, u32)>(),
            Piece::Table(_) => PIECE * size_of::<u32>(),
        }
    }
}

/// The knowledge of an event's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// It came with this checksum; `None` where there was nothing to compare.
    Came(Option<u32>),
    /// It has not come.
    Never,
    /// It may have come long ago.
    Forgotten,
}

impl Sums {
    /// Returns the checksum of data: none of the marks of events without one.
    #[inline]
    pub(crate) fn sum(data: &[u8]) -> u32 {
        (XxHash3_64::oneshot(data) as u32).max(BARE + 1)
    }

    /// Remembers so many events of consecutive numbers; the fewer the further apart they are, a fortieth at least.
    pub(crate) fn new(events: usize) -> Self {
        Sums {
            pieces: BTreeMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            bytes_max: events.max(2 * PIECE) * size_of::<u32>(),
            spare: None,
            forgotten: BTreeMap::new(),
        }
    }

    /// Enters an event, with its checksum where its data can be compared.
    #[inline]
    pub(crate) fn enter(&mut self, (run, event): (u32, u64), sum: Option<u32>) {
        let sum = sum.unwrap_or(BARE);
        let (key, at) = ((run, event / PIECE as u64), (event % PIECE as u64) as usize);
        if let Some(Piece::Table(table)) = self.pieces.get_mut(&key) {
            table[at] = sum;
            return;
        }
        self.enter_in_list(key, at, sum);
        while self.bytes > self.bytes_max && self.order.len() > 1 {
            self.forget_oldest();
        }
    }

    fn enter_in_list(&mut self, key: (u32, u64), at: usize, sum: u32) {
        let Sums { pieces, order, bytes, spare, .. } = self;
        // Numbers that follow one another go on to do so.
        let is_dense = order.back().and_then(|last| pieces.get(last)).is_some_and(Piece::is_full);
        let before = pieces.get(&key).map_or(0, Piece::bytes);
        let mut table = || spare.take().unwrap_or_else(|| Box::new([NEVER; PIECE]));
        let piece = pieces.entry(key).or_insert_with(|| {
            order.push_back(key);
            if is_dense { Piece::Table(table()) } else { Piece::List(Vec::new()) }
        });
        if let Piece::List(list) = piece
            && list.len() >= Piece::LIST_MAX
        {
            let mut table = table();
            list.iter().for_each(|(at, sum)| table[usize::from(*at)] = *sum);
            *piece = Piece::Table(table);
        }
        match piece {
            Piece::Table(table) => table[at] = sum,
            Piece::List(list) => match list.binary_search_by_key(&at, |(at, _)| usize::from(*at)) {
                Ok(place) => list[place].1 = sum,
                Err(place) => list.insert(place, (at as u16, sum)),
            },
        }
        *bytes = *bytes - before + piece.bytes();
    }

    fn forget_oldest(&mut self) {
        let Some(out) = self.order.pop_front() else { return };
        let Some(piece) = self.pieces.remove(&out) else { return };
        self.bytes -= piece.bytes();
        let below = self.forgotten.entry(out.0).or_default();
        *below = (*below).max((out.1 + 1).saturating_mul(PIECE as u64));
        if self.forgotten.len() > Ledger::RUNS_MAX {
            self.forgotten.pop_first();
        }
        if let Piece::Table(mut table) = piece {
            table.fill(NEVER);
            self.spare = Some(table);
        }
    }

    /// Returns what is known of an event.
    pub(crate) fn of(&self, (run, event): (u32, u64)) -> Known {
        let piece = self.pieces.get(&(run, event / PIECE as u64));
        let forgotten = || self.forgotten.get(&run).is_some_and(|below| event < *below);
        match piece.map(|piece| piece.of((event % PIECE as u64) as usize)) {
            Some(BARE) => Known::Came(None),
            Some(NEVER) | None if forgotten() => Known::Forgotten,
            Some(NEVER) | None => Known::Never,
            Some(sum) => Known::Came(Some(sum)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_last_is_known_and_the_rest_is_forgotten_in_order() {
        let mut sums = Sums::new(2 * PIECE);
        for event in 0..3 * PIECE as u64 {
            assert_eq!(sums.of((7, event)), Known::Never);
            sums.enter((7, event), (event % 2 == 0).then_some(event as u32 + 2));
        }
        assert_eq!((sums.of((7, 5)), sums.of((8, 5))), (Known::Forgotten, Known::Never));
        assert_eq!((sums.of((7, 1024)), sums.of((7, 1025))), (Known::Came(Some(1026)), Known::Came(None)));
        assert_eq!(sums.of((7, 3 * PIECE as u64)), Known::Never);
        // One of another run takes the place of the oldest.
        sums.enter((8, 1 << 40), Some(2));
        assert_eq!((sums.of((7, 1024)), sums.of((7, 2048))), (Known::Forgotten, Known::Came(Some(2050))));
        assert_eq!(sums.of((8, 1 << 40)), Known::Came(Some(2)));
        assert!(Sums::sum(b"") > BARE, "whose checksum is 0");
    }
    #[test]
    fn numbers_that_are_far_apart_are_remembered_in_great_number() {
        // Consecutive ones first, which are no sign of what follows.
        for (step, least) in
            [(1, 1 << 21), (2, 1 << 20), (25, 1_000_000), (1024, 110_000), (2000, 110_000), (1 << 40, 110_000)]
        {
            let (mut sums, count) = (Sums::new(1 << 22), 1 << 21);
            (0..10_000).for_each(|event| sums.enter((0, event), Some(2)));
            for event in 0..count {
                sums.enter((1, event * step), Some(event as u32 + 2));
            }
            let known =
                (0..count).rev().take_while(|event| sums.of((1, event * step)) == Known::Came(Some(*event as u32 + 2)));
            let known = known.count();
            assert!(known >= least, "{known} of numbers {step} apart");
            let bytes: usize = sums.pieces.values().map(Piece::bytes).sum();
            assert!(bytes == sums.bytes && bytes <= sums.bytes_max, "{bytes}, {sums:?}");
        }
    }

    #[test]
    fn numbers_in_any_order_are_found() {
        let mut random = hodo_machine::Random::new(1);
        let mut sums = Sums::new(1 << 20);
        let mut entered = BTreeMap::new();
        for _ in 0..100_000 {
            let event = random.below(60) * PIECE as u64 * 3 + random.below(PIECE as u64);
            let sum = random.bits() as u32 | 2;
            sums.enter((1, event), Some(sum));
            entered.insert(event, sum);
        }
        assert!(entered.iter().all(|(event, sum)| sums.of((1, *event)) == Known::Came(Some(*sum))));
        assert_eq!(sums.of((1, PIECE as u64)), Known::Never);
    }
}
