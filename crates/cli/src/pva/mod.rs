//! `hodo pva`: read, write, watch, call, serve, record and replay the channels of pvAccess.

mod alias;
mod call;
mod find;
mod get;
mod info;
mod monitor;
mod options;
mod plot;
mod put;
mod record;
mod replay;
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
        PvaCommand::List(options) => find::list(options),
        PvaCommand::Find(options) => find::find(options),
        PvaCommand::Beacons(options) => find::beacons(options),
        PvaCommand::Serve(options) => serve::run(options),
        PvaCommand::Record(options) => record::run(options),
        PvaCommand::Replay(options) => replay::run(options),
    }
}

/// Channels of EPICS pvAccess (PVs): read, write, watch, call, serve, record and replay them.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
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
    /// List the servers that answer, or the PVs of servers.
    List(find::ListOptions),
    /// Show which servers have PVs: all that answer.
    Find(find::FindOptions),
    /// Show the beacons of servers as they come.
    Beacons(find::BeaconsOptions),
    /// Serve the PVs of a file.
    Serve(Box<serve::ServeOptions>),
    /// Write the updates of PVs to Parquet.
    Record(record::RecordArgs),
    /// Serve a recording again, with its timing.
    Replay(replay::ReplayArgs),
}

const EXAMPLES: &str = "\
A PV is a name, which is searched for as the variables EPICS_PVA_* say, or pva://HOST:PORT/NAME;
the port is 5075 unless another one is given.

Examples:
  hodo pva get TEMPERATURE pva://ioc1/PRESSURE
  hodo pva get -S ioc1 -r 'field(value,alarm)' -M json -f names.txt
  hodo pva put SETPOINT 20.5
  hodo pva put SETPOINT '{\"value\": 20.5, \"alarm\": {\"severity\": 1}}'
  hodo pva monitor TEMPERATURE PRESSURE --for 10
  hodo pva monitor --plot TEMPERATURE PRESSURE
  hodo pva call history name=TEMPERATURE count=100
  hodo pva serve pvs.toml
  hodo pva record -o run7.parquet TEMPERATURE PRESSURE
  hodo pva replay run7.parquet --loop
  hodo pva find TEMPERATURE
  hodo pva list ioc1
Under the names pvget, pvput, pvmonitor, pvinfo, pvcall and pvlist, as links to it, hodo is that
command.

Exit status: 0 success; 1 something failed, and the message names the PV and the reason; 2 usage error.";
