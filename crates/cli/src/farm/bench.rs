//! `hodo farm bench`: how fast is a farm on this machine?

use super::controller::FarmPolicy;
use crate::bench::{Follow, OutputOptions, Progress, Recorder};
use crate::{Error, Outcome, interrupt, terminal};
use clap::{Args, ValueEnum};
use hodo_farm_host::bench::{BenchSettings, Preset, measure, shapes};
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
    let mut document = hodo_tester::document(option_env!("HODO_COMMIT"), std::env::args().skip(1).collect());
    if options.congestion.is_some() {
        document.environment.congestion_control.clone_from(&options.congestion);
    }
    hodo_tester::environment::add_placement(&mut document.environment, &shapes[0].placement());
    let progress = Progress::new(Follow::Plain, true, shapes.len());
    let recorder = Recorder::new(&progress, outputs);
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

/// The published study's controllers, to be measured again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PresetName {
    /// Version 1 of the study: a generator in a process of its own gives as fast as it can, into a queue of events that has
    /// no bound but --memory; else as version 2.
    LhcbV1,
    /// Version 2 of the study: events of 32,000 + 12 bytes, tokens of 28, each 200th with 64 KB, tokens strictly in their
    /// order, one credit.
    LhcbV2,
    /// Version 3 of the study: the same events and no tokens. What a node's connection takes it gets; counted is what the
    /// nodes report at the end.
    LhcbV3,
}

/// How fast is a farm on this machine? Its nodes are started here, each a process of its own.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchOptions {
    /// A farm of the published study; what is given beside it goes before it.
    #[arg(long, value_name = "NAME")]
    pub preset: Option<PresetName>,
    /// Nodes; of several numbers, 1,2,5,10, each is measured.
    #[arg(long, value_name = "N", default_value = "20", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub nodes: Vec<u32>,
    /// Events that a node may have at once [default: 2, or the preset's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub credits: Option<u32>,
    /// Bytes of an event [default: 32768, or the preset's].
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    pub size: Option<u64>,
    /// Different events that are sent again and again.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub pool: u32,
    /// Each so many-th event is accepted.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub every: u64,
    /// Bytes behind the token of an accepted event.
    #[arg(long, value_name = "BYTES", default_value = "64K", value_parser = units::bytes)]
    pub token_data: u64,
    /// How long a decision takes, in the words of `hodo farm node --time`.
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub time: String,
    /// End after so many events [default: after --seconds].
    #[arg(long, value_name = "N", value_parser = count)]
    pub events: Option<u64>,
    /// For lhcb-v1: events per second that the generator sends [default: as fast as they are taken].
    #[arg(long, value_name = "N", value_parser = units::rate)]
    pub rate: Option<f64>,
    /// For lhcb-v1: end when the waiting events take this much memory.
    #[arg(long, value_name = "BYTES", default_value = "4G", value_parser = units::bytes)]
    pub memory: u64,
    /// Counted time.
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    pub seconds: f64,
    /// Threads of the controller, each with its part of the nodes; with 2 and more each is on a processor, with its nodes
    /// [default: 2 where there are 2 processors, or the preset's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// How the node of the next event is chosen.
    #[arg(long, value_name = "POLICY", default_value = "token-fifo")]
    pub policy: FarmPolicy,
    /// How many events a node may be ahead of an equally fast one; 0: tokens strictly in their order [default: 64, or
    /// the preset's].
    #[arg(long, value_name = "N")]
    pub ahead: Option<u64>,
    /// Processors to use [default: all].
    #[arg(long, value_name = "LIST", value_parser = units::cpus)]
    pub cpu: Option<Cpus>,
    /// How both sides wait.
    #[arg(long, value_name = "HOW", default_value = "block", value_parser = units::wait)]
    pub wait: Wait,
    /// TCP congestion control [default: the system's].
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Send and receive buffer of each socket [default: the system's].
    #[arg(long, value_name = "BYTES", value_parser = units::buffer)]
    pub socket_buffer: Option<usize>,
    /// No table.
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
    let wrong = || format!("`{text}` is no count: take 2000000, 2M or 200k");
    digits.parse::<u64>().map_err(|_| wrong())?.checked_mul(scale).filter(|count| *count > 0).ok_or_else(wrong)
}

const EXAMPLES: &str = "\
Examples:
  hodo farm bench                                             twenty nodes on this machine
  hodo farm bench --preset lhcb-v2 --nodes 20 --events 2M     the published study's second version
  hodo farm bench --preset lhcb-v1 --seconds 60               its first one, whose queue grows until --memory
  hodo farm bench --preset lhcb-v3                            its third one, without tokens
  hodo farm bench --credits 8 --seconds 20 --html farm.html";
