use crate::builder::FRAGMENT;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// Numbers whose checksums stand together.
const CHUNK: usize = 128;
/// The place of a number whose data cannot be compared.
const UNKNOWN: u32 = 0;
/// That of one without data.
const NOTHING: u32 = 1;
/// That of one whose data never came, and are not waited for any more.
const MISSING: u32 = 2;
/// Stands in the place of a source for the whole event.
const WHOLE: u32 = u32::MAX;
/// Stands there for all fragments of an event that went on without some.
const LACKING: u32 = u32::MAX - 2;

/// An event's data, as far as it is compared with what comes under the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// There is none, says who gives it.
    Nothing,
    /// It has not come, and is not waited for.
    Missing,
    /// Data with this checksum; of an event that is built of fragments, that of their checksums.
    Sum(u32),
    /// Data that cannot be compared.
    Unknown,
}

impl Content {
    /// Returns what is compared of these bytes.
    #[must_use]
    #[inline]
    pub fn of(payload: &[u8]) -> Content {
        Content::Sum(crc32fast::hash(payload))
    }

    /// Returns the content as a number, to be stored: 0 where it is not known.
    #[must_use]
    pub fn code(self) -> u32 {
        match self {
            Content::Nothing => NOTHING,
            Content::Missing => MISSING,
            // The least checksums have other meanings, and are taken for the next one.
            Content::Sum(sum) => sum.max(MISSING + 1),
            Content::Unknown => UNKNOWN,
        }
    }

    /// Returns the content of this code.
    #[must_use]
    pub const fn from_code(code: u32) -> Content {
        match code {
            UNKNOWN => Content::Unknown,
            NOTHING => Content::Nothing,
            MISSING => Content::Missing,
            sum => Content::Sum(sum),
        }
    }
}

/// The data that are given under a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data<'a> {
    /// A source has none.
    Nothing,
    /// A builder gives the event up: it may have had fragments, and they are gone.
    GivenUp,
    /// The event as a source has it.
    Event(&'a [u8]),
    /// The fragments of a built event, and whether these are all.
    Fragments(&'a [u8], bool),
    /// A fragment of an event, which is compared by itself.
    Part,
}

impl Data<'_> {
    /// Returns what is compared of the whole event, where this is one.
    pub fn content(self) -> Content {
        match self {
            Data::Event(payload) => Content::of(payload),
            Data::Fragments(payload, true) => joined(&parts(payload)),
            Data::Nothing | Data::GivenUp | Data::Fragments(..) | Data::Part => Content::Unknown,
        }
    }
}

/// The outcome of a comparison: of several fragments, that of the one that is least alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// It is the same, or there is nothing that could be lost.
    Same,
    /// It was not waited for any more.
    Late,
    /// The data that were given before are not known any more, or cannot be compared.
    Unknown,
    /// It is other data.
    Other,
}

/// The checksums of the newest numbers of all runs: as many as there is memory for.
#[derive(Debug, Clone)]
pub struct Sums {
    chunks: BTreeMap<Key, Box<[u32; CHUNK]>>,
    /// In the order in which they were begun.
    order: VecDeque<Key>,
    chunks_max: usize,
}

/// A run, a source or [`WHOLE`], and numbers that stand together.
type Key = (u32, u32, u64);

/// Fragments with their sources, each as it is compared.
type Parts = Vec<(u32, Content)>;

impl Default for Sums {
    /// Has 64 MiB: of 16 million numbers that follow each other.
    fn default() -> Self {
        Sums::new(64 << 20)
    }
}

impl Sums {
    /// Creates a memory of so many bytes, and of one chunk at least.
    pub fn new(bytes: usize) -> Self {
        let chunks_max = (bytes / size_of::<[u32; CHUNK]>()).max(1);
        Sums { chunks: BTreeMap::new(), order: VecDeque::new(), chunks_max }
    }

    /// Enters the fragment that a source has for an event.
    pub fn enter_part(&mut self, (run, event): (u32, u64), source: u32, content: Content) {
        let (key, index) = place(run, source, event);
        if let Some(chunk) = self.chunks.get_mut(&key) {
            chunk[index] = content.code();
        } else if content != Content::Unknown {
            self.begin(key)[index] = content.code();
        }
    }

    /// Enters the content of an event.
    pub fn enter_content(&mut self, run: u32, event: u64, content: Content) {
        self.enter_part((run, event), WHOLE, content);
    }

