use crate::{Counters, Cpu, FarEnd, Loss, Mode, Observed, ProcessCpu, Receiver, TcpTimes, Usage};

/// Counters of both sides, read around the counted time, and what became of the operations started in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Accounts {
    /// The far end before the first operation, and after the last one.
    pub far: [Option<FarEnd>; 2],
    /// The counters at the start and the end of each part of the counted time; pauses are between them.
    pub parts: Vec<[Reading; 2]>,
    /// The link's own counters at the start of the counted time and after the last operation.
    pub link: [Loss; 2],
    /// Operations started in the counted time that were given up.
    pub lost: u64,
    /// Operations started in the counted time that arrived after they had been given up.
    pub recovered: u64,
    /// Operations started in the counted time that were refused.
    pub refused: u64,
    /// Operations sent in the counted time and not waited for.
    pub sent: u64,
    /// All operations started, and those in the counted time.
    pub started: (u64, u64),
}

/// The counters of both sides at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    /// The far end's report.
    pub far: Option<FarEnd>,
    /// This side's process.
    pub local: Option<Usage>,
    /// The time by this host's clock.
    pub host_s: Option<f64>,
    /// The whole machine: busy seconds, and all of them.
    pub machine: Option<(f64, f64)>,
    /// The CPU seconds of all programs of the machine.
    pub programs_s: Option<f64>,
    /// Every processor that may be used, as the machine.
    pub processors: Option<Vec<(f64, f64)>>,
    /// The report of the link's TCP.
    pub tcp: Option<TcpTimes>,
    /// The counters of this host, and of the link's thread.
    pub counters: Counters,
}

impl Accounts {
    /// Returns the sum over the parts of the counted time of what a reading counts; `None` if one of them has no count.
    fn sum<T>(&self, of: impl Fn(&Reading) -> Option<T>, between: impl Fn(T, T) -> f64) -> Option<f64> {
        if self.parts.is_empty() {
            return None;
        }
        self.parts.iter().map(|[from, to]| Some(between(of(from)?, of(to)?))).sum()
    }

    /// Returns the counted time by this host's clock.
    pub fn host_s(&self) -> Option<f64> {
        self.sum(|reading| reading.host_s, |from, to| to - from)
    }

    /// Returns the usage of a process over the parts of the counted time.
    fn usage(&self, of: impl Fn(&Reading) -> Option<Usage>) -> Option<Usage> {
        self.parts.iter().map(|[from, to]| Some(of(to)?.since(&of(from)?))).reduce(|a, b| Some(a?.and(b?))).flatten()
    }

    /// Returns the observations of this host in the counted time; `None` if nothing was counted.
    pub fn observed(&self) -> Option<Observed> {
        self.parts.iter().map(|[from, to]| to.counters.since(&from.counters)).reduce(|a, b| a.and(&b))
    }

    /// Returns the far end's reports at the start and the end of the counted time.
    pub fn far_counted(&self) -> Option<(&FarEnd, &FarEnd)> {
        let ([start, _], [_, end]) = (self.parts.first()?, self.parts.last()?);
        start.far.as_ref().zip(end.far.as_ref())
    }

    /// Returns the operations that the far end counted as received since the counted time began; 0 if it did not report.
    pub fn arrived(&self) -> u64 {
        let first = self.far_counted().map(|(start, _)| start.received);
        first.zip(self.far[1].as_ref()).map_or(0, |(first, last)| last.received.saturating_sub(first))
    }

    /// Returns the operations that did not arrive as sent.
    pub fn loss(&self, mode: Mode) -> Loss {
        let here = less(self.link[1], self.link[0]);
        let far = match (self.far_counted(), &self.far[1]) {
            (Some((start, _)), Some(last)) => less(last.loss, start.loss),
            _ => Loss::default(),
        };
        let seen = self.lost.saturating_sub(self.recovered);
        let missing = if mode == Mode::Send { self.not_received().unwrap_or(seen) } else { seen };
        // Operations that this side's kernel did not take were given up like those lost on their way.
        let never_sent = here.refused.min(missing);
        Loss {
            lost: missing - never_sent + here.lost,
            duplicated: here.duplicated + far.duplicated,
            reordered: here.reordered + far.reordered,
            retransmitted: here.retransmitted + far.retransmitted,
            refused: self.refused + never_sent,
            overrun: here.overrun + far.overrun,
            naks: here.naks + far.naks,
            not_ready: here.not_ready + far.not_ready,
            damaged: both(here.damaged, far.damaged, u64::saturating_add),
        }
    }

    /// Returns the time by which the far end fell behind its pace in the counted time.
    pub fn shortfall_s(&self) -> Option<f64> {
        self.sum(|reading| reading.far.as_ref()?.shortfall_s, |from, to| (to - from).max(0.0))
    }

    /// Returns the operations that each node of the far end did in the counted time.
    pub fn served(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for [from, to] in &self.parts {
            let (Some(from), Some(to)) = (&from.far, &to.far) else { continue };
            all.resize(all.len().max(to.served.len()), 0);
            for (sum, (from, to)) in all.iter_mut().zip(from.served.iter().zip(&to.served)) {
                *sum += to.saturating_sub(*from);
            }
        }
        all
    }

