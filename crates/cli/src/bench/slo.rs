//! `--slo`: the highest rate of an open loop that holds some conditions.

use super::{BenchOptions, Recorder, arguments};
use crate::{Error, Outcome, interrupt, terminal, version};
use clap::Args;
use hodo_measure::units::{self, text};
use hodo_measure::{Requirement, Slo, Test};
use hodo_tester::Benchmark;
use std::time::Duration;

/// The rows of a search: the closed loop, and the rate that was found.
const STEPS: usize = 2;

/// The search for the highest rate.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Test")]
pub struct SloOptions {
    /// Search the highest rate of the open test at which every repeat meets these conditions, as of --require, and the schedule is held:
    /// p99<1ms,lost=0. Prints and keeps the curve of times over rates.
    #[arg(long, value_name = "CONDITION,…", value_delimiter = ',', value_parser = Requirement::parse,
          conflicts_with_all = ["require", "rate", "preset", "reconnect", "rounds", "pace"])]
    pub slo: Vec<Requirement>,
    /// The most time that the search takes [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true, requires = "slo")]
    pub slo_within: Option<Duration>,
}

impl SloOptions {
    /// Returns whether a rate is to be searched.
    pub fn is_asked_for(&self) -> bool {
        !self.slo.is_empty()
    }
}

/// Searches the rate as the options say.
pub fn run(bench: &BenchOptions, benchmark: &Benchmark) -> Result<Outcome, Error> {
    if let Some(test) = bench.choice.test.filter(|test| *test != Test::Open) {
        return Err(Error::Usage(format!("--slo searches a rate of --test open; leave --test {test} out")));
    }
    super::plan::check_one_flow(&bench.choice, "--slo")?;
    let (conditions, within) = (&bench.slo.slo, bench.slo.slo_within.unwrap_or(Duration::from_secs(60)));
    let outputs = bench.output.prepare()?;
    let stop = interrupt::flag()?;
    let stream = bench.stream.open(outputs.take_stdout(), &stop)?;
    let stdout_is_taken = outputs.take_stdout() || bench.stream.takes_stdout();
    let progress = bench.follow.progress(STEPS);
    let mut document = hodo_tester::document(version::COMMIT, arguments::effective(bench, &benchmark.timing));
    progress.head(&format!("{}: {}", bench.link, hodo_tester::slo_bound_text(conditions, within)));
    let recorder = Recorder::new(&progress, outputs, &stop).followed(bench.stream.every(), stream.as_ref());
    let found = hodo_tester::slo(benchmark, conditions, within, &mut document, &recorder, &stop);
    if let Ok(found) = &found
        && !bench.follow.quiet
    {
        let sentence = terminal::sentences([found.text.as_str()], stdout_is_taken);
        terminal::tell(&format!("\n{}{sentence}", curve(found)), stdout_is_taken)?;
    }
    let outcome = if document.measurements.is_empty() { Ok(Outcome::Failed) } else { recorder.finish(&document) };
    let streamed = stream.map_or(Ok(()), super::stream::Stream::finish);
    let found = found?;
    streamed?;
    outcome.map(|outcome| if found.rate.is_some() { outcome } else { Outcome::Failed })
}

/// Returns the curve as lines of a table.
fn curve(found: &Slo) -> String {
    if found.curve.is_empty() {
        return String::new();
    }
    let head = format!("{:>12}  {:>12}  {:>9}  {:>9}  {:>7}  held\n", "rate", "completed", "p50", "p99", "lost");
    let time = |ns: Option<u64>| ns.map_or_else(|| text::UNKNOWN.to_owned(), |ns| text::time_ns(ns as f64));
    let lines = found.curve.iter().map(|point| {
        let [rate, completed] = [point.rate, point.operations_per_s].map(text::operations_per_s);
        let (p50, p99, lost) = (time(point.p50_ns), time(point.p99_ns), text::count(point.lost));
        let held = if point.held { "yes" } else { "no" };
        let repeats = format!("{held}, {} of {} repeats", point.repeats_held, point.repeats);
        format!("{rate:>12}  {completed:>12}  {p50:>9}  {p99:>9}  {lost:>7}  {repeats}\n")
    });
    format!("{head}{}\n", lines.collect::<String>())
}