    /// Enters what a number has, and returns what of it is compared.
    pub fn enter(&mut self, run: u32, event: u64, data: Data<'_>) -> Content {
        let content = match data {
            Data::Nothing => Content::Nothing,
            Data::Event(payload) => Content::of(payload),
            Data::Part => return Content::Unknown,
            Data::GivenUp => {
                self.enter_part((run, event), LACKING, joined(&Vec::new()));
                return Content::Unknown;
            }
            Data::Fragments(payload, are_all) => {
                let parts = parts(payload);
                parts.iter().for_each(|(source, content)| self.enter_part((run, event), *source, *content));
                let joined = joined(&parts);
                if are_all {
                    joined
                } else {
                    self.enter_part((run, event), LACKING, joined);
                    Content::Unknown
                }
            }
        };
        self.enter_content(run, event, content);
        content
    }

    /// Compares data with those that the number has.
    pub fn compare(&self, run: u32, event: u64, data: Data<'_>) -> Likeness {
        match data {
            Data::Nothing | Data::GivenUp => Likeness::Same,
            Data::Part => Likeness::Unknown,
            Data::Event(payload) => self.compare_part((run, event), WHOLE, Content::of(payload)),
            Data::Fragments(payload, are_all) => {
                let parts = parts(payload);
                let whole = if are_all { joined(&parts) } else { Content::Unknown };
                let whole = self.compare_part((run, event), WHOLE, whole);
                if whole == Likeness::Same {
                    return whole;
                }
                // Another builder has had more of them, or fewer.
                let all = parts.iter().map(|(source, content)| self.compare_fragment((run, event), *source, *content));
                match all.max().unwrap_or(Likeness::Same) {
                    Likeness::Unknown => whole,
                    known => known,
                }
            }
        }
    }

    /// Returns the sources of the fragments without which an event is known to have gone on: bit n stands for those of number n
    /// modulo 64.
    pub fn late(&self, run: u32, event: u64, payload: &[u8]) -> u64 {
        let is_late = |(source, content): &(u32, Content)| {
            self.compare_fragment((run, event), *source, *content) == Likeness::Late
        };
        parts(payload).iter().filter(|part| is_late(part)).fold(0, |all, (source, _)| all | 1 << (source % 64))
    }

    /// Compares a fragment of a built event: it is late where all are known that the event went on with.
    fn compare_fragment(&self, key: (u32, u64), source: u32, content: Content) -> Likeness {
        match self.compare_part(key, source, content) {
            Likeness::Unknown if self.went_on_without(key, source) => Likeness::Late,
            likeness => likeness,
        }
    }

    fn went_on_without(&self, (run, event): (u32, u64), source: u32) -> bool {
        let lacking = self.code((run, event), LACKING);
        if lacking == UNKNOWN || self.code((run, event), source) != UNKNOWN {
            return false;
        }
        let (mut known, mut from) = (Vec::new(), Some(0));
        while let Some(next) = from {
            // Each source has its chunks one behind the other.
            let chunk = (run, next, event / CHUNK as u64);
            let Some(((of_run, of, at), numbers)) = self.chunks.range(chunk..).next() else { break };
            if *of_run != run || *of >= LACKING {
                break;
            }
            let is_here = *at == chunk.2;
            if let Some(code) = numbers.get((event % CHUNK as u64) as usize).filter(|code| is_here && **code != UNKNOWN)
            {
                known.push((*of, Content::from_code(*code)));
            }
            from = if is_here || *of == next { next.max(*of).checked_add(1) } else { Some(*of) };
        }
        joined(&known).code() == lacking
    }

