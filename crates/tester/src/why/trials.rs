//! The experiments: the same plan with one change.

use crate::{Benchmark, Choice, Conditions, Timing};
use hodo_io::host::HostFacts;
use hodo_machine::Wait;
use hodo_measure::{Measurement, Plan, Size, Test};

/// The share of its rate at which a link is asked for less.
const PACE: f64 = 0.9;
/// Congestion controls that differ in what they do on losses; the first that is not in use and is there is tried.
const CONTROLS: [&str; 3] = ["bbr", "cubic", "reno"];

/// The one thing that an experiment changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knob {
    WindowTwice,
    WindowHalf,
    SizeTwice,
    Pace,
    RateTwice,
    TwoChannels,
    OneProcessor,
    Spin,
    Congestion,
}

/// An experiment: a benchmark of one measurement that differs from the first in one thing.
pub(super) struct Trial {
    pub(super) knob: Knob,
    /// The change in words, as `window 16 -> 32`.
    pub(super) change: String,
    pub(super) benchmark: Benchmark,
}

/// Returns the experiments on a plan. Some may be impossible on its link.
pub(super) fn trials(benchmark: &Benchmark, plan: &Plan, base: &Measurement) -> Vec<Trial> {
    let fixed = Choice {
        test: Some(plan.test),
        mode: Some(plan.mode),
        sizes: match plan.size {
            Size::Fixed(size) => vec![size],
            Size::Uniform { .. } => benchmark.choice.sizes.clone(),
        },
        windows: vec![Some(plan.window)],
        channels: Some(plan.channels),
        rate: plan.rate,
        preset: None,
        ..benchmark.choice.clone()
    };
    let fixed = Benchmark { choice: fixed, ..benchmark.clone() };
    [
        window(&fixed, plan, Knob::WindowTwice),
        window(&fixed, plan, Knob::WindowHalf),
        size(&fixed, plan),
        pace(&fixed, plan, base),
        rate(&fixed, plan),
        channels(&fixed, plan),
        congestion(&fixed, base),
        spin(&fixed, plan, base),
        one_processor(&fixed),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the trial of a choice that differs from the benchmark's.
fn chosen(benchmark: &Benchmark, knob: Knob, change: String, choose: impl FnOnce(&mut Choice)) -> Trial {
    let mut benchmark = benchmark.clone();
    choose(&mut benchmark.choice);
    Trial { knob, change, benchmark }
}

fn has_window(plan: &Plan) -> bool {
    matches!(plan.test, Test::Rate | Test::Random | Test::Channels)
}

fn window(benchmark: &Benchmark, plan: &Plan, knob: Knob) -> Option<Trial> {
    let window = plan.window;
    let (changed, is_possible) = match knob {
        Knob::WindowHalf => (window / 2, has_window(plan) && window > 1),
        _ => (window.saturating_mul(2), has_window(plan) || plan.test == Test::Latency),
    };
    let trial = || {
        chosen(benchmark, knob, format!("window {window} -> {changed}"), |choice| {
            choice.windows = vec![Some(changed)];
            // A lone operation has a window of its own.
            choice.test = Some(if plan.test == Test::Latency { Test::Rate } else { plan.test });
        })
    };
    is_possible.then(trial)
}

fn size(benchmark: &Benchmark, plan: &Plan) -> Option<Trial> {
    let Size::Fixed(size) = plan.size else { return None };
    let (text, twice) = (|size: u32| hodo_measure::units::text::bytes(u64::from(size)), size.checked_mul(2)?);
    (size > 0 && plan.test != Test::Open).then(|| {
        chosen(benchmark, Knob::SizeTwice, format!("size {} -> {}", text(size), text(twice)), |choice| {
            choice.sizes = vec![twice];
        })
    })
}

fn pace(benchmark: &Benchmark, plan: &Plan, base: &Measurement) -> Option<Trial> {
    let rate = base.rate.operations_per_s.median * PACE;
    (has_window(plan) && plan.test != Test::Random && rate >= 1.0).then(|| {
        let change = format!("paced to {:.0} % of the rate", PACE * 100.0);
        chosen(benchmark, Knob::Pace, change, |choice| {
            (choice.test, choice.rate, choice.windows) = (Some(Test::Open), Some(rate), Vec::new());
        })
    })
}

fn rate(benchmark: &Benchmark, plan: &Plan) -> Option<Trial> {
    let rate = plan.rate?;
    let change = format!("rate {} -> {}", rate, 2.0 * rate);
    Some(chosen(benchmark, Knob::RateTwice, change, |choice| choice.rate = Some(2.0 * rate)))
}

fn channels(benchmark: &Benchmark, plan: &Plan) -> Option<Trial> {
    let (channels, twice) = (plan.channels, plan.channels.checked_mul(2)?);
    (has_window(plan) && plan.test != Test::Random).then(|| {
        let change = format!("channels {channels} -> {twice}");
        chosen(benchmark, Knob::TwoChannels, change, |choice| {
            (choice.test, choice.channels) = (Some(Test::Channels), Some(twice));
        })
    })
}

fn congestion(benchmark: &Benchmark, base: &Measurement) -> Option<Trial> {
    let facts = HostFacts::collect();
    let own = benchmark.conditions.congestion.clone().or(facts.congestion_control)?;
    base.tcp.as_ref()?;
    let is_there = |control: &str| facts.congestion_controls.iter().any(|known| known == control);
    let other = CONTROLS.into_iter().find(|control| *control != own && is_there(control))?;
    let conditions = Conditions { congestion: Some(other.to_owned()), ..benchmark.conditions.clone() };
    let change = format!("congestion control {own} -> {other}");
    Some(Trial { knob: Knob::Congestion, change, benchmark: Benchmark { conditions, ..benchmark.clone() } })
}

fn spin(benchmark: &Benchmark, plan: &Plan, base: &Measurement) -> Option<Trial> {
    let is_real = !benchmark.link.simulated && plan.wait != Wait::Spin && plan.channels == 1;
    let timing = Timing { wait: Wait::Spin, ..benchmark.timing };
    is_real.then(|| Trial {
        knob: Knob::Spin,
        change: format!("wait {} -> spin", base.wait),
        benchmark: Benchmark { timing, ..benchmark.clone() },
    })
}

fn one_processor(benchmark: &Benchmark) -> Option<Trial> {
    let is_here = !benchmark.link.simulated && benchmark.link.wants_far_end() && benchmark.conditions.cpus.is_none();
    let conditions = Conditions { cpus: Some(vec![0]), ..benchmark.conditions.clone() };
    is_here.then(|| Trial {
        knob: Knob::OneProcessor,
        change: "both ends on one processor".to_owned(),
        benchmark: Benchmark { conditions, ..benchmark.clone() },
    })
}
