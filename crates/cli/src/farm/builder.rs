//! `hodo farm builder`: makes events of the fragments of several sources, and gives each to the controller.

use super::options::{CONTROLLER, ProcessOptions};
use crate::announce::announce;
use crate::{Error, Outcome, address};
use clap::{Args, ValueEnum};
use hodo_daemon::Options;
use hodo_farm_host::builder::{BuilderDaemon, BuilderSettings};
use hodo_farm_host::machines::{BuilderConfig, Incomplete};
use hodo_farm_host::process::wire_length;
use hodo_measure::units;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where a builder listens by default.
const BUILDER: &str = "127.0.0.1:5501";
/// Where its pages are by default.
const PAGES: &str = "127.0.0.1:9206";

/// Builds events until a signal comes.
pub fn run(options: &BuilderOptions) -> Result<Outcome, Error> {
    options.process.open_log("builder", 1)?;
    let builder = BuilderDaemon::start(settings(options)?)?;
    announce(builder.daemon(), &[builder.address()], options.process.until_stdin_closes, "--listen :PORT")?;
    builder.run()?;
    Ok(Outcome::Done)
}

fn settings(options: &BuilderOptions) -> Result<BuilderSettings, Error> {
    let defaults = BuilderSettings::new(options.to, options.sources);
    Ok(BuilderSettings {
        listen: options.listen,
        config: BuilderConfig {
            number: options.number,
            patience: options.patience,
            behind: options.behind,
            starts_without: options.start_without,
            incomplete: options.incomplete.into(),
            fragment_max: wire_length(options.event_max),
            pool_bytes: options.pool,
            source_credits: options.credits,
            datagrams: options.udp,
            silence: options.silence,
            ..defaults.config
        },
        daemon: Options {
            http: (!options.no_metrics).then_some(options.metrics),
            names: options.pages_name.clone(),
            pid_file: options.pid_file.clone(),
            catches_signals: true,
        },
        drain: options.drain,
        process: options.process.settings()?,
    })
}

/// How a builder treats an event with missing fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FarmIncomplete {
    /// Forward it with the fragments that arrived, and flag it.
    Forward,
    /// Drop it, and count it as incomplete.
    Drop,
}

impl From<FarmIncomplete> for Incomplete {
    fn from(incomplete: FarmIncomplete) -> Incomplete {
        match incomplete {
            FarmIncomplete::Forward => Incomplete::Forward,
            FarmIncomplete::Drop => Incomplete::Drop,
        }
    }
}

/// Options of a builder.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct BuilderOptions {
    /// Address for sources.
    #[arg(long, value_name = "ADDR", default_value = BUILDER, value_parser = address::listen)]
    pub listen: SocketAddr,
    /// Take fragments over UDP, from sources with --udp.
    #[arg(long)]
    pub udp: bool,
    /// Address of the controller.
    #[arg(long, value_name = "ADDR", default_value = CONTROLLER, value_parser = address::far_end)]
    pub to: SocketAddr,
    /// Number of sources, each of which sends a fragment of every event; they are numbered from 0.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub sources: u32,
    /// Number of this builder.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub number: u32,
    /// How long to wait for a source that has left; with --udp also for lost parts of a fragment.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = units::span)]
    pub patience: Duration,
    /// How long to wait for a source that is connected and sends nothing.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::span)]
    pub behind: Duration,
    /// Wait for sources that have not come yet no longer than --patience.
    #[arg(long)]
    pub start_without: bool,
    /// How to treat an event with missing fragments.
    #[arg(long, value_name = "WHAT", default_value = "forward")]
    pub incomplete: FarmIncomplete,
    /// Largest fragment in bytes.
    #[arg(long, value_name = "BYTES", default_value = "1M", value_parser = units::bytes)]
    pub event_max: u64,
    /// Memory for fragments, of which each source has an equal share.
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = units::bytes)]
    pub pool: u64,
    /// Fragments that a source may have in flight.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub credits: u32,
    /// A source or controller that is silent for this long counts as lost.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::span)]
    pub silence: Duration,
    /// Address of its pages: /metrics for Prometheus, /health, /builder.
    #[arg(long, value_name = "ADDR", default_value = PAGES, value_parser = address::listen)]
    pub metrics: SocketAddr,
    /// Serve no pages.
    #[arg(long, conflicts_with = "metrics")]
    pub no_metrics: bool,
    /// Name that its pages may be asked for, beside this host's name and addresses; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub pages_name: Vec<String>,
    /// Write the process number to this file; a second builder with the same file does not start.
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// How long pending events may take when the builder stops.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::span)]
    pub drain: Duration,
    /// How it runs.
    #[command(flatten)]
    pub process: ProcessOptions,
}

const EXAMPLES: &str = "\
Examples:
  hodo farm builder --sources 3 --to controller:5500
  hodo farm source --number 0 --to 127.0.0.1:5501                the first source
  hodo farm builder --sources 3 --udp --listen :5501
  hodo farm source --number 0 --udp --to builder:5501
  hodo farm builder --sources 3 --incomplete drop --patience 200ms";
