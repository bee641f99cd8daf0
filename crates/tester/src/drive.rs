//! A plan over an open link, with this process's clocks, counters, processors and user around it.

use crate::observation::Observation;
use crate::{Observer, Opened};
use hodo_io::usage::{MachineTime, Usage};
use hodo_io::{Clock, Programs, affinity};
use hodo_machine::Instant;
use hodo_measure::{Counters, Plan, Run, Snapshot, SnapshotSettings, Watch};
use std::sync::atomic::{AtomicBool, Ordering};

/// The surroundings of a run.
pub struct Around<'a> {
    /// The processors whose load counts; none: all of the machine.
    pub processors: &'a [usize],
    /// The CPU time of both sides and all other programs, where that says something of the link.
    pub programs: Option<&'a Programs>,
    /// The counters of the host, where they say something of the link.
    pub observation: Option<&'a Observation>,
    /// The repeats after which the run pauses.
    pub pauses: u32,
    /// Has the machine for itself in a pause.
    pub paused: &'a (dyn Fn() + Sync),
    /// Whether the run has to end.
    pub stop: &'a AtomicBool,
    /// The caller who follows the run.
    pub observer: &'a dyn Observer,
}

/// Runs a plan over a link; what was measured is there also after an error.
pub fn drive(opened: &mut Opened, plan: &Plan, around: &Around<'_>) -> Run {
    let Opened { links, cpus, .. } = opened;
    let watch = Attended { cpus, around, clock: Clock::start() };
    // A process or thread that is started later, a far end above all, would inherit the processor that a single link is
    // driven on.
    affinity::keep(|| hodo_measure::run(links, plan, &watch))
}

/// The watch that serves a run: processors, counters, and the user.
struct Attended<'a> {
    cpus: &'a [Option<usize>],
    around: &'a Around<'a>,
    clock: Clock,
}

impl Watch for Attended<'_> {
    fn placed(&self, link: usize) {
        let Some(cpu) = self.cpus.get(link).copied().flatten() else { return };
        if let Err(why) = affinity::pin_thread(cpu) {
            self.around.observer.say(&format!("a thread cannot be bound to processor {cpu}: {why}"));
        }
    }

    fn local_usage(&self) -> Option<Usage> {
        Some(Usage::of_process())
    }

    fn host_s(&self) -> Option<f64> {
        Some((self.clock.now() - Instant::ZERO).as_secs_f64())
    }

    fn machine_busy_s(&self) -> Option<(f64, f64)> {
        MachineTime::until_now().map(|time| (time.busy_s, time.busy_s + time.idle_s))
    }

    fn programs_s(&self) -> Option<f64> {
        self.around.programs?.used_s()
    }

    fn processors_busy_s(&self) -> Option<Vec<(f64, f64)>> {
        let counts = |number: usize| self.around.processors.is_empty() || self.around.processors.contains(&number);
        let each = MachineTime::of_processors()?.into_iter().filter(|(number, _)| counts(*number));
        Some(each.map(|(_, time)| (time.busy_s, time.busy_s + time.idle_s)).collect())
    }

    fn counters(&self) -> Counters {
        self.around.observation.map(Observation::counters).unwrap_or_default()
    }

    fn pauses_after(&self, repeats: u32) -> bool {
        repeats <= self.around.pauses
    }

    fn paused(&self) {
        (self.around.paused)();
    }

    fn interrupted(&self) -> bool {
        self.around.stop.load(Ordering::Relaxed)
    }

    fn snapshots(&self) -> Option<SnapshotSettings> {
        self.around.observer.snapshots()
    }

    fn snapshot(&self, snapshot: Snapshot) {
        self.around.observer.snapshot(snapshot);
    }

    fn progress(&self, progress: &hodo_measure::Progress) {
        self.around.observer.tick(progress);
    }
}
