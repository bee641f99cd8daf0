//! One row: the link is measured, with bare sockets and its own operations one at a time around it, and then judged.

use crate::drive::{Around, drive};
use crate::observation::{FarProcess, Observation};
use crate::path::connection;
use crate::placement::Placement;
use crate::round_trip::alone;
use crate::running::Running;
use crate::{Benchmark, Line, Observer, Opened, Settings};
use hodo_io::Programs;
use hodo_io::host::bound_at;
use hodo_machine::Wait;
use hodo_measure::limits::{self, OnTheWire, RoundTrip};
use hodo_measure::{Beside, LinkError, Measurement, PlainLoop, Plan, Run, SimulationCost, Test};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Looks at the plain loop around a row and, at most, in the pauses between its repeats. Each takes a twentieth of a second.
const LOOKS: usize = 5;
const LOOKS_BETWEEN: u32 = 3;
/// The most channels of a row that pauses: the far end is asked for its counters on each of them.
const PAUSED_CHANNELS_MAX: u32 = 256;

/// A row to be measured, and what has been measured around it.
pub(crate) struct Row<'a> {
    benchmark: &'a Benchmark,
    stop: &'a AtomicBool,
    observer: &'a dyn Observer,
    plan: &'a Plan,
    placement: &'a Placement,
    settings: &'a Settings,
    wire: &'a OnTheWire,
    /// Whether time is this host's, and not that of a simulation.
    is_real: bool,
    /// Whether both ends are on this host.
    is_here: bool,
    /// The row that is measured at the same time.
    beside: Option<Beside>,
    looks: Mutex<Vec<PlainLoop>>,
    alone_ns: Vec<f64>,
}

impl<'a> Row<'a> {
    /// Creates a row of this plan over an open link.
    pub(crate) fn new(
        benchmark: &'a Benchmark,
        (stop, observer): (&'a AtomicBool, &'a dyn Observer),
        plan: &'a Plan,
        placement: &'a Placement,
        settings: &'a Settings,
        wire: &'a OnTheWire,
        opened: &Opened,
    ) -> Self {
        Row {
            benchmark,
            stop,
            observer,
            plan,
            placement,
            settings,
            wire,
            is_real: !benchmark.link.simulated,
            is_here: opened.is_here(),
            beside: None,
            looks: Mutex::default(),
            alone_ns: Vec::new(),
        }
    }

    /// Measures the row while another one is measured: bare sockets would have the machine for themselves neither around it nor in
    /// between, and its own operations one at a time only before.
    pub(crate) fn measure_beside(
        mut self,
        beside: Beside,
        opened: &mut Opened,
        line: Line,
        interface: Option<String>,
        far_end: Option<&Running>,
    ) -> (Measurement, Option<LinkError>) {
        self.beside = Some(beside);
        let run = self.run(opened, 0, interface, far_end);
        let error = run.error.clone();
        (self.judged(run, opened, line), error)
    }

    /// Measures the row and what is around it. Returns also the reason why the link cannot go on, if it cannot.
    pub(crate) fn measure(
        mut self,
        opened: &mut Opened,
        line: Line,
        interface: Option<String>,
        mut far_end: Option<&mut Running>,
    ) -> (Measurement, Option<LinkError>) {
        let pauses = if self.has_plain_loop() { pauses(self.plan) } else { 0 };
        let looks = LOOKS - pauses as usize;
        (0..looks.div_ceil(2)).for_each(|_| self.look());
        self.look_alone(opened);
        let run = self.run(opened, pauses, interface, far_end.as_deref());
        if run.error.is_none() {
            self.look_alone(opened);
            (0..looks / 2).for_each(|_| self.look());
        }
        let error = run.error.clone();
        let mut found = self.judged(run, opened, line);
        if let Some(ended) = far_end.as_mut().and_then(|far_end| far_end.ended()) {
            append(&mut found, &ended);
        }
        (found, error)
    }

    /// Returns whether bare sockets can do what the row does. They cannot where its far end polls meanwhile, on the processor that one of
    /// them needs: they would have a part of it, and in real time none.
    fn has_plain_loop(&self) -> bool {
        let is_disturbed = self.plan.wait == Wait::Spin;
        self.is_real && self.is_here && !is_disturbed && crate::limit::has_plain_loop(self.wire)
    }

    /// Returns whether the row's operations one at a time say something of it: neither of a lone operation nor of updates.
    fn has_round_trip(&self) -> bool {
        let is_lone = self.plan.test == Test::Latency || self.plan.window * self.plan.channels == 1;
        self.is_real && !is_lone && self.plan.test != Test::Updates
    }

