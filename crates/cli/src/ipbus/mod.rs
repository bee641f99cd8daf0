//! `hodo ipbus`: registers of devices, by address and by name.

mod block;
mod board;
mod check;
mod devices;
mod dump;
mod forms;
mod grid;
mod nodes;
mod read;
mod rmw;
mod values;
mod write;

use crate::{Error, Outcome};
use clap::{Arg, Args, Subcommand};
use hodo_ipbus_host::registers::Kind;

/// Runs a command on registers, or on the files that name them.
pub fn run(ipbus: &IpbusOptions) -> Result<Outcome, Error> {
    match &ipbus.command {
        IpbusCommand::Read(options) => read::run(options),
        IpbusCommand::Write(options) => write::run(options),
        IpbusCommand::Block(options) => block::run(options, Kind::Block),
        IpbusCommand::Fifo(options) => block::run(options, Kind::Fifo),
        IpbusCommand::Rmw(options) => rmw::run(options),
        IpbusCommand::Dump(options) => dump::run(options),
        IpbusCommand::Nodes(options) => nodes::run(options),
        IpbusCommand::Devices(options) => devices::run(options),
        IpbusCommand::Check(options) => check::run(options),
    }
}

/// Registers of IPbus devices, by address and by name.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct IpbusOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub command: IpbusCommand,
}

/// The commands for registers, and for the files that name them.
#[derive(Debug, Subcommand)]
pub enum IpbusCommand {
    /// Read registers.
    Read(read::ReadOptions),
    /// Write registers.
    Write(write::WriteOptions),
    /// Read or write words at consecutive addresses.
    #[command(subcommand)]
    Block(block::Transfer),
    /// Read or write words at one address, such as a FIFO.
    #[command(
        subcommand,
        mut_subcommand("read", block::of_one_address),
        mut_subcommand("write", block::of_one_address)
    )]
    Fifo(block::Transfer),
    /// Modify a register in one indivisible transaction.
    #[command(subcommand)]
    Rmw(rmw::Rmw),
    /// Read all registers, or those whose names match.
    Dump(dump::DumpOptions),
    /// List the nodes of an address table.
    Nodes(nodes::NodesOptions),
    /// List the devices of connection files.
    #[command(mut_arg("patterns", by_id))]
    Devices(devices::DevicesOptions),
    /// Find errors in address tables and connection files.
    Check(check::CheckOptions),
}

const EXAMPLES: &str = "\
A device is a URI such as ipbusudp-2.0://board:50001, ipbustcp-2.0://board:50001 or
chtcp-2.0://hub:10203?target=board:50001 (1.3 likewise), or with --connections the id of a device in those files.

Examples:
  hodo ipbus read ipbusudp-2.0://board:50001 0x1000 0x1004
  hodo ipbus read -c connections.xml crate1.board daq.events daq.status
  hodo ipbus write -c connections.xml crate1.board control.enable 1
  hodo ipbus block read -c connections.xml crate1.board daq.spy --output spy.txt
  hodo ipbus dump -c connections.xml crate1.board 'links\\..*' --tsv -
  hodo ipbus check boards/*.xml

Exit status: 0 success; 1 something failed, and the message names node, address and device; 2 usage error.";

/// Sets the help of patterns that choose devices.
fn by_id(patterns: Arg) -> Arg {
    patterns.help("Regular expressions that match whole ids, as 'crate[0-3]\\..*' [default: all]")
}
