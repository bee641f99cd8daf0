//! `hodo bench`: how fast is a link?

mod arguments;
mod netperf;
mod options;
mod outputs;
pub mod plan;
mod progress;
mod recorder;
mod slo;
mod stream;

pub use netperf::NETPERF;
pub use options::{BenchOptions, ConditionOptions, FollowOptions, MeasuringOptions, TestOptions, mode, test};
pub use outputs::{Follow, OutputOptions};
pub use progress::Progress;
pub use recorder::Recorder;
pub use slo::SloOptions;
pub use stream::{StreamOptions, row_line};

use crate::{Error, Outcome, interrupt, terminal, version};
use hodo_measure::{Measurement, Requirement};
use hodo_tester::Benchmark;
use hodo_tester::environment::clock_text;
use std::sync::atomic::Ordering;
use stream::Stream;

/// Measures a link as the options say.
pub fn run(bench: &BenchOptions) -> Result<Outcome, Error> {
    let needs_rate = bench.choice.require.iter().find(|required| required.needs_rate());
    if let (Some(share), None) = (needs_rate, bench.choice.rate) {
        return Err(Error::Usage(format!("--require {share}: a share is of a schedule; add --test open --rate 10K")));
    }
    if bench.measure.realtime.realtime && bench.link.simulated {
        return Err(Error::Usage("--realtime: a simulation waits in virtual time; leave it out".to_owned()));
    }
    // Before any thread or far end is started, which are in the same class then.
    bench.measure.realtime.begin()?;
    let benchmarks = plan::benchmarks(bench)?;
    bench.measure.conditions.check(&bench.link, bench.measure.wait)?;
    if let ([benchmark], true) = (&benchmarks[..], bench.slo.is_asked_for()) {
        return slo::run(bench, benchmark);
    }
    let plans = benchmarks.iter().map(Benchmark::plans).collect::<Result<Vec<_>, _>>()?;
    benchmarks.iter().zip(&plans).try_for_each(|(benchmark, plans)| benchmark.check(plans))?;
    let timing = &benchmarks[0].timing;
    let outputs = bench.output.prepare()?;
    let stop = interrupt::flag()?;
    let stream = bench.stream.open(outputs.take_stdout(), &stop)?;
    let progress =
        bench.follow.progress(benchmarks.iter().zip(&plans).map(|(benchmark, plans)| benchmark.steps(plans)).sum());
    if bench.follow.quiet && outputs.are_none() && stream.is_none() && bench.choice.require.is_empty() {
        terminal::remark("--quiet without a file keeps no figure; add --json FILE, --tsv FILE or --out DIR");
    }
    let stdout_is_taken = outputs.take_stdout() || bench.stream.takes_stdout();
    let mut document = hodo_tester::document(version::COMMIT, arguments::effective(bench, timing));
    progress.head(&format!("{}; {}", arguments::summary(bench, timing), clock_text(&document.environment)));
    let recorder = Recorder::new(&progress, outputs, &stop).followed(bench.stream.every(), stream.as_ref());
    let ran = benchmarks
        .iter()
        .zip(&plans)
        .filter(|_| !stop.load(Ordering::Relaxed))
        .try_for_each(|(benchmark, plans)| benchmark.run(plans, &mut document, &recorder, &stop));
    if document.measurements.is_empty() {
        return Ok(ran.map(|()| Outcome::Failed)?);
    }
    // An error says itself why there is nothing; without one the table does.
    let has_some = document.measurements.iter().any(|measurement| measurement.operations > 0);
    if !bench.follow.quiet && (has_some || ran.is_ok()) {
        let table = hodo_report::table(&document.measurements, terminal::style(stdout_is_taken));
        terminal::tell(&format!("\n{table}"), stdout_is_taken)?;
    }
    let outcome = recorder.finish(&document);
    let streamed = stream.map_or(Ok(()), Stream::finish);
    ran?;
    streamed?;
    let missed = missed(&bench.choice.require, &document.measurements);
    missed.iter().for_each(|sentence| terminal::remark(sentence));
    outcome.map(|outcome| if missed.is_empty() { outcome } else { Outcome::Failed })
}

/// Returns a sentence for each condition that a row does not meet.
pub fn missed(required: &[Requirement], rows: &[Measurement]) -> Vec<String> {
    let of_row = |row: &Measurement| {
        let missed = required.iter().filter_map(|required| required.missed_by(row));
        missed.map(|sentence| format!("{}: {sentence}", hodo_report::plan_text(row))).collect::<Vec<_>>()
    };
    rows.iter().flat_map(of_row).collect()
}
