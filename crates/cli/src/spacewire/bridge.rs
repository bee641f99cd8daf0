//! `hodo spacewire bridge`: a simulated network that hosts reach over TCP.

use super::options::RecordingOptions;
use crate::announce::announce;
use crate::logging::LogOptions;
use crate::realtime::RealtimeOptions;
use crate::{Error, Outcome, address, terminal};
use clap::{Args, ValueEnum};
use hodo_daemon::Options;
use hodo_machine::Wait;
use hodo_measure::units;
use hodo_spacewire_host::bridge::{BridgeDaemon, BridgeSettings, PAGES_PORT};
use hodo_spacewire_host::machines::bridge::Pace;
use hodo_spacewire_host::network::{PRESETS, Plan};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Runs a bridge until a signal comes, or checks or shows a network.
pub fn run(options: &BridgeOptions) -> Result<Outcome, Error> {
    if options.show {
        terminal::print(PRESETS.iter().find(|(name, _)| *name == options.preset).map_or("", |(_, text)| text))?;
        return Ok(Outcome::Done);
    }
    let plan = match &options.file {
        Some(file) => Plan::read(file)?,
        None => Plan::preset(&options.preset)?,
    };
    if options.check {
        let (nodes, links) = (plan.names.nodes.len(), plan.names.links.len());
        terminal::print(&format!("{nodes} nodes, {} gates for hosts, {links} links\n", plan.gates.len()))?;
        return Ok(Outcome::Done);
    }
    options.log.open("hodo spacewire bridge", options.verbose)?;
    options.realtime.begin_serving(options.wait, 1)?;
    let bridge = BridgeDaemon::start(
        plan,
        BridgeSettings {
            listen: options.listen,
            pace: options.pace.into(),
            daemon: Options {
                http: (!options.no_metrics).then_some(options.metrics),
                names: options.pages_name.clone(),
                pid_file: options.pid_file.clone(),
                catches_signals: true,
            },
            wait: options.wait,
            cpu: options.cpu,
            recording: options.record.options(options.record_characters)?,
        },
    )?;
    let gates: Vec<String> = bridge.gates().into_iter().map(|(at, words)| format!("{at} ({words})")).collect();
    announce(bridge.daemon(), &gates, options.until_stdin_closes, "--listen 0.0.0.0")?;
    bridge.run()?;
    Ok(Outcome::Done)
}

/// Where a bridge's pages are by default.
const PAGES: &str = "127.0.0.1:9209";

const _: () = assert!(PAGES_PORT == 9209);

/// The time of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PaceName {
    /// As the clock: a link has the rate that it has.
    RealTime,
    /// As fast as it can be computed.
    Free,
}

impl From<PaceName> for Pace {
    fn from(pace: PaceName) -> Self {
        match pace {
            PaceName::RealTime => Pace::RealTime,
            PaceName::Free => Pace::Free,
        }
    }
}

/// Options of a bridge.
///
/// Each node with `ssdtp2` or `gresb` listens at its TCP port; one host at a time has it, and a newer one takes the place of an
/// older one.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct BridgeOptions {
    /// File of the network; docs/examples/spacewire.toml explains every key [default: a preset].
    #[arg(value_name = "FILE.toml")]
    pub file: Option<PathBuf>,
    /// Network without a file: lab, a router with two hosts, a memory and an echo, or cable, two ports joined by a link.
    #[arg(long, value_name = "NAME", default_value = "lab", conflicts_with = "file", value_parser = preset)]
    pub preset: String,
    /// Print the file of the preset, to begin one's own with, and serve nothing.
    #[arg(long, conflicts_with = "file")]
    pub show: bool,
    /// Check the network and serve nothing.
    #[arg(long)]
    pub check: bool,
    /// The address of this host on which gates listen; 0.0.0.0 admits everybody who can reach it.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1", value_parser = listen)]
    pub listen: IpAddr,
    /// Time of the network: real-time, as the clock, or free, as fast as it can be computed.
    #[arg(long, value_name = "PACE", value_enum, default_value = "real-time", hide_possible_values = true)]
    pub pace: PaceName,
    /// Address of its pages: /metrics for Prometheus, /health, /stats, /paths.
    #[arg(long, value_name = "ADDR", default_value = PAGES, value_parser = address::listen)]
    pub metrics: SocketAddr,
    /// Serve no pages.
    #[arg(long, conflicts_with = "metrics")]
    pub no_metrics: bool,
    /// Name that its pages may be asked for, beside this host's name and addresses; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub pages_name: Vec<String>,
    /// Write the process number to this file; a second bridge with the same file does not start.
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// How to wait: adaptive, block, spin, or spin:50us to spin that long and then block.
    #[arg(long, value_name = "HOW", default_value = "adaptive", value_parser = units::wait)]
    pub wait: Wait,
    /// The scheduling class.
    #[command(flatten)]
    pub realtime: RealtimeOptions,
    /// The processor to run on [default: the kernel's choice].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<usize>,
    /// The recording.
    #[command(flatten)]
    pub record: RecordingOptions,
    /// Record every character of every link, too, and every change of its state, as an analyser shows them.
    #[arg(long, requires = "record")]
    pub record_characters: bool,
    /// The log.
    #[command(flatten)]
    pub log: LogOptions,
    /// Log more, like --log-level debug.
    #[arg(long)]
    pub verbose: bool,
    /// Stop when standard input closes, so that the bridge never outlives the program that started it.
    #[arg(long)]
    pub until_stdin_closes: bool,
}

fn listen(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is no address alone; write 127.0.0.1, or 0.0.0.0 for every address: the file has the ports")
    })
}

fn preset(name: &str) -> Result<String, String> {
    let known: Vec<&str> = PRESETS.iter().map(|(known, _)| *known).collect();
    if known.contains(&name) {
        Ok(name.to_owned())
    } else {
        Err(format!("`{name}` is not one of {}", known.join(", ")))
    }
}

const EXAMPLES: &str = "\
Examples:
  hodo spacewire bridge                          a router, two hosts, a memory and an echo, on loopback
  hodo spacewire bridge --preset cable --pace free
  hodo spacewire bridge --show > network.toml    the preset's file, to change
  hodo spacewire bridge network.toml             one's own network
  hodo spacewire bridge --record links.pcapng    for Wireshark, with packaging/wireshark/spacewire.lua
  curl http://127.0.0.1:9209/stats               its gates, links and memories
  curl http://127.0.0.1:9209/paths               the options of `hodo spacewire read` for each memory";
