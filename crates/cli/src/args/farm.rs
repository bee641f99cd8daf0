use super::farm_operate::PAGES;
use super::units::Cpus;
use super::{
    FarmBench, FarmBuilder, FarmControl, FarmEnd, FarmExport, FarmPages, FarmRecorded, FarmReport, FarmRun, FarmSetRun,
    FarmStatus, FarmTop, FarmUpload, FarmVerify, spread, units,
};
use clap::{Args, Subcommand, ValueEnum};
use hodo_catalog::farm::emulation::{Accept, Spread};
use hodo_catalog::farm::{Policy, wire};
use hodo_machine::Wait;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where a controller listens, unless told otherwise.
pub(super) const CONTROLLER: &str = "127.0.0.1:5500";

const _: () = assert!(wire::CONTROLLER_PORT == 5500);

/// An event farm: sources, a builder, a controller, nodes.
#[derive(Debug, Args)]
pub struct Farm {
    /// Which part of it.
    #[command(subcommand)]
    pub command: FarmCommand,
}

/// A part of a farm.
#[derive(Debug, Subcommand)]
pub enum FarmCommand {
    /// Take events in, hand each to one node, store what is accepted.
    Controller(Box<FarmController>),
    /// Make events of the fragments of several sources.
    Builder(Box<FarmBuilder>),
    /// Give events, or fragments of them.
    Source(FarmSource),
    /// Take events and decide.
    Node(FarmNode),
    /// How fast is a farm on this machine?
    Bench(Box<FarmBench>),
    /// Run a whole farm, as a file says.
    Run(FarmRun),
    /// What a controller does, and how events are shared out over its nodes.
    Status(FarmStatus),
    /// The same and the rates, live.
    Top(FarmTop),
    /// A run so far as a document of results, with the balance and the nodes.
    Report(FarmReport),
    /// Have no more events given to nodes; what they have they answer.
    Pause(FarmPages),
    /// Begin, or go on after pause or drain.
    Resume(FarmPages),
    /// Take no new events in, and wait until those in hand have their verdicts.
    Drain(FarmEnd),
    /// Drain, then end the controller.
    Stop(FarmEnd),
    /// Give the events that a controller makes another run's number.
    SetRun(FarmSetRun),
    /// Write stored events to a Parquet file.
    Export(FarmExport),
    /// Is every byte of a store as it was written?
    Verify(FarmVerify),
}

/// Who gets the next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FarmPolicy {
    /// The node whose token has waited for longest.
    TokenFifo,
    /// Each node in turn, ready or not.
    RoundRobin,
    /// The node that has the fewest events.
    LeastOutstanding,
    /// By the weights of the nodes.
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
    /// When the kernel has it: survives the end of every process.
    Process,
    /// When the disk has it: survives a loss of power.
    Disk,
}

