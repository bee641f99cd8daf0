//! The silences of one link: the times in which nothing completed, the longest of them with what the host observed.

use crate::{Observed, Stall, Whose};
use hodo_machine::Instant;
use std::time::Duration;

/// A silence that is shorter is no stall.
const STALL_MIN_NS: u64 = 5_000_000;
/// A silence is a stall if it is longer than this many usual gaps between completions ...
const USUAL_GAPS: u64 = 10;
/// ... and than this many round-trips.
const ROUND_TRIPS: u64 = 2;
/// An operation of a schedule is late if it took longer than this many usual times.
const USUAL_TIMES: u64 = 8;
/// The silences that are kept: of more, the longest.
const KEPT: usize = 64;
/// Buckets of gaps in each power of two.
const BUCKETS: u32 = 8;
/// The weight of one operation in the usual time.
const WEIGHT: u64 = 64;
/// A share of a silence that explains it.
const MOST: f64 = 0.5;

/// Counters of this host and of a link that tell what happened in a silence. Each counts since any origin; `None` where it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counters {
    /// Segments that this side's TCP sent again.
    pub retransmitted: Option<u64>,
    /// Retransmission timeouts of this side's TCP.
    pub timeouts: Option<u64>,
    /// Updates that were lost.
    pub lost: u64,
    /// Operations that were given up. Those that came after all are not lost.
    pub given_up: u64,
    /// Packets dropped by the queue discipline of the interface.
    pub queue_drops: Option<u64>,
    /// Packets dropped by the interface itself.
    pub card_drops: Option<u64>,
    /// Seconds in software interrupts.
    pub softirq_s: Option<f64>,
    /// Seconds in which the hypervisor ran other machines.
    pub steal_s: Option<f64>,
    /// CPU seconds of all programs but both sides.
    pub others_s: Option<f64>,
    /// Seconds in which the calling thread could have run and had no processor.
    pub waited_for_processor_s: Option<f64>,
    /// Seconds in which threads of the far end, if its process is known, could have run and had no processor.
    pub far_waited_for_processor_s: Option<f64>,
    /// Seconds in which a control group kept this process from running, because its quota was used up.
    pub throttled_s: Option<f64>,
    /// Seconds in which a control group kept the far end's process from running.
    pub far_throttled_s: Option<f64>,
}

impl Counters {
    /// Returns what happened from an earlier reading to this one.
    pub(super) fn since(&self, earlier: &Counters) -> Observed {
        let count = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let time = |now: Option<f64>, then: Option<f64>| Some((now? - then?).max(0.0));
        Observed {
            retransmitted: count(self.retransmitted, earlier.retransmitted),
            timeouts: count(self.timeouts, earlier.timeouts),
            queue_drops: count(self.queue_drops, earlier.queue_drops),
            card_drops: count(self.card_drops, earlier.card_drops),
            softirq_s: time(self.softirq_s, earlier.softirq_s),
            steal_s: time(self.steal_s, earlier.steal_s),
            others_s: time(self.others_s, earlier.others_s),
            waited_for_processor_s: time(self.waited_for_processor_s, earlier.waited_for_processor_s),
            far_waited_for_processor_s: time(self.far_waited_for_processor_s, earlier.far_waited_for_processor_s),
            throttled_s: time(self.throttled_s, earlier.throttled_s),
            far_throttled_s: time(self.far_throttled_s, earlier.far_throttled_s),
        }
    }
}

/// The silences of one link.
#[derive(Debug)]
pub(super) struct Silences {
    latest: Instant,
    /// How often gaps of each length occurred.
    gaps: Vec<u32>,
    kept: Vec<Silence>,
    late: Late,
}

/// A time in which nothing completed, or whose operations were all late.
#[derive(Debug, Clone, Copy)]
struct Silence {
    from: Instant,
    to: Instant,
    operations_late: u64,
    whose: Option<Whose>,
    /// Whether operations were given up in it.
    given_up: bool,
    seen: Observed,
    /// Whether it is known from late operations alone: then usual gaps say nothing of it.
    is_of_schedule: bool,
}

impl Silence {
    fn lasted_ns(&self) -> u64 {
        self.to.nanos_since(self.from)
    }
}

