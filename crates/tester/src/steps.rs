//! The steps of a run: a far end where it is needed, a link, a measurement, its limit, and the next.

use crate::beside;
use crate::line::line;
use crate::placement::Placement;
use crate::row::Row;
use crate::running::Running;
use crate::{Benchmark, Error, Line, Observer, Opened, Settings, Unobserved, Uri, environment, path};
use hodo_io::nic::Nic;
use hodo_measure::limits::OnTheWire;
use hodo_measure::{Document, FarEndFacts, LinkError, Measurement, Plan, State, Verdict};
use std::sync::atomic::{AtomicBool, Ordering};

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
        let mut far_ends = [None, None];
        let mut failure = Ok(());
        for (index, plan) in plans.iter().enumerate() {
            let other = self.benchmark.beside.as_ref();
            if other.is_none_or(|other| other.is_compared) {
                let step = |steps: &mut Self| Ok(vec![steps.step(plan, &mut far_ends[0])?]);
                match self.record(plan, step)? {
                    Next::End(result) => return failure.and(result),
                    Next::Plan(result) => failure = failure.and(result),
                }
            }
            if let Some(other) = other {
                let beside = other.plan(index)?;
                match self.record(plan, |steps| steps.pair(plan, (&other.benchmark, &beside), &mut far_ends))? {
                    Next::End(result) => return failure.and(result),
                    Next::Plan(result) => failure = failure.and(result),
                }
            }
        }
        failure
    }

    /// Makes one step of a plan, and adds its rows to the document.
    fn record(
        &mut self,
        plan: &Plan,
        step: impl FnOnce(&mut Self) -> Result<Vec<(Measurement, Option<LinkError>)>, Error>,
    ) -> Result<Next, Error> {
        self.observer.begin(&self.benchmark.link, plan);
        let step = step(self);
        let stopped = self.stop.load(Ordering::Relaxed);
        let (measurements, next) = match step {
            // Nothing that could be measured: the command line is wrong.
            Err(error @ Error::Usage(_)) => return Err(error),
            Err(_) if stopped => {
                (vec![self.unmeasured(plan, State::Interrupted, "nothing had been counted yet")], Next::End(Ok(())))
            }
            Err(error) => (vec![self.unmeasured(plan, State::Failed, &error.to_string())], Next::End(Err(error))),
            Ok(rows) => {
                let (measurements, errors): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
                (measurements, self.next(errors.into_iter().flatten().next(), stopped))
            }
        };
        for mut measurement in measurements {
            if let Some(preset) = self.benchmark.choice.preset {
                measurement.published = preset.published(plan);
            }
            self.observer.end(&measurement);
            self.document.measurements.push(measurement);
            self.observer.added(self.document);
        }
        Ok(next)
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
        let placement = self.benchmark.placement(plan);
        let uri = Self::meet(self.benchmark, &placement, far_end)?;
        let mut ready = self.ready((self.benchmark, plan), &uri, placement, far_end.as_ref())?;
        let Ready { opened, line, nic, placement, settings, wire } = &mut ready;
        let attended = (self.stop, self.observer);
        let row = Row::new(self.benchmark, attended, plan, placement, settings, wire, opened);
        Ok(row.measure(opened, *line, nic.take(), far_end.as_mut()))
    }

    /// Makes two measurements at the same time. Returns also the reasons why their links cannot go on.
    fn pair(
        &mut self,
        plan: &Plan,
        other: (&Benchmark, &Plan),
        far_ends: &mut [Option<Running>; 2],
    ) -> Result<Vec<(Measurement, Option<LinkError>)>, Error> {
        let own = (self.benchmark, plan);
        let shares = own.0.link == other.0.link;
        let places = beside::placements(own.0.placement_of(plan, plan.channels + other.1.channels));
        let [far_end, far_end_of_other] = far_ends;
        let uri = Self::meet(own.0, &places[0], far_end)?;
        let uri_of_other = if shares { uri.clone() } else { Self::meet(other.0, &places[1], far_end_of_other)? };
        let far_end_of_other = if shares { far_end.as_ref() } else { far_end_of_other.as_ref() };
        let [place, place_of_other] = places;
        let mut ready = self.ready(own, &uri, place, far_end.as_ref())?;
        let mut ready_of_other = self.ready(other, &uri_of_other, place_of_other, far_end_of_other)?;
        let Ready { opened, line, nic, placement, settings, wire } = &mut ready;
        let mut row = Row::new(own.0, (self.stop, self.observer), plan, placement, settings, wire, opened);
        row.look_alone(opened);
        let first = || row.measure_beside(beside::planned(other), opened, *line, nic.take(), far_end.as_ref());
        let Ready { opened, line, nic, placement, settings, wire } = &mut ready_of_other;
        let mut row = Row::new(other.0, (self.stop, &Unobserved), other.1, placement, settings, wire, opened);
        row.look_alone(opened);
        let second = || row.measure_beside(beside::planned(own), opened, *line, nic.take(), far_end_of_other);
        let (mut found, mut found_of_other) = std::thread::scope(|scope| {
            let second = scope.spawn(second);
            (first(), second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        beside::pair([&mut found.0, &mut found_of_other.0]);
        Ok(vec![found, found_of_other])
    }

    /// Opens a link for a plan.
    fn ready(
        &mut self,
        (benchmark, plan): (&Benchmark, &Plan),
        uri: &Uri,
        placement: Placement,
        far_end: Option<&Running>,
    ) -> Result<Ready, Error> {
        let far_process = far_end.and_then(Running::process).cloned();
        let settings = Settings { far_process, ..benchmark.settings(plan, &placement) };
        let mut opened = crate::open(uri, &settings, self.stop)?;
        let nic = opened.remote.and_then(Nic::towards);
        let line = line(&benchmark.conditions, nic.as_ref());
        if plan.stages {
            let pages = far_end.and_then(Running::pages).or(benchmark.conditions.pages);
            if let Err(why) = uri.protocol.add_stages(uri, &mut opened, pages) {
                self.observer.say(&why);
            }
        }
        let facts = opened.far_end.as_ref().or(far_end.map(Running::facts)).cloned();
        let nic_name = nic.as_ref().map(|nic| nic.name.clone());
        self.note(&opened, &placement, nic, facts);
        let wire = uri.protocol.on_the_wire(uri, plan)?;
        Ok(Ready { opened, line, nic: nic_name, placement, settings, wire })
    }

    /// Returns where the far end is. One that is started here runs on until a plan needs another placement.
    fn meet(benchmark: &Benchmark, placement: &Placement, far_end: &mut Option<Running>) -> Result<Uri, Error> {
        if !benchmark.link.wants_far_end() {
            return Ok(benchmark.link.clone());
        }
        if far_end.as_ref().is_none_or(|far_end| far_end.placement() != placement) {
            // The one before ends first, so that the two do not share a processor.
            drop(far_end.take());
            *far_end = Some(Running::start(&benchmark.link, &benchmark.timing, &benchmark.conditions, placement)?);
        }
        let started = far_end.as_ref().expect("it was started above");
        Ok(started.link().clone())
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
        let row = plan.unmeasured(self.benchmark.link.scheme, &self.benchmark.link.to_string(), verdict);
        Measurement { connection: path::connection(&self.benchmark.conditions.path, None), ..row }
    }
}

/// The next thing to do after a step.
enum Next {
    Plan(Result<(), Error>),
    End(Result<(), Error>),
}

/// An open link, ready for its row.
struct Ready {
    opened: Opened,
    line: Line,
    /// The interface that it leaves by.
    nic: Option<String>,
    placement: Placement,
    settings: Settings,
    wire: OnTheWire,
}