    /// Returns the fragments of a built event that are not known to be those which their sources have for it, each with its
    /// source; none where nothing is known of any.
    pub fn differing<'a>(&self, run: u32, event: u64, payload: &'a [u8]) -> Vec<(u32, &'a [u8])> {
        let compared = fragments(payload).map(|(source, fragment)| {
            (self.compare_part((run, event), source, Content::of(fragment)), (source, fragment))
        });
        let compared: Vec<_> = compared.collect();
        if compared.iter().all(|(likeness, _)| *likeness == Likeness::Unknown) {
            return Vec::new();
        }
        compared.into_iter().filter(|(likeness, _)| *likeness != Likeness::Same).map(|(_, of)| of).collect()
    }

    /// Compares a fragment with the one that its source has for the event.
    pub fn compare_part(&self, key: (u32, u64), source: u32, content: Content) -> Likeness {
        match (self.code(key, source), content) {
            (_, Content::Nothing) => Likeness::Same,
            (UNKNOWN, _) | (_, Content::Unknown) => Likeness::Unknown,
            (MISSING, _) => Likeness::Late,
            (known, content) if known == content.code() => Likeness::Same,
            _ => Likeness::Other,
        }
    }

    /// Returns the fragment that a source has for an event, as it is compared.
    pub fn part(&self, key: (u32, u64), source: u32) -> Content {
        Content::from_code(self.code(key, source))
    }

    fn code(&self, (run, event): (u32, u64), source: u32) -> u32 {
        let (key, index) = place(run, source, event);
        self.chunks.get(&key).map_or(UNKNOWN, |chunk| chunk[index])
    }

    fn begin(&mut self, key: Key) -> &mut [u32; CHUNK] {
        if self.order.len() >= self.chunks_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.chunks.remove(&oldest);
        }
        self.order.push_back(key);
        self.chunks.entry(key).or_insert_with(|| Box::new([UNKNOWN; CHUNK]))
    }
}

fn place(run: u32, source: u32, event: u64) -> (Key, usize) {
    ((run, source, event / CHUNK as u64), (event % CHUNK as u64) as usize)
}

/// Returns the fragments of a built event with their sources. Bytes behind the last one that is whole are of no source.
fn fragments(payload: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let mut rest = payload;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(([a, b, c, d, length @ ..], behind)) = rest.split_first_chunk::<FRAGMENT>()
            && let Some((fragment, behind)) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)
        {
            rest = behind;
            return Some((u32::from_le_bytes([*a, *b, *c, *d]), fragment));
        }
        Some((WHOLE - 1, core::mem::take(&mut rest)))
    })
}

fn parts(payload: &[u8]) -> Parts {
    fragments(payload).map(|(source, fragment)| (source, Content::of(fragment))).collect()
}

