//! The steps of a run: a far end where it is needed, a link, a measurement, its limit, and the next.

use super::drive::drive;
use super::far_end::FarEnd;
use super::line::line;
use super::placement::Placement;
use super::progress::Progress;
use super::recorder::Recorder;
use super::round_trip::RoundTrips;
use super::share::share_of_limit;
use super::unmeasured::unmeasured;
use crate::args::{Measure, units::Cpus};
use crate::{Error, environment};
use hodo_catalog::{Floor, Opened, Settings, Uri};
use hodo_io::nic::NicFacts;
use hodo_measure::{Cpu, LinkError, Measurement, Plan, State, Test};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the steps of one link have in common.
pub struct Steps<'a> {
    /// The link, as the user named it.
    pub link: &'a Uri,
    /// How it is measured.
    pub measure: &'a Measure,
    /// Each operation on a connection of its own.
    pub reconnect: bool,
    /// Set when the user has had enough.
    pub stop: &'a Arc<AtomicBool>,
    /// Who is told.
    pub progress: &'a Progress,
    /// Who writes it down.
    pub recorder: &'a mut Recorder,
}

impl Steps<'_> {
    /// Runs the plans in turn. What was measured is with the recorder, also after an error.
    pub fn run(&mut self, plans: &[Plan]) -> Result<(), Error> {
        let (mut far_end, mut round_trips) = (None, RoundTrips::default());
        let mut failure = Ok(());
        for plan in plans {
            self.progress.begin(self.link.scheme, plan);
            let step = self.step(plan, &mut far_end, &mut round_trips);
            let stopped = self.stop.load(Ordering::Relaxed);
            let (measurement, next) = match step {
                // Nothing that could be measured: the command line is wrong.
                Err(error @ Error::Usage(_)) => return Err(error),
                Err(_) if stopped => {
                    (self.unmeasured(plan, State::Interrupted, "nothing had been counted yet"), Next::End(Ok(())))
                }
                Err(error) => (self.unmeasured(plan, State::Failed, &error.to_string()), Next::End(Err(error))),
                Ok((measurement, error)) => (measurement, self.next(error, stopped)),
            };
            self.progress.end(&measurement);
            self.recorder.add(measurement);
            match next {
                Next::End(result) => return failure.and(result),
                Next::Plan(result) => failure = failure.and(result),
            }
        }
        failure
    }

    /// Whether the next plan may do better after this one's error.
    fn next(&self, error: Option<LinkError>, stopped: bool) -> Next {
        let named = |error: LinkError| Err(Error::Failed(format!("{}: {error}", self.link)));
        match error {
            _ if stopped => Next::End(Ok(())),
            None => Next::Plan(Ok(())),
            Some(error @ LinkError::Unsupported(_)) => Next::Plan(named(error)),
            Some(error) => Next::End(named(error)),
        }
    }

    /// One measurement with its limit, and why the link cannot go on, where it cannot.
    fn step(
        &mut self,
        plan: &Plan,
        far_end: &mut Option<FarEnd>,
        round_trips: &mut RoundTrips,
    ) -> Result<(Measurement, Option<LinkError>), Error> {
        let placement = self.placement(plan);
        let uri = self.meet(&placement, far_end)?;
        let far_process = far_end.as_ref().map(FarEnd::process);
        let settings = Settings { far_process, ..self.settings(plan, &placement) };
        let mut opened = hodo_catalog::open(&uri, &settings, self.stop)?;
        let nic = opened.remote.and_then(NicFacts::towards);
        let line = line(self.measure, nic.as_ref());
        if plan.stages {
            let pages = far_end.as_ref().and_then(FarEnd::pages).or(self.measure.hub_pages);
            if let Err(why) = uri.protocol.add_stages(&uri, &mut opened, pages) {
                self.progress.say(&why);
            }
        }
        self.note(&opened, &placement, nic);
        // Neither cores nor the window bind a single operation on a line.
        let many_on_line = line.is_some() && plan.test != Test::Latency;
        let floor = if many_on_line || line.is_none() && is_here(&uri, &opened) {
            self.floor(&uri, &settings, plan, &placement)
        } else {
            None
        };
        let round_trip_ns = if many_on_line { round_trips.of(plan, &placement, &mut opened) } else { None };
        let run = drive(&mut opened, plan, self.stop, self.progress);
        let error = run.error.clone();
        let mut found = run.into_measurement(self.link.scheme, &self.link.to_string(), plan);
        if self.link.simulated {
            // What computing the simulation cost says nothing of the link, and would differ from run to run.
            found.cpu = Cpu::default();
        }
        found.limit = hodo_catalog::limit(&uri, &opened, line, floor, round_trip_ns, &found);
        found.share_of_limit = found.limit.as_ref().and_then(|limit| share_of_limit(&found, limit));
        if let Some(ended) = far_end.as_mut().and_then(FarEnd::ended) {
            found.verdict.text = format!("{}; {ended}", found.verdict.text);
        }
        Ok((found, error))
    }

    /// What bare sockets do. Without it there is no limit, but still a measurement.
    fn floor(&self, uri: &Uri, settings: &Settings, plan: &Plan, placement: &Placement) -> Option<Floor> {
        hodo_catalog::floor(uri, settings, plan, &placement.far).unwrap_or_else(|error| {
            self.progress.say(&error.to_string());
            None
        })
    }

    fn placement(&self, plan: &Plan) -> Placement {
        let asked = self.measure.cpu.as_ref().map(|Cpus(cpus)| cpus.as_slice());
        let far_end_here = self.link.wants_far_end();
        let placement = Placement::of(asked, &super::online_cpus(), plan.channels, far_end_here);
        placement.with_far_on_one(self.link.protocol.description().has_one_thread).with_buffers(
            self.measure
                .socket_buffer
                .or_else(|| if far_end_here { self.link.protocol.socket_buffer(plan.channels) } else { None }),
        )
    }

    /// Where the far end is. One that is started here runs on until a plan needs it otherwise placed.
    fn meet(&self, placement: &Placement, far_end: &mut Option<FarEnd>) -> Result<Uri, Error> {
        if !self.link.wants_far_end() {
            return Ok(self.link.clone());
        }
        if far_end.as_ref().is_none_or(|far_end| far_end.placement() != placement) {
            // The one before ends first, so that the two do not share a processor.
            drop(far_end.take());
            *far_end = Some(FarEnd::start(self.link, self.measure, placement)?);
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
            congestion: self.measure.congestion.clone(),
            socket_buffer: placement.socket_buffer,
            batch: plan.batch,
            far_process: None,
            reconnect: self.reconnect,
            seed: plan.seed,
            timeout: plan.stall,
        }
    }

    /// What the environment says only once a link is open.
    fn note(&mut self, opened: &Opened, placement: &Placement, nic: Option<NicFacts>) {
        let text = placement.text(self.link.wants_far_end());
        let environment = self.recorder.environment();
        if opened.congestion.is_some() {
            environment.congestion_control.clone_from(&opened.congestion);
        }
        environment::add_placement(environment, &text);
        if let Some(nic) = nic {
            environment::set_interface(environment, nic);
        }
    }

    fn unmeasured(&self, plan: &Plan, state: State, why: &str) -> Measurement {
        unmeasured(self.link.scheme, &self.link.to_string(), plan, state, why)
    }
}

/// What follows a step.
enum Next {
    Plan(Result<(), Error>),
    End(Result<(), Error>),
}

/// Whether both sides are on this host, where there is no line between them.
fn is_here(uri: &Uri, opened: &Opened) -> bool {
    let same = |local: std::net::SocketAddr, remote: std::net::SocketAddr| local.ip() == remote.ip();
    !uri.simulated
        && opened
            .local
            .zip(opened.remote)
            .is_none_or(|(local, remote)| remote.ip().is_loopback() || same(local, remote))
}
