//! `hodo` alone: every protocol of the catalog, short, with its far end started here.

use crate::args::{Cli, Command, Demo, Output};
use crate::bench::{Outputs, Progress, Recorder, plan};
use crate::{Error, Outcome, interrupt, terminal};
use clap::Parser;
use hodo_io::host;
use hodo_measure::Plan;
use hodo_tester::Benchmark;
use hodo_tester::environment::clock_text;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Short enough that the whole of it takes less than two minutes, long enough for a confidence interval.
const OPTIONS: [&str; 6] = ["--duration", "200ms", "--warmup", "100ms", "--repeat", "6"];
/// IPbus through a hub that is started here, with a device behind it: how much of the time is the hub's?
const HUB: &str = "chtcp-2.0";
/// A link that is simulated: the same machines in virtual time, over a network whose faults are known.
const SIMULATED: &str = "sim+udp://?delay=50us&rate=1G&seed=1";

/// Runs the demonstration.
pub fn run(demo: &Demo) -> Result<Outcome, Error> {
    let parts = parts()?;
    let steps = parts.iter().map(|part| part.plans.len()).sum();
    let folder = demo.out.clone().unwrap_or_else(new_folder);
    let outputs = Outputs::prepare(&Output { out: Some(folder.clone()), ..Output::default() }, None)?;
    let stop = interrupt::flag()?;
    let progress = Progress::new(demo.progress, false, steps);
    let mut document = hodo_tester::document(option_env!("HODO_COMMIT"), std::env::args().collect());
    progress.say(&format!("{steps} measurements on this host; {}", clock_text(&document.environment)));
    let recorder = Recorder::new(&progress, outputs);
    let mut failure = None;
    for part in &parts {
        let ran = part.benchmark.run(&part.plans, &mut document, &recorder, &stop);
        if let Err(error) = ran {
            // The other protocols may well work.
            progress.say(&format!("{}: {error}", part.benchmark.link));
            failure.get_or_insert(error);
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let table = hodo_report::table(&document.measurements, terminal::style(false));
    terminal::print(&format!("\n{table}\n{}", where_it_is(&folder)))?;
    let outcome = recorder.finish(&document)?;
    failure.map_or(Ok(outcome), |error| Err(error.into()))
}

/// One link of the demonstration.
struct Scenario {
    benchmark: Benchmark,
    plans: Vec<Plan>,
}

impl Scenario {
    /// Returns the benchmark of a link with the options of the demonstration and these tests.
    fn of(link: &str, test: &[&str]) -> Result<Self, Error> {
        let words = ["hodo", "bench", link].into_iter().chain(OPTIONS).chain(test.iter().copied());
        let cli = Cli::try_parse_from(words).map_err(|why| Error::Failed(why.to_string()))?;
        let Some(Command::Bench(bench)) = cli.command else { unreachable!("the words say bench") };
        let benchmark = plan::benchmark(&bench)?;
        let plans = benchmark.plans()?;
        Ok(Scenario { benchmark, plans })
    }
}

fn parts() -> Result<Vec<Scenario>, Error> {
    let mut parts = Vec::new();
    for protocol in hodo_catalog::protocols() {
        parts.push(Scenario::of(protocol.name(), &[])?);
    }
    parts.push(Scenario::of(HUB, &["--test", "latency", "--mode", "receive", "--sizes", "4", "--stages"])?);
    parts.push(Scenario::of(HUB, &["--test", "rate", "--mode", "receive", "--sizes", "1M"])?);
    parts.push(Scenario::of(SIMULATED, &["--test", "latency", "--sizes", "64,1024"])?);
    Ok(parts)
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
    format!("Results: {}\n  report.html  the page; result.json, result.tsv, plots/  the figures\n", folder.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_is_shown_and_the_hub_and_a_simulation() {
        let parts = parts().unwrap();
        let links: Vec<String> = parts.iter().map(|part| part.benchmark.link.to_string()).collect();
        for protocol in hodo_catalog::protocols() {
            let is_of = |link: &String| {
                protocol.description().schemes.iter().any(|scheme| link.starts_with(&format!("{scheme}:")))
            };
            assert!(links.iter().any(is_of), "{} in {links:?}", protocol.name());
        }
        assert!(links.iter().any(|link| link.starts_with(HUB)) && links.contains(&SIMULATED.into()), "{links:?}");
        assert!(parts.iter().any(|part| part.benchmark.timing.stages), "one tells its stages");
    }
}
