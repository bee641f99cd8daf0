use crate::Ranges;
use crate::wire::{Kind, Segment};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::ops::Range;

/// The parts of a fragment that are here and do not touch, at most: each segment looks for its place among them. A segment beyond
/// them is let go, to be sent again when the first ones have come.
const PARTS_MAX: usize = 1024;
/// Questions without an answer after which [`Segments::ask`] forgets a fragment.
const ASKED_MAX: u8 = 8;

/// A source, a run and an event's number.
type Key = (u32, u32, u64);

/// Fragments whose segments come, in any order and any number of times.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    pending: BTreeMap<Key, Pending>,
    /// Fragments of each source that are pending, and bytes of them.
    of_source: BTreeMap<u32, (u32, u64)>,
    touches: u64,
}

#[derive(Debug)]
struct Pending {
    kind: Kind,
    bytes: BytesMut,
    came: Ranges,
    /// Bytes that have come.
    filled: u32,
    /// Questions for what is lacking since the last that came.
    asked: u8,
    /// When the last came, by the count of those that [`Segments::insist`] has taken.
    touched: u64,
}

impl Segments {
    /// Takes a segment in; answers the fragment, where that is whole. A source may have so many fragments, and bytes of
    /// them, that are not; what is more is let go, to be sent again.
    pub(crate) fn offer(&mut self, segment: &Segment, data: &[u8], credits: u32, window: u64) -> Option<Bytes> {
        let key = (segment.source, segment.run, segment.event);
        if segment.length == segment.total {
            self.take(&key);
            return Some(Bytes::copy_from_slice(data));
        }
        if !self.pending.contains_key(&key) {
            let (count, bytes) = self.of_source.entry(segment.source).or_default();
            if *count >= credits || *bytes + u64::from(segment.total) > window {
                return None;
            }
            (*count, *bytes) = (*count + 1, *bytes + u64::from(segment.total));
            let bytes = BytesMut::zeroed(segment.total as usize);
            self.pending.insert(
                key,
                Pending { kind: segment.kind, bytes, came: Ranges::default(), filled: 0, asked: 0, touched: 0 },
            );
        }
        let pending = self.pending.get_mut(&key)?;
        let is_whole = pending.filled as usize == pending.bytes.len();
        if is_whole || pending.bytes.len() != segment.total as usize || pending.kind != segment.kind {
            // Another program with the same number, or what was put back: what came last is right.
            self.take(&key);
            return self.offer(segment, data, credits, window);
        }
        let (start, end) = (u64::from(segment.offset), u64::from(segment.offset) + u64::from(segment.length));
        let is_full = pending.came.as_slice().len() >= PARTS_MAX;
        if is_full && !pending.came.touches(start..end) {
            return None;
        }
        pending.bytes.get_mut(start as usize..end as usize)?.copy_from_slice(data);
        let new = pending.came.insert_range(start..end) as u32;
        pending.filled += new;
        if new > 0 {
            pending.asked = 0;
        }
        if pending.filled < segment.total {
            return None;
        }
        self.take(&key).map(|pending| pending.bytes.freeze())
    }

    fn take(&mut self, key: &Key) -> Option<Pending> {
        let pending = self.pending.remove(key)?;
        if let Some((count, bytes)) = self.of_source.get_mut(&key.0) {
            (*count, *bytes) = (*count - 1, *bytes - pending.bytes.len() as u64);
        }
        Some(pending)
    }

    /// Keeps a fragment that is whole until it is asked for.
    pub(crate) fn put_back(&mut self, segment: &Segment, payload: Bytes) {
        let (count, bytes) = self.of_source.entry(segment.source).or_default();
        (*count, *bytes) = (*count + 1, *bytes + u64::from(segment.total));
        let (kind, filled, touched) = (segment.kind, segment.total, self.touches);
        let pending = Pending { kind, bytes: payload.into(), came: Ranges::default(), filled, asked: 0, touched };
        self.pending.insert((segment.source, segment.run, segment.event), pending);
    }

    /// Takes a fragment that is whole and was put back.
    pub(crate) fn take_whole(&mut self, segment: &Segment) -> Option<Bytes> {
        let key = (segment.source, segment.run, segment.event);
        let is_whole = self.pending.get(&key).is_some_and(|pending| pending.filled as usize == pending.bytes.len());
        if is_whole { self.take(&key).map(|pending| pending.bytes.freeze()) } else { None }
    }

    /// Returns what is lacking of a fragment of which some has come. One that has been asked for many times since then, and does not
    /// come, is forgotten: what came was late.
    pub(crate) fn ask(&mut self, segment: &Segment) -> Option<Vec<Range<u32>>> {
        let key = (segment.source, segment.run, segment.event);
        let pending = self.pending.get_mut(&key)?;
        pending.asked += 1;
        if pending.asked > ASKED_MAX {
            self.take(&key);
            return None;
        }
        Some(self.lacking(segment))
    }