/// The latest operations of a schedule, as long as each of them is late.
#[derive(Debug, Default)]
struct Late {
    usual_ns: u64,
    /// When the first of them was due and when it ended, their number, and by how much the latest was late.
    run: Option<(Instant, Instant, u64, u64)>,
}

/// The end of a silence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    /// When it began.
    pub from: Instant,
    /// Operations that were in flight or fell due in it.
    pub operations_late: u64,
    /// Whether the driving thread looked at the link meanwhile as often as it was to.
    pub attended: bool,
    /// Whether it is known that nothing was lost if this side's TCP sent nothing again, because payload was on its way out.
    pub sends: bool,
}

impl Silences {
    pub fn new(start: Instant) -> Self {
        let gaps = vec![0; (64 * BUCKETS) as usize];
        Silences { latest: start, gaps, kept: Vec::with_capacity(KEPT + 1), late: Late::default() }
    }

    /// Notes completions at `now`. Returns when the silence before them began, if it may turn out to have been a stall: then
    /// [`Silences::ended`] follows.
    #[inline]
    pub fn note(&mut self, now: Instant) -> Option<Instant> {
        let (from, gap_ns) = (self.latest, now.nanos_since(self.latest));
        self.latest = now;
        let may_be_stall = gap_ns >= STALL_MIN_NS && 2 * gap_ns >= USUAL_GAPS * self.usual_gap_ns();
        let bucket = bucket(gap_ns);
        self.gaps[bucket] = self.gaps[bucket].saturating_add(1);
        may_be_stall.then_some(from)
    }

    /// Keeps a silence that has just ended, with the counters before and after it.
    pub fn ended(&mut self, how: Ended, before: &Counters, after: &Counters) {
        let seen = after.since(before);
        let lasted_s = self.latest.nanos_since(how.from) as f64 * 1e-9;
        let (lost, given_up) = (after.lost > before.lost, after.given_up > before.given_up);
        let (whose, operations_late) = (whose(how, &seen, (lost, given_up), lasted_s), how.operations_late);
        let (from, to) = (how.from, self.latest);
        self.keep(Silence { from, to, operations_late, whose, given_up, seen, is_of_schedule: false });
    }

    /// Leaves out the time until `now`: the link was paused.
    pub fn resume(&mut self, now: Instant) {
        self.latest = now;
    }

    /// Notes the time of an operation that had been due on a schedule and ended at `now`.
    #[inline]
    pub fn scheduled(&mut self, now: Instant, took_ns: u64) {
        let late = &mut self.late;
        if took_ns <= (USUAL_TIMES * late.usual_ns).max(STALL_MIN_NS) {
            late.usual_ns = late.usual_ns - late.usual_ns / WEIGHT + took_ns / WEIGHT;
            if late.run.is_some() {
                self.in_time();
            }
            return;
        }
        let due = Instant::from_nanos(now.as_nanos().saturating_sub(took_ns));
        let (from, first_end, count, most_ns) = late.run.unwrap_or((due, now, 0, 0));
        late.run = Some((from.min(due), first_end, count + 1, most_ns.max(took_ns)));
    }

    /// Ends a run of late operations. It was a stall if they ended together; where they did not, the link was too slow for its schedule.
    #[cold]
    fn in_time(&mut self) {
        let Some((from, first_end, operations_late, most_ns)) = self.late.run.take() else { return };
        let to = from + Duration::from_nanos(most_ns);
        if first_end.as_nanos() + most_ns >= self.latest.as_nanos() {
            let (whose, seen) = (None, Observed::default());
            let given_up = false;
            self.keep(Silence { from, to, operations_late, whose, given_up, seen, is_of_schedule: true });
        }
    }

    fn keep(&mut self, silence: Silence) {
        self.kept.push(silence);
        if self.kept.len() > KEPT {
            let shortest = (0..self.kept.len()).min_by_key(|place| self.kept[*place].lasted_ns());
            self.kept.remove(shortest.unwrap_or(0));
        }
    }

    /// Returns the median of the gaps between completions.
    fn usual_gap_ns(&self) -> u64 {
        let all: u64 = self.gaps.iter().map(|count| u64::from(*count)).sum();
        let mut below = 0;
        let middle = self.gaps.iter().position(|count| {
            below += u64::from(*count);
            2 * below >= all
        });
        middle.map_or(0, lower_bound)
    }

