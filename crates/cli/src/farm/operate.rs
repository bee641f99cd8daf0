//! Orders to a running controller: `hodo farm status`, `pause`, `resume`, `drain`, `stop`, `set-run`.

use crate::{Error, Outcome, terminal};
use clap::{Args, ValueEnum};
use hodo_daemon::Control;
use hodo_farm_host::controller::shares;
use hodo_farm_host::{builder, operator};
use hodo_measure::units;
use std::net::SocketAddr;
use std::time::Duration;

/// Prints what a controller does, and how events are shared out over its nodes.
pub fn status(options: &FarmStatus) -> Result<Outcome, Error> {
    let status = operator::read(options.of.pages)?;
    let builder = options.builder.map(|pages| builder::read(pages, operator::PATIENCE)).transpose()?;
    let builder = builder.map_or_else(String::new, |builder| format!("\n{}", builder.text()));
    terminal::print(&format!("{}{builder}\n{}", status.text(), shares::text(&status)))?;
    Ok(Outcome::Done)
}

/// Gives an order, and prints the answer.
pub fn order(of: &FarmPages, path: &str) -> Result<Outcome, Error> {
    terminal::print(&operator::order(of.pages, path)?)?;
    Ok(Outcome::Done)
}

/// Drains a controller, and waits until that is done.
pub fn drain(options: &FarmEnd) -> Result<Outcome, Error> {
    let status = operator::drain(options.of.pages, options.within)?;
    terminal::print(&format!("run {}: {}\n", status.run, status.state))?;
    // Somebody else may have told it to go on.
    Ok(if status.state == "drained" { Outcome::Done } else { Outcome::Failed })
}

/// Stops a controller, and waits until it has gone.
pub fn stop(options: &FarmEnd) -> Result<Outcome, Error> {
    let said = operator::stop(options.of.pages, options.within)?;
    terminal::print(&said.replace("stopping", "stopped"))?;
    Ok(Outcome::Done)
}

/// The default address of a controller's pages.
pub const PAGES: &str = "127.0.0.1:9205";

/// The clients that may pause, resume, drain and stop a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FarmControl {
    /// The user that it runs as, and root, on the same host.
    Owner,
    /// Everybody who can reach its pages, over TCP too.
    Everybody,
    /// Nobody.
    Nobody,
}

impl From<FarmControl> for Control {
    fn from(control: FarmControl) -> Control {
        match control {
            FarmControl::Owner => Control::Owner,
            FarmControl::Everybody => Control::Everybody,
            FarmControl::Nobody => Control::Nobody,
        }
    }
}

/// Which controller is options.
#[derive(Debug, Clone, Args)]
pub struct FarmPages {
    /// Address of its pages.
    #[arg(value_name = "ADDR", default_value = PAGES, value_parser = units::pages)]
    pub pages: SocketAddr,
}

/// The status of a farm to show.
#[derive(Debug, Args)]
pub struct FarmStatus {
    /// Which controller.
    #[command(flatten)]
    pub of: FarmPages,
    /// Also show the builder with its pages at this address.
    #[arg(long, value_name = "ADDR", value_parser = units::pages)]
    pub builder: Option<SocketAddr>,
}

/// Which controller is to bring what is in hand to its end.
#[derive(Debug, Args)]
pub struct FarmEnd {
    /// Which controller.
    #[command(flatten)]
    pub of: FarmPages,
    /// How long to wait for it.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = units::span)]
    pub within: Duration,
}

/// Which controller is to give its events another run's number.
#[derive(Debug, Args)]
pub struct FarmSetRun {
    /// New run number.
    #[arg(value_name = "N")]
    pub number: u32,
    /// Which controller.
    #[command(flatten)]
    pub of: FarmPages,
}
