//! The command line of `hodo pingpong`: every spelling that `ibv_rc_pingpong` takes, and options of our own.

use clap::Args;
use hodo_roce_host::Reliability;
use hodo_roce_host::exchange::PORT;
use hodo_roce_host::perftest::Test;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Flags, defaults, output and the exchange over TCP are those of rdma-core's ibv_rc_pingpong, which can be the other end.
/// With --test, a client of this program measures what perftest does, toward a server of this program.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct PingPongOptions {
    /// The server to connect to; without it this end is the server.
    #[arg(value_name = "HOST")]
    pub(super) host: Option<String>,
    /// TCP port on which the ends tell each other of their queue pairs.
    #[arg(short, long, aliases = prefixes("port"), default_value_t = PORT, value_parser = within::<u16>(0..=65_535))]
    pub(super) port: u16,
    /// Address that a server listens on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(super) listen: IpAddr,
    /// Bytes of a message.
    #[arg(short, long, aliases = prefixes("size"), value_name = "BYTES", default_value_t = 4096, value_parser = within::<u32>(0..=u32::MAX.into()))]
    pub(super) size: u32,
    /// Path MTU: 256, 512, 1024, 2048 or 4096.
    #[arg(short, long, aliases = prefixes("mtu"), default_value_t = 1024, value_parser = mtu)]
    pub(super) mtu: u32,
    /// Receives to post at a time.
    #[arg(short, long, aliases = prefixes("rx-depth"), value_name = "COUNT", default_value_t = 500, value_parser = within::<u32>(1..=1 << 20))]
    pub(super) rx_depth: u32,
    /// Number of exchanges.
    #[arg(short = 'n', long, aliases = prefixes("iters"), value_name = "COUNT", default_value_t = 1000, value_parser = within::<u64>(0..=u64::MAX.into()))]
    pub(super) iters: u64,
    /// Service level.
    #[arg(short = 'l', long, aliases = prefixes("sl"), value_name = "LEVEL", default_value_t = 0, value_parser = within::<u8>(0..=15))]
    pub(super) sl: u8,
    /// Sleep until a completion event, instead of polling.
    #[arg(short, long, aliases = prefixes("events"))]
    pub(super) events: bool,
    /// Poll for this many microseconds, and then sleep until a completion event.
    #[arg(long, value_name = "US", conflicts_with = "events")]
    pub(super) spin: Option<u64>,
    /// Report the times between receive completions, in cycles of the adapter, or in nanoseconds of this host without one.
    #[arg(short, long, aliases = prefixes("ts"))]
    pub(super) ts: bool,
    /// Check every byte of every message.
    #[arg(short, long, aliases = prefixes("chk"))]
    pub(super) chk: bool,
    /// Entries that each message is gathered from.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) send_entries: u32,
    /// Entries that each message is scattered to.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) receive_entries: u32,
    /// Send messages of up to this many bytes inline.
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=65_536))]
    pub(super) inline: u32,
    /// Device: soft is software over UDP, shm is shared memory of this host, verbs is an adapter; by default soft, or verbs if one of --ib-dev to --dm is given.
    #[arg(long, value_name = "KIND")]
    pub(super) backend: Option<BackendName>,
    /// Adapter (default: the first one).
    #[arg(short = 'd', long, aliases = prefixes("ib-dev"), value_name = "NAME")]
    pub(super) ib_dev: Option<String>,
    /// Port of the adapter.
    #[arg(short = 'i', long, aliases = prefixes("ib-port"), value_name = "PORT", default_value_t = 1, value_parser = within::<u8>(1..=255))]
    pub(super) ib_port: u8,
    /// Index of the port's GID; a negative one chooses the best, as without this option. The software adapter has one.
    #[arg(short = 'g', long, aliases = prefixes("gid-idx"), value_name = "INDEX", allow_hyphen_values = true, value_parser = within::<i32>(i32::MIN.into()..=255))]
    pub(super) gid_idx: Option<i32>,
    /// Use on-demand paging.
    #[arg(short = 'o', long, aliases = prefixes("odp"))]
    pub(super) odp: bool,
    /// Use implicit on-demand paging.
    #[arg(short = 'O', long, aliases = prefixes("iodp"))]
    pub(super) iodp: bool,
    /// Prefetch memory that is paged on demand.
    #[arg(short = 'P', long, aliases = prefixes("prefetch"))]
    pub(super) prefetch: bool,
    /// Use the device's own memory.
    #[arg(short = 'j', long, aliases = prefixes("dm"), conflicts_with_all = ["odp", "iodp"])]
    pub(super) dm: bool,
    /// Post sends as the new interface of verbs does: accepted, and the same here.
    #[arg(short = 'N', long = "new_send", aliases = prefixes("new_send"), alias = "new-send")]
    pub(super) new_send: bool,
    /// Allow memory that the host of a confidential guest can read: accepted, and none is requested here.
    #[arg(short = 'U', long, aliases = prefixes("allow-cc-unprotected"), conflicts_with_all = ["odp", "iodp", "dm"])]
    pub(super) allow_cc_unprotected: bool,
    /// Measure one operation instead: send-lat, send-bw, write-lat, write-bw, read-lat, read-bw, atomic-lat or atomic-bw.
    #[arg(long, value_name = "NAME", value_parser = test, requires = "host")]
    pub(super) test: Option<Test>,
    /// Sizes to measure, one after the other.
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', requires = "test", conflicts_with_all = ["size", "all"])]
    pub(super) sizes: Vec<u32>,
    /// Measure every power of two from 2 to 8388608 bytes.
    #[arg(short, long, requires = "test", conflicts_with = "size")]
    pub(super) all: bool,
    /// Requests outstanding in tests of bandwidth.
    #[arg(long, value_name = "COUNT", default_value_t = 128, requires = "test")]
    pub(super) tx_depth: u32,
    /// Compare and swap in tests of atomic operations, instead of adding.
    #[arg(long, requires = "test")]
    pub(super) swap: bool,
    /// Address of this end's adapter; by default the one over which the ends met.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) address: Option<IpAddr>,
    /// UDP port of both adapters.
    #[arg(long, value_name = "PORT", default_value_t = hodo_roce_host::UDP_PORT)]
    pub(super) udp_port: u16,
    /// Acknowledgement timeout: 4.096 us * 2^CODE, or none for 0.
    #[arg(long, value_name = "CODE", default_value_t = Reliability::default().timeout, value_parser = within::<u8>(0..=31))]
    pub(super) qp_timeout: u8,
    /// Time out after measured round trips, instead of the fixed time of the standard.
    #[arg(long)]
    pub(super) measured_timeout: bool,
    /// Try again for this many seconds if nothing listens at HOST yet.
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=3600), requires = "host")]
    pub(super) connect_within: u64,
    /// Give up if nothing completes within this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) timeout: u64,
    /// Write the result as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
}

