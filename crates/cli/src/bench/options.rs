use super::netperf::after_help;
use super::{Follow, OutputOptions, Progress, SloOptions, StreamOptions, plan};
use crate::Error;
use crate::link::LinkParser;
use crate::realtime::RealtimeOptions;
use crate::sockets::SocketOptions;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, value_parser};
use hodo_catalog::Uri;
use hodo_io::{LocalAddress, PathOptions};
use hodo_machine::Wait;
use hodo_measure::units::{self, Cpus};
use hodo_measure::{Mode, Requirement, Sizes, Test};
use hodo_tester::{Conditions, Content};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Measures a link: rates, latencies, their limit, and what they cost.
#[derive(Debug, Args)]
#[command(after_long_help = after_help())]
pub struct BenchOptions {
    /// A URI such as tcp://host:4242, or the name of a protocol, as tcp: the far end is then started on this host; it has a process of its own,
    /// which is stopped at the end; 'sim+udp://?delay=5us&loss=0.01' is a simulated link. All schemes are listed below.
    #[arg(value_name = "LINK", value_parser = LinkParser, hide_possible_values = true)]
    pub link: Uri,
    /// The measurement.
    #[command(flatten)]
    pub choice: TestOptions,
    /// The search for the highest rate.
    #[command(flatten)]
    pub slo: SloOptions,
    /// How it is measured.
    #[command(flatten)]
    pub measure: MeasuringOptions,
    /// Where the results go.
    #[command(flatten)]
    pub output: OutputOptions,
    /// How the run is followed.
    #[command(flatten)]
    pub follow: FollowOptions,
    /// How programs follow it.
    #[command(flatten)]
    pub stream: StreamOptions,
}

/// The measurement.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Test")]
pub struct TestOptions {
    /// Kind of test. rate: as many operations as the window allows; latency: one at a time; random: sizes drawn between a rising
    /// minimum and a maximum; channels: the rate over many channels; open: operations on a schedule, however fast the
    /// link is; updates: what the far end sends to a subscription on each channel [default: the protocol's standard
    /// suite].
    #[arg(long, value_name = "TEST", value_parser = test())]
    pub test: Option<Test>,
    /// A published study to repeat, shown with the figures that were published: one of those that `hodo bench --help` lists.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["test", "rate"])]
    pub preset: Option<String>,
    /// Direction of the payload: both (out and back), send or receive [default: both, or the only one that the
    /// protocol has; in the suite, that of each test].
    #[arg(long, value_name = "MODE", value_parser = mode())]
    pub mode: Option<Mode>,
    /// Bytes of payload per operation, as 64,1024,32K; 1..1M*2 and 60..1020+60 are ranges; K, M and G are powers of 1024 [default: the
    /// protocol's].
    #[arg(long, value_name = "SIZES", allow_negative_numbers = true)]
    pub sizes: Option<Sizes>,
    /// Operations in flight per channel; those of a list such as 1,2,4,8,16 are measured one after the other; of the updates test, updates that
    /// may wait at the far end. none: datagrams are sent without waiting for any, and what was sent stands beside
    /// what arrived [default: the protocol's; 1 for latency].
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = Window::parse, allow_negative_numbers = true)]
    pub window: Vec<Window>,
    /// Number of channels [default: one per device in the URI; for --test channels, the protocol's].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32), allow_negative_numbers = true)]
    pub channels: Option<u32>,
    /// Operations per packet, if the protocol can combine them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=65_535), allow_negative_numbers = true)]
    pub batch: u32,
    /// Fill the windows of all channels, wait for all answers, and begin again, instead of replacing each operation at once. One thread
    /// drives all channels then.
    #[arg(long, conflicts_with = "preset")]
    pub rounds: bool,
    /// Operations (open test) or updates per second, as 10K; those of all channels together; latency counts from when
    /// each was due [default: updates as fast as the far end can send them].
    #[arg(long, value_name = "RATE", value_parser = units::rate, allow_negative_numbers = true)]
    pub rate: Option<f64>,
    /// Exit with status 1 unless every row meets these: a share of --rate as 0.99, p99<1ms (or mean, p50, p90, p99.9, max),
    /// stall<50ms, lost=0.
    #[arg(long, value_name = "CONDITION,…", value_delimiter = ',', value_parser = Requirement::parse)]
    pub require: Vec<Requirement>,
    /// The most payload bits per second of the rate, random and channels tests, such as 900M: operations start in even gaps, and TCP
    /// spaces their packets, too.
    #[arg(long, value_name = "RATE", value_parser = units::line_rate, allow_negative_numbers = true)]
    pub pace: Option<f64>,
    /// Both directions at once, as independent traffic over connections of their own: a row for each.
    #[arg(long, conflicts_with_all = ["mode", "preset"])]
    pub bidir: bool,
    /// Measure each row twice: alone, and beside the rate test over this link, which has a row, too. Its far end is that of the row where
    /// the two are the same.
    #[arg(long, value_name = "LINK", value_parser = LinkParser, hide_possible_values = true, conflicts_with_all = ["bidir", "preset"])]
    pub under: Option<Uri>,
    /// Open a new connection for each operation (TCP_CRR).
    #[arg(long)]
    pub reconnect: bool,
    /// End each payload of a raw link with a checksum, which the side that receives it looks at: the row fails if one is not as it was
    /// sent.
    #[arg(long)]
    pub check: bool,
    /// File whose bytes the operations of a raw link carry, one after the other and again from the beginning; at most 256 MiB. A far
    /// end that runs elsewhere has a --payload of its own.
    #[arg(long, value_name = "FILE")]
    pub payload: Option<PathBuf>,
}

