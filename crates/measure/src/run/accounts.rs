use crate::{Cpu, FarEnd, Loss, Mode, ProcessCpu, TcpTimes, Usage};

/// Counters of both sides, read around the counted time, and what became of the operations started in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Accounts {
    /// The far end before the first operation, at the start and the end of the counted time, and after the last one.
    pub far: [Option<FarEnd>; 4],
    /// This side's process at the start and the end of the counted time.
    pub local: [Option<Usage>; 2],
    /// The time by this host's clock likewise.
    pub host_s: [Option<f64>; 2],
    /// The whole machine likewise: busy seconds, and all of them.
    pub machine: [Option<(f64, f64)>; 2],
    /// The CPU seconds of all programs of the machine likewise.
    pub programs_s: [Option<f64>; 2],
    /// Every processor that may be used likewise.
    pub processors: [Option<Vec<(f64, f64)>>; 2],
    /// The report of the link's TCP at the start and the end of the counted time.
    pub tcp: [Option<TcpTimes>; 2],
    /// The link's own counters at the start of the counted time and after the last operation.
    pub link: [Loss; 2],
    /// Operations started in the counted time that were given up.
    pub lost: u64,
    /// Operations started in the counted time that arrived after they had been given up.
    pub recovered: u64,
    /// Operations started in the counted time that were refused.
    pub refused: u64,
    /// All operations started, and those in the counted time.
    pub started: (u64, u64),
}

/// When a counter is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    First,
    Start,
    End,
    Last,
}

impl Accounts {
    pub fn far_at(&self, moment: Moment) -> Option<&FarEnd> {
        self.far[moment as usize].as_ref()
    }

    /// Returns the operations that did not arrive as sent.
    pub fn loss(&self, mode: Mode) -> Loss {
        let here = less(self.link[1], self.link[0]);
        let far = match (self.far_at(Moment::Start), self.far_at(Moment::Last)) {
            (Some(start), Some(last)) => less(last.loss, start.loss),
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
        }
    }

    /// Returns the time by which the far end fell behind its pace in the counted time.
    pub fn shortfall_s(&self) -> Option<f64> {
        let at = |moment| self.far_at(moment)?.shortfall_s;
        Some((at(Moment::End)? - at(Moment::Start)?).max(0.0))
    }

    /// Returns the operations that each node of the far end did in the counted time.
    pub fn served(&self) -> impl Iterator<Item = u64> {
        let served = |moment| self.far_at(moment).map_or(&[][..], |far: &FarEnd| &far.served);
        served(Moment::End).iter().zip(served(Moment::Start)).map(|(end, start)| end.saturating_sub(*start))
    }

    /// Returns the operations sent in the counted time that the far end did not receive; `None` if it does not count
    /// them.
    ///
    /// The far end's count at the start of the counted time holds all that was sent before only if nothing overtook the
    /// request, so the result is at most what is missing of the whole run, which is exact.
    fn not_received(&self) -> Option<u64> {
        let [first, start, last] = [Moment::First, Moment::Start, Moment::Last].map(|moment| self.far_at(moment));
        let (first, start, last) = (first?.received, start?.received, last?.received);
        let (in_all, counted) = self.started;
        let received = last.saturating_sub(first);
        let missing = in_all.saturating_sub(received).saturating_sub(self.refused);
        let missing_counted = counted.saturating_sub(last.saturating_sub(start)).saturating_sub(self.refused);
        (received > 0).then_some(missing.min(missing_counted))
    }
}

/// Returns the CPU time that the run cost. The process and the machine are those of the first link: there is one of
/// each.
pub(super) fn cpu(accounts: &Accounts, elapsed_s: f64, operations: u64) -> Cpu {
    let between = |from: Option<Usage>, to: Option<Usage>| Some(ProcessCpu::of(&to?.since(&from?), elapsed_s));
    let far_usage = |moment| accounts.far_at(moment).and_then(|far| far.usage);
    let machine = accounts.machine[0].zip(accounts.machine[1]).and_then(|(from, to)| {
        let (busy, all) = (to.0 - from.0, to.1 - from.1);
        (all > 0.0).then(|| 100.0 * (busy / all).clamp(0.0, 1.0))
    });
    let local = between(accounts.local[0], accounts.local[1]);
    let remote = between(far_usage(Moment::Start), far_usage(Moment::End));
    let each = |process: Option<ProcessCpu>| {
        let process = process.filter(|_| operations > 0)?;
        Some((process.user_s + process.system_s) * 1e9 / operations as f64)
    };
    // The time of both sides is exact; of what is left little is an error.
    let others = accounts.programs_s[0].zip(accounts.programs_s[1]).zip(accounts.machine[0].zip(accounts.machine[1]));
    let others = others.and_then(|((from_s, to_s), (from, to))| {
        let sides_s: f64 = local.iter().chain(&remote).map(|side| side.user_s + side.system_s).sum();
        let (others_s, all_s) = ((to_s - from_s - sides_s).max(0.0), to.1 - from.1);
        (all_s > 0.0).then(|| 100.0 * (others_s / all_s).min(1.0))
    });
    Cpu {
        machine_percent: machine,
        others_percent: others,
        busiest_percent: busiest(&accounts.processors),
        local,
        remote,
        local_ns_per_operation: each(local),
        remote_ns_per_operation: each(remote),
    }
}

/// Returns the load of the busiest processor in percent.
fn busiest([from, to]: &[Option<Vec<(f64, f64)>>; 2]) -> Option<f64> {
    let (from, to) = (from.as_ref()?, to.as_ref()?);
    let loads = from.iter().zip(to).filter_map(|(from, to)| {
        let (busy, all) = (to.0 - from.0, to.1 - from.1);
        (all > 0.0).then(|| 100.0 * (busy / all).clamp(0.0, 1.0))
    });
    loads.reduce(f64::max)
}

/// Returns the sum of the TCP reports of several links on the counted time; `None` if one of them has none.
pub(super) fn tcp<'a>(links: impl Iterator<Item = &'a Accounts>) -> Option<TcpTimes> {
    let each = links.map(|accounts| {
        let (from, to) = (accounts.tcp[0]?, accounts.tcp[1]?);
        Some(TcpTimes {
            busy_s: (to.busy_s - from.busy_s).max(0.0),
            receive_window_limited_s: (to.receive_window_limited_s - from.receive_window_limited_s).max(0.0),
            send_buffer_limited_s: (to.send_buffer_limited_s - from.send_buffer_limited_s).max(0.0),
            ..to
        })
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
    }
}
