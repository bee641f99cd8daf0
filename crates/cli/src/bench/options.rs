use super::netperf::NETPERF;
use super::{Follow, OutputOptions};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, value_parser};
use hodo_catalog::Uri;
use hodo_machine::Wait;
use hodo_measure::units::{self, Cpus};
use hodo_measure::{Mode, Sizes, Test};
use std::net::SocketAddr;
use std::time::Duration;

/// Measures a link: rates, latencies, their limit, and what they cost.
#[derive(Debug, Args)]
#[command(after_help = NETPERF)]
pub struct BenchOptions {
    /// A URI, as tcp://host:4242 or 'sim+udp://?delay=5us&loss=0.01', or a protocol's name: tcp, udp, unix, ipbus,
    /// chtcp-2.0 (IPbus through a hub), farm. By its name alone, the far end is started here, in a process of its own, and
    /// stopped at the end.
    #[arg(value_name = "LINK", value_parser = hodo_catalog::uri)]
    pub link: Uri,
    /// The measurement.
    #[command(flatten)]
    pub choice: TestOptions,
    /// How it is measured.
    #[command(flatten)]
    pub measure: MeasuringOptions,
    /// Where the results go.
    #[command(flatten)]
    pub output: OutputOptions,
    /// Nothing on the terminal but errors.
    #[arg(long, help_heading = "Results", conflicts_with = "progress")]
    pub quiet: bool,
    /// How the run is followed on the terminal.
    #[arg(long, value_enum, default_value_t, value_name = "HOW", help_heading = "Results")]
    pub progress: Follow,
}

/// The measurement.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Test")]
pub struct TestOptions {
    /// rate: as many operations as the window allows; latency: one at a time; random: sizes drawn between a rising
    /// minimum and a maximum; channels: the rate over many channels; open: operations due on a schedule, whatever the
    /// link does; updates: what the far end sends to a subscription on each channel [default: the protocol's standard
    /// suite].
    #[arg(long, value_name = "TEST", value_parser = test())]
    pub test: Option<Test>,
    /// Which way the payload goes: out and back, out, or in [default: both, or the one way
    /// that the protocol has; each of the suite's own].
    #[arg(long, value_name = "MODE", value_parser = mode())]
    pub mode: Option<Mode>,
    /// Bytes of payload per operation: 64,1024,32K or 1..1M*2 or 60..1020+60; K, M, G are 1024 [default: the
    /// protocol's].
    #[arg(long, value_name = "SIZES", allow_negative_numbers = true)]
    pub sizes: Option<Sizes>,
    /// Operations in flight per channel; of updates, those that may wait at the far end. Several, as 1,2,4,8,16, are
    /// measured in turn [default: the protocol's; 1 for latency].
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = value_parser!(u32).range(1..=1_048_576),
          allow_negative_numbers = true)]
    pub window: Vec<u32>,
    /// Channels [default: one for each device that the URI names; for the test of that name the protocol's].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=20_000), allow_negative_numbers = true)]
    pub channels: Option<u32>,
    /// Operations per packet, where the protocol concatenates them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=65_535), allow_negative_numbers = true)]
    pub batch: u32,
    /// Operations or updates per second in all, for the open test and updates: 5000 or 10K; latency counts from the due
    /// time [default: updates as fast as the far end can send].
    #[arg(long, value_name = "RATE", value_parser = units::rate, allow_negative_numbers = true)]
    pub rate: Option<f64>,
    /// Exit with 1 where less than this share of the rate was held, as 0.99; for the open test and updates.
    #[arg(long, value_name = "SHARE", requires = "rate", value_parser = share)]
    pub require: Option<f64>,
    /// Each operation on a connection of its own (TCP_CRR).
    #[arg(long)]
    pub reconnect: bool,
}

