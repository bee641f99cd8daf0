#[cfg(test)]
mod tests;

use super::drive::Found;
use super::slots::slot_of;
use crate::{Histogram, Link, Side, Stage};
use hodo_machine::{Instant, Sampling, Spans, Stamp};

/// The most operations in flight on one link whose stages are all followed; of more, one in 2, 4, 8 … is.
const FOLLOWED_MAX: u64 = 1024;
/// The most distinct stages of one operation, beside the last.
const STAGES_MAX: usize = 15;
/// From the last stamp of an operation until it is counted.
const COMPLETION: &str = "completion";
/// The time that an operation was neither here nor in a stage of the far end: the network and the kernels, and until a thread that
/// slept runs again.
const REST: &str = "network, waking";

/// Where the time of the operations on one link goes.
///
/// A stage lasts from the stamp before it, or from the operation's start, to its own stamp; so the stages of an
/// operation add up to its time. The time that an operation has spent in each is kept with its slot until it is done,
/// and counted only then: lost ones have no stages, as they have no time.
pub(super) struct Stages {
    /// Every 2^zeros-th slot is followed.
    zeros: u32,
    sampling: Sampling,
    followed: Vec<Followed>,
    times: Vec<Times>,
    completion: Times,
    /// The stage within which those of the far end are, if it is not the last.
    around: Option<&'static str>,
    stamps: Vec<Stamp>,
}

/// An operation in flight.
#[derive(Debug, Clone, Copy)]
struct Followed {
    tag: Option<u64>,
    /// The end of its latest stage.
    at: Instant,
    /// Which stages it has been through, a bit each.
    through: u16,
    spent_ns: [u64; STAGES_MAX],
}

/// How long one stage took.
pub(super) struct Times {
    name: &'static str,
    /// Whether the stages of the far end are within it.
    is_around: bool,
    histogram: Histogram,
    sum_ns: u64,
}

impl Stages {
    /// Makes a link stamp the operations of `slots` slots. Returns `None` if it cannot.
    pub fn begin(link: &mut dyn Link, slots: u64) -> Option<Self> {
        let zeros = slots.div_ceil(FOLLOWED_MAX).next_power_of_two().ilog2();
        let sampling = Sampling::ending_in_zeros(zeros);
        let idle = Followed { tag: None, at: Instant::ZERO, through: 0, spent_ns: [0; STAGES_MAX] };
        let around = link.stage_of_far_end();
        link.sample_stages(sampling).then(|| Stages {
            around,
            zeros,
            sampling,
            followed: vec![idle; (slots >> zeros) as usize + 1],
            times: Vec::new(),
            completion: Times::new(COMPLETION),
            stamps: Vec::new(),
        })
    }

    /// Forgets the warm-up. Operations in flight go on.
    pub fn restart(&mut self) {
        self.times.iter_mut().for_each(Times::clear);
        self.completion.clear();
    }

    /// Notes that an operation starts.
    #[inline]
    pub fn started(&mut self, tag: u64, at: Instant) {
        if self.sampling.takes(tag) {
            let followed = &mut self.followed[slot_of(tag) >> self.zeros];
            (followed.tag, followed.at, followed.through) = (Some(tag), at, 0);
        }
    }

    /// Takes in the stamps that the link has made since the last call. The caller does so before it counts the end of
    /// any operation.
    pub fn fetch(&mut self, link: &mut dyn Link) {
        let mut stamps = std::mem::take(&mut self.stamps);
        link.stamps(&mut stamps);
        stamps.drain(..).for_each(|stamp| self.stamped(stamp));
        self.stamps = stamps;
    }

    fn stamped(&mut self, stamp: Stamp) {
        let Some(followed) = find(&mut self.followed, self.zeros, stamp.tag) else { return };
        let known = self.times.iter().position(|times| times.name == stamp.stage);
        let stage = known.unwrap_or_else(|| {
            // One more than are told apart counts as the last of them.
            if self.times.len() < STAGES_MAX {
                let is_around = self.around == Some(stamp.stage);
                self.times.push(Times { is_around, ..Times::new(stamp.stage) });
            }
            self.times.len() - 1
        });
        let again = followed.through >> stage & 1 != 0;
        let before = if again { followed.spent_ns[stage] } else { 0 };
        followed.spent_ns[stage] = before + stamp.at.nanos_since(followed.at);
        followed.through |= 1 << stage;
        followed.at = followed.at.max(stamp.at);
    }

    /// Counts an operation that is done.
    #[inline]
    pub fn done(&mut self, tag: u64, now: Instant) {
        let Some(followed) = find(&mut self.followed, self.zeros, tag) else { return };
        followed.tag = None;
        if followed.through == 0 {
            return;
        }
        for (stage, times) in self.times.iter_mut().enumerate() {
            if followed.through >> stage & 1 != 0 {
                times.record(followed.spent_ns[stage]);
            }
        }
        self.completion.record(now.nanos_since(followed.at));
    }

    /// Returns the times of all stages, in the order in which they came; the last is the completion.
    pub fn finish(mut self) -> Vec<Times> {
        self.times.push(self.completion);
        self.times
    }
}

fn find(followed: &mut [Followed], zeros: u32, tag: u64) -> Option<&mut Followed> {
    followed.get_mut(slot_of(tag) >> zeros).filter(|followed| followed.tag == Some(tag))
}

