//! The demonstration: every protocol of a catalog, for a short time.

use crate::{Benchmark, Catalog, Choice, Error, Host, Protocol, Scenario, Timing};
use hodo_measure::{Plan, Test, Until};
use std::time::Duration;

/// The time of one repeat: so short that the demonstration takes less than a minute, with enough repeats for a
/// confidence interval.
const REPEAT: Duration = Duration::from_millis(120);
const WARMUP: Duration = Duration::from_millis(100);

/// The time that a measurement takes beside its warm-up and repeats, as found: it opens its link, some start a far end, and most see what bare
/// sockets do.
const BESIDE: Duration = Duration::from_millis(350);

/// Returns about how long the demonstration takes to make these measurements, unless the machine is busy.
#[must_use]
pub fn demonstration_time(plans: &[Vec<Plan>]) -> Duration {
    let of_one = |plan: &Plan| plan.warmup + plan.repeat_lasts() * plan.repeats.most() + BESIDE;
    plans.iter().flatten().map(of_one).sum()
}

/// Returns one plan for each test of a suite, in its first direction: the smallest size of lone operations, the largest of all others.
#[must_use]
pub fn brief(plans: &[Plan]) -> Vec<Plan> {
    let mut chosen: Vec<Plan> = Vec::new();
    for plan in plans {
        match chosen.iter_mut().find(|other| other.test == plan.test) {
            None => chosen.push(plan.clone()),
            Some(other) if plan.mode == other.mode && plan.test != Test::Latency => *other = plan.clone(),
            Some(_) => {}
        }
    }
    chosen
}

/// Returns the benchmarks of the demonstration: the suite of each protocol, then what the protocols add to it. Far ends
/// are started in `far_end`.
///
/// # Errors
/// [`Error::Usage`] if a protocol names a link that is not its own.
pub fn demonstration(catalog: Catalog, far_end: &Host) -> Result<Vec<Benchmark>, Error> {
    let short = |link: &str| {
        let mut benchmark = Benchmark::new(catalog.uri(link)?);
        benchmark.timing = Timing { until: Until::Elapsed(REPEAT), warmup: WARMUP, ..benchmark.timing };
        benchmark.conditions.far_end = far_end.clone();
        Ok(benchmark)
    };
    let scenario = |scenario: &Scenario| {
        let mut benchmark = short(scenario.link)?;
        let group = scenario.group;
        benchmark.choice = Choice {
            test: Some(group.test),
            mode: Some(group.mode),
            sizes: group.sizes.to_vec(),
            windows: vec![Some(group.window)],
            channels: Some(group.channels),
            ..Choice::default()
        };
        benchmark.timing.stages = scenario.stages;
        Ok(benchmark)
    };
    let suites = catalog.protocols().map(|protocol| short(protocol.name()));
    let scenarios = catalog.protocols().flat_map(Protocol::demonstration).map(scenario);
    suites.chain(scenarios).collect()
}