/// How it is measured.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Measuring")]
pub struct MeasuringOptions {
    /// Time of one repeat [default: 500ms; of a simulated link 100ms].
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true, conflicts_with = "count")]
    pub duration: Option<Duration>,
    /// Operations of one repeat, instead of a time.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1_000_000_000_000), allow_negative_numbers = true)]
    pub count: Option<u64>,
    /// Time before the counted part [default: 200ms; of a simulated link 20ms].
    #[arg(long, value_name = "TIME", value_parser = units::warmup, allow_hyphen_values = true)]
    pub warmup: Option<Duration>,
    /// Repeats of the counted part; from 6 on, their median has a 95 % confidence interval.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = value_parser!(u32).range(1..=1000), allow_negative_numbers = true,
          conflicts_with_all = ["confidence", "interval", "max_repeats"])]
    pub repeat: u32,
    /// Repeat until the confidence interval of this level, in percent, is narrow enough [default with --interval: 95].
    #[arg(long, value_name = "PERCENT", value_parser = units::percent, allow_negative_numbers = true)]
    pub confidence: Option<f64>,
    /// How narrow: the interval's whole width as a share of the median [default with --confidence: 5%].
    #[arg(long, value_name = "PERCENT", value_parser = units::percent, allow_negative_numbers = true)]
    pub interval: Option<f64>,
    /// Give up narrowing the interval after so many repeats.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = value_parser!(u32).range(2..=1000), allow_negative_numbers = true)]
    pub max_repeats: u32,
    /// How both sides wait: block, spin, or spin:50us for spinning that long before blocking.
    #[arg(long, value_name = "HOW", default_value = "block", value_parser = units::wait)]
    pub wait: Wait,
    /// Processors, as 0,1 or 0-3. One channel: the first is for this side, the last for a far end started here. Many
    /// channels: a thread on each, on both sides [default: all, where the far end is started here; else none].
    #[arg(long, value_name = "LIST", value_parser = units::cpus)]
    pub cpu: Option<Cpus>,
    /// TCP congestion control [default: the system's].
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Socket buffers in bytes [default: the system's].
    #[arg(long, value_name = "SIZE", value_parser = units::buffer, allow_negative_numbers = true)]
    pub socket_buffer: Option<usize>,
    /// Bits per second of the line, for the limit: 1G, 2.5G [default: the interface's].
    #[arg(long, value_name = "RATE", value_parser = units::line_rate, allow_negative_numbers = true)]
    pub line_rate: Option<f64>,
    /// Bytes of the line's largest IP packet, for the limit [default: the interface's].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(68..=65_535), allow_negative_numbers = true)]
    pub mtu: Option<u32>,
    /// Tell where the time of an operation goes, stage by stage. It takes readings of the clock at both ends, two for each
    /// system call that sends, and the times hold them.
    #[arg(long)]
    pub stages: bool,
    /// Where the pages of the hub are that the link goes through, for its stages [default: port 9203 of the hub].
    #[arg(long, value_name = "ADDR", requires = "stages", value_parser = units::pages)]
    pub hub_pages: Option<SocketAddr>,
    /// For everything drawn at random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How long connecting and a single answer may take before the far end counts as lost.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::duration, allow_hyphen_values = true)]
    pub timeout: Duration,
}

fn share(text: &str) -> Result<f64, String> {
    let share = units::positive(text).ok().filter(|share| *share <= 1.0);
    share.ok_or_else(|| format!("`{text}` is not a share above 0 and at most 1; write 0.99"))
}

fn test() -> impl TypedValueParser<Value = Test> {
    PossibleValuesParser::new(["rate", "latency", "random", "channels", "open", "updates"]).map(|name| {
        match name.as_str() {
            "rate" => Test::Rate,
            "latency" => Test::Latency,
            "random" => Test::Random,
            "channels" => Test::Channels,
            "updates" => Test::Updates,
            _ => Test::Open,
        }
    })
}

fn mode() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(["both", "send", "receive"]).map(|name| match name.as_str() {
        "send" => Mode::Send,
        "receive" => Mode::Receive,
        _ => Mode::Both,
    })
}