/// How it is measured.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Measuring")]
pub struct MeasuringOptions {
    /// Length of one repeat; a bare number is in seconds [default: 500ms, or 100ms for a simulated link].
    #[arg(short = 't', long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true, conflicts_with = "count")]
    pub duration: Option<Duration>,
    /// Number of operations in one repeat, instead of a duration.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1_000_000_000_000), allow_negative_numbers = true)]
    pub count: Option<u64>,
    /// Time before counting starts [default: 200ms, or 20ms for a simulated link].
    #[arg(long, value_name = "TIME", value_parser = units::warmup, allow_hyphen_values = true)]
    pub warmup: Option<Duration>,
    /// Number of repeats; with 6 or more, the median has a 95 % confidence interval.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = value_parser!(u32).range(1..=1000), allow_negative_numbers = true,
          conflicts_with_all = ["confidence", "interval", "max_repeats"])]
    pub repeat: u32,
    /// Repeat until the confidence interval of this level, in percent, is narrow enough [default with --interval: 95].
    #[arg(long, value_name = "PERCENT", value_parser = units::percent, allow_negative_numbers = true)]
    pub confidence: Option<f64>,
    /// Width at which the interval is narrow enough, as a share of the median [default with --confidence: 5%].
    #[arg(long, value_name = "PERCENT", value_parser = units::percent, allow_negative_numbers = true)]
    pub interval: Option<f64>,
    /// Stop after this many repeats even if the interval is still too wide.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = value_parser!(u32).range(2..=1000), allow_negative_numbers = true)]
    pub max_repeats: u32,
    /// How both sides wait: adaptive, block, spin, or spin:50us to spin that long and then block.
    #[arg(long, value_name = "HOW", default_value = "adaptive", value_parser = units::wait)]
    pub wait: Wait,
    /// The scheduling class.
    #[command(flatten)]
    pub realtime: RealtimeOptions,
    /// Where and under which settings it runs.
    #[command(flatten)]
    pub conditions: ConditionOptions,
    /// Measure where the time of an operation goes, stage by stage. This reads the clock at both ends, twice for each
    /// system call that sends, and the times include that.
    #[arg(long)]
    pub stages: bool,
    /// Address of the pages of the hub that the link passes, for its stages [default: port 9203 of the hub].
    #[arg(long, value_name = "ADDR", requires = "stages", value_parser = units::pages)]
    pub hub_pages: Option<SocketAddr>,
    /// Seed of everything that is drawn at random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How long to wait for a connection or a reply before the far end counts as lost.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::duration, allow_hyphen_values = true)]
    pub timeout: Duration,
}

