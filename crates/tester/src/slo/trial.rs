//! One rate, tried in several repeats: did the conditions hold in each?

use crate::drive::{Around, drive};
use crate::running::Running;
use crate::{Benchmark, Error, Opened, Settings, Unobserved};
use hodo_io::Clock;
use hodo_machine::Instant;
use hodo_measure::{
    Latency, LinkError, LoadPoint, Measurement, Plan, Repeats, Requirement, SCHEDULE_HELD, Test, Until,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The operations of a repeat: of fewer, times say nothing. At a low rate a repeat lasts longer for them, up to a bound.
const OPERATIONS_MIN: f64 = 20.0;
const LONGEST: Duration = Duration::from_secs(10);
/// After this many repeats that did not hold there are no more.
const MISSES_MAX: u32 = 2;

/// The trials of a search. A far end that is started here serves all of them.
pub(super) struct Trials<'a> {
    benchmark: &'a Benchmark,
    conditions: Vec<Requirement>,
    plan: Plan,
    stop: &'a AtomicBool,
    clock: Clock,
    deadline: Instant,
    far_end: Option<Running>,
}

impl<'a> Trials<'a> {
    /// Creates the trials of a plan, until a deadline of this clock. The schedule is to be held, too, unless a condition says how far.
    pub(super) fn new(
        benchmark: &'a Benchmark,
        conditions: &[Requirement],
        plan: Plan,
        stop: &'a AtomicBool,
        (clock, deadline): (Clock, Instant),
    ) -> Self {
        let mut conditions = conditions.to_vec();
        if !conditions.iter().any(|condition| condition.needs_rate()) {
            conditions.push(Requirement::Held(SCHEDULE_HELD));
        }
        Trials { benchmark, conditions, plan, stop, clock, deadline, far_end: None }
    }

    /// Tries a rate; `None` if the time is up, or the user has interrupted it. A rate at which one repeat alone did not hold is tried once
    /// more, because something else may have disturbed it.
    ///
    /// # Errors
    /// [`Error::Usage`] if this cannot be measured, [`Error::Failed`] if the link cannot be opened.
    pub(super) fn point(&mut self, rate: f64) -> Result<Option<LoadPoint>, Error> {
        let first = self.once(rate)?;
        match first {
            Some(point) if !point.held && point.repeats > 1 && point.repeats - point.repeats_held < MISSES_MAX => {
                Ok(Some(self.once(rate)?.unwrap_or(point)))
            }
            first => Ok(first),
        }
    }

    fn once(&mut self, rate: f64) -> Result<Option<LoadPoint>, Error> {
        let repeats = self.plan.repeats.most();
        let until = match self.plan.until {
            Until::Elapsed(duration) => Until::Elapsed(duration.max(of_operations(rate))),
            until @ Until::Count(_) => until,
        };
        let plan = Plan { test: Test::Open, rate: Some(rate), until, repeats: Repeats::Fixed(1), ..self.plan.clone() };
        let mut rows: Vec<Measurement> = Vec::new();
        let mut missed: Vec<String> = Vec::new();
        let mut opened = None;
        while rows.len() < repeats as usize && missed.len() < MISSES_MAX as usize {
            if self.stop.load(Ordering::Relaxed) || self.clock.now() + lasts(&plan) > self.deadline {
                // A rate of which too little is known is not judged.
                return Ok(None);
            }
            let link = match &mut opened {
                Some(link) => link,
                None => match self.open(&plan) {
                    Ok(found) => opened.insert(found),
                    // An interrupt ends the opening, too, and what is known by then is kept.
                    Err(_) if self.stop.load(Ordering::Relaxed) => return Ok(None),
                    Err(error) => return Err(error),
                },
            };
            let run = drive(link, &plan, &self.around());
            let error = run.error.clone();
            let row = run.into_measurement(self.benchmark.link.scheme, &self.benchmark.link.to_string(), &plan);
            match error {
                Some(LinkError::Interrupted) => return Ok(None),
                Some(why) => {
                    missed.push(why.to_string());
                    opened = None;
                }
                None => missed.extend(self.conditions.iter().find_map(|condition| condition.missed_by(&row))),
            }
            rows.push(row);
        }
        Ok(Some(load_point(rate, &rows, missed)))
    }

    fn open(&mut self, plan: &Plan) -> Result<Opened, Error> {
        let Benchmark { link, timing, conditions, .. } = self.benchmark;
        let placement = self.benchmark.placement(plan);
        if link.wants_far_end() && self.far_end.as_mut().is_none_or(|far_end| far_end.ended().is_some()) {
            drop(self.far_end.take());
            self.far_end = Some(Running::start(link, timing, conditions, &placement)?);
        }
        let uri = self.far_end.as_ref().map_or(link, Running::link);
        let far_process = self.far_end.as_ref().and_then(Running::process).cloned();
        let settings = Settings { far_process, ..self.benchmark.settings(plan, &placement) };
        crate::open(uri, &settings, self.stop)
    }

    fn around(&self) -> Around<'_> {
        Around {
            processors: &[],
            programs: None,
            observation: None,
            pauses: 0,
            paused: &|| {},
            stop: self.stop,
            observer: &Unobserved,
        }
    }
}

/// Returns how long the fewest operations take at a rate.
fn of_operations(rate: f64) -> Duration {
    Duration::try_from_secs_f64(OPERATIONS_MIN / rate).unwrap_or(LONGEST).min(LONGEST)
}

/// Returns how long one repeat of a plan takes, with a warm-up of its own.
pub(super) fn lasts(plan: &Plan) -> Duration {
    plan.warmup.saturating_add(plan.repeat_lasts())
}

/// Returns what the repeats at a rate found together.
fn load_point(rate: f64, rows: &[Measurement], missed: Vec<String>) -> LoadPoint {
    let times = |of: fn(&Latency) -> u64| {
        median(rows.iter().filter_map(|row| row.latency_ns.as_ref()).map(|latency| of(latency) as f64).collect())
    };
    let repeats = rows.len() as u32;
    let repeats_held = repeats - (missed.len() as u32).min(repeats);
    LoadPoint {
        rate,
        operations_per_s: median(rows.iter().map(|row| row.rate.operations_per_s.median).collect()).unwrap_or(0.0),
        p50_ns: times(|latency| latency.p50).map(|ns| ns as u64),
        p99_ns: times(|latency| latency.p99).map(|ns| ns as u64),
        lost: rows.iter().map(|row| row.loss.lost).sum(),
        repeats,
        repeats_held,
        held: repeats > 0 && repeats_held == repeats,
        missed: missed.into_iter().next(),
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
