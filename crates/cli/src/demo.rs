//! `hodo` alone: every protocol of the catalog, short, with its far end started here.

use crate::bench::{Follow, Progress, Recorder, plan};
use crate::{Error, Outcome, interrupt, terminal, version};
use clap::Args;
use hodo_catalog::CATALOG;
use hodo_io::{affinity, host};
use hodo_tester::{Benchmark, OutputPaths, Outputs, brief, demonstration, demonstration_time, summary};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Runs the demonstration.
pub fn run(options: &DemoOptions) -> Result<Outcome, Error> {
    let benchmarks = demonstration(CATALOG, &plan::this_program()?)?;
    let mut plans = benchmarks.iter().map(Benchmark::plans).collect::<Result<Vec<_>, _>>()?;
    if !options.full {
        plans.iter_mut().for_each(|plans| *plans = brief(plans));
    }
    let steps = plans.iter().map(Vec::len).sum();
    let folder = options.out.clone().unwrap_or_else(new_folder);
    let outputs =
        Outputs::prepare(&OutputPaths { dir: Some(folder.clone()), force: options.force, ..OutputPaths::default() })?;
    let stop = interrupt::flag()?;
    let progress = Progress::new(options.progress, false, steps);
    progress.say(&what_it_does(steps, demonstration_time(&plans), affinity::online_cpus().len()));
    let mut document = hodo_tester::document(version::COMMIT, std::env::args().collect());
    let recorder = Recorder::new(&progress, outputs, &stop);
    let mut failure = None;
    for (benchmark, plans) in benchmarks.iter().zip(&plans) {
        if let Err(error) = benchmark.run(plans, &mut document, &recorder, &stop) {
            // The other protocols may well work.
            progress.say(&format!("{}: {error}", benchmark.link));
            failure.get_or_insert(error);
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let style = terminal::style(false);
    let table = if options.full {
        hodo_report::table(&document.measurements, style)
    } else {
        hodo_report::overview(&document.measurements, style)
    };
    let said = summary(&document.measurements);
    let sentences = said.iter().flat_map(|(_, sentences)| sentences).map(String::as_str);
    let sentences = terminal::sentences(sentences, false);
    document.diagnosis = said.map(|(diagnosis, _)| diagnosis);
    let outcome = recorder.finish(&document)?;
    terminal::print(&format!("\n{table}\n{sentences}{}", where_it_is(&folder)))?;
    failure.map_or(Ok(outcome), |error| Err(error.into()))
}

/// Returns the first lines: how long it takes, what it loads, how it is stopped, and where else to begin.
fn what_it_does(steps: usize, time: Duration, processors: usize) -> String {
    let seconds = time.as_secs().div_ceil(10) * 10;
    let time = if seconds < 120 { format!("{seconds} s") } else { format!("{} minutes", seconds.div_ceil(60)) };
    format!(
        "The demonstration runs for about {time} on all processors ({processors}); Ctrl-C stops it.\n{steps} measurements, every protocol on this host; `hodo --help` lists the commands."
    )
}

/// Returns a new folder for this run. The name is the time, so that folders sort, without the colons that some tools
/// dislike.
fn new_folder() -> PathBuf {
    let time = host::utc_now().replace(':', "-");
    let first = Path::new("results").join(&time);
    let others = (2..).map(|number| Path::new("results").join(format!("{time}-{number}")));
    std::iter::once(first).chain(others).find(|folder| !folder.exists()).expect("names do not run out")
}

fn where_it_is(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    format!("Report (JSON, TSV and plots in the same folder): file://{}/report.html\n", whole.display())
}

/// Options of the demonstration.
#[derive(Debug, Args)]
pub struct DemoOptions {
    /// Folder for the results [default: one in results/ that is named after the UTC time].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace results that are in that folder already.
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Measure the whole suite of every protocol: all sizes and directions.
    #[arg(long)]
    pub full: bool,
    /// How to show progress on the terminal.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub progress: Follow,
}

#[cfg(all(test, feature = "raw", feature = "ipbus"))]
mod tests {
    use super::*;
    use hodo_tester::Host;

    #[test]
    fn the_first_line_says_how_long_and_on_what() {
        for (seconds, processors, text) in [
            (36, 2, "about 40 s on all processors (2);"),
            (110, 1, "about 110 s on all processors (1);"),
            (111, 96, "about 2 minutes on all processors (96);"),
        ] {
            let said = what_it_does(31, Duration::from_secs(seconds), processors);
            assert!(said.lines().next().unwrap().contains(text), "{said}");
            assert!(said.lines().all(|line| line.len() < 80 || processors > 9), "{said}");
        }
    }

    #[test]
    fn every_protocol_is_shown_and_the_hub_and_a_simulation() {
        let benchmarks = demonstration(CATALOG, &Host::Thread).unwrap();
        let links: Vec<String> = benchmarks.iter().map(|benchmark| benchmark.link.to_string()).collect();
        for protocol in hodo_catalog::protocols() {
            let is_of = |link: &String| {
                protocol.description().schemes.iter().any(|scheme| link.starts_with(&format!("{scheme}:")))
            };
            assert!(links.iter().any(is_of), "{} in {links:?}", protocol.name());
        }
        for start in ["chtcp-2.0:", "sim+udp:"] {
            assert!(links.iter().any(|link| link.starts_with(start)), "{start} in {links:?}");
        }
        assert!(benchmarks.iter().any(|benchmark| benchmark.timing.stages), "one has its stages measured");
        for benchmark in &benchmarks {
            assert!(!benchmark.plans().unwrap().is_empty(), "{}", benchmark.link);
        }
    }
}
