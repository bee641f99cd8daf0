//! `hodo pingpong`: the exchange of `ibv_rc_pingpong`, over the software adapter or a real one.

use crate::address::only_here;
use crate::output::Target;
use crate::{Error, Outcome, terminal};
use clap::Args;
use hodo_roce_host::exchange::PORT;
use hodo_roce_host::perftest::{Atomic, Perftest, Row, Test};
use hodo_roce_host::pingpong::{PingPong, Took};
use hodo_roce_host::session::{Backend, Progress, Session, SessionError, listen};
use hodo_roce_host::{AddressOfQueuePair, MemoryKind, Reliability, VerbsSettings, WaitMode};
use serde_json::json;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Flags, defaults, output and the exchange over TCP are those of rdma-core's ibv_rc_pingpong, which can be the other end.
/// With --test, a client of this program measures what perftest does, toward a server of this program.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct PingPongOptions {
    /// The server to connect to, or none to be the server.
    #[arg(value_name = "HOST")]
    host: Option<String>,
    /// TCP port on which the ends tell each other of their queue pairs.
    #[arg(short, long, default_value_t = PORT)]
    port: u16,
    /// Address that a server listens on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    listen: IpAddr,
    /// Bytes of a message.
    #[arg(short, long, value_name = "BYTES", default_value_t = 4096)]
    size: u32,
    /// Path MTU: 256, 512, 1024, 2048 or 4096.
    #[arg(short, long, default_value_t = 1024, value_parser = mtu)]
    mtu: u32,
    /// Receives to post at a time.
    #[arg(short, long, value_name = "COUNT", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    rx_depth: u32,
    /// Number of exchanges.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    iters: u64,
    /// Service level.
    #[arg(short = 'l', long, value_name = "LEVEL", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=15))]
    sl: u8,
    /// Sleep until a completion event, instead of polling.
    #[arg(short, long)]
    events: bool,
    /// Poll for this many microseconds, and then sleep until a completion event.
    #[arg(long, value_name = "US", conflicts_with = "events")]
    spin: Option<u64>,
    /// Report the times between receive completions, in cycles of the adapter, or in nanoseconds of this host without one.
    #[arg(short, long)]
    ts: bool,
    /// Check every byte of every message.
    #[arg(short, long)]
    chk: bool,
    /// Entries that each message is gathered from.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    send_entries: u32,
    /// Entries that each message is scattered to.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    receive_entries: u32,
    /// Send messages of up to this many bytes inline.
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=65_536))]
    inline: u32,
    /// Device: soft is software over UDP, shm is shared memory of this host, verbs is an adapter; by default soft, or verbs if one of --ib-dev to --dm is given.
    #[arg(long, value_name = "KIND")]
    backend: Option<BackendName>,
    /// Adapter (default: the first one).
    #[arg(short = 'd', long, value_name = "NAME")]
    ib_dev: Option<String>,
    /// Port of the adapter.
    #[arg(short = 'i', long, value_name = "PORT", default_value_t = 1)]
    ib_port: u8,
    /// Index of the port's GID; the software adapter has one.
    #[arg(short = 'g', long, value_name = "INDEX")]
    gid_idx: Option<u8>,
    /// Use on-demand paging.
    #[arg(short = 'o', long)]
    odp: bool,
    /// Use implicit on-demand paging.
    #[arg(short = 'O', long, conflicts_with = "odp")]
    iodp: bool,
    /// Prefetch memory that is paged on demand.
    #[arg(short = 'P', long)]
    prefetch: bool,
    /// Use the device's own memory.
    #[arg(short = 'j', long, conflicts_with_all = ["odp", "iodp"])]
    dm: bool,
    /// Post sends as the new interface of verbs does: accepted, and the same here.
    #[arg(short = 'N', long)]
    new_send: bool,
    /// Measure one operation instead: send-lat, send-bw, write-lat, write-bw, read-lat, read-bw, atomic-lat or atomic-bw.
    #[arg(long, value_name = "NAME", value_parser = test, requires = "host")]
    test: Option<Test>,
    /// Sizes to measure, one after the other.
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', requires = "test", conflicts_with_all = ["size", "all"])]
    sizes: Vec<u32>,
    /// Measure every power of two from 2 to 8388608 bytes.
    #[arg(short, long, requires = "test", conflicts_with = "size")]
    all: bool,
    /// Requests outstanding in tests of bandwidth.
    #[arg(long, value_name = "COUNT", default_value_t = 128, requires = "test")]
    tx_depth: u32,
    /// Compare and swap in tests of atomic operations, instead of adding.
    #[arg(long, requires = "test")]
    swap: bool,
    /// Address of this end's adapter; by default the one over which the ends met.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<IpAddr>,
    /// UDP port of both adapters.
    #[arg(long, value_name = "PORT", default_value_t = hodo_roce_host::UDP_PORT)]
    udp_port: u16,
    /// Time out after measured round trips, instead of the fixed time of the standard.
    #[arg(long)]
    measured_timeout: bool,
    /// Try again for this many seconds if nothing listens at HOST yet.
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=3600), requires = "host")]
    connect_within: u64,
    /// Give up if nothing completes within this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Write the result as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The devices that a user can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum BackendName {
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
  hodo pingpong localhost --test write-bw --all  the bandwidth of WRITE, as `ib_write_bw -a` shows it
  hodo pingpong there -d mlx5_0 -g 3            on an adapter";