/// How a run is followed.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Results")]
pub struct FollowOptions {
    /// Print nothing on the terminal except errors.
    #[arg(long, conflicts_with = "progress")]
    pub quiet: bool,
    /// How to show progress on the terminal.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub progress: Follow,
}

impl FollowOptions {
    /// Creates the progress of this many steps.
    pub fn progress(&self, steps: usize) -> Progress {
        Progress::new(self.progress, self.quiet, steps)
    }
}

/// Where and under which settings a link is measured.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Measuring")]
pub struct ConditionOptions {
    /// Processors, as 0,1 or 0-3. With one channel, this side runs on the first, and a far end started here on the
    /// last. With many channels, both sides run a thread on each [default: all if the far end is started here,
    /// otherwise none].
    #[arg(long, value_name = "LIST", value_parser = units::cpus)]
    pub cpu: Option<Cpus>,
    /// TCP congestion control [default: the system's].
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Size of the socket buffers in bytes [default: the system's].
    #[arg(long, value_name = "SIZE", value_parser = units::buffer, allow_negative_numbers = true)]
    pub socket_buffer: Option<usize>,
    /// The options of the sockets.
    #[command(flatten)]
    pub sockets: SocketOptions,
    /// Local address of the link's sockets, as 192.0.2.1 or 192.0.2.1:5000; of many channels each takes the next port [default: as the routes
    /// say].
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = str::parse::<LocalAddress>)]
    pub bind: Option<LocalAddress>,
    /// Bit rate of the line, for the limit: 1G, 2.5G [default: the interface's].
    #[arg(long, value_name = "RATE", value_parser = units::line_rate, allow_negative_numbers = true)]
    pub line_rate: Option<f64>,
    /// Bytes of the largest IP packet on the line, for the limit [default: the interface's].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(68..=65_535), allow_negative_numbers = true)]
    pub mtu: Option<u32>,
}

impl ConditionOptions {
    /// Returns the conditions. A far end that is started is this program in a process of its own.
    ///
    /// # Errors
    /// [`Error::Failed`] if the path of this program cannot be read.
    pub fn conditions(&self) -> Result<Conditions, Error> {
        Ok(Conditions {
            cpus: self.cpu.as_ref().map(|Cpus(cpus)| cpus.clone()),
            congestion: self.congestion.clone(),
            path: self.path(),
            socket_buffer: self.socket_buffer,
            line_rate: self.line_rate,
            mtu: self.mtu,
            pages: None,
            far_end: plan::this_program()?,
            content: Content::default(),
        })
    }

    /// Checks that a link can have these conditions, and be waited for so.
    ///
    /// # Errors
    /// [`Error::Usage`], which names the option.
    pub fn check(&self, link: &Uri, wait: Wait) -> Result<(), Error> {
        Ok(hodo_tester::check_options(link, self.congestion.as_deref(), &self.path(), self.cpu.is_some(), wait)?)
    }

    fn path(&self) -> PathOptions {
        self.sockets.path(self.bind.clone())
    }
}

/// Parses the name of a test.
pub fn test() -> impl TypedValueParser<Value = Test> {
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

/// Parses a direction.
pub fn mode() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(["both", "send", "receive"]).map(|name| match name.as_str() {
        "send" => Mode::Send,
        "receive" => Mode::Receive,
        _ => Mode::Both,
    })
}

/// Operations in flight per channel, or no bound on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window(pub Option<u32>);

impl Window {
    /// Reads `none`, or a number.
    ///
    /// # Errors
    /// A sentence that says what to write instead.
    fn parse(text: &str) -> Result<Window, String> {
        match text.parse() {
            Ok(number @ 1..=1_048_576) => Ok(Window(Some(number))),
            Ok(number) => Err(format!("{number} is not in 1..=1048576")),
            Err(_) if text == "none" => Ok(Window(None)),
            Err(_) => Err(format!("`{text}` is not a window; write a number of operations in 1..=1048576, or none")),
        }
    }
}