    /// Looks once at the plain loop. Without it a row may have no limit, but it is still a measurement.
    fn look(&self) {
        if self.has_plain_loop() && !self.stop.load(Ordering::Relaxed) {
            match crate::plain_loop(self.wire, self.settings, self.plan, &self.placement.far) {
                Ok(found) => self.looks.lock().unwrap_or_else(PoisonError::into_inner).push(found),
                Err(why) => self.observer.say(&why.to_string()),
            }
        }
    }

    /// Measures the row's operations one at a time.
    pub(crate) fn look_alone(&mut self, opened: &mut Opened) {
        if self.has_round_trip() && !self.stop.load(Ordering::Relaxed) {
            self.alone_ns.extend(alone(opened, self.plan, self.wire));
        }
    }

    /// Runs the plan.
    fn run(&self, opened: &mut Opened, pauses: u32, interface: Option<String>, far_end: Option<&Running>) -> Run {
        let programs = Programs::except(far_end.map(Running::processes_behind).unwrap_or_default());
        let far_process = match (&self.settings.far_process, far_end) {
            (Some(process), _) => FarProcess::Here(process.id()),
            (None, None) if self.is_here => {
                opened.remote.and_then(bound_at).map_or(FarProcess::Unknown, FarProcess::Here)
            }
            (None, _) => FarProcess::None,
        };
        let observation = Observation::new(interface, far_process);
        let around = Around {
            processors: &busy_processors(self.placement),
            programs: Some(&programs).filter(|_| self.is_real),
            observation: Some(&observation).filter(|_| self.is_real),
            pauses,
            paused: &|| self.look(),
            stop: self.stop,
            observer: self.observer,
        };
        drive(opened, self.plan, &around)
    }

    /// Returns the row with its limit, and with what its verdict says of it.
    fn judged(self, run: Run, opened: &Opened, line: Line) -> Measurement {
        let host_s = run.host_s;
        let link = &self.benchmark.link;
        let mut found = run.into_measurement(link.scheme, &link.to_string(), self.plan);
        found.connection = connection(&self.settings.path, opened.mss);
        if !self.is_real {
            // The CPU time of computing the simulation says nothing of the link, and differs from run to run.
            let cpu = std::mem::take(&mut found.cpu);
            found.observed = None;
            found.simulation = host_s.and_then(|host_s| SimulationCost::of(&cpu, found.elapsed_s, host_s));
        }
        if self.is_here && found.cpu.remote.is_none() {
            // It would be counted with the others.
            found.cpu.others_percent = None;
        }
        if self.beside.is_some() {
            // The CPU time is that of the process, for both rows.
            let cpu = &mut found.cpu;
            (cpu.local_ns_per_operation, cpu.remote_ns_per_operation, cpu.others_percent) = (None, None, None);
        }
        let has_round_trip = self.has_round_trip();
        found.beside = self.beside;
        let round_trip = RoundTrip::of_row(&found, self.wire, &self.alone_ns).filter(|_| has_round_trip);
        let plain_loop = PlainLoop::of_looks(&self.looks.into_inner().unwrap_or_else(PoisonError::into_inner));
        let limit = crate::limit(self.wire, opened, line, plain_loop.as_ref(), round_trip, &found);
        found.set_limit(limit, plain_loop);
        let bound = found.limit.as_ref().zip(found.share_of_limit);
        let passed = bound.and_then(|(limit, share)| limits::red_flag(limit, share));
        for more in [passed, found.shortfall_text(), found.cpu.others_text()].into_iter().flatten() {
            append(&mut found, &more);
        }
        found
    }
}

/// Appends a remark to the verdict.
fn append(found: &mut Measurement, remark: &str) {
    found.verdict.text = format!("{}; {remark}", found.verdict.text);
}

/// Returns the repeats of a plan after which it pauses for a look at the plain loop. A schedule goes on.
fn pauses(plan: &Plan) -> u32 {
    let may_pause = !matches!(plan.test, Test::Open | Test::Updates) && plan.channels <= PAUSED_CHANNELS_MAX;
    if may_pause { plan.repeats.most().saturating_sub(1).min(LOOKS_BETWEEN) } else { 0 }
}

/// Returns the processors whose load counts: those that the two sides are bound to, or all of them where a side is not
/// bound.
fn busy_processors(placement: &Placement) -> Vec<usize> {
    if placement.here.is_empty() {
        return Vec::new();
    }
    placement.here.iter().chain(&placement.far).copied().collect()
}