impl Times {
    fn new(name: &'static str) -> Self {
        Times { name, is_around: false, histogram: Histogram::new(), sum_ns: 0 }
    }

    fn clear(&mut self) {
        self.histogram.clear();
        self.sum_ns = 0;
    }

    #[inline]
    fn record(&mut self, nanos: u64) {
        self.histogram.record(nanos);
        self.sum_ns += nanos;
    }

    fn add(&mut self, other: &Times) {
        self.histogram.merge(&other.histogram);
        self.sum_ns += other.sum_ns;
    }

    /// Returns the stage of operations that took `mean_ns` altogether.
    fn stage(&self, operations: u64, mean_ns: f64) -> Option<Stage> {
        let count = self.histogram.count();
        (count > 0).then(|| Stage {
            name: self.name.to_owned(),
            side: Side::Local,
            count,
            mean_ns: self.sum_ns as f64 / count as f64,
            p50_ns: Some(self.histogram.quantile(0.5)),
            p99_ns: Some(self.histogram.quantile(0.99)),
            share: share(self.sum_ns as f64 / operations as f64, mean_ns),
        })
    }
}

/// Returns the stages over all links: those of this side in their order, with those of the far end behind the one that they are within,
/// which is the last before the completion unless the links name it.
pub(super) fn stages(found: &[Found]) -> Vec<Stage> {
    let mut local: Vec<Times> = Vec::new();
    for times in found.iter().flat_map(|link| &link.stages) {
        match local.iter_mut().find(|known| known.name == times.name) {
            Some(known) => known.add(times),
            None => {
                local.push(Times { is_around: times.is_around, ..Times::new(times.name) });
                local.last_mut().expect("it was pushed just now").add(times);
            }
        }
    }
    // A link that saw a stage more than the first has it behind its completion.
    local.sort_by_key(|times| times.name == COMPLETION);
    let Some(operations) = local.last().map(|completion| completion.histogram.count()).filter(|count| *count > 0)
    else {
        return Vec::new();
    };
    let mean_ns = local.iter().map(|times| times.sum_ns as f64).sum::<f64>() / operations as f64;
    // The completion is not within the far end's time, whatever a link says.
    let around = local.iter().position(|times| times.is_around).unwrap_or(local.len().saturating_sub(2));
    let stage = |times: &Times| times.stage(operations, mean_ns);
    let mut stages: Vec<Stage> = local[..=around].iter().filter_map(stage).collect();
    add_far_end(&mut stages, remote(found, mean_ns));
    stages.extend(local[around + 1..].iter().filter_map(stage));
    stages
}

/// Puts the far end's stages behind the one of this side that they are within, and what they leave of it behind them, so that they add
/// up to it.
///
/// A far end on this processor runs before the system call that sends has returned. Then it takes longer than the time from there to
/// its answer, which says nothing; the two stages of this side are one.
fn add_far_end(stages: &mut Vec<Stage>, remote: Vec<Stage>) {
    let far_ns: f64 = remote.iter().map(|stage| stage.mean_ns).sum();
    let overlaps = |around: &Stage| !remote.is_empty() && around.mean_ns < far_ns;
    let Some(mut around) = stages.pop() else { return };
    if overlaps(&around)
        && let Some(send) = stages.pop()
    {
        around = Stage {
            name: format!("{}, {}", send.name, around.name),
            mean_ns: send.mean_ns + around.mean_ns,
            share: send.share + around.share,
            p50_ns: None,
            p99_ns: None,
            ..around
        };
    }
    let rest = Stage {
        name: REST.to_owned(),
        side: Side::Remote,
        count: around.count,
        mean_ns: around.mean_ns - far_ns,
        p50_ns: None,
        p99_ns: None,
        share: around.share - remote.iter().map(|stage| stage.share).sum::<f64>(),
    };
    let is_left = !remote.is_empty() && rest.mean_ns >= 0.0;
    stages.push(around);
    stages.extend(remote);
    stages.extend(is_left.then_some(rest));
}

/// Returns the stages that the far ends have reported for the counted time.
fn remote(found: &[Found], mean_ns: f64) -> Vec<Stage> {
    let mut sums: Vec<(&'static str, Spans)> = Vec::new();
    for accounts in found.iter().map(|link| &link.accounts) {
        let Some((start, end)) = accounts.far_counted() else { continue };
        for (name, spans) in &end.stages {
            let before = start.stages.iter().find(|stage| stage.0 == *name);
            let counted = before.map_or_else(|| spans.clone(), |before| spans.since(&before.1));
            match sums.iter_mut().find(|sum| sum.0 == *name) {
                Some(sum) => sum.1.add(&counted),
                None => sums.push((name, counted)),
            }
        }
    }
    let stage = |(name, spans): (&'static str, Spans)| {
        let count = spans.count();
        let each_ns = spans.sum_ns() as f64 / count as f64;
        (count > 0).then(|| Stage {
            name: name.to_owned(),
            side: Side::Remote,
            count,
            mean_ns: each_ns,
            p50_ns: Some(spans.quantile_ns(0.5)),
            p99_ns: Some(spans.quantile_ns(0.99)),
            share: share(each_ns, mean_ns),
        })
    };
    sums.into_iter().filter_map(stage).collect()
}

/// Returns the part over the whole; 0 if the whole is 0.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
