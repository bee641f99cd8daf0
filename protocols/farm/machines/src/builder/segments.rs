use crate::Ranges;
use crate::wire::{Kind, Segment};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::ops::Range;

/// A source, a run and an event's number.
type Key = (u32, u32, u64);

/// Fragments whose segments come, in any order and any number of times.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    pending: BTreeMap<Key, Pending>,
}

#[derive(Debug)]
struct Pending {
    kind: Kind,
    bytes: BytesMut,
    came: Ranges,
}

impl Segments {
    /// Takes a segment in; answers the fragment, where that is whole. A source may have so many fragments, and bytes of
    /// them, that are not; what is more is let go, to be sent again.
    pub(crate) fn offer(&mut self, segment: &Segment, data: &[u8], credits: u32, window: u64) -> Option<Bytes> {
        if segment.length == segment.total {
            self.pending.remove(&(segment.source, segment.run, segment.event));
            return Some(Bytes::copy_from_slice(data));
        }
        let key = (segment.source, segment.run, segment.event);
        if !self.pending.contains_key(&key) {
            let of_source = self.pending.range((segment.source, 0, 0)..=(segment.source, u32::MAX, u64::MAX));
            let (count, bytes) =
                of_source.fold((0, 0), |(count, bytes), (_, one)| (count + 1, bytes + one.bytes.len()));
            if count >= credits || bytes as u64 + u64::from(segment.total) > window {
                return None;
            }
            let bytes = BytesMut::zeroed(segment.total as usize);
            self.pending.insert(key, Pending { kind: segment.kind, bytes, came: Ranges::default() });
        }
        let pending = self.pending.get_mut(&key)?;
        if pending.bytes.len() != segment.total as usize || pending.kind != segment.kind {
            // Another program with the same number: what came last is right.
            self.pending.remove(&key);
            return self.offer(segment, data, credits, window);
        }
        let (start, end) = (u64::from(segment.offset), u64::from(segment.offset) + u64::from(segment.length));
        pending.bytes.get_mut(start as usize..end as usize)?.copy_from_slice(data);
        pending.came.insert_range(start..end);
        if pending.came.count() < u64::from(segment.total) {
            return None;
        }
        self.pending.remove(&key).map(|pending| pending.bytes.freeze())
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
        self.pending.retain(|(of, _, _), _| *of != source);
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
}
