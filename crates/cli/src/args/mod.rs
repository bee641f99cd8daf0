//! The command line, parsed once into types that cannot be wrong.

mod bench;
mod ipbus;
mod logged;
mod netperf;
mod others;
mod output;
pub mod sizes;
pub mod spread;
mod traced;

pub use bench::{Bench, Measure};
pub use ipbus::{
    Check, Device, Devices, Dump, Filter, Forms, Ipbus, IpbusCommand, Nodes, Place, Read, ReadBlock, Rmw, RmwBits,
    RmwSum, Show, Transfer, Write, WriteBlock,
};
pub use logged::Logged;
pub use others::{Compare, Demo, Limits, Report, Serve, Transport};
pub use output::{Output, Progress};
pub use traced::Traced;

pub use hodo_measure::units;

use crate::farm::Farm;
use crate::hub::Hub;
use clap::{Parser, Subcommand};

/// Measures links: how fast one is, how fast it could be, and what binds.
///
/// Without a command it runs the demonstration: every protocol of the catalog, short, with its far end started here.
#[derive(Debug, Parser)]
#[command(name = "hodo", version, args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the demonstration.
    #[command(flatten)]
    pub demo: Demo,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// How fast is a link?
    Bench(Box<Bench>),
    /// Be the far end of a link.
    Serve(Serve),
    /// Be the hub between IPbus clients and boards.
    Hub(Box<Hub>),
    /// How fast could a link be? The calculator alone.
    Limits(Limits),
    /// Rebuild any output from results.
    Report(Report),
    /// Has it become faster or slower?
    Compare(Compare),
    /// Read and write the registers of IPbus devices, by address and by name.
    Ipbus(Ipbus),
    /// Be a part of an event farm, or run a whole one.
    Farm(Box<Farm>),
}

const EXAMPLES: &str = "\
Examples:
  hodo                                         the demonstration
  hodo bench tcp                               TCP on this host, the standard suite
  hodo serve tcp://0.0.0.0:4242                there, and here:
  hodo bench tcp://there:4242 --out results/lab
  hodo limits --line-rate 1G --mtu 1500        what a line can carry
  hodo compare before.json after.json --fail-below 0.95

Exit status: 0 done; 1 a measurement or a check failed, or the run was interrupted; 2 usage.";

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
