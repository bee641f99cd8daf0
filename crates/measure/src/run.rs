//! A plan is run over links: warm-up, repeats back to back, drain; what was measured is kept whatever happens.

mod accounts;
mod drive;
#[cfg(test)]
mod fake_link;
mod flights;
mod gate;
mod opening;
mod recorder;
mod schedule;
mod shared;
mod silences;
mod slots;
mod snapshots;
mod stages;
#[cfg(test)]
mod tests;
mod timeline;
mod updates;

use crate::statistics::estimate;
use crate::units::text;
use crate::{
    ClockDifference, Cpu, Estimate, Fairness, Histogram, Interval, Latency, Link, LinkError, Loss, Measurement, Mode,
    NodeShare, Observed, Plan, Rate, Receiver, Repeats, Sent, Stage, Stall, State, TcpTimes, Test, Until, Usage,
    Verdict, missed, stalled, verdict,
};
use accounts::Accounts;
use drive::{Found, drive};
use recorder::Tally;
use schedule::Share;
use shared::{Shared, operations_per_s, repeats, together};
pub use silences::Counters;
use slots::SLOTS_MAX;
pub use snapshots::{Snapshot, SnapshotSettings};
use std::thread::Builder;
use timeline::{Track, whole_nanos};

/// The level of the confidence intervals where the plan asks for none.
const CONFIDENCE_PERCENT: f64 = 95.0;
/// More arrivals per second than one per nanosecond cannot be told apart.
const RATE_MAX: f64 = 1e9;

/// The caller of a run, which has an operating system and a user. Every method may be left out.
pub trait Watch: Sync {
    /// Binds the thread that drives this link to its processor. The thread calls it first.
    fn placed(&self, link: usize) {
        let _ = link;
    }

    /// Returns the resources that this process has used so far.
    fn local_usage(&self) -> Option<Usage> {
        None
    }

    /// Returns the seconds that have passed by this host's clock since any origin. That of a simulated link tells another time.
    fn host_s(&self) -> Option<f64> {
        None
    }

    /// Returns the seconds that the machine's processors were busy, and seconds in all, both summed over processors
    /// since any origin.
    fn machine_busy_s(&self) -> Option<(f64, f64)> {
        None
    }

    /// Returns the CPU seconds that all programs of the machine have used since any origin, both sides' included; `None` where that
    /// says nothing.
    fn programs_s(&self) -> Option<f64> {
        None
    }

    /// Returns the busy seconds and all seconds of each processor that this side, or a far end on this machine, may run
    /// on.
    fn processors_busy_s(&self) -> Option<Vec<(f64, f64)>> {
        None
    }

    /// Returns the counters of this host, and of the calling thread, that tell what happens while nothing completes. It is called about ten
    /// times per second, so it has to be quick.
    fn counters(&self) -> Counters {
        Counters::default()
    }

    /// Returns whether the run pauses after this many repeats, with nothing in flight. A test with a schedule never pauses.
    fn pauses_after(&self, repeats: u32) -> bool {
        let _ = repeats;
        false
    }

    /// Has the machine for itself for a short while, in a pause. That time does not count.
    fn paused(&self) {}

    /// Returns whether the run has to end now. It is called after every batch of completions, so it has to be quick.
    fn interrupted(&self) -> bool {
        false
    }

    /// Returns how the run is followed by snapshots of its counters; `None` if nobody follows it.
    fn snapshots(&self) -> Option<SnapshotSettings> {
        None
    }

    /// Receives a snapshot of the run's counters. A measuring thread calls it, so it has to be quick and must not wait.
    fn snapshot(&self, snapshot: Snapshot) {
        let _ = snapshot;
    }

    /// Reports the progress, about ten times per second of the link's clock.
    fn progress(&self, progress: &Progress) {
        let _ = progress;
    }
}

