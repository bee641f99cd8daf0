//! A plan over an open link, with this process's clocks, counters, processors and user around it.

use crate::{Observer, Opened};
use hodo_io::usage::{MachineTime, Usage};
use hodo_io::{Clock, Programs, affinity};
use hodo_machine::Instant;
use hodo_measure::{Plan, Run, Watch};
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs a plan over a link; what was measured is there also after an error.
///
/// `processors` are those whose load counts; none: all of the machine. `programs` reads the CPU time of both sides and all other
/// programs, where that says something of the link.
pub fn drive(
    opened: &mut Opened,
    plan: &Plan,
    processors: &[usize],
    programs: Option<&Programs>,
    stop: &AtomicBool,
    observer: &dyn Observer,
) -> Run {
    let Opened { links, cpus, .. } = opened;
    let watch = Attended { cpus, processors, programs, stop, observer, clock: Clock::start() };
    // A process or thread that is started later, a far end above all, would inherit the processor that a single link is
    // driven on.
    affinity::keep(|| hodo_measure::run(links, plan, &watch))
}

/// The watch that serves a run: processors, counters, and the user.
struct Attended<'a> {
    cpus: &'a [Option<usize>],
    processors: &'a [usize],
    programs: Option<&'a Programs>,
    stop: &'a AtomicBool,
    observer: &'a dyn Observer,
    clock: Clock,
}

impl Watch for Attended<'_> {
    fn placed(&self, link: usize) {
        let Some(cpu) = self.cpus.get(link).copied().flatten() else { return };
        if let Err(why) = affinity::pin_thread(cpu) {
            self.observer.say(&format!("a thread cannot be bound to processor {cpu}: {why}"));
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
        self.programs?.used_s()
    }

    fn processors_busy_s(&self) -> Option<Vec<(f64, f64)>> {
        let counts = |number: usize| self.processors.is_empty() || self.processors.contains(&number);
        let each = MachineTime::of_processors()?.into_iter().filter(|(number, _)| counts(*number));
        Some(each.map(|(_, time)| (time.busy_s, time.busy_s + time.idle_s)).collect())
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn progress(&self, progress: &hodo_measure::Progress) {
        self.observer.tick(progress);
    }
}
