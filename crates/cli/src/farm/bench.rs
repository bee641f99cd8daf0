//! `hodo farm bench`: how fast is a farm on this machine?

use super::controller::FarmPolicy;
use crate::bench::{Follow, OutputOptions, Progress, Recorder};
use crate::{Error, Outcome, interrupt, terminal, version};
use clap::{Args, ValueEnum};
use hodo_farm_link::bench::{BenchSettings, Preset, measure, shapes};
use hodo_machine::Wait;
use hodo_measure::Until;
use hodo_measure::units::{self, Cpus};
use hodo_tester::Observer;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Measures a farm whose nodes are started here.
pub fn run(options: &BenchOptions) -> Result<Outcome, Error> {
    hodo_tester::check_congestion(options.congestion.as_deref())?;
    let settings = settings(options);
    let shapes = shapes(&settings)?;
    let outputs = options.output.prepare()?;
    let stdout_is_taken = outputs.take_stdout();
    let stop = interrupt::flag()?;
    let mut document = hodo_tester::document(version::COMMIT, std::env::args().skip(1).collect());
    if options.congestion.is_some() {
        document.environment.congestion_control.clone_from(&options.congestion);
    }
    hodo_tester::environment::add_placement(&mut document.environment, &shapes[0].placement());
    let progress = Progress::new(Follow::Plain, true, shapes.len());
    let recorder = Recorder::new(&progress, outputs, &stop);
    let mut rest = String::new();
    for shape in &shapes {
        let (found, text) = measure(&settings, shape, &stop)?;
        document.measurements.push(found);
        recorder.added(&document);
        rest = text;
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    if !options.quiet {
        let table = hodo_report::table(&document.measurements, terminal::style(stdout_is_taken));
        let rest = if shapes.len() == 1 { format!("\n{rest}") } else { String::new() };
        terminal::tell(&format!("\n{table}{rest}"), stdout_is_taken)?;
    }
    recorder.finish(&document)
}

fn settings(options: &BenchOptions) -> BenchSettings {
    BenchSettings {
        preset: options.preset.map(Preset::from),
        nodes: options.nodes.clone(),
        credits: options.credits,
        size: options.size,
        pool: options.pool,
        every: options.every,
        token_data: options.token_data,
        time: options.time.clone(),
        until: options.events.map_or(Until::Elapsed(Duration::from_secs_f64(options.seconds.max(0.1))), Until::Count),
        rate: options.rate,
        memory: options.memory,
        threads: options.threads.map(usize::from),
        policy: options.policy.into(),
        ahead: options.ahead,
        cpus: options.cpu.as_ref().map_or_else(Vec::new, |Cpus(cpus)| cpus.clone()),
        wait: options.wait,
        congestion: options.congestion.clone(),
        socket_buffer: options.socket_buffer,
    }
}

impl From<PresetName> for Preset {
    fn from(name: PresetName) -> Preset {
        match name {
            PresetName::LhcbV1 => Preset::LhcbV1,
            PresetName::LhcbV2 => Preset::LhcbV2,
            PresetName::LhcbV3 => Preset::LhcbV3,
        }
    }
}

/// The controllers of the published study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PresetName {
    /// Version 1 of the study: a generator in its own process sends as fast as it can into a queue that is bounded by
    /// --memory only; otherwise as version 2.
    LhcbV1,
    /// Version 2 of the study: events of 32,000 + 12 bytes, tokens of 28 bytes, every 200th with 64 KB, tokens
    /// strictly in order, one credit.
    LhcbV2,
    /// Version 3 of the study: the same events without tokens. Each node gets as many as its connection accepts; the
    /// nodes report their counts at the end.
    LhcbV3,
}

/// Measure how fast a farm is on this machine. Each node is started here in its own process.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct BenchOptions {
    /// A farm of the published study; other options override it.
    #[arg(long, value_name = "NAME")]
    pub preset: Option<PresetName>,
    /// Number of nodes; those of a list such as 1,2,5,10 are measured one after the other.
    #[arg(long, value_name = "N", default_value = "20", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub nodes: Vec<u32>,
    /// Largest number of events that a node may have [default: 2, or the preset's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub credits: Option<u32>,
    /// Bytes of an event [default: 32768, or the preset's].
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    pub size: Option<u64>,
    /// Number of different events, which are sent over and over.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub pool: u32,
    /// Accept every n-th event.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub every: u64,
    /// Bytes after the token of an accepted event.
    #[arg(long, value_name = "BYTES", default_value = "64K", value_parser = units::bytes)]
    pub token_data: u64,
    /// Duration of a decision, as for `hodo farm node --time`.
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub time: String,
    /// Stop after this many events [default: after --seconds].
    #[arg(long, value_name = "N", value_parser = count)]
    pub events: Option<u64>,
    /// For lhcb-v1: events per second that the generator sends [default: as many as possible].
    #[arg(long, value_name = "N", value_parser = units::rate)]
    pub rate: Option<f64>,
    /// For lhcb-v1: stop when the queued events take this much memory.
    #[arg(long, value_name = "BYTES", default_value = "4G", value_parser = units::bytes)]
    pub memory: u64,
    /// Seconds of counted time.
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    pub seconds: f64,
    /// Threads of the controller, which share its nodes; with 2 or more, each thread has its own processor and shares
    /// it with its nodes [default: 2 if there are 2 processors, or the preset's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// How to choose the node of the next event.
    #[arg(long, value_name = "POLICY", default_value = "token-fifo")]
    pub policy: FarmPolicy,
    /// How many events a node may be ahead of an equally fast one; 0 takes tokens strictly in order [default: 64, or
    /// the preset's].
    #[arg(long, value_name = "N")]
    pub ahead: Option<u64>,
    /// Processors to use [default: all].
    #[arg(long, value_name = "LIST", value_parser = units::cpus)]
    pub cpu: Option<Cpus>,
    /// How both sides wait.
    #[arg(long, value_name = "HOW", default_value = "adaptive", value_parser = units::wait)]
    pub wait: Wait,
    /// TCP congestion control [default: the system's].
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Size of each socket's send and receive buffer [default: the system's].
    #[arg(long, value_name = "BYTES", value_parser = units::buffer)]
    pub socket_buffer: Option<usize>,
    /// Print no table.
    #[arg(long)]
    pub quiet: bool,
    /// Where the results go.
    #[command(flatten)]
    pub output: OutputOptions,
}

/// Parses a count: 2000000, 2M, 200k.
fn count(text: &str) -> Result<u64, String> {
    let (digits, scale) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1000),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1_000_000)),
    };
    let wrong = || format!("`{text}` is not a count; write 2000000, 2M or 200k");
    digits.parse::<u64>().map_err(|_| wrong())?.checked_mul(scale).filter(|count| *count > 0).ok_or_else(wrong)
}

const EXAMPLES: &str = "\
Examples:
  hodo farm bench                                             twenty nodes on this machine
  hodo farm bench --preset lhcb-v2 --nodes 20 --events 2M     the published study's second version
  hodo farm bench --preset lhcb-v1 --seconds 60               its first one, whose queue grows until --memory
  hodo farm bench --preset lhcb-v3                            its third one, without tokens
  hodo farm bench --credits 8 --seconds 20 --html farm.html";