/// A watch that reports nothing and never interrupts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// In the warm-up, whose operations do not count.
    pub warming_up: bool,
    /// Repeats finished.
    pub repeats: u32,
    /// Seconds of the warm-up, or of the counted time, so far.
    pub elapsed_s: f64,
    /// Operations per second in that time.
    pub operations_per_s: f64,
    /// Payload bits per second in that time.
    pub payload_bits_per_s: f64,
}

/// The findings of a run: all of a [`Measurement`] but its name and its limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Operations completed in the counted time.
    pub operations: u64,
    /// Payload bytes of those.
    pub payload_bytes: u64,
    /// The counted time.
    pub elapsed_s: f64,
    /// Repeats that were finished.
    pub repeats: u32,
    /// How fast, over the repeats; of the unfinished one where no other is.
    pub rate: Rate,
    /// The operations sent, where no window holds them back.
    pub sent: Option<Sent>,
    /// How long each operation took, except those that arrived after they had been given up; of none where no window holds them back.
    pub latency: Option<Latency>,
    /// The CPU time that it cost.
    pub cpu: Cpu,
    /// The counted time by this host's clock.
    pub host_s: Option<f64>,
    /// The time by which the far end fell behind the pace that it is to keep, if it keeps one and says so.
    pub shortfall_s: Option<f64>,
    /// The report of this side's TCP on the counted time.
    pub tcp: Option<TcpTimes>,
    /// The median of the operations in flight, if answers open the window.
    pub in_flight_median: Option<u64>,
    /// Operations started in the counted time that did not arrive as sent.
    pub loss: Loss,
    /// Where the time went, where the plan asks for it and the links stamp it.
    pub stages: Vec<Stage>,
    /// The far end's clock beside ours, where times are counted from its stamps; of several links the least sure.
    pub clock_difference: Option<ClockDifference>,
    /// The share of each node, if the far end is nodes over which the link distributes operations by itself.
    pub nodes: Vec<NodeShare>,
    /// The receivers, if the far end is a multicast group, each with what it got.
    pub receivers: Vec<Receiver>,
    /// Whether the figures can be trusted.
    pub verdict: Verdict,
    /// The observations of this host in the counted time; of several threads the longest wait for a processor.
    pub observed: Option<Observed>,
    /// Silences that the test cannot explain.
    pub stalls: Vec<Stall>,
    /// The counted time in at most 200 pieces.
    pub intervals: Vec<Interval>,
    /// Why the run ended early; the rest is what was measured until then.
    pub error: Option<LinkError>,
}

/// Runs a plan over links and says what it found, also where a link breaks or the user interrupts.
///
/// Channel c of the plan is channel `c / n` of link `c % n`, n being the number of links. One link is driven by the
/// calling thread, several by a thread each. When the run ends without an error the links are idle and can be used for
/// the next plan. [`Until::Count`] counts operations that came to their end, also those that were lost.
pub fn run(links: &mut [Box<dyn Link + Send>], plan: &Plan, watch: &dyn Watch) -> Run {
    if let Err(error) = possible(links.len(), plan) {
        return gathered(plan, &Shared::new(watch, plan, 0), Vec::new(), Some(error));
    }
    let count = links.len() as u32;
    let busy = |(index, link)| {
        let share = Share { index, links: count, channels_in_all: plan.channels };
        let idle = share.channels() == 0 || matches!(plan.until, Until::Count(count) if share.of(count) == 0);
        (!idle).then_some((share, link))
    };
    let mut driven: Vec<(Share, &mut Box<dyn Link + Send>)> = (0..count).zip(links).filter_map(busy).collect();
    let shared = Shared::new(watch, plan, driven.len());
    let each = |place: usize, share: Share, link: &mut Box<dyn Link + Send>| {
        watch.placed(share.index as usize);
        drive(link.as_mut(), &shared, place, share)
    };
    let mut refused = None;
    let found = if let [(share, link)] = &mut driven[..] {
        vec![each(0, *share, link)]
    } else {
        let each = &each;
        std::thread::scope(|scope| {
            let mut threads = Vec::with_capacity(driven.len());
            for (place, (share, link)) in (0..).zip(driven) {
                match Builder::new().spawn_scoped(scope, move || each(place, share, link)) {
                    Ok(thread) => threads.push(thread),
                    Err(why) => {
                        shared.halt();
                        refused = Some(LinkError::Unsupported(format!(
                            "no thread can be started for each of {count} links: {why}; raise the limit on threads or memory"
                        )));
                        break;
                    }
                }
            }
            let joined = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(joined).collect()
        })
    };
    let errors = found.iter().filter_map(|link| link.error.clone()).chain(refused);
    // The others were interrupted because of it.
    let error = errors.reduce(|a, b| if a == LinkError::Interrupted { b } else { a });
    gathered(plan, &shared, found, error)
}

