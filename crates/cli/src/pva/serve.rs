//! `hodo pva serve`: the PVs of a file.

use crate::announce::announce;
use crate::logging::LogOptions;
use crate::realtime::RealtimeOptions;
use crate::{Error, Outcome, address, terminal};
use clap::Args;
use hodo_machine::Wait;
use hodo_measure::units;
use hodo_pva_host::serve::{self, ServeDaemon, ServeSettings};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Serves until a signal comes, or checks the file.
pub fn run(options: &ServeOptions) -> Result<Outcome, Error> {
    if options.check {
        let pvs = serve::check(&options.file)?;
        terminal::print(&format!("{}: {pvs} PVs\n", options.file.display()))?;
        return Ok(Outcome::Done);
    }
    options.log.open("hodo pva serve", options.verbose)?;
    options.realtime.begin_serving(options.wait.unwrap_or_default(), 1)?;
    let daemon = ServeDaemon::start(&ServeSettings {
        file: options.file.clone(),
        listen: options.listen,
        is_tcp_only: options.tcp_only,
        metrics: options.metrics,
        has_no_metrics: options.no_metrics,
        pages_names: options.pages_name.clone(),
        pid_file: options.pid_file.clone(),
        wait: options.wait,
        cpu: options.cpu,
        clients: options.clients.map(|clients| clients as usize),
        drain: options.drain,
        is_big_endian: options.big_endian,
    })?;
    announce(daemon.daemon(), &[daemon.address()], options.until_stdin_closes, "--listen :PORT")?;
    daemon.run()?;
    Ok(Outcome::Done)
}

/// Options of a server of PVs.
///
/// SIGHUP has it read the file again; options win over the table `[server]` of the file.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ServeOptions {
    /// File of the PVs; docs/examples/pva.toml explains every key.
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// Check the file and serve nothing.
    #[arg(long)]
    pub check: bool,
    /// Address for clients [default: what EPICS_PVAS_INTF_ADDR_LIST and EPICS_PVAS_SERVER_PORT say, otherwise 127.0.0.1:5075]; :5075 admits
    /// everybody who can reach this host. If nobody has named a port and the default one is in use, another one is taken.
    #[arg(long, value_name = "ADDR", value_parser = address::listen)]
    pub listen: Option<SocketAddr>,
    /// Answer no searches over UDP and send no beacons: clients name this server in EPICS_PVA_NAME_SERVERS.
    #[arg(long)]
    pub tcp_only: bool,
    /// Address of its pages: /metrics for Prometheus, /health, /stats, /puts [default: 127.0.0.1:9205].
    #[arg(long, value_name = "ADDR", value_parser = address::listen)]
    pub metrics: Option<SocketAddr>,
    /// Serve no pages.
    #[arg(long, conflicts_with = "metrics")]
    pub no_metrics: bool,
    /// Name that its pages may be asked for, beside this host's name and addresses; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub pages_name: Vec<String>,
    /// Write the process number to this file; a second server with the same file does not start.
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// How to wait: adaptive, block, spin, or spin:50us to spin that long and then block [default: adaptive].
    #[arg(long, value_name = "HOW", value_parser = units::wait)]
    pub wait: Option<Wait>,
    /// The scheduling class.
    #[command(flatten)]
    pub realtime: RealtimeOptions,
    /// The processor to run on [default: the kernel's choice].
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<usize>,
    /// Largest number of clients; further ones are refused [default: 10000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub clients: Option<u32>,
    /// How long puts and calls under way may take when the server stops [default: 5s].
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    pub drain: Option<Duration>,
    /// Send everything big-endian, as servers on some other processors do.
    #[arg(long)]
    pub big_endian: bool,
    /// The log.
    #[command(flatten)]
    pub log: LogOptions,
    /// Log every client that connects or disconnects, like --log-level debug.
    #[arg(long)]
    pub verbose: bool,
    /// Stop when standard input closes, so that the server never outlives the program that started it.
    #[arg(long)]
    pub until_stdin_closes: bool,
}

const EXAMPLES: &str = "\
Examples:
  hodo pva serve pvs.toml                           on loopback, for clients on this host
  hodo pva serve pvs.toml --listen :5075            for everybody who can reach this host
  hodo pva serve --check pvs.toml                   only check the file
  kill -HUP PID                                     read the file again: what is the same keeps its value and its subscribers";