/// Bytes of an atomic operation.
const ATOMIC: u32 = 8;
/// The sizes of perftest's `-a`, as powers of two.
const ALL: std::ops::RangeInclusive<u32> = 1..=23;

fn test(name: &str) -> Result<Test, String> {
    let known = || Test::ALL.iter().map(|test| test.name()).collect::<Vec<_>>().join(", ");
    Test::named(name).ok_or_else(|| format!("the tests are {}", known()))
}

fn mtu(text: &str) -> Result<u32, String> {
    let known = ["256", "512", "1024", "2048", "4096"];
    text.parse().ok().filter(|_| known.contains(&text)).ok_or_else(|| format!("not one of {}", known.join(", ")))
}

/// Runs one end.
pub fn run(options: &PingPongOptions) -> Result<Outcome, Error> {
    let json = options.json.as_deref().map(|file| Target::prepare("--json", file)).transpose()?;
    let session = session(options)?;
    let is_quiet = json.as_ref().is_some_and(Target::is_stdout);
    let (mut ends, mut rows) = ([None; 2], Vec::new());
    let told = &mut |progress: Progress<'_>| {
        let text = match progress {
            Progress::Local(address) => line("local", address),
            Progress::Remote(address) => line("remote", address),
            Progress::Row(row) => match (rows.is_empty(), row.line()) {
                (true, line) => Row::header(matches!(row, Row::Latency(_))).to_owned() + &line,
                (false, line) => line,
            },
        };
        match progress {
            Progress::Local(address) => ends[0] = Some(*address),
            Progress::Remote(address) => ends[1] = Some(*address),
            Progress::Row(row) => rows.push(*row),
        }
        if !is_quiet {
            // A reader that has gone away is noticed when the result is printed.
            let _ = terminal::print(&text);
        }
    };
    let at = SocketAddr::new(options.listen, options.port);
    let here = only_here(&at, "--listen 0.0.0.0");
    let took = match &options.host {
        Some(host) => session.client(host, options.port, told),
        None => listen(at).map_err(SessionError::from).and_then(|listener| {
            if let Some(said) = here.filter(|_| !is_quiet) {
                terminal::remark(&said);
            }
            session.server(&listener, told)
        }),
    };
    let took = took.map_err(|error| match error {
        SessionError::Usage(why) => Error::Usage(why),
        other => Error::Failed(other.to_string()),
    })?;
    if let (Some(took), false) = (&took, is_quiet) {
        terminal::print(&result(took))?;
    }
    if let Some(json) = json {
        json.write_json(&document(options, &ends, took.as_ref(), &rows))?;
    }
    Ok(Outcome::Done)
}