/// Checks that this plan can be run at all.
fn possible(links: usize, plan: &Plan) -> Result<(), LinkError> {
    let refuse = |text: &str| Err(LinkError::Unsupported(text.to_owned()));
    let (min, max) = plan.size.bounds();
    match plan.rate {
        _ if links == 0 => refuse("there is no link to run the plan over"),
        _ if plan.window == 0 => refuse("a window of 0 lets nothing start; give 1 or more"),
        _ if plan.channels == 0 => refuse("without a channel nothing can start; give 1 or more"),
        _ if slots(links, plan) >= u64::from(SLOTS_MAX) => {
            refuse("more than 16 million operations in flight on one link; lower the window or the channels")
        }
        _ if min > max => refuse("the smallest size is over the largest; swap them"),
        _ if plan.until == Until::Count(0) => refuse("a count of 0 measures nothing; give 1 or more"),
        None if plan.test == Test::Open => refuse("an open-loop test needs a rate in operations per second"),
        _ if plan.unbounded
            && (plan.mode != Mode::Send || !plan.test.is_closed_loop() || plan.rounds || min != max) =>
        {
            refuse("without a window, operations of one size are sent, and none is waited for")
        }
        _ if plan.rounds && matches!(plan.test, Test::Open | Test::Updates) => {
            refuse("a schedule has no rounds; leave them out")
        }
        Some(rate) if matches!(plan.test, Test::Open | Test::Updates) && !(rate > 0.0 && rate <= RATE_MAX) => {
            refuse("the rate of a schedule is above 0 and at most 1e9 operations per second")
        }
        _ if plan.test == Test::Updates && plan.mode != Mode::Receive => {
            refuse("updates come from the far end: their mode is receive")
        }
        _ if plan.test == Test::Updates && min != max => refuse("updates have one size"),
        _ => Ok(()),
    }
}

/// Returns the operations in flight on the link with the most channels.
fn slots(links: usize, plan: &Plan) -> u64 {
    u64::from(plan.channels).div_ceil(links as u64) * u64::from(plan.window)
}

