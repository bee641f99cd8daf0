//! `hodo why`: why is a link not faster?

use crate::bench::{ConditionOptions, FollowOptions, OutputOptions, Recorder};
use crate::link::LinkParser;
use crate::{Error, Outcome, interrupt, terminal, version};
use clap::{Args, value_parser};
use hodo_catalog::Uri;
use hodo_machine::Wait;
use hodo_measure::units;
use hodo_measure::{Diagnosis, Mode, Repeats, Sizes, Test, Until};
use hodo_tester::{Benchmark, Choice, Timing};
use std::time::Duration;

/// The measurements of one diagnosis: the row, and at most nine experiments.
const STEPS: usize = 10;
/// The length and number of repeats: ten measurements take less than half a minute.
const REPEAT: Duration = Duration::from_millis(300);
const WARMUP: Duration = Duration::from_millis(100);
const REPEATS: u32 = 3;

/// Measures a link, changes one thing at a time, and prints what binds it.
pub fn run(options: &WhyOptions) -> Result<Outcome, Error> {
    let benchmark = benchmark(options)?;
    options.conditions.check(&options.link, options.wait)?;
    let outputs = options.output.prepare()?;
    let stdout_is_taken = outputs.take_stdout();
    let stop = interrupt::flag()?;
    let progress = options.follow.progress(STEPS);
    let mut document = hodo_tester::document(version::COMMIT, std::env::args().collect());
    let recorder = Recorder::new(&progress, outputs, &stop);
    let diagnosis = hodo_tester::why(&benchmark, &mut document, &recorder, &stop)?;
    if let Some(base) = document.measurements.first().filter(|_| !options.follow.quiet) {
        let sentences = hodo_tester::sentences(base, &diagnosis);
        let sentences = terminal::sentences(sentences.iter().map(String::as_str), stdout_is_taken);
        terminal::tell(&format!("\n{}{sentences}", table(&diagnosis)), stdout_is_taken)?;
    }
    recorder.finish(&document)
}

/// Returns the experiments as lines of a table.
fn table(diagnosis: &Diagnosis) -> String {
    if diagnosis.experiments.is_empty() {
        return String::new();
    }
    let width = diagnosis.experiments.iter().map(|experiment| experiment.change.chars().count()).max().unwrap_or(0);
    let lines = diagnosis.experiments.iter().map(|experiment| {
        let [predicted, found] = [experiment.predicted, experiment.found].map(units::text::operations_per_s);
        format!("{:width$}  {predicted:>12}  {found:>12}\n", experiment.change)
    });
    format!("{:width$}  {:>12}  {:>12}\n{}\n", "change", "predicted", "found", lines.collect::<String>())
}

/// Returns the benchmark whose one row is explained.
fn benchmark(options: &WhyOptions) -> Result<Benchmark, Error> {
    let link = &options.link;
    let test = options.test.unwrap_or(if options.rate.is_some() { Test::Open } else { Test::Rate });
    // A far end that is somebody else's is read and never written to, unless the mode says so.
    let is_foreign = !link.simulated && !link.wants_far_end() && !link.protocol.description().own;
    let reads = is_foreign && link.protocol.modes(link).contains(&Mode::Receive);
    let mode = options.mode.or(reads.then_some(Mode::Receive));
    let choice = Choice {
        test: Some(test),
        mode,
        sizes: options.sizes.as_ref().map_or_else(Vec::new, |sizes| sizes.values().to_vec()),
        windows: options.window.into_iter().map(Some).collect(),
        channels: options.channels,
        batch: 1,
        rate: options.rate,
        ..Choice::default()
    };
    let until = Until::Elapsed(options.duration.unwrap_or(REPEAT));
    let timing = Timing { until, warmup: WARMUP, ..Timing::of(link) };
    let mut benchmark = Benchmark {
        link: link.clone(),
        choice,
        timing: Timing { repeats: Repeats::Fixed(REPEATS), wait: options.wait, timeout: options.timeout, ..timing },
        conditions: options.conditions.conditions()?,
        beside: None,
    };
    if options.sizes.is_none() {
        // Of the protocol's usual sizes the largest says most of a line.
        benchmark.choice.sizes.extend(benchmark.plans()?.iter().map(|plan| plan.size.bounds().1).max());
    }
    Ok(benchmark)
}

/// Explains why a link is not faster: measures it, changes one thing at a time (window, size, pace, channels, congestion control, wait,
/// processors), and compares the rate that it predicted with the one that it finds. A far end that is not this program is read and not
/// written to, unless --mode says so.
#[derive(Debug, Args)]
pub struct WhyOptions {
    /// A URI such as tcp://host:4242, or the name of a protocol, whose far end is then started on this host.
    #[arg(value_name = "LINK", value_parser = LinkParser, hide_possible_values = true)]
    pub link: Uri,
    /// rate, latency, channels, or open, which needs --rate [default: rate, or open with --rate].
    #[arg(long, value_name = "TEST", value_parser = crate::bench::test(), help_heading = "Test")]
    pub test: Option<Test>,
    /// Direction of the payload: both, send or receive [default: the protocol's].
    #[arg(long, value_name = "MODE", value_parser = crate::bench::mode(), help_heading = "Test")]
    pub mode: Option<Mode>,
    /// Bytes of payload per operation [default: the largest of the protocol's suite].
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, help_heading = "Test")]
    pub sizes: Option<Sizes>,
    /// Operations in flight per channel [default: the protocol's].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_048_576), allow_negative_numbers = true, help_heading = "Test")]
    pub window: Option<u32>,
    /// Number of channels [default: one per device in the URI].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32), allow_negative_numbers = true, help_heading = "Test")]
    pub channels: Option<u32>,
    /// Operations per second of the open test.
    #[arg(long, value_name = "RATE", value_parser = units::rate, allow_negative_numbers = true, help_heading = "Test")]
    pub rate: Option<f64>,
    /// Length of one of the three repeats [default: 300ms].
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true, help_heading = "Measuring")]
    pub duration: Option<Duration>,
    /// How both sides wait: adaptive, block, spin, or spin:50us to spin that long and then block.
    #[arg(long, value_name = "HOW", default_value = "adaptive", value_parser = units::wait, help_heading = "Measuring")]
    pub wait: Wait,
    /// Where and under which settings it runs.
    #[command(flatten)]
    pub conditions: ConditionOptions,
    /// How long to wait for a connection or a reply before the far end counts as lost.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::duration, allow_hyphen_values = true, help_heading = "Measuring")]
    pub timeout: Duration,
    /// Where the results go.
    #[command(flatten)]
    pub output: OutputOptions,
    /// How the run is followed.
    #[command(flatten)]
    pub follow: FollowOptions,
}
