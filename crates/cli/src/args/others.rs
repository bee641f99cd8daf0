use super::Traced;
use super::sizes::Sizes;
use super::units::Cpus;
use super::{Logged, Progress, units};
use clap::{Args, ValueEnum};
use hodo_catalog::Uri;
use hodo_machine::Wait;
use std::path::PathBuf;
use std::time::Duration;

/// Stands under `hodo serve --help`.
const OTHERS: &str = "\
An IPbus device in software, for other programs: ipbusudp-2.0, ipbustcp-2.0, ipbusudp-1.3 or ipbustcp-1.3, as
  hodo serve ipbusudp-2.0://127.0.0.1:50001
  hodo serve 'ipbusudp-2.0://127.0.0.1:50001?table=board.xml&loss=0.01&seed=3'

  table=FILE                its registers, from an address table
  others=memory             what is at the other addresses: memory, error or timeout
  boards=8                  so many, on as many ports from that of the URI on
  buffers=16                replies that are kept, and packets in flight
  buffer_bytes=2040         bytes of a packet; memory=64M of all that is written
  configuration=0xA,0xB     the words of the configuration space
  loss, duplicate, reorder  probabilities; out.… for requests and back.… for replies alone
  delay, jitter, partition  times, likewise
  bus_error=0x10-0x1F       addresses where the bus fails; bus_timeout likewise
  wrong_id=0.01             replies with another number
  reboot=1s,2s              times, or a probability for each packet; reboot_memory=keep|clear
  seed=3                    for all that is drawn at random

The nodes of a farm, for `hodo bench farm://…` from elsewhere, as
  hodo serve 'farm://0.0.0.0:5502?accept=0.005&output=64K'

  accept=0.005              this part of all events, or every:200
  output=64K                bytes behind the token of an accepted event
  time=exponential:1ms      how long a decision takes";

/// Options of the demonstration.
#[derive(Debug, Args)]
pub struct Demo {
    /// The folder of the results [default: results, and in it one named by the UTC time].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How the run is followed on the terminal.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub progress: Progress,
}

