//! The reports of a link that is driven: its progress, and snapshots of its counters.

use super::readings::ASKED_MAX;
use super::{Drive, Phase};
use crate::{Progress, Snapshot};
use hodo_machine::Instant;
use std::time::Duration;

impl Drive<'_> {
    /// Reports the progress of the warm-up, or of the counted time.
    pub(super) fn tell(&mut self, now: Instant) {
        let warming_up = matches!(self.phase, Phase::WarmUp | Phase::Warm);
        let elapsed_s = if warming_up { (now - self.began).as_secs_f64() } else { self.counted_ns(now) as f64 * 1e-9 };
        if elapsed_s > 0.0 {
            let (operations, payload_bytes) = self.recorder.so_far();
            let operations_per_s = operations as f64 / elapsed_s;
            let payload_bits_per_s = 8.0 * payload_bytes as f64 / elapsed_s;
            let repeats = self.closed;
            let progress = Progress { warming_up, repeats, elapsed_s, operations_per_s, payload_bits_per_s };
            self.shared.tell(self.place, progress);
        }
    }

    /// Takes the first snapshot, at the start of the counted time.
    pub(super) fn begin_snapshots(&mut self, now: Instant) {
        if let Some(settings) = self.shared.snapshots.settings {
            self.take_snapshot(0, now, settings.with_times);
            self.snapshot_due = now + settings.every;
        }
    }

    /// Takes a snapshot if the counted time has come to one, and sets when to look again. Pauses put that off.
    #[cold]
    pub(super) fn follow(&mut self, now: Instant) {
        self.snapshot_due = Instant::MAX;
        let Some(settings) = self.shared.snapshots.settings.filter(|_| self.phase != Phase::Over) else { return };
        let every_ns = (settings.every.as_nanos() as u64).max(1);
        let elapsed_ns = self.counted_ns(now);
        let number = elapsed_ns / every_ns;
        if number > self.snapshots {
            self.take_snapshot(number, now, settings.with_times);
        }
        let next_ns = self.snapshots.saturating_add(1).saturating_mul(every_ns);
        self.snapshot_due = now + Duration::from_nanos(next_ns.saturating_sub(elapsed_ns).max(1));
    }

    fn take_snapshot(&mut self, number: u64, now: Instant, with_times: bool) {
        self.snapshots = number;
        let (operations, payload_bytes) = self.recorder.so_far();
        let is_asked = self.channels <= ASKED_MAX;
        let snapshot = Snapshot {
            t_s: self.counted_ns(now) as f64 * 1e-9,
            operations,
            payload_bytes,
            given_up: self.accounts.lost,
            recovered: self.accounts.recovered,
            retransmitted: is_asked.then(|| self.link.losses().retransmitted),
            tcp: if is_asked { self.link.tcp() } else { None },
            times: with_times.then(|| Box::new(self.recorder.times())),
        };
        if let Some(all) = self.shared.snapshots.add(self.place, number, snapshot) {
            self.shared.watch.snapshot(all);
        }
    }

    /// Returns the counted time until `now`, or until the end of the latest repeat if none is under way.
    fn counted_ns(&self, now: Instant) -> u64 {
        self.recorder.counted_ns((self.phase == Phase::Counted).then_some(now))
    }
}
