use super::units;
use clap::{Args, ValueEnum};
use hodo_daemon::Control;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where a controller's pages are, unless told otherwise.
pub const PAGES: &str = "127.0.0.1:9205";

/// Who may pause, resume, drain and stop a controller over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FarmControl {
    /// Programs of the same host.
    Local,
    /// Whoever can reach its pages.
    Everybody,
    /// Nobody.
    Nobody,
}

impl From<FarmControl> for Control {
    fn from(control: FarmControl) -> Control {
        match control {
            FarmControl::Local => Control::Local,
            FarmControl::Everybody => Control::Everybody,
            FarmControl::Nobody => Control::Nobody,
        }
    }
}

/// Which controller is asked.
#[derive(Debug, Clone, Args)]
pub struct FarmPages {
    /// Where its pages are.
    #[arg(value_name = "ADDR", default_value = PAGES, value_parser = units::pages)]
    pub pages: SocketAddr,
}

/// What of a farm is told.
#[derive(Debug, Args)]
pub struct FarmStatus {
    /// Which controller.
    #[command(flatten)]
    pub of: FarmPages,
    /// The builder too, whose pages are here.
    #[arg(long, value_name = "ADDR", value_parser = units::pages)]
    pub builder: Option<SocketAddr>,
}

/// Which controller is to bring what is in hand to its end.
#[derive(Debug, Args)]
pub struct FarmEnd {
    /// Which controller.
    #[command(flatten)]
    pub of: FarmPages,
    /// How long to wait until it is done.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = units::span)]
    pub within: Duration,
}

/// Which controller is to give its events another run's number.
#[derive(Debug, Args)]
pub struct FarmSetRun {
    /// The number of the run.
    #[arg(value_name = "N")]
    pub number: u32,
    /// Which controller.
    #[command(flatten)]
    pub of: FarmPages,
}

/// What of a controller is watched.
#[derive(Debug, Args)]
pub struct FarmTop {
    /// Which.
    #[command(flatten)]
    pub of: FarmStatus,
    /// From one look to the next.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    pub every: Duration,
    /// Look twice, show what went on between, and end.
    #[arg(long)]
    pub once: bool,
}

/// What of a run is written.
#[derive(Debug, Args)]
pub struct FarmReport {
    /// Where a controller's pages are, or a file with what its page /farm has told.
    #[arg(value_name = "ADDR|FILE", default_value = PAGES)]
    pub of: String,
    /// One self-contained page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The whole document (schema hodo.result/2).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Bits per second of the controller's line to its nodes, for the limit: 1G, 2.5G.
    #[arg(long, value_name = "RATE", value_parser = units::line_rate)]
    pub line_rate: Option<f64>,
    /// Bytes of that line's largest IP packet.
    #[arg(long, value_name = "N", default_value_t = 1500, requires = "line_rate", value_parser = clap::value_parser!(u32).range(68..=65_535))]
    pub mtu: u32,
}