    /// Takes a segment in as [`Segments::offer`]; where there is no room, what of its source was left alone for longest makes some.
    pub(crate) fn insist(&mut self, segment: &Segment, data: &[u8], credits: u32, window: u64) -> Option<Bytes> {
        let source = segment.source;
        let key = (source, segment.run, segment.event);
        self.touches += 1;
        while !self.pending.contains_key(&key)
            && let Some((count, bytes)) = self.of_source.get(&source)
            && (*count >= credits || *bytes + u64::from(segment.total) > window)
            && let of_source = self.pending.range((source, 0, 0)..=(source, u32::MAX, u64::MAX))
            && let Some(oldest) = of_source.min_by_key(|(_, pending)| pending.touched).map(|(key, _)| *key)
        {
            self.take(&oldest);
        }
        let whole = self.offer(segment, data, credits, window);
        if let Some(pending) = self.pending.get_mut(&key) {
            pending.touched = self.touches;
        }
        whole
    }

    /// Returns the first parts of a fragment that have not come.
    pub(crate) fn lacking(&self, segment: &Segment) -> Vec<Range<u32>> {
        let pending = self.pending.get(&(segment.source, segment.run, segment.event));
        let came = pending.map(|pending| pending.came.as_slice()).into_iter().flatten();
        let (mut parts, mut from) = (Vec::new(), 0);
        for range in came {
            // Within a fragment, whose length is of 28 bits.
            if range.start > from {
                parts.push(from as u32..range.start as u32);
            }
            from = range.end;
        }
        if from < u64::from(segment.total) {
            parts.push(from as u32..segment.total);
        }
        parts
    }

    /// Forgets what came of a source, which begins anew.
    pub(crate) fn forget(&mut self, source: u32) {
        if self.of_source.remove(&source).is_some_and(|(count, _)| count > 0) {
            self.pending.retain(|(of, _, _), _| *of != source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_machine::Random;

    #[test]
    fn a_fragment_is_whole_however_its_segments_come() {
        let data: Vec<u8> = (0..1000u32).map(|number| (number * 7) as u8).collect();
        for seed in 0..100 {
            let (mut random, mut segments) = (Random::new(seed), Segments::default());
            let whole = (0..10_000).find_map(|_| {
                let offset = random.below(1000) as u32;
                let length = 1 + random.below(u64::from(1000 - offset).min(200)) as u32;
                let segment = Segment { event: 1, run: 1, source: 0, kind: Kind::Event, offset, total: 1000, length };
                segments.offer(&segment, &data[offset as usize..(offset + length) as usize], 4, 5000)
            });
            assert_eq!(whole.as_deref(), Some(&data[..]), "seed {seed}");
            assert!(segments.pending.is_empty());
        }
    }

    #[test]
    fn what_is_lacking_is_told() {
        let mut segments = Segments::default();
        let segment =
            |offset, length| Segment { event: 1, run: 1, source: 0, kind: Kind::Event, offset, total: 1000, length };
        assert_eq!(segments.lacking(&segment(0, 0)).first(), Some(&(0..1000)));
        for (offset, length) in [(100, 100), (300, 200), (990, 10)] {
            assert_eq!(segments.offer(&segment(offset, length), &[0; 200][..length as usize], 4, 5000), None);
        }
        assert_eq!(segments.lacking(&segment(0, 0)), [0..100, 200..300, 500..990]);
        assert_eq!(segments.offer(&segment(0, 990), &[0; 990], 4, 5000).map(|whole| whole.len()), Some(1000));
    }

    #[test]
    fn what_is_not_whole_is_bounded() {
        let mut segments = Segments::default();
        for event in 0..100 {
            let segment = Segment { event, run: 1, source: 0, kind: Kind::Event, offset: 0, total: 1000, length: 1 };
            assert_eq!(segments.offer(&segment, b"a", 4, 3500), None);
        }
        assert_eq!(segments.pending.len(), 3);
        segments.forget(0);
        assert!(segments.pending.is_empty());
    }

    #[test]
    fn the_count_of_a_source_is_that_of_what_is_pending() {
        let (mut random, mut segments) = (Random::new(5), Segments::default());
        for _ in 0..20_000 {
            let (source, event) = (random.below(3) as u32, random.below(9));
            let total = 100 + 100 * random.below(2) as u32;
            let offset = random.below(10) as u32 * 10;
            let segment = Segment { event, run: 1, source, kind: Kind::Event, offset, total, length: 10 };
            segments.offer(&segment, &[0; 10], 5, 700);
            if random.chance(0.001) {
                segments.forget(source);
            }
            for source in 0..3 {
                let pending = || segments.pending.iter().filter(|((of, _, _), _)| *of == source);
                let bytes: usize = pending().map(|(_, one)| one.bytes.len()).sum();
                let known = segments.of_source.get(&source).copied().unwrap_or_default();
                assert_eq!(known, (pending().count() as u32, bytes as u64));
            }
        }
    }

    #[test]
    fn a_fragment_of_crumbs_has_so_many_parts_and_is_whole_in_the_end() {
        let total = 100_000;
        let segment =
            |offset, length| Segment { event: 1, run: 1, source: 0, kind: Kind::Event, offset, total, length };
        let mut segments = Segments::default();
        let mut offer = |offset, length| {
            let whole = segments.offer(&segment(offset, length), &[1; 2][..length as usize], 4, 1 << 20);
            let parts = segments.pending.values().map(|pending| pending.came.as_slice().len()).max();
            assert!(parts.is_none_or(|parts| parts <= PARTS_MAX));
            whole
        };
        assert!((0..total).step_by(2).all(|offset| offer(offset, 1).is_none()));
        let whole = (0..total).step_by(2).find_map(|offset| offer(offset, 2));
        assert_eq!(whole.map(|whole| whole.len()), Some(total as usize));
    }
}