/// Options of the far end.
#[derive(Debug, Args)]
#[command(after_help = OTHERS)]
pub struct Serve {
    /// Where to listen, as tcp://0.0.0.0:4242 or unix:///path/of/socket; without a port on 4242, a device's
    /// 50001, or 5502 for the nodes of a farm.
    /// By a protocol's name alone, on any free port of loopback, or on a Unix socket in a folder of its own.
    #[arg(value_name = "URI", value_parser = hodo_catalog::uri)]
    pub uri: Uri,
    /// Processors to run on, one thread each [default: wherever the kernel puts them].
    #[arg(long, value_name = "LIST", value_parser = units::cpus)]
    pub cpu: Option<Cpus>,
    /// How to wait: block, spin, or spin:50us for spinning that long before blocking.
    #[arg(long, value_name = "HOW", default_value = "block", value_parser = units::wait)]
    pub wait: Wait,
    /// Threads that share the peers; 0 is one for each processor.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    pub threads: u16,
    /// TCP congestion control [default: the system's].
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Socket buffers in bytes [default: the system's].
    #[arg(long, value_name = "SIZE", value_parser = units::buffer)]
    pub socket_buffer: Option<usize>,
    /// The largest operation in bytes [default: the protocol's largest].
    #[arg(long, value_name = "SIZE", value_parser = operation_size)]
    pub size_max: Option<u32>,
    /// Peers at once, at most; one more is refused.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub peers_max: u32,
    /// The trace.
    #[command(flatten)]
    pub traced: Traced,
    /// The log.
    #[command(flatten)]
    pub log: Logged,
    /// Come to an end when standard input does, so that the far end never outlives who started it.
    #[arg(long)]
    pub until_stdin_closes: bool,
}

fn operation_size(text: &str) -> Result<u32, String> {
    let size = u32::try_from(units::bytes(text)?).ok().filter(|size| (1..=1 << 30).contains(size));
    size.ok_or_else(|| format!("{text} is not in 1..=1G"))
}

/// Over what the payload goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// Arguments of the calculator.
#[derive(Debug, Args)]
pub struct Limits {
    /// Bits per second on the wire.
    #[arg(long, value_name = "RATE", default_value = "1G", value_parser = units::line_rate)]
    pub line_rate: f64,
    /// Bytes of the largest IP packet.
    #[arg(long, value_name = "N", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(68..=65_535))]
    pub mtu: u32,
    /// Over what the payload goes.
    #[arg(long, value_enum, default_value_t)]
    pub transport: Transport,
    /// Each frame carries a VLAN tag.
    #[arg(long)]
    pub vlan: bool,
    /// IPv6 instead of IPv4.
    #[arg(long)]
    pub ipv6: bool,
    /// TCP without the timestamps option.
    #[arg(long)]
    pub no_timestamps: bool,
    /// Bytes of payload per operation [default: 64,1024,1472,8K,32K; of a farm 32000].
    #[arg(long, value_name = "SIZES")]
    pub sizes: Option<Sizes>,
    /// The events of a farm of so many nodes: each has its header on top, and a token comes back.
    #[arg(long, value_name = "NODES", group = "several", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub farm: Option<u32>,
    /// Bytes behind a farm's tokens, on the average over all of them: each 200th with 64K is 328.
    #[arg(long, value_name = "SIZE", requires = "farm", default_value = "0", value_parser = units::bytes)]
    pub token_data: u64,
    /// Operations in flight, for the bound of window over round-trip; of a farm, the credits of each node.
    #[arg(long, value_name = "N", requires = "rtt", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub window: Option<u32>,
    /// The round-trip, as 100us.
    #[arg(long, value_name = "TIME", requires = "window", value_parser = units::span)]
    pub rtt: Option<Duration>,
    /// Processor time of an operation on the busier side, as 8us.
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    pub cpu_cost: Option<Duration>,
    /// Processors of that side that share the work.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub cores: u32,
    /// How often these copy an operation's bytes, beside that cost.
    #[arg(long, value_name = "N", requires = "copy_rate", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub copies: Option<u32>,
    /// Bits per second that one of them copies, as 100G.
    #[arg(long, value_name = "RATE", requires = "copies", value_parser = units::line_rate)]
    pub copy_rate: Option<f64>,
    /// A PCI bus: width in bits / clock in MHz, as 32/33 or 64/66.
    #[arg(long, value_name = "BITS/MHZ", value_parser = pci)]
    pub pci: Option<(u32, f64)>,
    /// A PCI Express link: generation x lanes, as 3x8.
    #[arg(long, value_name = "GENxLANES", value_parser = pcie)]
    pub pcie: Option<(u8, u8)>,
    /// Senders that share the line.
    #[arg(long, value_name = "N", group = "several", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub flows: Option<u32>,
    /// Bits per second of each sender's own line, before the shared one; of each node's, behind it.
    #[arg(long, value_name = "RATE", requires = "several", value_parser = units::line_rate)]
    pub leaf_rate: Option<f64>,
    /// Write the figures as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

fn pci(text: &str) -> Result<(u32, f64), String> {
    let wrong = || format!("`{text}` is not a PCI bus; write its width and clock as 32/33, 64/66 or 64/133");
    let (bits, megahertz) = text.split_once('/').ok_or_else(wrong)?;
    let bits = bits.parse().ok().filter(|bits| [32, 64].contains(bits)).ok_or_else(wrong)?;
    let megahertz = units::positive(megahertz).ok().filter(|clock| *clock <= 1000.0).ok_or_else(wrong)?;
    Ok((bits, megahertz))
}

fn pcie(text: &str) -> Result<(u8, u8), String> {
    let wrong =
        || format!("`{text}` is not a PCI Express link; write generation and lanes as 3x8 (1..=6, 1 to 32 lanes)");
    let (generation, lanes) = text.split_once('x').ok_or_else(wrong)?;
    let generation = generation.parse().ok().filter(|generation| (1..=6).contains(generation)).ok_or_else(wrong)?;
    let lanes = lanes.parse().ok().filter(|lanes| [1, 2, 4, 8, 12, 16, 32].contains(lanes)).ok_or_else(wrong)?;
    Ok((generation, lanes))
}

/// Results from which outputs are rebuilt.
#[derive(Debug, Args)]
pub struct Report {
    /// Documents that `hodo bench --json` wrote; several are read as one.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Where the results go.
    #[command(flatten)]
    pub output: super::Output,
    /// A table for a README; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// Results to compare.
#[derive(Debug, Args)]
pub struct Compare {
    /// The document that the other is measured by.
    #[arg(value_name = "A")]
    pub before: PathBuf,
    /// The document in question.
    #[arg(value_name = "B")]
    pub after: PathBuf,
    /// Check every ratio B/A: exit status 1 where one is slower for certain and under this, 3 where one cannot tell.
    #[arg(long, value_name = "RATIO", value_parser = units::positive)]
    pub fail_below: Option<f64>,
    /// Write the comparison as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