/// The devices that a user can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum BackendName {
    Soft,
    Shm,
    Verbs,
}

const EXAMPLES: &str = "\
Examples:
  hodo pingpong                                 a server on this host; then, in another terminal:
  hodo pingpong localhost -s 64 -n 100000
  hodo pingpong --listen 0.0.0.0 --chk          a server for other hosts, as: ibv_rc_pingpong -g 1 there
  hodo pingpong there -s 65536 -m 4096 -e       toward a stock `ibv_rc_pingpong -g 1 -s 65536 -m 4096 -e`
  hodo pingpong localhost --test write-bw --all the bandwidth of WRITE, as `ib_write_bw -a` shows it
  hodo pingpong there -d mlx5_0 -g 3            on an adapter";

/// The long options of `ibv_rc_pingpong`, which getopt takes abbreviated as far as no other one begins so.
const STOCK: [&str; 18] = [
    "port",
    "ib-dev",
    "ib-port",
    "size",
    "mtu",
    "rx-depth",
    "iters",
    "sl",
    "events",
    "gid-idx",
    "odp",
    "iodp",
    "prefetch",
    "ts",
    "chk",
    "dm",
    "new_send",
    "allow-cc-unprotected",
];
/// An option of our own that is an abbreviation of a stock one.
const OWN: &str = "all";

/// Returns the abbreviations of a stock option that mean no other stock option.
fn prefixes(name: &'static str) -> Vec<&'static str> {
    let means_it = |prefix: &&str| {
        let others = STOCK.iter().filter(|other| **other != name && other.starts_with(*prefix));
        others.count() == 0 && *prefix != OWN
    };
    (1..name.len()).map(|length| &name[..length]).filter(means_it).collect()
}

/// Returns a number as `strtol` with base 0 reads it: hexadecimal behind 0x, octal behind 0, decimal otherwise.
fn number(text: &str) -> Option<i128> {
    let trimmed = text.trim_start();
    let (is_negative, digits) = match trimmed.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let (digits, radix) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if digits.len() > 1 && digits.starts_with('0') => (&digits[1..], 8),
        None => (digits, 10),
    };
    // Unlike `strtol`, `from_str_radix` takes a sign here.
    let is_whole = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let value = i128::from_str_radix(digits, radix).ok().filter(|_| is_whole)?;
    Some(if is_negative { -value } else { value })
}

/// Returns a parser of numbers in a range.
fn within<T: TryFrom<i128>>(
    range: RangeInclusive<i128>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let value = number(text).ok_or("not a number: write it as 4096, 0x1000 or 010000")?;
        let refused = || format!("{value} is not in {}..={}", range.start(), range.end());
        T::try_from(value).ok().filter(|_| range.contains(&value)).ok_or_else(refused)
    }
}

fn test(name: &str) -> Result<Test, String> {
    let known = || Test::ALL.iter().map(|test| test.name()).collect::<Vec<_>>().join(", ");
    Test::named(name).ok_or_else(|| format!("the tests are {}", known()))
}

fn mtu(text: &str) -> Result<u32, String> {
    let known = [256, 512, 1024, 2048, 4096];
    let found = known.into_iter().find(|known| number(text) == Some((*known).into()));
    found.ok_or_else(|| format!("not one of {}", known.map(|known| known.to_string()).join(", ")))
}

#[cfg(test)]
mod tests;
