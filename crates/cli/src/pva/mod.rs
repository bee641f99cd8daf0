//! `hodo pva`: read, write, watch, call and serve the channels of pvAccess.

mod alias;
mod call;
mod get;
mod info;
mod monitor;
mod options;
mod put;
mod serve;
mod writer;

use crate::{Error, Outcome};
use clap::{Args, Subcommand};

pub use alias::arguments;

/// Runs a command on channels.
pub fn run(pva: &PvaOptions) -> Result<Outcome, Error> {
    match &pva.command {
        PvaCommand::Get(options) => get::run(options),
        PvaCommand::Put(options) => put::run(options),
        PvaCommand::Monitor(options) => monitor::run(options),
        PvaCommand::Info(options) => info::run(options),
        PvaCommand::Call(options) => call::run(options),
        PvaCommand::Serve(options) => serve::run(options),
    }
}

/// Channels of EPICS pvAccess (PVs): read, write, watch, call and serve them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PvaOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub command: PvaCommand,
}

/// The commands for channels.
#[derive(Debug, Subcommand)]
pub enum PvaCommand {
    /// Read PVs.
    Get(get::GetOptions),
    /// Write a PV.
    Put(put::PutOptions),
    /// Watch PVs: each update as it comes.
    Monitor(monitor::MonitorOptions),
    /// Show the types of PVs, and their servers.
    Info(info::InfoOptions),
    /// Call a PV with arguments, and show what it returns.
    Call(call::CallOptions),
    /// Serve the PVs of a file.
    Serve(Box<serve::ServeOptions>),
}

const EXAMPLES: &str = "\
A PV is a name, on the server of --server, or pva://HOST:PORT/NAME; the port is 5075 unless another one is given.

Examples:
  hodo pva get pva://ioc1/TEMPERATURE
  hodo pva get -S ioc1 -r 'field(value,alarm)' -M json -f names.txt
  hodo pva put -S ioc1 SETPOINT 20.5
  hodo pva put -S ioc1 SETPOINT '{\"value\": 20.5, \"alarm\": {\"severity\": 1}}'
  hodo pva monitor -S ioc1 TEMPERATURE PRESSURE --for 10
  hodo pva call -S archiver history name=TEMPERATURE count=100
  hodo pva serve pvs.toml
Under the names pvget, pvput, pvmonitor, pvinfo and pvcall, as links to it, hodo is that command.

Exit status: 0 success; 1 something failed, and the message names the PV and the reason; 2 usage error.";