    /// Returns the silences that were stalls, of operations that take `time_ns` on the median; `has_lost`: some of them never came; `had_all`:
    /// the far end had everything that was sent again, so that it was only late to acknowledge it.
    pub fn stalls(mut self, time_ns: u64, has_lost: bool, had_all: bool) -> Stalls {
        self.in_time();
        let least_ns = STALL_MIN_NS.max(ROUND_TRIPS * time_ns);
        let of_gaps_ns = least_ns.max(USUAL_GAPS * self.usual_gap_ns());
        let is_stall =
            |silence: &Silence| silence.lasted_ns() > if silence.is_of_schedule { least_ns } else { of_gaps_ns };
        // What was given up and came after all may have waited at the far end, or a later answer told of it.
        let judged = |silence: Silence| {
            let is_of_link = silence.given_up && has_lost && silence.whose.is_none();
            let is_late = had_all && !silence.given_up && silence.whose == Some(Whose::Link);
            let whose = if is_late { Some(Whose::FarEnd) } else { silence.whose };
            Silence { whose: whose.or(is_of_link.then_some(Whose::Link)), ..silence }
        };
        Stalls(self.kept.into_iter().filter(is_stall).map(judged).collect())
    }
}

/// The stalls of one link.
#[derive(Debug, Default)]
pub(super) struct Stalls(Vec<Silence>);

/// Returns the stalls of all links in the order of time, counted from the start of each; those at the same time are one.
pub(super) fn merged(links: impl Iterator<Item = (Instant, Stalls)>) -> Vec<Stall> {
    let shifted = |start: Instant| {
        move |silence: Silence| {
            let at = |instant: Instant| Instant::from_nanos(instant.nanos_since(start));
            Silence { from: at(silence.from), to: at(silence.to), ..silence }
        }
    };
    let mut all: Vec<Silence> =
        links.flat_map(|(start, Stalls(silences))| silences.into_iter().map(shifted(start))).collect();
    all.sort_by_key(|silence| silence.from);
    all.dedup_by(|next, one| {
        let overlap = next.from < one.to;
        if overlap {
            // The longer one says whose it was, unless it is known from late operations alone.
            let (longer, other) = if next.lasted_ns() > one.lasted_ns() { (*next, *one) } else { (*one, *next) };
            *one = Silence {
                from: one.from,
                to: one.to.max(next.to),
                operations_late: one.operations_late.max(next.operations_late),
                whose: longer.whose.or(other.whose),
                seen: if longer.is_of_schedule { other.seen } else { longer.seen },
                is_of_schedule: one.is_of_schedule && next.is_of_schedule,
                ..longer
            };
        }
        overlap
    });
    let stall = |silence: Silence| Stall {
        at_s: silence.from.as_nanos() as f64 * 1e-9,
        lasted_s: silence.lasted_ns() as f64 * 1e-9,
        operations_late: silence.operations_late,
        whose: silence.whose,
        saw: silence.seen,
    };
    all.into_iter().map(stall).collect()
}

/// Returns the part that stood still.
fn whose(how: Ended, seen: &Observed, (lost, given_up): (bool, bool), lasted_s: f64) -> Option<Whose> {
    let far_throttled_s = seen.far_throttled_s.unwrap_or(0.0);
    // A process that is kept from running by its quota waits for a processor, too.
    let far_waited_s = (seen.far_waited_for_processor_s.unwrap_or(0.0) - far_throttled_s).max(0.0);
    let reasons = [seen.waited_for_processor_s, Some(far_waited_s), seen.steal_s, seen.throttled_s];
    let without_processor_s: f64 = reasons.into_iter().flatten().sum();
    let sent_again = seen.retransmitted.unwrap_or(0) + seen.timeouts.unwrap_or(0) > 0;
    if !how.attended || without_processor_s > MOST * lasted_s {
        Some(Whose::Host)
    } else if far_throttled_s > MOST * lasted_s {
        Some(Whose::FarEnd)
    } else if sent_again || lost {
        Some(Whose::Link)
    } else if how.sends && !given_up {
        Some(Whose::FarEnd)
    } else {
        None
    }
}

/// Returns the bucket of a gap.
#[inline]
const fn bucket(gap_ns: u64) -> usize {
    if gap_ns < BUCKETS as u64 {
        return gap_ns as usize;
    }
    let power = gap_ns.ilog2();
    ((power - BUCKETS.ilog2() + 1) * BUCKETS) as usize + (gap_ns >> (power - BUCKETS.ilog2())) as usize
        - BUCKETS as usize
}