fn session(options: &PingPongOptions) -> Result<Session, Error> {
    let wait = match (options.events, options.spin) {
        (true, _) => WaitMode::Events,
        (false, Some(us)) => WaitMode::SpinThenBlock(Duration::from_micros(us)),
        (false, None) => WaitMode::Poll,
    };
    let patience = Duration::from_secs(options.timeout);
    Ok(Session {
        backend: backend(options)?,
        perftest: options.test.map(|test| perftest(options, test, wait)),
        parameters: PingPong {
            size: options.size,
            receive_depth: options.rx_depth,
            iterations: options.iters,
            wait,
            send_entries: options.send_entries,
            receive_entries: options.receive_entries,
            inline_bytes: options.inline,
            checks: options.chk,
            stamps: options.ts,
            patience,
        },
        reliability: Reliability { mtu: options.mtu, service_level: options.sl, ..Reliability::default() },
        address: options.address,
        udp_port: options.udp_port,
        measures_timeout: options.measured_timeout,
        patience,
        connect_within: Duration::from_secs(options.connect_within),
    })
}

/// Returns the device that is asked for, by name or by an option that only adapters have.
fn backend(options: &PingPongOptions) -> Result<Backend, Error> {
    let prefetch = options.prefetch;
    let memory = match (options.odp, options.iodp, options.dm) {
        (true, _, _) => MemoryKind::OnDemand { prefetch },
        (_, true, _) => MemoryKind::Implicit { prefetch },
        (_, _, true) => MemoryKind::Device,
        _ if prefetch => {
            return Err(Error::Usage("--prefetch is for memory paged on demand: add --odp or --iodp".into()));
        }
        _ => MemoryKind::Pinned,
    };
    let of_adapters = options.ib_dev.is_some() || options.ib_port != 1 || memory != MemoryKind::Pinned;
    match options.backend {
        Some(BackendName::Soft | BackendName::Shm) if of_adapters => Err(Error::Usage(
            "--ib-dev, --ib-port, --odp, --iodp and --dm are for adapters: leave them out, or add --backend verbs"
                .into(),
        )),
        Some(BackendName::Soft) => Ok(Backend::Soft),
        Some(BackendName::Shm) => Ok(Backend::SharedMemory),
        None if !of_adapters => Ok(Backend::Soft),
        Some(BackendName::Verbs) | None => Ok(Backend::Verbs(VerbsSettings {
            device: options.ib_dev.clone(),
            port: options.ib_port,
            gid: options.gid_idx,
            memory,
            has_timestamps: options.ts,
            has_events: options.events || options.spin.is_some() || options.test.is_some(),
            ..VerbsSettings::default()
        })),
    }
}

fn perftest(options: &PingPongOptions, test: Test, wait: WaitMode) -> Perftest {
    let is_atomic = matches!(test, Test::AtomicLatency | Test::AtomicBandwidth);
    let sizes = match (options.all, options.sizes.as_slice()) {
        _ if is_atomic => vec![ATOMIC],
        (true, _) => ALL.map(|power| 1 << power).collect(),
        (false, []) => vec![options.size],
        (false, sizes) => sizes.to_vec(),
    };
    Perftest {
        test,
        atomic: if options.swap { Atomic::CompareSwap } else { Atomic::FetchAdd },
        sizes,
        iterations: options.iters,
        send_depth: options.tx_depth,
        receive_depth: options.rx_depth,
        inline_bytes: options.inline,
        checks: options.chk,
        wait,
        patience: Duration::from_secs(options.timeout),
    }
}

/// Writes an end as `ibv_rc_pingpong` does.
fn line(which: &str, end: &AddressOfQueuePair) -> String {
    let label = format!("{which} address:");
    format!("  {label:<16}LID 0x{:04x}, QPN 0x{:06x}, PSN 0x{:06x}, GID {}\n", end.lid, end.number, end.psn, end.gid)
}

