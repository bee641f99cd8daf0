//! `hodo farm controller`: takes events in, hands each to one node, stores what is accepted.

use super::operate::{FarmControl, PAGES};
use super::options::{CONTROLLER, MadeOptions, ProcessOptions};
use crate::announce::announce;
use crate::{Error, Outcome, address};
use clap::{Args, ValueEnum};
use hodo_daemon::{Options, log};
use hodo_farm_host::controller::{ControllerDaemon, ControllerSettings, DECIDED, StoreSettings, UploadTo};
use hodo_farm_host::machines::{ControllerConfig, Policy};
use hodo_farm_host::process::wire_length;
use hodo_measure::units;
use hodo_store::Durability;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Runs a controller until a signal comes, or until what it was to make has its verdict.
pub fn run(options: &ControllerOptions) -> Result<Outcome, Error> {
    options.process.open_log("controller", options.threads)?;
    let controller = ControllerDaemon::start(settings(options)?)?;
    announce(controller.daemon(), &[controller.address()], options.process.until_stdin_closes, "--listen :PORT")?;
    let decided = controller.run()?;
    log::print(&format!("{DECIDED}{}\n", decided.text()))?;
    decided.check()?;
    Ok(Outcome::Done)
}

fn settings(options: &ControllerOptions) -> Result<ControllerSettings, Error> {
    let defaults = ControllerSettings::default();
    Ok(ControllerSettings {
        listen: options.listen,
        config: ControllerConfig {
            run: options.run,
            open: options.open.clone(),
            configured: options.configured,
            policy: options.policy.into(),
            credits_max: options.credits_max,
            event_max: wire_length(options.event_max),
            pool_bytes: options.pool,
            output_bytes: options.output_bytes,
            sources_max: options.sources,
            nodes_max: options.nodes,
            silence: options.silence,
            ahead_max: (options.ahead > 0).then_some(options.ahead),
            deadline: options.deadline,
            deaths_max: options.deaths,
            uncommitted_max: Some(options.uncommitted),
            uncommitted_bytes_max: options.uncommitted_bytes,
            ..defaults.config
        },
        store: options.store.as_ref().map(|directory| store(options, directory.clone())),
        generator: options.made.events.map(|_| options.made.generator(0, 1)),
        until_done: options.until_done,
        threads: usize::from(options.threads),
        daemon: Options {
            http: (!options.no_metrics).then_some(options.metrics),
            names: options.pages_name.clone(),
            pid_file: options.pid_file.clone(),
            catches_signals: true,
        },
        control: options.control.into(),
        drain: options.drain,
        process: options.process.settings()?,
    })
}

fn store(options: &ControllerOptions, directory: PathBuf) -> StoreSettings {
    let durability = match options.durability {
        FarmDurability::Process => Durability::Process,
        FarmDurability::Disk => Durability::Disk,
    };
    StoreSettings {
        options: hodo_store::Options {
            segment_bytes: options.segment,
            durability,
            ..hodo_store::Options::new(directory)
        },
        commit_every: options.commit_every,
        sync_every: options.sync_every,
        sync_bytes: options.sync_bytes,
        upload: options.upload.to(),
    }
}

