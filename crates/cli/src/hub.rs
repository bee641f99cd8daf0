//! `hodo hub`: between IPbus clients over TCP and boards over UDP.

use crate::announce::announce;
use crate::logging::LogOptions;
use crate::realtime::RealtimeOptions;
use crate::trace::{self, TraceOptions};
use crate::{Error, Outcome, address, terminal};
use clap::{Args, Subcommand};
use hodo_daemon::{HEALTH, Options};
use hodo_ipbus_host::daemon::{HubDaemon, HubSettings, PAGES_PORT, page, stop};
use hodo_machine::Wait;
use hodo_measure::units;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// How long a hub may take for a page.
const PATIENCE: Duration = Duration::from_secs(4);

/// Runs the hub until a signal comes, or asks one that runs.
pub fn run(hub: &HubOptions) -> Result<Outcome, Error> {
    match &hub.command {
        None => serve(&hub.serve),
        Some(HubCommand::Stats(pages)) => show(pages, page::PATH),
        Some(HubCommand::Status(pages)) => show(pages, HEALTH),
        Some(HubCommand::Stop(options)) => {
            let said = match stop(&options.pid_file, options.within)? {
                Some(pid) => format!("process {pid} has stopped\n"),
                None => format!("no hub is running: no process holds {}\n", options.pid_file.display()),
            };
            terminal::print(&said)?;
            Ok(Outcome::Done)
        }
    }
}

fn show(pages: &HubPages, path: &str) -> Result<Outcome, Error> {
    terminal::print(&hodo_daemon::fetch(pages.pages, path, PATIENCE)?)?;
    Ok(Outcome::Done)
}

fn serve(options: &HubServe) -> Result<Outcome, Error> {
    options.log.open("hodo hub", options.verbose)?;
    options.realtime.begin_serving(options.wait, 1)?;
    let hub = HubDaemon::start(HubSettings {
        listen: options.listen,
        allow: options.allow.clone(),
        daemon: Options {
            http: (!options.no_metrics).then_some(options.metrics),
            names: options.pages_name.clone(),
            pid_file: options.pid_file.clone(),
            catches_signals: true,
        },
        wait: options.wait,
        cpu: options.cpu,
        clients: options.clients as usize,
        boards: options.boards as usize,
        in_flight: options.in_flight as usize,
        patience: options.patience,
        late: options.late,
        drain: options.drain,
        trace: trace::options(&options.traced, options.trace_paused)?,
        stages: options.stages,
    })?;
    announce(hub.daemon(), &[hub.address()], options.until_stdin_closes, "--listen :PORT")?;
    hub.run()?;
    Ok(Outcome::Done)
}

/// Where a hub's pages are by default.
const PAGES: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PAGES_PORT);

/// The hub between IPbus clients and boards.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = EXAMPLES)]
pub struct HubOptions {
    /// The subcommand; without one, the hub runs.
    #[command(subcommand)]
    pub command: Option<HubCommand>,
    /// How to be a hub.
    #[command(flatten)]
    pub serve: HubServe,
}

/// The queries to a running hub.
#[derive(Debug, Subcommand)]
pub enum HubCommand {
    /// Show its clients, its boards, their traffic and losses.
    Stats(HubPages),
    /// Report whether it serves; if not, the reason and exit status 1.
    Status(HubPages),
    /// Stop it once it has answered pending requests.
    Stop(HubStop),
}

/// Options of a hub.
#[derive(Debug, Args)]
pub struct HubServe {
    /// Address for clients; :10203 admits everybody who can reach this host.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:10203", value_parser = address::listen)]
    pub listen: SocketAddr,
    /// File of the boards that clients may reach [default: all boards]; one a.b.c.d or a.b.c.d:port per line; reread on SIGHUP.
    #[arg(long, value_name = "FILE")]
    pub allow: Option<PathBuf>,
    /// Address of its pages: /metrics for Prometheus, /health, /stats, /stages.
    #[arg(long, value_name = "ADDR", default_value_t = PAGES, value_parser = address::listen)]
    pub metrics: SocketAddr,
    /// Serve no pages.
    #[arg(long, conflicts_with = "metrics")]
    pub no_metrics: bool,
    /// Name that its pages may be asked for, beside this host's name and addresses; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub pages_name: Vec<String>,
    /// Write the process number to this file; a second hub with the same file does not start.
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
    /// Largest number of packets in flight to a board; the board's buffers limit it too.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub in_flight: u32,
    /// How long a board may be silent before its clients get an error.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = units::span)]
    pub patience: Duration,
    /// Shortest time after which a reply counts as late; raise it if the network stalls now and then.
    #[arg(long, value_name = "TIME", default_value = "200us", value_parser = units::span)]
    pub late: Duration,
    /// Largest number of clients; further ones are refused.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub clients: u32,
    /// Largest number of boards.
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub boards: u32,
    /// How long pending requests may take when the hub stops.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::span)]
    pub drain: Duration,
    /// The trace.
    #[command(flatten)]
    pub traced: TraceOptions,
    /// Start with the trace paused; SIGUSR1 resumes and pauses it.
    #[arg(long, requires = "trace")]
    pub trace_paused: bool,
    /// Measure where the time of one packet in 64 goes; /metrics and /stats show it.
    #[arg(long)]
    pub stages: bool,
    /// The log.
    #[command(flatten)]
    pub log: LogOptions,
    /// Log every client that connects or disconnects, like --log-level debug.
    #[arg(long)]
    pub verbose: bool,
    /// Stop when standard input closes, so that the hub never outlives the program that started it.
    #[arg(long)]
    pub until_stdin_closes: bool,
}

/// Which hub is options.
#[derive(Debug, Args)]
pub struct HubPages {
    /// Address of its pages.
    #[arg(value_name = "ADDR", default_value_t = PAGES, value_parser = units::pages)]
    pub pages: SocketAddr,
}

/// Which hub is to end.
#[derive(Debug, Args)]
pub struct HubStop {
    /// The file with its process number.
    #[arg(long, value_name = "FILE")]
    pub pid_file: PathBuf,
    /// How long to wait until it has ended; it may take as long as its --drain.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::span)]
    pub within: Duration,
}

const EXAMPLES: &str = "\
Examples:
  hodo hub                                     on loopback, for clients on this host
  hodo hub --listen :10203 --allow /etc/hodo/boards
  hodo hub --trace hub.pcapng                  record its packets for Wireshark
  hodo hub stats                               show its clients and boards
  hodo hub stop --pid-file /run/hodo-hub.pid   stop it in order";