/// Returns the content of an event that is built of these fragments.
fn joined(parts: &Parts) -> Content {
    let mut hasher = crc32fast::Hasher::new();
    for (source, content) in parts {
        hasher.update(&source.to_le_bytes());
        hasher.update(&content.code().to_le_bytes());
    }
    Content::Sum(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Likeness::{Late, Other, Same, Unknown};
    use alloc::vec;

    #[test]
    fn data_are_told_apart_under_each_number() {
        let mut sums = Sums::new(1 << 20);
        let events = [0, 1, CHUNK as u64 - 1, CHUNK as u64, u64::MAX - 1];
        for event in events {
            sums.enter(7, event, Data::Event(&event.to_le_bytes()));
        }
        for event in events {
            assert_eq!(sums.compare(7, event, Data::Event(&event.to_le_bytes())), Same);
            assert_eq!(sums.compare(7, event, Data::Event(b"other")), Other);
            assert_eq!(sums.compare(8, event, Data::Event(b"other")), Unknown, "another run's");
        }
        assert_eq!(sums.compare(7, 2, Data::Event(b"other")), Unknown);
    }

    #[test]
    fn nothing_is_lost_with_nothing_and_something_is_other_than_nothing() {
        let mut sums = Sums::new(1 << 20);
        sums.enter(1, 0, Data::Nothing);
        sums.enter(1, 1, Data::Event(b"abc"));
        let compared = |event, data| sums.compare(1, event, data);
        assert_eq!([compared(0, Data::Nothing), compared(1, Data::Nothing), compared(1, Data::GivenUp)], [Same; 3]);
        assert_eq!([compared(0, Data::Event(b"abc")), compared(1, Data::Event(b"abc"))], [Other, Same]);
        let zero = sums.compare_part((1, 0), WHOLE, Content::Sum(0));
        assert_eq!(zero, Other, "not taken for the mark of nothing, or of no knowledge");
        sums.enter_part((1, 2), 5, Content::Missing);
        assert_eq!(sums.compare_part((1, 2), 5, Content::of(b"abc")), Late);
    }

    fn built(fragments: &[(u32, &[u8])]) -> Vec<u8> {
        let fragment = |(source, data): &(u32, &[u8])| {
            [&source.to_le_bytes()[..], &(data.len() as u32).to_le_bytes(), data].concat()
        };
        fragments.iter().flat_map(fragment).collect()
    }

    #[test]
    fn built_events_are_compared_by_the_fragments_that_both_have() {
        let mut sums = Sums::new(1 << 20);
        let whole = built(&[(0, b"a"), (1, b"bc"), (2, b"")]);
        assert!(matches!(sums.enter(1, 5, Data::Fragments(&whole, true)), Content::Sum(_)));
        let compared =
            |fragments: &[(u32, &[u8])], are_all| sums.compare(1, 5, Data::Fragments(&built(fragments), are_all));
        assert_eq!(compared(&[(0, b"a"), (1, b"bc"), (2, b"")], true), Same);
        assert_eq!(compared(&[(0, b"a"), (1, b"bc"), (2, b"x")], true), Other);
        assert_eq!(compared(&[(1, b"bc")], false), Same, "its builder came when the others had their verdict");
        assert_eq!(compared(&[(1, b"b")], false), Other);
        assert_eq!(compared(&[(1, b"bc"), (3, b"d")], false), Unknown);
        assert_eq!(compared(&[], false), Same);
        assert_eq!(compared(&[(0, b"a"), (1, b"bc")], true), Same, "its builder expects fewer");
        assert_eq!(compared(&[(0, b"a"), (1, b"bc"), (2, b""), (3, b"d")], true), Other, "or more");
        let given = built(&[(0, b"a"), (1, b"x"), (2, b""), (3, b"d")]);
        assert_eq!(sums.differing(1, 5, &given), [(1, &b"x"[..]), (3, b"d")]);
        assert_eq!(sums.differing(1, 7, &given), [], "it is all that is known to be given");
        let part = built(&[(1, b"bc")]);
        assert_eq!(sums.enter(1, 6, Data::Fragments(&part, false)), Content::Unknown);
        assert_eq!(sums.compare(1, 6, Data::Fragments(&whole, true)), Late, "it lacked two of them");
        assert_eq!(sums.late(1, 6, &whole), 1 << 0 | 1 << 2);
        assert_eq!(sums.compare(1, 6, Data::Fragments(&built(&[(1, b"x"), (2, b"")]), true)), Other);
        assert_eq!((sums.late(1, 5, &whole), sums.late(1, 7, &whole)), (0, 0));
        sums.enter(1, 8, Data::GivenUp);
        assert_eq!((sums.compare(1, 8, Data::Fragments(&part, false)), sums.late(1, 8, &part)), (Late, 1 << 1));
        // What it had is not all known any more: others may have been in it.
        sums.enter_part((1, 6), 1, Content::Unknown);
        assert_eq!((sums.compare(1, 6, Data::Fragments(&whole, true)), sums.late(1, 6, &whole)), (Unknown, 0));
        for cut in 1..whole.len() {
            let foreign = vec![7; cut];
            assert_ne!(sums.compare(1, 5, Data::Fragments(&foreign, true)), Same, "no fragments at all");
        }
    }

    /// Whatever numbers sources have, and whatever else is known of them.
    #[test]
    fn the_fragments_of_an_event_are_found_among_all_that_are_known() {
        for seed in 0..200 {
            let (mut sums, mut random) = (Sums::new(1 << 20), hodo_machine::Random::new(seed));
            let mut sources: Vec<u32> = (0..8).map(|_| random.below(20) as u32).collect();
            sources.sort_unstable();
            sources.dedup();
            for _ in 0..30 {
                let (source, event) = (random.below(20) as u32, random.below(600));
                let run = 1 + random.below(3) as u32;
                if (run, event) != (2, 300) {
                    sums.enter_part((run, event), source, Content::Sum(9));
                }
            }
            let fragments: Vec<(u32, &[u8])> = sources.iter().map(|source| (*source, &b"a"[..])).collect();
            sums.enter(2, 300, Data::Fragments(&built(&fragments), false));
            for source in 0..20 {
                let is_late = sums.late(2, 300, &built(&[(source, b"b")])) != 0;
                assert_eq!(is_late, !sources.contains(&source), "seed {seed}, source {source} of {sources:?}");
            }
        }
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_go_first() {
        let mut sums = Sums::new(4 * size_of::<[u32; CHUNK]>());
        for chunk in 0..10 {
            sums.enter_content(1, chunk * CHUNK as u64, Content::Sum(7));
        }
        assert_eq!((sums.chunks.len(), sums.order.len()), (4, 4));
        let known = |chunk: u64| sums.compare_part((1, chunk * CHUNK as u64), WHOLE, Content::Sum(7)) == Same;
        assert!((0..10).all(|chunk| known(chunk) == (chunk >= 6)));
    }
}