/// Writes the result as `ibv_rc_pingpong` does.
fn result(took: &Took) -> String {
    let (seconds, us) = (took.span.as_secs_f64(), took.span.as_secs_f64() * 1e6);
    let mut text = format!(
        "{} bytes in {seconds:.2} seconds = {:.2} Mbit/sec\n{} iters in {seconds:.2} seconds = {:.2} usec/iter\n",
        took.bytes,
        took.bytes as f64 * 8.0 / us,
        took.iterations,
        us / took.iterations as f64
    );
    if let Some(gaps) = took.gaps.filter(|gaps| gaps.count > 0) {
        let mean = gaps.sum as f64 / gaps.count as f64;
        text += &format!(
            "Max receive completion clock cycles = {}\nMin receive completion clock cycles = {}\n\
             Average receive completion clock cycles = {mean:.6}\n",
            gaps.max, gaps.min
        );
    }
    text
}

fn document(
    options: &PingPongOptions,
    [local, remote]: &[Option<AddressOfQueuePair>; 2],
    took: Option<&Took>,
    rows: &[Row],
) -> serde_json::Value {
    let end = |end: &AddressOfQueuePair| json!({ "lid": end.lid, "qpn": end.number, "psn": end.psn, "gid": end.gid.to_string() });
    let mut document = json!({
        "test": options.test.map_or("rc_pingpong", Test::name),
        "side": if options.host.is_some() { "client" } else { "server" },
        "mtu": options.mtu,
        "rx_depth": options.rx_depth,
        "local": local.as_ref().map(end),
        "remote": remote.as_ref().map(end),
    });
    let mut add = |name: &str, value| document[name] = value;
    if let Some(took) = took {
        let us = took.span.as_secs_f64() * 1e6;
        add("size", json!(took.bytes / took.iterations.max(1) / 2));
        add("iterations", json!(took.iterations));
        add("bytes", json!(took.bytes));
        add("seconds", json!(took.span.as_secs_f64()));
        add("mbit_per_s", json!(took.bytes as f64 * 8.0 / us));
        add("us_per_iteration", json!(us / took.iterations as f64));
        let gaps = took.gaps.map(|gaps| json!({ "min": gaps.min, "max": gaps.max, "count": gaps.count }));
        add("receive_gap", json!(gaps));
    }
    if !rows.is_empty() {
        add("tx_depth", json!(options.tx_depth));
        add("rows", rows.iter().map(row).collect());
    }
    document
}

fn row(row: &Row) -> serde_json::Value {
    match row {
        Row::Latency(row) => json!({
            "size": row.size, "iterations": row.iterations, "min_us": row.min, "max_us": row.max, "typical_us": row.typical,
            "mean_us": row.mean, "deviation_us": row.deviation, "p99_us": row.p99, "p999_us": row.p999,
        }),
        Row::Bandwidth(row) => json!({
            "size": row.size, "iterations": row.iterations, "peak_mib_per_s": row.peak, "mib_per_s": row.average,
            "messages_per_s": row.rate * 1e6,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_roce_host::Gid;

    /// Compares with what `ibv_rc_pingpong` 44 prints.
    #[test]
    fn ends_and_results_look_as_stock_ones_do() {
        let end = AddressOfQueuePair { lid: 0, number: 0x11, psn: 0xF9_46CF, gid: Gid::of([10, 9, 0, 1].into()) };
        assert_eq!(
            line("local", &end),
            "  local address:  LID 0x0000, QPN 0x000011, PSN 0xf946cf, GID ::ffff:10.9.0.1\n"
        );
        assert_eq!(
            line("remote", &end),
            "  remote address: LID 0x0000, QPN 0x000011, PSN 0xf946cf, GID ::ffff:10.9.0.1\n"
        );
        let took = Took { iterations: 1000, bytes: 8_192_000, span: Duration::from_millis(10), gaps: None };
        let text = "8192000 bytes in 0.01 seconds = 6553.60 Mbit/sec\n1000 iters in 0.01 seconds = 10.00 usec/iter\n";
        assert_eq!(result(&took), text);
    }
}
