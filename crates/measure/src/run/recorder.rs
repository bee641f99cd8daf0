use super::silences::{Counters, Ended, Silences};
use super::timeline::Timeline;
use crate::Histogram;
use hodo_machine::Instant;
use std::time::Duration;

/// Operations that one link did in one repeat.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Tally {
    /// Operations done.
    pub operations: u64,
    /// Payload bytes of those.
    pub payload_bytes: u64,
    /// The time from the completion that began the repeat to the one that ended it.
    pub elapsed_s: f64,
}

/// Counts what is done, repeat by repeat.
pub(super) struct Recorder {
    repeat: Tally,
    began: Instant,
    /// Operations of this repeat that came to their end, whichever it was.
    ended: u64,
    histogram: Histogram,
    /// One histogram for each closed repeat, if the latest may turn out not to count; else `None`, and one holds all.
    apart: Option<Vec<Histogram>>,
    operations: u64,
    payload_bytes: u64,
    timeline: Timeline,
    silences: Silences,
    /// The time of all pauses, which is left out of timeline and silences.
    paused: Duration,
}

/// The records of a link at the end of its run.
pub(super) struct Recorded {
    pub histogram: Histogram,
    pub timeline: Timeline,
    pub silences: Silences,
}

impl Recorder {
    /// Creates a recorder; `apart` if this link may close repeats that turn out not to count. The histograms are put
    /// together at the end, because an operation in flight would be kept waiting for it.
    pub fn new(apart: bool) -> Self {
        Recorder {
            repeat: Tally::default(),
            began: Instant::ZERO,
            ended: 0,
            histogram: Histogram::new(),
            apart: apart.then(Vec::new),
            operations: 0,
            payload_bytes: 0,
            timeline: Timeline::new(Instant::ZERO),
            silences: Silences::new(Instant::ZERO),
            paused: Duration::ZERO,
        }
    }

    /// Forgets the warm-up; the counted time starts now.
    pub fn restart(&mut self, now: Instant) {
        self.histogram.clear();
        self.repeat = Tally::default();
        (self.ended, self.operations, self.payload_bytes) = (0, 0, 0);
        self.began = now;
        self.timeline = Timeline::new(now);
        self.silences = Silences::new(now);
        self.paused = Duration::ZERO;
    }

    /// Counts an operation that was done in this time.
    #[inline]
    pub fn done(&mut self, nanos: u64, size: u32) {
        self.histogram.record(nanos);
        self.late(size);
        self.ended += 1;
    }

    /// Counts an operation that was done after it had been given up: nobody knows how long it took.
    pub fn late(&mut self, size: u32) {
        self.repeat.operations += 1;
        self.repeat.payload_bytes += u64::from(size);
    }

    /// Counts operations that have arrived and were not waited for: they have no time.
    #[inline]
    pub fn arrived(&mut self, count: u64, size: u32) {
        self.repeat.operations += count;
        self.repeat.payload_bytes += count * u64::from(size);
        self.ended += count;
    }

    /// Counts an operation that was lost or refused.
    pub fn gone(&mut self) {
        self.ended += 1;
    }

    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// Returns the operations and bytes done since the restart.
    #[inline]
    pub fn so_far(&self) -> (u64, u64) {
        (self.operations + self.repeat.operations, self.payload_bytes + self.repeat.payload_bytes)
    }

    /// Notes in the timeline how far the link has come; `is_whole` unless the rest of a round is still in flight. Returns when the silence
    /// before it began, if that may have been a stall: then [`Recorder::silence_ended`] follows.
    #[inline]
    pub fn note(&mut self, now: Instant, heard: bool, is_whole: bool) -> Option<Instant> {
        let (operations, payload_bytes) = self.so_far();
        let counted = self.counted(now);
        if is_whole {
            self.timeline.note(counted, operations, payload_bytes);
        } else {
            self.timeline.note_part(counted, operations, payload_bytes);
        }
        let from = if heard { self.silences.note(counted) } else { None };
        from.map(|from| from + self.paused)
    }

    /// Keeps a silence that has just ended, with the counters before and after it.
    pub fn silence_ended(&mut self, how: Ended, before: &Counters, after: &Counters) {
        self.silences.ended(Ended { from: self.counted(how.from), ..how }, before, after);
    }

    /// Notes the time of an operation that had been due on a schedule.
    #[inline]
    pub fn scheduled(&mut self, now: Instant, nanos: u64) {
        let counted = self.counted(now);
        self.silences.scheduled(counted, nanos);
    }

    /// Begins the next repeat at `now`, after a pause.
    pub fn resume(&mut self, now: Instant) {
        self.paused += now - self.began;
        self.silences.resume(self.counted(now));
        self.began = now;
    }

    /// Returns a moment without the pauses before it.
    fn counted(&self, now: Instant) -> Instant {
        Instant::from_nanos(now.as_nanos().saturating_sub(self.paused.as_nanos() as u64))
    }

    /// Returns the counted time until now, or until the end of the latest repeat.
    pub fn counted_ns(&self, now: Option<Instant>) -> u64 {
        self.counted(now.unwrap_or(self.began)).nanos_since(self.timeline.start())
    }

    /// Returns the times of all operations so far.
    pub fn times(&self) -> Histogram {
        let mut all = self.histogram.clone();
        self.apart.iter().flatten().for_each(|repeat| all.merge(repeat));
        all
    }

    /// Ends the repeat; the next begins at the same moment.
    pub fn close(&mut self, now: Instant) -> Tally {
        let tally = Tally { elapsed_s: (now - self.began).as_secs_f64(), ..self.repeat };
        (self.operations, self.payload_bytes) = self.so_far();
        self.repeat = Tally::default();
        (self.began, self.ended) = (now, 0);
        if let Some(apart) = &mut self.apart {
            apart.push(std::mem::take(&mut self.histogram));
        }
        tally
    }

    /// Drops the latest `excess` repeats, which do not count, and gives out the rest.
    pub fn finish(self, excess: usize) -> Recorded {
        let mut histogram = Histogram::new();
        match &self.apart {
            Some(apart) => apart.iter().rev().skip(excess).for_each(|repeat| histogram.merge(repeat)),
            None => histogram = self.histogram,
        }
        Recorded { histogram, timeline: self.timeline, silences: self.silences }
    }
}
