//! `hodo farm node`: takes events and decides.

use super::options::{CONTROLLER, ProcessOptions};
use super::spread;
use crate::serve::at_the_end_of_stdin;
use crate::{Error, Outcome, address, interrupt};
use clap::Args;
use hodo_farm_host::Deciding;
use hodo_farm_host::machines::NodeConfig;
use hodo_farm_host::machines::emulation::{Accept, Decisions, Spread};
use hodo_farm_host::machines::node::Decide;
use hodo_farm_host::node::{self, NodeSettings};
use hodo_farm_host::process::wire_length;
use hodo_farm_host::programs::{Programs, Started};
use hodo_machine::Address;
use hodo_measure::units;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

/// Decides until a signal comes.
pub fn run(options: &NodeOptions) -> Result<Outcome, Error> {
    options.process.open_log("node", 1)?;
    let settings = NodeSettings {
        config: config(options),
        programs: options.deciders.programs(),
        drain: options.drain,
        process: options.process.settings()?,
    };
    let stop = interrupt::flag_of_daemon(&options.process.log)?;
    if options.process.until_stdin_closes {
        at_the_end_of_stdin(&stop)?;
    }
    node::run(&settings, &stop)?;
    Ok(Outcome::Done)
}

fn config(options: &NodeOptions) -> NodeConfig {
    let decisions = Decisions {
        accept: options.accept,
        output: vec![0xA5; options.output.unwrap_or(0) as usize].into(),
        time: options.time,
        seed: options.seed,
    };
    let controllers = vec![Address::Tcp(options.to); options.count as usize];
    let node = Deciding::new(controllers, u32::from(options.deciders.workers)).node;
    NodeConfig {
        number: options.number,
        credits: options.credits.unwrap_or(node.credits),
        weight: options.weight,
        event_max: wire_length(options.event_max),
        decide: if options.no_tokens { Decide::Nobody } else { Decide::Emulated(decisions) },
        ..node
    }
}

impl DeciderOptions {
    fn programs(&self) -> Option<Programs> {
        let (started, command) = match (&self.command, &self.exec) {
            (Some(command), _) => (Started::Once, command),
            (None, Some(command)) => (Started::ForEachEvent, command),
            (None, None) => return None,
        };
        Some(Programs {
            started,
            command: command.clone(),
            workers: usize::from(self.workers),
            within: self.decide_within,
        })
    }
}

/// Options of a node.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct NodeOptions {
    /// Address of the controller.
    #[arg(long, value_name = "ADDR", default_value = CONTROLLER, value_parser = address::far_end)]
    pub to: SocketAddr,
    /// Number of nodes in this process.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub count: u32,
    /// Number of the first node; the others count up from it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub number: u32,
    /// Number of events that each node takes at a time [default: 2, or 2 per worker].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub credits: Option<u32>,
    /// Count events and send no tokens, for a controller that measures the cost of tokens.
    #[arg(long, hide = true, conflicts_with_all = EMULATOR)]
    pub no_tokens: bool,
    /// Weight of the node, if the controller's policy uses weights.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub weight: u32,
    /// Largest event in bytes.
    #[arg(long, value_name = "BYTES", default_value = "16M", value_parser = units::bytes)]
    pub event_max: u64,
    /// Share of the events to accept, or every:200.
    #[arg(long, value_name = "PART", default_value = "0.005", value_parser = spread::accept)]
    pub accept: Accept,
    /// Bytes to store of an accepted event [default: the event itself].
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    pub output: Option<u64>,
    /// Duration of a decision: 1ms, uniform:1ms..5ms, exponential:1ms, normal:1ms,100us.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = spread::times)]
    pub time: Spread,
    /// Seed of the durations, and of the choice of accepted events.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How long pending events may take when the node stops.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::span)]
    pub drain: Duration,
    /// The programs that decide in place of the emulator.
    #[command(flatten)]
    pub deciders: DeciderOptions,
    /// How it runs.
    #[command(flatten)]
    pub process: ProcessOptions,
}

/// The program that decides in place of the emulator.
#[derive(Debug, Args)]
pub struct DeciderOptions {
    /// Program that decides on events, with all further words as its arguments; it has one after the other on its standard input, and answers on
    /// its standard output.
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true, conflicts_with_all = EMULATOR)]
    pub command: Option<Vec<OsString>>,
    /// Program to run for each event, with all further words as its arguments; it reads the event from standard input; exit status 0 accepts, 1
    /// rejects, any other is a failure; its output is stored instead of the event.
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true, conflicts_with_all = EMULATOR, conflicts_with = "command")]
    pub exec: Option<Vec<OsString>>,
    /// Number of processes that decide at the same time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub workers: u16,
    /// Longest decision; one that takes longer fails, and its process is killed.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = units::span)]
    pub decide_within: Duration,
}

/// The options that only an emulator takes.
const EMULATOR: [&str; 4] = ["accept", "output", "time", "seed"];

const EXAMPLES: &str = "\
Examples:
  hodo farm node --to controller:5500 --credits 2
  hodo farm node --count 20 --time exponential:1ms --accept 0.01      twenty emulated nodes
  hodo farm node --workers 8 --command python3 decide.py              eight deciding processes
  hodo farm node --exec ./decide                                      one process per event";