/// Options of a controller.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ControllerOptions {
    /// Address for nodes, sources and builders.
    #[arg(long, value_name = "ADDR", default_value = CONTROLLER, value_parser = address::listen)]
    pub listen: SocketAddr,
    /// Folder for accepted events and the ledger [default: nothing is stored, and nothing survives].
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// When a verdict counts as durable, so that its source is told.
    #[arg(long, value_name = "WHEN", default_value = "process", requires = "store")]
    pub durability: FarmDurability,
    /// Least time between two commits; everything that arrives in between is written together.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = units::span)]
    pub commit_every: Duration,
    /// With `--durability process`: how long the disk may lag behind the commits.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = units::span)]
    pub sync_every: Duration,
    /// With `--durability process`: bytes after which the disk is asked for them sooner. What it has leaves the system's
    /// memory.
    #[arg(long, value_name = "BYTES", default_value = "32M", value_parser = units::bytes)]
    pub sync_bytes: u64,
    /// Number of verdicts that may wait for their commit; beyond it no more events are dispatched.
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = clap::value_parser!(u64).range(1..))]
    pub uncommitted: u64,
    /// Bytes of data that may wait for their commit.
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = units::bytes)]
    pub uncommitted_bytes: u64,
    /// Size at which a file of the store is closed.
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = units::bytes)]
    pub segment: u64,
    /// Where closed files go.
    #[command(flatten)]
    pub upload: UploadOptions,
    /// How to choose the node of the next event.
    #[arg(long, value_name = "POLICY", default_value = "token-fifo")]
    pub policy: FarmPolicy,
    /// How many events a node may be ahead of an equally fast one; 0 takes tokens strictly in order.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub ahead: u64,
    /// Largest number of events that a node may have, whatever it offers.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub credits_max: u32,
    /// Largest event, and largest reply of a node, in bytes.
    #[arg(long, value_name = "BYTES", default_value = "16M", value_parser = units::bytes)]
    pub event_max: u64,
    /// Memory for events, of which each source has an equal share.
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = units::bytes)]
    pub pool: u64,
    /// Memory for output that is arriving, of all nodes together; beyond it the node that has the most is sent away.
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = units::bytes)]
    pub output_bytes: u64,
    /// Largest number of sources and builders.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub sources: u32,
    /// Largest number of nodes.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub nodes: u32,
    /// A node that is silent for this long counts as lost, and its events go to others.
    #[arg(long, value_name = "TIME", default_value = "600ms", value_parser = units::span)]
    pub silence: Duration,
    /// A node that takes longer than this for one event counts as lost, and its events go to others [default: no
    /// limit].
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    pub deadline: Option<Duration>,
    /// An event on which this many nodes failed or died is quarantined.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    pub deaths: u8,
    /// Number of the run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub run: u32,
    /// Runs beside it whose events sources may give; `hodo farm set-run` opens another later.
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub open: Vec<u32>,
    /// Wait for `hodo farm resume` before dispatching; nodes and sources can connect before.
    #[arg(long)]
    pub configured: bool,
    /// Number of threads that share the nodes; more than 1 only for events that are generated here.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Events that are made here.
    #[command(flatten)]
    pub made: MadeOptions,
    /// Address of its pages: /metrics, /health, /farm, /nodes; and the actions /pause, /resume, /drain, /stop, /run.
    #[arg(long, value_name = "ADDR", default_value = PAGES, value_parser = address::listen)]
    pub metrics: SocketAddr,
    /// Serve no pages.
    #[arg(long, conflicts_with = "metrics")]
    pub no_metrics: bool,
    /// Name that its pages may be asked for, beside this host's name and addresses; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub pages_name: Vec<String>,
    /// Clients that may pause, resume, drain and stop it.
    #[arg(long, value_name = "WHO", default_value = "owner")]
    pub control: FarmControl,
    /// Write the process number to this file; a second controller with the same file does not start.
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// How long pending events may take when the controller stops.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::span)]
    pub drain: Duration,
    /// Stop when every event that was to be generated here has its verdict.
    #[arg(long, requires = "events")]
    pub until_done: bool,
    /// How it runs.
    #[command(flatten)]
    pub process: ProcessOptions,
}

/// How to choose the node of the next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FarmPolicy {
    /// The node whose token has waited longest.
    TokenFifo,
    /// Each node in turn, ready or not.
    RoundRobin,
    /// The node with the fewest events.
    LeastOutstanding,
    /// In proportion to the weights of the nodes.
    Weighted,
}

impl From<FarmPolicy> for Policy {
    fn from(policy: FarmPolicy) -> Policy {
        match policy {
            FarmPolicy::TokenFifo => Policy::TokenFifo,
            FarmPolicy::RoundRobin => Policy::RoundRobin,
            FarmPolicy::LeastOutstanding => Policy::LeastOutstanding,
            FarmPolicy::Weighted => Policy::Weighted,
        }
    }
}

/// When a verdict is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FarmDurability {
    /// When the kernel has it: it survives the end of every process.
    Process,
    /// When the disk has it: it survives a power failure.
    Disk,
}

/// Where closed files of the store are copied to.
#[derive(Debug, Args)]
pub struct UploadOptions {
    /// Copy each closed segment of the store into this folder, for instance on a shared file system.
    #[arg(long, value_name = "DIR", requires = "store")]
    pub upload: Option<PathBuf>,
    /// Copy each closed segment of the store into an object store, as s3://bucket/run7; the environment holds its
    /// keys (AWS_ACCESS_KEY_ID, AWS_ENDPOINT, …).
    #[cfg(feature = "cloud")]
    #[arg(long, value_name = "URL", requires = "store", conflicts_with = "upload")]
    pub upload_to: Option<String>,
}

impl UploadOptions {
    fn to(&self) -> Option<UploadTo> {
        #[cfg(feature = "cloud")]
        if let Some(url) = &self.upload_to {
            return Some(UploadTo::Cloud(url.clone()));
        }
        self.upload.clone().map(UploadTo::Folder)
    }
}

const EXAMPLES: &str = "\
Examples:
  hodo farm controller --store /data/run7 --run 7
  hodo farm controller --events 1000000 --until-done --no-metrics    generated events, to try a farm out";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        options: ControllerOptions,
    }

    #[test]
    fn the_command_line_has_the_defaults_of_the_library() {
        let options = Alone::parse_from(["hodo", "--no-metrics"]).options;
        let mut found = settings(&options).expect("the defaults go together");
        found.daemon.catches_signals = false;
        assert_eq!(format!("{found:?}"), format!("{:?}", ControllerSettings::default()));
    }
}