/// Puts together what the links found.
fn gathered(plan: &Plan, shared: &Shared<'_>, found: Vec<Found>, error: Option<LinkError>) -> Run {
    let mut closed = shared.closed().clone();
    if error.is_none() {
        // A link that ran ahead has closed repeats that do not count.
        closed.iter_mut().for_each(|link| link.truncate(shared.enough() as usize));
    }
    let mut counted = repeats(&closed);
    let finished = counted.len() as u32;
    if counted.is_empty() {
        counted.push(together(found.iter().map(|link| link.unfinished)));
    }
    let totals: Vec<Tally> = closed.iter().zip(&found).map(|(closed, link)| total(closed, link.unfinished)).collect();
    let all = together(totals.iter().copied());
    let mut histogram = Histogram::new();
    found.iter().for_each(|link| histogram.merge(&link.recorded.histogram));
    if let Some(settings) = shared.snapshots.settings.filter(|_| !found.is_empty()) {
        shared.watch.snapshot(Snapshot::last(&found, &all, &histogram, settings));
    }
    let latency = histogram.latency();
    let timelines = found.iter().map(|link| &link.recorded.timeline).zip(&totals);
    let tracks = timelines.map(|(timeline, total)| Track { timeline, total: *total });
    let intervals = timeline::intervals(&tracks.collect::<Vec<_>>());
    let no_accounts = Accounts::default();
    let first = found.first().map_or(&no_accounts, |link| &link.accounts);
    let served = found.iter().flat_map(|link| link.accounts.served());
    let nodes: Vec<NodeShare> = (0..).zip(served).map(|(number, events)| NodeShare { number, events }).collect();
    let receivers = first.receivers();
    let loss = accounts::sum(found.iter().map(|link| link.accounts.loss(plan.mode)));
    let arrived = found.iter().map(|link| link.accounts.arrived()).sum();
    let rate = rate(plan, &counted);
    let sent = found.iter().map(|link| link.accounts.sent).sum();
    let sent = plan.unbounded.then(|| Sent::of(sent, plan.size.mean(), all.elapsed_s));
    let judged = judged(error.as_ref(), all.operations, arrived, loss, &intervals);
    let (tcp, stages) = (accounts::tcp(found.iter().map(|link| &link.accounts)), stages::stages(&found));
    let clock_difference = if plan.test == Test::Updates { clock_difference(&found) } else { None };
    let cpu = accounts::cpu(first, all.elapsed_s, all.operations);
    let (host_s, shortfall_s) = (first.host_s(), first.shortfall_s());
    let observed = observed(&found);
    let in_flight_median = found.iter().filter_map(|link| link.in_flight_median).reduce(u64::saturating_add);
    let stalls = stalls(found, latency.as_ref().map_or(0, |latency| latency.p50));
    Run {
        operations: all.operations,
        payload_bytes: all.payload_bytes,
        elapsed_s: whole_nanos(all.elapsed_s),
        repeats: finished,
        rate,
        sent,
        latency,
        cpu,
        host_s,
        shortfall_s,
        tcp,
        in_flight_median,
        stages,
        clock_difference,
        loss,
        verdict: lateness(plan, &rate, &stalls, all.elapsed_s, &intervals, judged).with(&nodes),
        nodes,
        receivers,
        observed,
        stalls,
        intervals,
        error,
    }
}

/// Returns the observations of this host, with the longest wait of any thread.
fn observed(found: &[Found]) -> Option<Observed> {
    let mut all = found.iter().filter_map(|link| link.accounts.observed());
    let first = all.next()?;
    Some(all.fold(first, |sum, link| Observed {
        waited_for_processor_s:
            sum.waited_for_processor_s.into_iter().chain(link.waited_for_processor_s).reduce(f64::max),
        ..sum
    }))
}

/// Returns the stalls of all links, whose operations take `time_ns` on the median.
fn stalls(found: Vec<Found>, time_ns: u64) -> Vec<Stall> {
    let of_link = |link: Found| {
        // Where most came after all, what was given up says nothing of the link.
        let has_lost = 10 * link.accounts.recovered < link.accounts.lost;
        // The far end may say so only once it runs again.
        let tcp = accounts::tcp(std::iter::once(&link.accounts));
        let had_all = tcp.is_some_and(|tcp| tcp.timeouts == 0 && (1..=tcp.spurious).contains(&tcp.retransmitted));
        (link.recorded.timeline.start(), link.recorded.silences.stalls(time_ns, has_lost, had_all))
    };
    silences::merged(found.into_iter().map(of_link))
}

fn clock_difference(found: &[Found]) -> Option<ClockDifference> {
    let known = found.iter().filter_map(|link| link.accounts.far_counted()?.1.clock);
    known.max_by_key(|clock| clock.error_ns)
}

fn total(closed: &[Tally], unfinished: Tally) -> Tally {
    closed.iter().fold(unfinished, |sum, tally| Tally {
        operations: sum.operations + tally.operations,
        payload_bytes: sum.payload_bytes + tally.payload_bytes,
        elapsed_s: sum.elapsed_s + tally.elapsed_s,
    })
}

