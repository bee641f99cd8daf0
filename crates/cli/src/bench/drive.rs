//! A plan over an open link, with this process's clocks, counters, processors and user around it.

use super::Progress;
use hodo_catalog::Opened;
use hodo_io::affinity::pin_thread;
use hodo_io::usage::{MachineTime, ProcessUsage};
use hodo_measure::{Mode, Plan, Repeats, Run, Size, Test, Until, Unwatched, Usage, Watch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long the round-trip is measured before the plan.
const PROBE: Duration = Duration::from_millis(20);

/// Runs a plan over a link; what was measured is there also after an error.
pub fn drive(opened: &mut Opened, plan: &Plan, stop: &AtomicBool, progress: &Progress) -> Run {
    let Opened { links, cpus, .. } = opened;
    let watch = Attended { cpus, stop, progress };
    apart(|| hodo_measure::run(links, plan, &watch))
}

/// The median time of a single small operation over this link, for the bound of window over round-trip.
pub fn round_trip(opened: &mut Opened, plan: &Plan) -> Option<f64> {
    let probe = Plan {
        test: Test::Latency,
        mode: Mode::Both,
        size: Size::Fixed(1),
        window: 1,
        channels: 1,
        rate: None,
        until: Until::Elapsed(PROBE),
        warmup: Duration::ZERO,
        repeats: Repeats::Fixed(1),
        ..plan.clone()
    };
    let run = apart(|| hodo_measure::run(&mut opened.links, &probe, &Unwatched));
    run.latency.map(|latency| latency.p50 as f64)
}

/// Does something on a thread of its own, so that the calling one is not left on the processor that it was bound to:
/// what it starts later, a far end above all, would inherit that.
pub fn apart<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(act).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// What the run asks of us.
struct Attended<'a> {
    cpus: &'a [Option<usize>],
    stop: &'a AtomicBool,
    progress: &'a Progress,
}

impl Watch for Attended<'_> {
    fn placed(&self, link: usize) {
        let Some(cpu) = self.cpus.get(link).copied().flatten() else { return };
        if let Err(why) = pin_thread(cpu) {
            self.progress.say(&format!("a thread cannot be bound to processor {cpu}: {why}"));
        }
    }

    fn local_usage(&self) -> Option<Usage> {
        let ProcessUsage { user_s, system_s, voluntary_switches, involuntary_switches, max_rss_bytes } =
            ProcessUsage::of_process();
        Some(Usage { user_s, system_s, voluntary_switches, involuntary_switches, max_rss_bytes })
    }

    fn machine_busy_s(&self) -> Option<(f64, f64)> {
        MachineTime::until_now().map(|time| (time.busy_s, time.busy_s + time.idle_s))
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn progress(&self, progress: &hodo_measure::Progress) {
        self.progress.tick(progress);
    }
}
