//! The stages of an operation, and how the far end tells of its own.
//!
//! Behind the fixed part of COUNTERS, where the REPORT had [`crate::wire::FLAG_STAGES`]; little-endian:
//!
//! | bytes | field | meaning |
//! |---|---|---|
//! | 0 | stage | 1 queue, 2 send; others are passed over |
//! | 1 | | 0 |
//! | 2..4 | buckets | that follow, of [`Spans`] |
//! | 4..8 | | 0 |
//! | 8..16 | sum | nanoseconds in this stage, in all |
//! | 16.. | buckets | 6 bytes each: number (2), count (4) |

use crate::Error;
use crate::wire::COUNTERS;
use alloc::collections::VecDeque;
use hodo_machine::{Cursor, Instant, Moment, Outbox, Spans, Stamp, Truncated};

/// From its start, or at the far end from its arrival, until the system call that writes it or its answer.
pub const QUEUE: &str = "queue";
/// That system call, with all that it writes.
pub const SEND: &str = "send";
/// From then on until the answer is received: the network both ways, the far end, and waking up.
pub const AWAY: &str = "wire and far end";

/// The stages that a far end tells of, in their order; on the wire they are numbered from 1.
const FAR: [&str; 2] = [QUEUE, SEND];
const HEAD: usize = 16;
const BUCKET: usize = 6;
/// Bytes behind the header of COUNTERS at most.
pub const COUNTERS_MAX: usize = COUNTERS + FAR.len() * (HEAD + Spans::BUCKETS * BUCKET);

/// How long the far end's stages took, of all operations since they were first asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FarStages([Spans; FAR.len()]);

impl FarStages {
    /// Iterates over the stages in order, each with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Spans)> {
        FAR.into_iter().zip(&self.0)
    }

    /// Bytes that [`FarStages::encode`] appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.0.iter().map(|spans| HEAD + spans.buckets().count() * BUCKET).sum()
    }

    /// Appends what stands behind the fixed part of COUNTERS.
    pub fn encode(&self, out: &mut Outbox) {
        for (stage, spans) in (1_u8..).zip(&self.0) {
            let mut head = [0; HEAD];
            head[0] = stage;
            head[2..4].copy_from_slice(&(spans.buckets().count() as u16).to_le_bytes());
            head[8..16].copy_from_slice(&spans.sum_ns().to_le_bytes());
            out.copy(&head);
            for (bucket, count) in spans.buckets() {
                out.copy(&bucket.to_le_bytes());
                out.copy(&count.to_le_bytes());
            }
        }
    }

    /// Reads what [`FarStages::encode`] wrote.
    ///
    /// # Errors
    /// [`Error::Length`] if the bytes do not hold whole stages.
    pub fn decode(bytes: &[u8]) -> Result<FarStages, Error> {
        let mut stages = FarStages::default();
        let short = |_: Truncated| Error::Length { told: COUNTERS_MAX, came: COUNTERS + bytes.len() };
        let mut cursor = Cursor::new(bytes);
        while !cursor.rest().is_empty() {
            let (stage, _) = (cursor.u8().map_err(short)?, cursor.u8().map_err(short)?);
            let buckets = cursor.u16_le().map_err(short)?;
            cursor.u32_le().map_err(short)?;
            let sum_ns = cursor.u64_le().map_err(short)?;
            let mut spans = stages.0.get_mut(usize::from(stage).wrapping_sub(1));
            for _ in 0..buckets {
                let (bucket, count) = (cursor.u16_le().map_err(short)?, cursor.u32_le().map_err(short)?);
                if let Some(spans) = &mut spans {
                    spans.add_bucket(bucket, count);
                }
            }
            if let Some(spans) = spans {
                spans.add_sum_ns(sum_ns);
            }
        }
        Ok(stages)
    }

    /// Adds those of another channel.
    pub fn add(&mut self, other: &FarStages) {
        for (spans, more) in self.0.iter_mut().zip(&other.0) {
            spans.add(more);
        }
    }
}

/// The stages of what a server answers to one peer.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    pub(crate) spans: FarStages,
    /// When what was asked for arrived, of each answer that is marked and not stamped.
    arrived: VecDeque<Instant>,
    /// When the one that is being stamped began to be written.
    sending: Instant,
}

impl Answered {
    /// Marks an answer that this poll writes, to what arrived then.
    pub(crate) fn mark(&mut self, arrived: Instant, tag: u64, out: &mut Outbox) {
        self.arrived.push_back(arrived);
        out.mark(QUEUE, tag, Moment::Sending);
        out.mark(SEND, tag, Moment::Sent);
    }

    /// Counts a stage of the oldest answer that is not stamped.
    pub(crate) fn stamped(&mut self, stamp: Stamp) {
        let [queue, send] = &mut self.spans.0;
        let Some(arrived) = self.arrived.front() else { return };
        if stamp.stage == QUEUE {
            queue.record(stamp.at.nanos_since(*arrived));
            self.sending = stamp.at;
        } else {
            send.record(stamp.at.nanos_since(self.sending));
            self.arrived.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn encoded(stages: &FarStages) -> Vec<u8> {
        let mut out = Outbox::new();
        stages.encode(&mut out);
        assert_eq!(out.len(), stages.encoded_len());
        out.pieces().iter().flat_map(|piece| out.bytes(piece).to_vec()).collect()
    }

    #[test]
    fn stages_are_these_bytes() {
        let mut stages = FarStages::default();
        stages.0[0].record(64);
        stages.0[0].record(65);
        #[rustfmt::skip]
        let bytes = [
            1, 0, 1, 0, 0, 0, 0, 0, 129, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0,
            2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(encoded(&stages), bytes);
        assert_eq!(FarStages::decode(&bytes), Ok(stages));
    }

    #[test]
    fn stages_add_up_and_unknown_ones_are_passed_over() {
        let mut stages = FarStages::default();
        (0..1000).for_each(|n| stages.0[1].record(n * n));
        let mut bytes = encoded(&stages);
        bytes.extend([9, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0]);
        let mut sum = FarStages::default();
        for count in 1..=2 {
            sum.add(&FarStages::decode(&bytes).expect("what was encoded, and one stage more"));
            assert_eq!((sum.0[1].count(), sum.0[1].sum_ns()), (count * 1000, count * stages.0[1].sum_ns()));
        }
    }

    #[test]
    fn what_is_cut_short_is_refused() {
        let mut stages = FarStages::default();
        stages.0[0].record(1);
        let bytes = encoded(&stages);
        for end in 1..bytes.len() {
            let whole = end == HEAD + BUCKET;
            assert_eq!(FarStages::decode(&bytes[..end]).is_ok(), whole, "{end} bytes");
        }
    }

    #[test]
    fn the_largest_fits() {
        let mut stages = FarStages::default();
        for spans in &mut stages.0 {
            (0..Spans::BUCKETS as u16).for_each(|bucket| assert!(spans.add_bucket(bucket, u32::MAX)));
        }
        assert_eq!(COUNTERS + stages.encoded_len(), COUNTERS_MAX);
    }
}