/// How a process of the farm runs.
#[derive(Debug, Args)]
pub struct FarmProcess {
    /// How to wait: block, spin, or spin:50us for spinning that long before blocking.
    #[arg(long, value_name = "HOW", default_value = "block", value_parser = units::wait)]
    pub wait: Wait,
    /// Processors to run on, one for each thread in turn [default: wherever the kernel puts it].
    #[arg(long, value_name = "LIST", value_parser = units::cpus)]
    pub cpu: Option<Cpus>,
    /// TCP congestion control [default: the system's].
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Send and receive buffer of each socket [default: the system's].
    #[arg(long, value_name = "BYTES", value_parser = units::buffer)]
    pub socket_buffer: Option<usize>,
    /// Say of every peer when it comes and goes, not only of what is wrong.
    #[arg(long)]
    pub verbose: bool,
    /// Come to an end when standard input does, so that it never outlives who started it.
    #[arg(long)]
    pub until_stdin_closes: bool,
}

/// Options of a controller.
#[derive(Debug, Args)]
#[command(after_help = CONTROLLER_EXAMPLES)]
pub struct FarmController {
    /// Where nodes, sources and builders connect.
    #[arg(long, value_name = "ADDR", default_value = CONTROLLER, value_parser = units::socket_address)]
    pub listen: SocketAddr,
    /// The folder of accepted events and of the journal [default: nothing is stored, and nothing survives].
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// When a verdict is durable, and its source is told.
    #[arg(long, value_name = "WHEN", default_value = "process", requires = "store")]
    pub durability: FarmDurability,
    /// Time between two commits at the least: what comes meanwhile is written together.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = units::span)]
    pub commit_every: Duration,
    /// Verdicts that may wait for their commit before no more events are given.
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = clap::value_parser!(u64).range(1..))]
    pub uncommitted: u64,
    /// Bytes of what is to be stored that may wait so.
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = units::bytes)]
    pub uncommitted_bytes: u64,
    /// A file of the store is closed at this size.
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = units::bytes)]
    pub segment: u64,
    /// Where closed files go.
    #[command(flatten)]
    pub upload: FarmUpload,
    /// Who gets the next event.
    #[arg(long, value_name = "POLICY", default_value = "token-fifo")]
    pub policy: FarmPolicy,
    /// Of nodes that are equally fast none gets so many events more than another; 0: tokens strictly in their order.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub ahead: u64,
    /// Events that a node may have, whatever it offers.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub credits_max: u32,
    /// The largest event, and the most that a node may answer with.
    #[arg(long, value_name = "BYTES", default_value = "16M", value_parser = units::bytes)]
    pub event_max: u64,
    /// Memory for the events of sources; each has its part of it.
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = units::bytes)]
    pub pool: u64,
    /// Sources and builders at once.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub sources: u32,
    /// Nodes at once.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub nodes: u32,
    /// A node that is silent for this long is gone, and its events go to others.
    #[arg(long, value_name = "TIME", default_value = "600ms", value_parser = units::span)]
    pub silence: Duration,
    /// A node that takes longer than this for one event is gone, and its events go to others [default: no bound].
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    pub deadline: Option<Duration>,
    /// An event over which so many nodes failed or died is quarantined.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    pub deaths: u8,
    /// The number of the run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub run: u32,
    /// Begin only when told to, with `hodo farm resume`; nodes and sources can connect before.
    #[arg(long)]
    pub configured: bool,
    /// Threads that share the nodes; more than 1 only for events that are made here.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Events that are made here.
    #[command(flatten)]
    pub made: FarmMade,
    /// Where its pages are: /metrics for Prometheus, /health, /farm, /nodes, and the actions /pause, /resume, /drain,
    /// /stop, /run.
    #[arg(long, value_name = "ADDR", default_value = PAGES, value_parser = units::socket_address)]
    pub metrics: SocketAddr,
    /// No pages.
    #[arg(long, conflicts_with = "metrics")]
    pub no_metrics: bool,
    /// Who may pause, resume, drain and stop it over HTTP.
    #[arg(long, value_name = "WHO", default_value = "local")]
    pub control: FarmControl,
    /// Write the process number here; a second controller with the same file does not start.
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// How long it may take to end what is in hand when the controller is to stop.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::span)]
    pub drain: Duration,
    /// End when every event that was to be made here has its verdict.
    #[arg(long, requires = "events")]
    pub until_done: bool,
    /// How it runs.
    #[command(flatten)]
    pub process: FarmProcess,
}

