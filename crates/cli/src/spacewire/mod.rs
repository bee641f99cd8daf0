//! `hodo spacewire`: simulated networks, and ports of SpaceWire behind a bridge.

mod bridge;
mod memory;
mod options;
mod packets;

use crate::{Error, Outcome};
use clap::{Args, Subcommand};

/// Runs a command on SpaceWire.
pub fn run(spacewire: &SpacewireOptions) -> Result<Outcome, Error> {
    match &spacewire.command {
        SpacewireCommand::Bridge(options) => bridge::run(options),
        SpacewireCommand::Read(options) => memory::read(options),
        SpacewireCommand::Write(options) => memory::write(options),
        SpacewireCommand::Rmw(options) => memory::modify(options),
        SpacewireCommand::TimeCode(options) => packets::time_codes(options),
        SpacewireCommand::Send(options) => packets::send(options),
        SpacewireCommand::Receive(options) => packets::receive(options),
        SpacewireCommand::Sniff(options) => packets::sniff(options),
    }
}

/// SpaceWire: simulated networks behind a bridge, exact to the character, and the ports of boxes that speak SSDTP2 or GRESB.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct SpacewireOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub command: SpacewireCommand,
}

/// The commands for SpaceWire.
#[derive(Debug, Subcommand)]
pub enum SpacewireCommand {
    /// Run a simulated network that hosts reach with SSDTP2 and GRESB.
    Bridge(bridge::BridgeOptions),
    /// Read the memory behind an RMAP target.
    Read(memory::ReadOptions),
    /// Write the memory behind an RMAP target.
    Write(memory::WriteOptions),
    /// Modify bits behind an RMAP target in one indivisible command.
    Rmw(memory::ModifyOptions),
    /// Send time-codes.
    TimeCode(packets::TimeCodeOptions),
    /// Send packets.
    Send(packets::SendOptions),
    /// Receive packets, and show them in hexadecimal or write them to a file.
    Receive(packets::ReceiveOptions),
    /// Show the packets and time-codes that arrive, with times and decoded.
    Sniff(packets::SniffOptions),
}

const EXAMPLES: &str = "\
A port of a bridge is ssdtp2://host (TCP port 10030) or gresb://host (3000 and 3001). One host at a time has it.

Examples:
  hodo spacewire bridge                                            a simulated network, to try the others on
  hodo spacewire read ssdtp2://127.0.0.1 0x1000 64 --path 4 --reply-path 1
  hodo spacewire write ssdtp2://127.0.0.1 0x1000 'de ad be ef' --target 254
  hodo spacewire send ssdtp2://127.0.0.1 --path 2 '20 01 02 03'
  hodo spacewire receive ssdtp2://127.0.0.1:10031 --count 1
  hodo spacewire time-code ssdtp2://127.0.0.1 --count 64 --rate 100
  hodo spacewire sniff gresb://127.0.0.1

Exit status: 0 success; 1 something failed, and the message names it; 2 usage error.";
