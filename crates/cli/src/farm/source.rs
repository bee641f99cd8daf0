//! `hodo farm source`: gives events, or fragments of them.

use super::options::{CONTROLLER, MadeOptions, ProcessOptions};
use crate::serve::at_the_end_of_stdin;
use crate::{Error, Outcome, address, interrupt};
use clap::Args;
use hodo_daemon::log;
use hodo_farm_host::replay::ReplaySettings;
use hodo_farm_host::source::{self, SourceEvents, SourceSettings};
use hodo_measure::units;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Gives events until all have their verdict, or a signal comes.
pub fn run(options: &SourceOptions) -> Result<Outcome, Error> {
    options.process.open_log("source", 1)?;
    let settings = settings(options)?;
    let stop = interrupt::flag_of_daemon(&options.process.log)?;
    if options.process.until_stdin_closes {
        at_the_end_of_stdin(&stop)?;
    }
    let summary = source::run(&settings, &stop)?;
    log::print(&format!("source {}: {}\n", options.number, summary.text()))?;
    Ok(if summary.is_whole() { Outcome::Done } else { Outcome::Failed })
}

fn settings(options: &SourceOptions) -> Result<SourceSettings, Error> {
    let SourceOptions { made, recorded, .. } = options;
    let events = match &recorded.replay {
        Some(store) => SourceEvents::Recorded(ReplaySettings {
            store: store.clone(),
            first: options.first,
            step: options.step,
            count: made.events,
            renumber: recorded.renumber,
            rate: made.rate,
            poisson: made.poisson,
            seed: made.seed,
            run: options.run,
        }),
        None => SourceEvents::Made(made.generator(options.first, options.step)),
    };
    Ok(SourceSettings {
        to: options.to,
        number: options.number,
        run: options.run,
        datagram: options.udp.then_some(options.datagram),
        events,
        drain: options.drain,
        process: options.process.settings()?,
    })
}

/// Options of a source.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct SourceOptions {
    /// Address of the builder or the controller.
    #[arg(long, value_name = "ADDR", default_value = CONTROLLER, value_parser = address::far_end)]
    pub to: SocketAddr,
    /// Send over UDP, to a builder with --udp.
    #[arg(long)]
    pub udp: bool,
    /// Bytes of a fragment in each datagram, in addition to its header of 28 and 28 of IPv4 and UDP.
    #[arg(long, value_name = "BYTES", default_value_t = 1400, requires = "udp", value_parser = clap::value_parser!(u32).range(64..=65_400))]
    pub datagram: u32,
    /// Number of this source.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub number: u32,
    /// Run number of its events [default: 1, or as recorded].
    #[arg(long, value_name = "N")]
    pub run: Option<u32>,
    /// Number of the first event.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first: u64,
    /// Step from one event number to the next: the number of sources that share the events of a run.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub step: u64,
    /// Events that were recorded.
    #[command(flatten)]
    pub recorded: RecordedOptions,
    /// The events that it makes.
    #[command(flatten)]
    pub made: MadeOptions,
    /// How long to wait for verdicts of events that were sent, after SIGTERM or Ctrl-C.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::span)]
    pub drain: Duration,
    /// How it runs.
    #[command(flatten)]
    pub process: ProcessOptions,
}

/// The options that only made events have.
const MADE: [&str; 4] = ["size", "different", "numbered", "seed"];

/// Events that were recorded, in place of those that are made.
#[derive(Debug, Args)]
pub struct RecordedOptions {
    /// Replay the events of this store, or of one of its segments, as they were stored and with their numbers.
    /// --first, --step and --events choose among them.
    #[arg(long, value_name = "DIR", conflicts_with_all = MADE)]
    pub replay: Option<PathBuf>,
    /// Number them from 0 instead, without gaps for events that were not stored.
    #[arg(long, requires = "replay")]
    pub renumber: bool,
}

const EXAMPLES: &str = "\
Examples:
  hodo farm source --to builder:5501 --number 2 --size normal:32K,4K --rate 10k
  hodo farm source --to builder:5501 --udp                       over UDP, to a builder with --udp
  hodo farm source --replay /data/run7 --rate 1000               replay the stored events of run 7";