/// Returns the shortest gap of a bucket.
const fn lower_bound(bucket: usize) -> u64 {
    let (octave, within) = (bucket as u32 / BUCKETS, bucket as u64 % BUCKETS as u64);
    if octave == 0 { within } else { (BUCKETS as u64 + within) << (octave - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    fn ended(from: Instant) -> Ended {
        Ended { from, operations_late: 16, attended: true, sends: true }
    }

    /// Returns the stalls of completions at these moments, of operations that take `time_ns`.
    fn stalls_of(moments: impl Iterator<Item = u64>, time_ns: u64) -> Vec<Stall> {
        let mut silences = Silences::new(Instant::ZERO);
        for moment in moments {
            if let Some(from) = silences.note(at(moment)) {
                silences.ended(ended(from), &Counters::default(), &Counters::default());
            }
        }
        merged([(Instant::ZERO, silences.stalls(time_ns, false, false))].into_iter())
    }

    #[test]
    fn buckets_are_an_eighth_of_an_octave() {
        for gap in (0..100_000).chain([1 << 40, (1 << 50) + 12_345]) {
            let (low, next) = (lower_bound(bucket(gap)), lower_bound(bucket(gap) + 1));
            assert!(low <= gap && gap < next && next <= low + low / 8 + 1, "{gap}: {low} {next}");
        }
        assert!(bucket(u64::MAX) < (64 * BUCKETS) as usize);
    }

    #[test]
    fn a_silence_is_found_however_much_of_the_run_it_takes() {
        for lasted_ms in [10, 100, 2000, 60_000] {
            let moments = (1..=4000_u64).map(|i| i * MS / 2 + if i > 2000 { lasted_ms * MS } else { 0 });
            let [stall] = stalls_of(moments, 100_000)[..] else { panic!("{lasted_ms} ms: not one stall") };
            assert!((stall.at_s - 1.0).abs() < 1e-9 && (stall.lasted_s * 1e3 - lasted_ms as f64 - 0.5).abs() < 1e-6);
            assert_eq!((stall.operations_late, stall.whose), (16, Some(Whose::FarEnd)));
        }
    }

    #[test]
    fn a_far_end_that_stops_again_and_again_stalls_each_time() {
        // 10 ms of an operation each 20 us, and 40 ms of nothing.
        let moments = (0..60_u64).flat_map(|round| (1..=500).map(move |i| (round * 50 + 40) * MS + i * 20_000));
        assert_eq!(stalls_of(moments, 100_000).len(), 60);
    }

    #[test]
    fn what_is_usual_is_no_stall() {
        // Lumps each 10 ms, as large as the window, so that each operation takes as long.
        let lumps = (1..=300_u64).flat_map(|lump| [10 * lump * MS, 10 * lump * MS + 100_000]);
        assert!(stalls_of(lumps, 10 * MS).is_empty());
        // An operation each second.
        assert!(stalls_of((1..=20).map(|i| i * 1000 * MS), 900 * MS).is_empty());
        // A hiccup of 4 ms of operations that take 20 us.
        assert!(stalls_of((1..=1000_u64).map(|i| i * 20_000 + if i > 500 { 4 * MS } else { 0 }), 20_000).is_empty());
    }

    #[test]
    fn of_very_many_the_longest_are_kept() {
        let moments =
            (0..500_u64).flat_map(|round| (1..=50).map(move |i| round * (20 * MS + round * 1000) + i * 20_000));
        let found = stalls_of(moments, 20_000);
        assert_eq!(found.len(), KEPT);
        assert!(found.windows(2).all(|pair| pair[0].at_s < pair[1].at_s));
    }

    #[test]
    fn it_is_the_hosts_if_its_thread_could_not_run_and_the_links_if_something_was_sent_again() {
        let before = Counters { retransmitted: Some(7), ..Counters::default() };
        let of = |after: Counters, how: Ended| {
            let mut silences = Silences::new(Instant::ZERO);
            silences.note(at(100 * MS));
            silences.ended(how, &before, &after);
            silences.kept[0].whose
        };
        let how = ended(Instant::ZERO);
        assert_eq!(of(before, how), Some(Whose::FarEnd));
        assert_eq!(of(before, Ended { sends: false, ..how }), None);
        assert_eq!(of(Counters { retransmitted: Some(8), ..before }, how), Some(Whose::Link));
        assert_eq!(of(Counters { lost: 3, ..before }, how), Some(Whose::Link));
        assert_eq!(of(Counters { given_up: 3, ..before }, how), None);
        let finally = |has_lost: bool| {
            let mut silences = Silences::new(Instant::ZERO);
            (1..=50).for_each(|i| assert_eq!(silences.note(at(i)), None));
            silences.note(at(100 * MS));
            silences.ended(how, &before, &Counters { given_up: 3, ..before });
            silences.stalls(MS, has_lost, false).0[0].whose
        };
        assert_eq!([finally(true), finally(false)], [Some(Whose::Link), None]);
        let sent_again = |had_all: bool| {
            let mut silences = Silences::new(Instant::ZERO);
            (1..=50).for_each(|i| assert_eq!(silences.note(at(i)), None));
            silences.note(at(100 * MS));
            silences.ended(how, &before, &Counters { retransmitted: Some(8), ..before });
            silences.stalls(MS, false, had_all).0[0].whose
        };
        assert_eq!([sent_again(false), sent_again(true)], [Some(Whose::Link), Some(Whose::FarEnd)]);
        assert_eq!(of(before, Ended { attended: false, ..how }), Some(Whose::Host));
        let waited = |s| Counters { waited_for_processor_s: Some(s), ..before };
        let of_waiting = |s| {
            let mut silences = Silences::new(Instant::ZERO);
            silences.note(at(100 * MS));
            silences.ended(how, &waited(1.0), &waited(1.0 + s));
            silences.kept[0].whose
        };
        assert_eq!((of_waiting(0.08), of_waiting(0.01)), (Some(Whose::Host), Some(Whose::FarEnd)));
    }

    /// Takes a schedule on a hundred channels, one of which stands still for 300 ms, while the others go on.
    #[test]
    fn late_operations_of_one_channel_are_a_stall() {
        let mut silences = Silences::new(Instant::ZERO);
        let mut ends: Vec<(u64, u64)> = (1..=10_000_u64)
            .map(|i| {
                let due = i * 100_000;
                let is_still = i % 100 == 7 && (300..600).contains(&(due / MS));
                (if is_still { 600 * MS } else { due } + 50_000, due)
            })
            .collect();
        ends.sort_unstable();
        for (end, due) in ends {
            silences.scheduled(at(end), end - due);
            assert_eq!(silences.note(at(end)), None);
        }
        let found = merged([(Instant::ZERO, silences.stalls(50_000, false, false))].into_iter());
        let [stall] = found[..] else { panic!("{found:?}") };
        assert_eq!((stall.operations_late, stall.whose), (30, None));
        assert!((stall.at_s - 0.3).abs() < 0.02 && (stall.lasted_s - 0.3).abs() < 0.02, "{stall:?}");
    }

    /// Takes a link that is too slow for its schedule from the middle on.
    #[test]
    fn an_overloaded_link_is_late_and_not_stalled() {
        let mut silences = Silences::new(Instant::ZERO);
        for i in 1..=10_000_u64 {
            let (due, end) = (i * 100_000, i * 100_000 + i.saturating_sub(5000) * 100_000 + 50_000);
            silences.scheduled(at(end), end - due);
            silences.note(at(end));
        }
        assert!(merged([(Instant::ZERO, silences.stalls(50_000, false, false))].into_iter()).is_empty());
    }

    #[test]
    fn stalls_of_several_links_at_once_are_one() {
        let of = |from_ms: u64, to_ms: u64| {
            let mut silences = Silences::new(at(MS));
            (1..from_ms).for_each(|i| assert_eq!(silences.note(at((i + 1) * MS)), None));
            let from = silences.note(at((to_ms + 1) * MS)).expect("long");
            silences.ended(ended(from), &Counters::default(), &Counters::default());
            (at(MS), silences.stalls(100_000, false, false))
        };
        let found = merged([of(100, 300), of(120, 320), of(500, 600)].into_iter());
        let spans: Vec<(u32, u32)> = found
            .iter()
            .map(|stall| ((stall.at_s * 1e3).round() as u32, (stall.lasted_s * 1e3).round() as u32))
            .collect();
        assert_eq!(spans, [(99, 221), (499, 101)]);
    }
}
