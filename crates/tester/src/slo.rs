//! The highest rate of an open loop that holds some conditions.
//!
//! A closed loop says where to look. From a sixteenth of its rate on the rate doubles until the conditions no longer hold, and then
//! the interval between the two is halved, by ratio, until its ends are within 2 %. Each rate is tried in several repeats.

mod search;
mod trial;

use crate::{Benchmark, Choice, Error, Observer};
use hodo_io::Clock;
use hodo_measure::units::text;
use hodo_measure::{Document, LoadPoint, Measurement, Plan, Requirement, Slo, Test};
use search::Search;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trial::{Trials, lasts};

/// The lowest rate that is tried, and the least part of the closed loop's.
const RATE_MIN: f64 = 2.0;
const PART_MIN: f64 = 1.0 / 4096.0;
/// The time that a row takes beside its repeats: its far end, its looks at bare sockets, its connections.
const BESIDE: Duration = Duration::from_millis(600);

/// Searches the highest rate of the benchmark's open loop at which every condition holds, within a bound of time. Adds to the
/// document the rows of the closed loop and of the rate that was found, and the result.
///
/// # Errors
/// [`Error::Usage`] if the benchmark is not possible or plans several measurements, [`Error::Failed`] if the link cannot be measured at all.
pub fn slo(
    benchmark: &Benchmark,
    conditions: &[Requirement],
    within: Duration,
    document: &mut Document,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Slo, Error> {
    let clock = Clock::start();
    let begun = clock.now();
    let plan = open_plan(benchmark)?;
    let closed = closed_loop(benchmark, &plan, document, observer, stop)?;
    let least = (closed * PART_MIN).max(RATE_MIN);
    // Time to measure the answer as a row of its own is kept.
    let search_until = begun + within.saturating_sub(row_lasts(&plan));
    let mut trials = Trials::new(benchmark, conditions, plan, stop, (clock, search_until));
    let mut search = Search::new(closed, least);
    let mut curve: Vec<LoadPoint> = Vec::new();
    while let Some(rate) = search.next().map(|rate| text::round_to(rate, 4)) {
        if curve.iter().any(|point| point.rate == rate) {
            break;
        }
        let Some(point) = trials.point(rate)? else { break };
        observer.say(&point_text(&point));
        search.add(rate, point.held);
        curve.push(point);
    }
    drop(trials);
    let names = conditions.iter().map(ToString::to_string).collect();
    let found = Slo::new(&benchmark.link.to_string(), names, closed, curve);
    document.slo = Some(found.clone());
    if let Some(rate) = found.rate.filter(|_| !stop.load(Ordering::Relaxed)) {
        answer(benchmark, rate, document, observer, stop)?;
    }
    Ok(found)
}

/// Returns the time that a search takes at most, in words.
#[must_use]
pub fn slo_bound_text(conditions: &[Requirement], within: Duration) -> String {
    let names: Vec<String> = conditions.iter().map(ToString::to_string).collect();
    format!(
        "searches the highest rate that holds {}, within {}",
        names.join(" and "),
        text::seconds(within.as_secs_f64())
    )
}

/// Returns the one plan of the open loop; its rate is another for each trial.
fn open_plan(benchmark: &Benchmark) -> Result<Plan, Error> {
    let opening = at_rate(benchmark, 1.0);
    let [plan] = <[Plan; 1]>::try_from(opening.plans()?).map_err(|plans| {
        Error::Usage(format!(
            "--slo searches for one measurement, and these are {}; choose one size and one window",
            plans.len()
        ))
    })?;
    opening.check(std::slice::from_ref(&plan))?;
    Ok(plan)
}

/// Returns the benchmark of the open loop at a rate.
fn at_rate(benchmark: &Benchmark, rate: f64) -> Benchmark {
    let choice = Choice { test: Some(Test::Open), rate: Some(rate), ..benchmark.choice.clone() };
    Benchmark { choice, ..benchmark.clone() }
}

/// Measures the closed loop of the same operations, and returns its rate.
fn closed_loop(
    benchmark: &Benchmark,
    plan: &Plan,
    document: &mut Document,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<f64, Error> {
    let choice = Choice {
        test: Some(Test::Rate),
        mode: Some(plan.mode),
        sizes: vec![plan.size.bounds().1],
        rate: None,
        ..benchmark.choice.clone()
    };
    let closed = Benchmark { choice, ..benchmark.clone() };
    let plans = closed.plans()?;
    closed.check(&plans)?;
    closed.run(&plans, document, observer, stop)?;
    let rate = document.measurements.last().map(|row: &Measurement| row.rate.operations_per_s.median);
    rate.filter(|rate| *rate > 0.0).ok_or_else(|| {
        Error::Failed("nothing completed in the closed loop, so there is no rate to search from".to_owned())
    })
}

/// Measures the rate that was found as a row of its own.
fn answer(
    benchmark: &Benchmark,
    rate: f64,
    document: &mut Document,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let found = at_rate(benchmark, rate);
    let plans = found.plans()?;
    found.run(&plans, document, observer, stop)
}

/// Returns how long a row of a plan takes.
fn row_lasts(plan: &Plan) -> Duration {
    lasts(plan).saturating_mul(plan.repeats.most()).saturating_add(BESIDE)
}

/// Returns a rate that was tried as a line.
fn point_text(point: &LoadPoint) -> String {
    let time = |ns: Option<u64>| ns.map_or_else(|| text::UNKNOWN.to_owned(), |ns| text::time_ns(ns as f64));
    let word = match &point.missed {
        None => "held".to_owned(),
        Some(why) => format!("held in {} of {} repeats: {why}", point.repeats_held, point.repeats),
    };
    let rate = text::operations_per_s(point.rate);
    format!(
        "{rate:>12}  p50 {}, p99 {}, {} lost  {word}",
        time(point.p50_ns),
        time(point.p99_ns),
        text::count(point.lost)
    )
}
