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

use crate::args::IpbusCommand;
use crate::{Error, Outcome, args};
use hodo_ipbus_host::registers::Kind;

/// Runs a command on registers, or on the files that name them.
pub fn run(ipbus: &args::Ipbus) -> Result<Outcome, Error> {
    match &ipbus.command {
        IpbusCommand::Read(asked) => read::run(asked),
        IpbusCommand::Write(asked) => write::run(asked),
        IpbusCommand::Block(asked) => block::run(asked, Kind::Block),
        IpbusCommand::Fifo(asked) => block::run(asked, Kind::Fifo),
        IpbusCommand::Rmw(asked) => rmw::run(asked),
        IpbusCommand::Dump(asked) => dump::run(asked),
        IpbusCommand::Nodes(asked) => nodes::run(asked),
        IpbusCommand::Devices(asked) => devices::run(asked),
        IpbusCommand::Check(asked) => check::run(asked),
    }
}
