//! The steps of a run: a far end where it is needed, a link, a measurement, its limit, and the next.

use crate::line::line;
use crate::placement::Placement;
use crate::row::Row;
use crate::running::Running;
use crate::{Benchmark, Error, Observer, Opened, Settings, Uri, environment, path};
use hodo_io::nic::Nic;
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
        let placement = self.benchmark.placement(plan);
        let uri = self.meet(&placement, far_end)?;
        let far_process = far_end.as_ref().and_then(Running::process).cloned();
        let settings = Settings { far_process, ..self.benchmark.settings(plan, &placement) };
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
        let nic_name = nic.as_ref().map(|nic| nic.name.clone());
        self.note(&opened, &placement, nic, facts);
        let wire = uri.protocol.on_the_wire(&uri, plan)?;
        let row = Row::new(self.benchmark, (self.stop, self.observer), plan, &placement, &settings, &wire, &opened);
        Ok(row.measure(&mut opened, line, nic_name, far_end.as_mut()))
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