fn rate(plan: &Plan, repeats: &[Tally]) -> Rate {
    let percent = match plan.repeats {
        Repeats::Confidence { percent, .. } => percent,
        Repeats::Fixed(_) => CONFIDENCE_PERCENT,
    };
    let bits = |tally: &Tally| tally.payload_bytes as f64 * 8.0 / tally.elapsed_s.max(f64::MIN_POSITIVE);
    let timed: Vec<Tally> = repeats.iter().copied().filter(|tally| tally.elapsed_s > 0.0).collect();
    if timed.is_empty() {
        return Rate { operations_per_s: Estimate::default(), payload_bits_per_s: Estimate::default() };
    }
    Rate {
        operations_per_s: estimate(&operations_per_s(&timed), percent),
        payload_bits_per_s: estimate(&timed.iter().map(bits).collect::<Vec<_>>(), percent),
    }
}

/// Returns the verdict of a run, of whose operations the far end counted so many that arrived.
fn judged(error: Option<&LinkError>, operations: u64, arrived: u64, loss: Loss, intervals: &[Interval]) -> Verdict {
    let nothing = if arrived > 0 {
        format!("{arrived} operations arrived, as the far end counted, and this side heard of none of them in time")
    } else if loss.refused > 0 {
        "all was refused, nothing completed; does the far end have what the URI asks for, and of this size?".to_owned()
    } else {
        "nothing completed; is the far end there, and does it answer?".to_owned()
    };
    let (state, text) = match error {
        Some(LinkError::Interrupted) if operations == 0 => {
            (State::Interrupted, "nothing had been counted yet".to_owned())
        }
        Some(error) if operations == 0 => (State::Failed, error.to_string()),
        Some(LinkError::Interrupted) => (State::Interrupted, "what had been measured is kept".to_owned()),
        Some(error) => (State::Interrupted, format!("{error}; what had been measured is kept")),
        None if operations == 0 => (State::Failed, nothing),
        None if loss.damaged > Some(0) => (State::Failed, damaged(loss.damaged.unwrap_or(0), operations)),
        None => return verdict(intervals),
    };
    let word = state.word();
    Verdict { state, text: format!("{word}: {text}") }
}

fn damaged(count: u64, operations: u64) -> String {
    format!(
        "{} of {} payloads came otherwise than they were sent; the checksums of TCP, UDP and the line did not see it, so look at the memory and the offloads of both hosts and of everything between them",
        text::count(count),
        text::count(operations),
    )
}

/// Returns the verdict, or one of stalls, or of a schedule that was not held.
fn lateness(
    plan: &Plan,
    rate: &Rate,
    stalls: &[Stall],
    elapsed_s: f64,
    intervals: &[Interval],
    verdict: Verdict,
) -> Verdict {
    if matches!(verdict.state, State::Interrupted | State::Failed) {
        return verdict;
    }
    let missed = |asked| missed(rate.operations_per_s.median, asked, intervals);
    stalled(stalls, elapsed_s).or_else(|| plan.scheduled_rate().and_then(missed)).unwrap_or(verdict)
}

impl Run {
    /// Returns the measurement of this plan over the link with this URI; its limit is for the caller to fill.
    #[must_use]
    pub fn into_measurement(self, protocol: &str, link: &str, plan: &Plan) -> Measurement {
        Measurement {
            repeats: self.repeats,
            operations: self.operations,
            payload_bytes: self.payload_bytes,
            elapsed_s: self.elapsed_s,
            rate: self.rate,
            sent: self.sent,
            latency_ns: self.latency,
            cpu: self.cpu,
            shortfall_s: self.shortfall_s,
            tcp: self.tcp,
            in_flight_median: self.in_flight_median,
            loss: self.loss,
            stages: self.stages,
            clock_difference: self.clock_difference,
            observed: self.observed,
            stalls: self.stalls,
            intervals: self.intervals,
            fairness: Fairness::of_nodes(&self.nodes, self.elapsed_s, None).filter(|_| self.nodes.len() > 1),
            nodes: self.nodes,
            receivers: self.receivers,
            ..plan.unmeasured(protocol, link, self.verdict)
        }
    }
}
