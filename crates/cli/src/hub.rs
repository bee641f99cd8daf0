//! `hodo hub`: between IPbus clients over TCP and boards over UDP.

use crate::announce::announce;
use crate::logging::LogOptions;
use crate::trace::{self, TraceOptions};
use crate::{Error, Outcome, terminal};
use clap::{Args, Subcommand};
use hodo_daemon::{HEALTH, Options};
use hodo_ipbus_host::daemon::{HubDaemon, HubSettings, page, stop};
use hodo_machine::Wait;
use hodo_measure::units;
use std::net::SocketAddr;
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
                Some(pid) => format!("process {pid} has ended\n"),
                None => format!("no hub is running: nobody holds {}\n", options.pid_file.display()),
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
    let hub = HubDaemon::start(HubSettings {
        listen: options.listen,
        allow: options.allow.clone(),
        daemon: Options {
            http: (!options.no_metrics).then_some(options.metrics),
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
    announce(hub.daemon(), hub.address(), options.until_stdin_closes);
    hub.run()?;
    Ok(Outcome::Done)
}

/// Where a hub's pages are by default.
const PAGES: &str = "127.0.0.1:9203";

/// The hub between IPbus clients and boards.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
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
    /// Show traffic between its clients and boards, losses, and boards that do not answer.
    Stats(HubPages),
    /// Whether it serves: says so, or ends with status 1 and why not.
    Status(HubPages),
    /// Ask it to end, and wait until it has answered what is under way.
    Stop(HubStop),
}

/// Options of a hub.
#[derive(Debug, Args)]
pub struct HubServe {
    /// Where clients connect; 0.0.0.0:10203 lets everybody in who can reach this host.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:10203", value_parser = units::socket_address)]
    pub listen: SocketAddr,
    /// Boards that clients may reach, a line a.b.c.d or a.b.c.d:port for each; read again at SIGHUP [default: every one].
    #[arg(long, value_name = "FILE")]
    pub allow: Option<PathBuf>,
    /// Where its pages are: /metrics for Prometheus, /health, /stats, /stages.
    #[arg(long, value_name = "ADDR", default_value = PAGES, value_parser = units::socket_address)]
    pub metrics: SocketAddr,
    /// No pages.
    #[arg(long, conflicts_with = "metrics")]
    pub no_metrics: bool,
    /// Write the process number here; a second hub with the same file does not start.
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// How to wait: block, spin, or spin:50us for spinning that long before blocking.
    #[arg(long, value_name = "HOW", default_value = "block", value_parser = units::wait)]
    pub wait: Wait,
    /// The processor to run on [default: wherever the kernel puts it].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<usize>,
    /// Packets in flight to a board at most; a board's buffers bound them too.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub in_flight: u32,
    /// How long a board may be silent before its clients are told.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = units::span)]
    pub patience: Duration,
    /// No answer of a board is late before this; more where the network is known to hiccup.
    #[arg(long, value_name = "TIME", default_value = "200us", value_parser = units::span)]
    pub late: Duration,
    /// Clients at once; one more is refused.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub clients: u32,
    /// Boards at once.
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub boards: u32,
    /// How long it may take to answer what is under way when the hub is to stop.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::span)]
    pub drain: Duration,
    /// The trace.
    #[command(flatten)]
    pub traced: TraceOptions,
    /// Begin the trace only at SIGUSR1, which pauses one that has begun.
    #[arg(long, requires = "trace")]
    pub trace_paused: bool,
    /// Measure where the time of one packet in 64 goes, for /metrics and /stats.
    #[arg(long)]
    pub stages: bool,
    /// The log.
    #[command(flatten)]
    pub log: LogOptions,
    /// Log every client that connects and disconnects, not only errors: --log-level debug.
    #[arg(long)]
    pub verbose: bool,
    /// Come to an end when standard input does, so that the hub never outlives who started it.
    #[arg(long)]
    pub until_stdin_closes: bool,
}

/// Which hub is options.
#[derive(Debug, Args)]
pub struct HubPages {
    /// Where its pages are.
    #[arg(value_name = "ADDR", default_value = PAGES, value_parser = units::pages)]
    pub pages: SocketAddr,
}

/// Which hub is to end.
#[derive(Debug, Args)]
pub struct HubStop {
    /// The file of its process number.
    #[arg(long, value_name = "FILE")]
    pub pid_file: PathBuf,
    /// How long to wait for its end; it takes up to its `--drain`.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::span)]
    pub within: Duration,
}

const EXAMPLES: &str = "\
Examples:
  hodo hub                                     on loopback, for clients of this host
  hodo hub --listen 0.0.0.0:10203 --allow /etc/hodo/boards
  hodo hub --trace hub.pcapng                  with its packets in a file; tshark -r hub.pcapng shows them
  hodo hub stats                               its clients and boards
  hodo hub stop --pid-file /run/hodo-hub.pid   its end, in order";
