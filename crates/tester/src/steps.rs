//! The steps of a run: a far end where it is needed, a link, a measurement, its limit, and the next.

use crate::drive::drive;
use crate::line::line;
use crate::placement::Placement;
use crate::round_trip::alone;
use crate::running::Running;
use crate::{Benchmark, Error, Observer, Opened, Settings, Uri, environment};
use hodo_io::Programs;
use hodo_io::nic::Nic;
use hodo_measure::limits::{self, OnTheWire, RoundTrip};
use hodo_measure::{
    Document, FarEndFacts, LinkError, Measurement, PlainLoop, Plan, SimulationCost, State, Test, Verdict,
};
use std::sync::atomic::{AtomicBool, Ordering};

/// Looks at the plain loop before and after a row.
const LOOKS: [usize; 2] = [3, 2];

/// A run of one link.
pub(crate) struct Steps<'a> {
    pub(crate) benchmark: &'a Benchmark,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) document: &'a mut Document,
}

impl Steps<'_> {
    /// Runs the plans in turn. The measurements are in the document, also after an error.
    pub(crate) fn run(&mut self, plans: &[Plan]) -> Result<(), Error> {
        let mut far_end = None;
        let mut failure = Ok(());
        for plan in plans {
            self.observer.begin(&self.benchmark.link, plan);
            let step = self.step(plan, &mut far_end);
            let stopped = self.stop.load(Ordering::Relaxed);
            let (mut measurement, next) = match step {
                // Nothing that could be measured: the command line is wrong.
                Err(error @ Error::Usage(_)) => return Err(error),
                Err(_) if stopped => {
                    (self.unmeasured(plan, State::Interrupted, "nothing had been counted yet"), Next::End(Ok(())))
                }
                Err(error) => (self.unmeasured(plan, State::Failed, &error.to_string()), Next::End(Err(error))),
                Ok((measurement, error)) => (measurement, self.next(error, stopped)),
            };
            if let Some(preset) = self.benchmark.choice.preset {
                measurement.published = preset.published(plan);
            }
            self.observer.end(&measurement);
            self.document.measurements.push(measurement);
            self.observer.added(self.document);
            match next {
                Next::End(result) => return failure.and(result),
                Next::Plan(result) => failure = failure.and(result),
            }
        }
        failure
    }

    /// Returns whether the next plan may do better after this one's error.
    fn next(&self, error: Option<LinkError>, stopped: bool) -> Next {
        let named = |error: LinkError| Err(Error::Failed(format!("{}: {error}", self.benchmark.link)));
        match error {
            _ if stopped => Next::End(Ok(())),
            None => Next::Plan(Ok(())),
            Some(error @ LinkError::Unsupported(_)) => Next::Plan(named(error)),
            Some(error) => Next::End(named(error)),
        }
    }

    /// Makes one measurement with its limit. Returns also the reason why the link cannot go on, if it cannot.
    fn step(&mut self, plan: &Plan, far_end: &mut Option<Running>) -> Result<(Measurement, Option<LinkError>), Error> {
        let placement = self.placement(plan);
        let uri = self.meet(&placement, far_end)?;
        let far_process = far_end.as_ref().and_then(Running::process);
        let settings = Settings { far_process, ..self.settings(plan, &placement) };
        let mut opened = crate::open(&uri, &settings, self.stop)?;
        let nic = opened.remote.and_then(Nic::towards);
        let line = line(&self.benchmark.conditions, nic.as_ref());
        if plan.stages {
            let pages = far_end.as_ref().and_then(Running::pages).or(self.benchmark.conditions.pages);
            if let Err(why) = uri.protocol.add_stages(&uri, &mut opened, pages) {
                self.observer.say(&why);
            }
        }
        let facts = opened.far_end.as_ref().or(far_end.as_ref().map(Running::facts)).cloned();
        self.note(&opened, &placement, nic, facts);
        let wire = uri.protocol.on_the_wire(&uri, plan)?;
        let real = !self.benchmark.link.simulated;
        // Neither cores nor the window bind a single operation on a line.
        let lone = plan.test == Test::Latency;
        let beside = Beside {
            plain_loop: real && wire.theory.is_none() && is_here(&opened),
            alone: real && plan.window * plan.channels > 1 && !lone && plan.test != Test::Updates,
        };
        let (mut looks, mut alone_ns) = (Vec::new(), Vec::new());
        let mut look = |steps: &Self, opened: &mut Opened, count: usize| {
            for _ in 0..if beside.plain_loop { count } else { 0 } {
                if !steps.stop.load(Ordering::Relaxed) {
                    looks.extend(steps.plain_loop(&wire, &settings, plan, &placement));
                }
            }
            if beside.alone && !steps.stop.load(Ordering::Relaxed) {
                alone_ns.extend(alone(opened, plan, &wire));
            }
        };
        look(self, &mut opened, LOOKS[0]);
        let programs = Programs::except(far_end.as_ref().map(Running::processes_behind).unwrap_or_default());
        let programs = Some(&programs).filter(|_| real);
        let run = drive(&mut opened, plan, &busy_processors(&placement), programs, self.stop, self.observer);
        if run.error.is_none() {
            look(self, &mut opened, LOOKS[1]);
        }
        let (error, host_s) = (run.error.clone(), run.host_s);
        let mut found = run.into_measurement(self.benchmark.link.scheme, &self.benchmark.link.to_string(), plan);
        if !real {
            // The CPU time of computing the simulation says nothing of the link, and differs from run to run.
            let cpu = std::mem::take(&mut found.cpu);
            found.simulation = host_s.and_then(|host_s| SimulationCost::of(&cpu, found.elapsed_s, host_s));
        }
        if is_here(&opened) && found.cpu.remote.is_none() {
            // It would be counted with the others.
            found.cpu.others_percent = None;
        }
        let round_trip = RoundTrip::of_row(&found, &wire, &alone_ns).filter(|_| beside.alone);
        let plain_loop = PlainLoop::of_looks(&looks);
        let limit = crate::limit(&wire, &opened, line, plain_loop.as_ref(), round_trip, &found);
        found.set_limit(limit, plain_loop);
        let passed = found.limit.as_ref().zip(found.share_of_limit);
        if let Some(passed) = passed.and_then(|(limit, share)| limits::red_flag(limit, share)) {
            found.verdict.text = format!("{}; {passed}", found.verdict.text);
        }
        for more in [found.shortfall_text(), found.cpu.others_text()].into_iter().flatten() {
            found.verdict.text = format!("{}; {more}", found.verdict.text);
        }
        if let Some(ended) = far_end.as_mut().and_then(Running::ended) {
            found.verdict.text = format!("{}; {ended}", found.verdict.text);
        }
        Ok((found, error))
    }

    /// Measures the plain loop of bare sockets. Without it a row may have no limit, but it is still a measurement.
    fn plain_loop(
        &self,
        wire: &OnTheWire,
        settings: &Settings,
        plan: &Plan,
        placement: &Placement,
    ) -> Option<PlainLoop> {
        let found = crate::plain_loop(wire, settings, plan, &placement.far);
        found.inspect_err(|error| self.observer.say(&error.to_string())).ok()
    }

    fn placement(&self, plan: &Plan) -> Placement {
        let asked = self.benchmark.conditions.cpus.as_deref();
        let far_end_here = self.benchmark.link.wants_far_end();
        let placement = Placement::of(asked, &crate::benchmark::online_cpus(), plan.channels, far_end_here);
        placement.with_far_on_one(self.benchmark.link.protocol.description().has_one_thread).with_buffers(
            self.benchmark.conditions.socket_buffer.or_else(|| {
                if far_end_here { self.benchmark.link.protocol.socket_buffer(plan.channels) } else { None }
            }),
        )
    }

    /// Returns where the far end is. One that is started here runs on until a plan needs another placement.
    fn meet(&self, placement: &Placement, far_end: &mut Option<Running>) -> Result<Uri, Error> {
        if !self.benchmark.link.wants_far_end() {
            return Ok(self.benchmark.link.clone());
        }
        if far_end.as_ref().is_none_or(|far_end| far_end.placement() != placement) {
            // The one before ends first, so that the two do not share a processor.
            drop(far_end.take());
            *far_end = Some(Running::start(
                &self.benchmark.link,
                &self.benchmark.timing,
                &self.benchmark.conditions,
                placement,
            )?);
        }
        let started = far_end.as_ref().expect("it was started above");
        Ok(started.link().clone())
    }

    fn settings(&self, plan: &Plan, placement: &Placement) -> Settings {
        Settings {
            channels: plan.channels,
            window: plan.window,
            size_max: plan.size.bounds().1,
            wait: plan.wait,
            cpus: placement.here.clone(),
            congestion: self.benchmark.conditions.congestion.clone(),
            socket_buffer: placement.socket_buffer,
            batch: plan.batch,
            far_process: None,
            reconnect: self.benchmark.choice.reconnect,
            seed: plan.seed,
            timeout: plan.stall,
        }
    }

    /// Notes the facts of the environment that are known only once a link is open.
    fn note(&mut self, opened: &Opened, placement: &Placement, nic: Option<Nic>, far: Option<FarEndFacts>) {
        let text = placement.text(self.benchmark.link.wants_far_end());
        let environment = &mut self.document.environment;
        if opened.congestion.is_some() {
            environment.congestion_control.clone_from(&opened.congestion);
        }
        environment::add_placement(environment, &text);
        if let Some(nic) = nic {
            environment::set_interface(environment, nic);
        }
        if let Some(facts) = far {
            environment::add_far_end(environment, facts);
        }
    }

    fn unmeasured(&self, plan: &Plan, state: State, why: &str) -> Measurement {
        let verdict = Verdict { state, text: format!("{}: {why}", state.word()) };
        plan.unmeasured(self.benchmark.link.scheme, &self.benchmark.link.to_string(), verdict)
    }
}

/// The next thing to do after a step.
enum Next {
    Plan(Result<(), Error>),
    End(Result<(), Error>),
}

/// The measurements beside a row, before and after it.
struct Beside {
    /// The plain loop of bare sockets.
    plain_loop: bool,
    /// The row's operations one at a time.
    alone: bool,
}

/// Returns the processors whose load counts: those that the two sides are bound to, or all of them where a side is not
/// bound.
fn busy_processors(placement: &Placement) -> Vec<usize> {
    if placement.here.is_empty() {
        return Vec::new();
    }
    placement.here.iter().chain(&placement.far).copied().collect()
}

/// Returns whether both sides are on this host, where there is no line between them.
fn is_here(opened: &Opened) -> bool {
    let same = |local: std::net::SocketAddr, remote: std::net::SocketAddr| local.ip() == remote.ip();
    opened.local.zip(opened.remote).is_none_or(|(local, remote)| remote.ip().is_loopback() || same(local, remote))
}