/// Events that are made, rather than read out.
#[derive(Debug, Clone, Args)]
pub struct FarmMade {
    /// Events to make [default: none at a controller, no end at a source].
    #[arg(long, value_name = "N")]
    pub events: Option<u64>,
    /// Bytes of an event: 32K, uniform:1K..64K, exponential:32K, normal:32K,4K.
    #[arg(long, value_name = "SIZE", default_value = "32000", value_parser = spread::sizes)]
    pub size: Spread,
    /// Events a second [default: as fast as they are taken].
    #[arg(long, value_name = "N", value_parser = units::rate)]
    pub rate: Option<f64>,
    /// Spread the times between events exponentially, as those of a detector are.
    #[arg(long, requires = "rate")]
    pub poisson: bool,
    /// Different events that are kept to be sent again and again.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub different: u32,
    /// Begin each event with its number, so that it can be told from all others.
    #[arg(long)]
    pub numbered: bool,
    /// Of sizes, times and bytes.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Options of a source.
#[derive(Debug, Args)]
#[command(after_help = super::farm_replay::EXAMPLES)]
pub struct FarmSource {
    /// The builder or the controller.
    #[arg(long, value_name = "ADDR", default_value = CONTROLLER, value_parser = units::socket_address)]
    pub to: SocketAddr,
    /// Over UDP, to a builder with --udp.
    #[arg(long)]
    pub udp: bool,
    /// Bytes of a fragment in each datagram, behind 28 of its own and 28 of IPv4.
    #[arg(long, value_name = "BYTES", default_value_t = 1400, requires = "udp", value_parser = clap::value_parser!(u32).range(64..=65_400))]
    pub datagram: u32,
    /// Which source it is.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub number: u32,
    /// The run of its events [default: 1, or as recorded].
    #[arg(long, value_name = "N")]
    pub run: Option<u32>,
    /// The first event's number.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first: u64,
    /// From one event's number to the next: the number of sources that make one run's events between them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub step: u64,
    /// Events that were recorded.
    #[command(flatten)]
    pub recorded: FarmRecorded,
    /// What it makes.
    #[command(flatten)]
    pub made: FarmMade,
    /// How long it waits for the verdicts of what it gave when it is to stop, by SIGTERM or Ctrl-C.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::span)]
    pub drain: Duration,
    /// How it runs.
    #[command(flatten)]
    pub process: FarmProcess,
}

/// Options of a node.
#[derive(Debug, Args)]
#[command(after_help = NODE_EXAMPLES)]
pub struct FarmNode {
    /// The controller.
    #[arg(long, value_name = "ADDR", default_value = CONTROLLER, value_parser = units::socket_address)]
    pub to: SocketAddr,
    /// Nodes in this process.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub count: u32,
    /// The number of the first of them; the others count up.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub number: u32,
    /// Events that each takes at once [default: 2, or 2 for each of the workers].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub credits: Option<u32>,
    /// Count events, let them go, and send no tokens: for a controller that measures what tokens cost.
    #[arg(long, hide = true, conflicts_with_all = EMULATOR)]
    pub no_tokens: bool,
    /// Its share beside other nodes, where the controller goes by weights.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub weight: u32,
    /// The largest event.
    #[arg(long, value_name = "BYTES", default_value = "16M", value_parser = units::bytes)]
    pub event_max: u64,
    /// Accept this part of all events, or every:200.
    #[arg(long, value_name = "PART", default_value = "0.005", value_parser = spread::accept)]
    pub accept: Accept,
    /// Bytes that are stored of an accepted event [default: the event itself].
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    pub output: Option<u64>,
    /// How long a decision takes: 1ms, uniform:1ms..5ms, exponential:1ms, normal:1ms,100us.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = spread::times)]
    pub time: Spread,
    /// Of the times, and of the events that are accepted.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How long it may take to answer what is here when it is to stop.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::span)]
    pub drain: Duration,
    /// Who decides instead.
    #[command(flatten)]
    pub deciders: FarmDeciders,
    /// How it runs.
    #[command(flatten)]
    pub process: FarmProcess,
}

/// The program that decides in place of the emulator.
#[derive(Debug, Args)]
pub struct FarmDeciders {
    /// A program that decides on one event after the other, over its standard input and output; all that follows is its.
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true, conflicts_with_all = EMULATOR)]
    pub command: Option<Vec<OsString>>,
    /// A program that is run for each event, which is its standard input: exit status 0 accepts, 1 rejects, any other is a
    /// failure; what it prints is stored in place of the event. All that follows is its.
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true, conflicts_with_all = EMULATOR, conflicts_with = "command")]
    pub exec: Option<Vec<OsString>>,
    /// Processes that decide at the same time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub workers: u16,
    /// A decision that takes longer has failed, and its process is killed.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = units::span)]
    pub decide_within: Duration,
}

/// What only an emulator takes.
const EMULATOR: [&str; 4] = ["accept", "output", "time", "seed"];

const CONTROLLER_EXAMPLES: &str = "\
Examples:
  hodo farm controller --store /data/run7 --run 7
  hodo farm controller --events 1000000 --until-done --no-metrics    events made here, for trying a farm out";

const NODE_EXAMPLES: &str = "\
Examples:
  hodo farm node --to controller:5500 --credits 2
  hodo farm node --count 20 --time exponential:1ms --accept 0.01      twenty nodes that are emulated
  hodo farm node --workers 8 --command python3 decide.py              eight processes that decide
  hodo farm node --exec ./decide                                      a process for each event";