    /// Returns what each receiver of a group got of all that was sent to it.
    pub fn receivers(&self) -> Vec<Receiver> {
        let [Some(first), Some(last)] = &self.far else { return Vec::new() };
        let each = first.receivers.iter().zip(&last.receivers);
        each.map(|((address, from), (_, to))| {
            let received = to.saturating_sub(*from);
            Receiver { address: address.clone(), received, lost: self.started.0.saturating_sub(received) }
        })
        .collect()
    }

    /// Returns the operations sent in the counted time that the far end did not receive; `None` if it does not count
    /// them.
    ///
    /// The far end's count at the start of the counted time holds all that was sent before only if nothing overtook the
    /// request, so the result is at most what is missing of the whole run, which is exact.
    fn not_received(&self) -> Option<u64> {
        let [first, last] = self.far.each_ref().map(|far| far.as_ref().map(|far| far.received));
        let (first, start, last) = (first?, self.far_counted()?.0.received, last?);
        let (in_all, counted) = self.started;
        let received = last.saturating_sub(first);
        let missing = in_all.saturating_sub(received).saturating_sub(self.refused);
        let missing_counted = counted.saturating_sub(last.saturating_sub(start)).saturating_sub(self.refused);
        (received > 0 || self.sent > 0).then_some(missing.min(missing_counted))
    }
}

/// Returns the CPU time that the run cost. The process and the machine are those of the first link: there is one of
/// each.
pub(super) fn cpu(accounts: &Accounts, elapsed_s: f64, operations: u64) -> Cpu {
    let process = |usage: Option<Usage>| Some(ProcessCpu::of(&usage?, elapsed_s));
    let local = process(accounts.usage(|reading| reading.local));
    let remote = process(accounts.usage(|reading| reading.far.as_ref()?.usage));
    let busy_s = accounts.sum(|reading| reading.machine, |from, to| to.0 - from.0);
    let all_s = accounts.sum(|reading| reading.machine, |from, to| to.1 - from.1);
    // The time of both sides is exact; of what is left little is an error.
    let sides_s: f64 = local.iter().chain(&remote).map(|side| side.user_s + side.system_s).sum();
    let others_s = accounts.sum(|reading| reading.programs_s, |from, to| to - from);
    Cpu {
        machine_percent: busy_s.zip(all_s).and_then(percent),
        others_percent: others_s.map(|others_s| (others_s - sides_s).max(0.0)).zip(all_s).and_then(percent),
        busiest_percent: busiest(&accounts.parts),
        ..Cpu::of_sides(local, remote, operations)
    }
}

/// Returns the load of the busiest processor in percent.
fn busiest(parts: &[[Reading; 2]]) -> Option<f64> {
    let mut loads: Vec<(f64, f64)> = Vec::new();
    for [from, to] in parts {
        let (from, to) = (from.processors.as_ref()?, to.processors.as_ref()?);
        loads.resize(loads.len().max(from.len()), (0.0, 0.0));
        for (load, (from, to)) in loads.iter_mut().zip(from.iter().zip(to)) {
            *load = (load.0 + to.0 - from.0, load.1 + to.1 - from.1);
        }
    }
    loads.into_iter().filter_map(percent).reduce(f64::max)
}

/// Returns a part of a time in percent; `None` if no time has passed.
fn percent((part_s, all_s): (f64, f64)) -> Option<f64> {
    (all_s > 0.0).then(|| 100.0 * (part_s / all_s).clamp(0.0, 1.0))
}

/// Returns the sum of the TCP reports of several links on the counted time; `None` if one of them has none.
pub(super) fn tcp<'a>(links: impl Iterator<Item = &'a Accounts>) -> Option<TcpTimes> {
    let each = links.map(|accounts| {
        let parts = accounts.parts.iter().map(|[from, to]| Some(to.tcp?.since(&from.tcp?)));
        parts.reduce(|a, b| Some(b?.following(a?))).flatten()
    });
    each.reduce(|a, b| a.zip(b).map(|(a, b)| a.and(b))).flatten()
}

/// Returns the sum over links.
pub(super) fn sum(losses: impl Iterator<Item = Loss>) -> Loss {
    losses.fold(Loss::default(), |a, b| Loss {
        lost: a.lost + b.lost,
        duplicated: a.duplicated + b.duplicated,
        reordered: a.reordered + b.reordered,
        retransmitted: a.retransmitted + b.retransmitted,
        refused: a.refused + b.refused,
        overrun: a.overrun + b.overrun,
        naks: a.naks + b.naks,
        not_ready: a.not_ready + b.not_ready,
        damaged: both(a.damaged, b.damaged, u64::saturating_add),
    })
}

fn less(a: Loss, b: Loss) -> Loss {
    Loss {
        lost: a.lost.saturating_sub(b.lost),
        duplicated: a.duplicated.saturating_sub(b.duplicated),
        reordered: a.reordered.saturating_sub(b.reordered),
        retransmitted: a.retransmitted.saturating_sub(b.retransmitted),
        refused: a.refused.saturating_sub(b.refused),
        overrun: a.overrun.saturating_sub(b.overrun),
        naks: a.naks.saturating_sub(b.naks),
        not_ready: a.not_ready.saturating_sub(b.not_ready),
        damaged: both(a.damaged, b.damaged, u64::saturating_sub),
    }
}

/// Returns the outcome for two counts, or the only one that is known.
fn both(a: Option<u64>, b: Option<u64>, of_both: impl Fn(u64, u64) -> u64) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(of_both(a, b)),
        (one, other) => one.or(other),
    }
}
