//! The command line, parsed once into types that cannot be wrong.

use crate::bench::BenchOptions;
use crate::compare::CompareOptions;
use crate::completions::CompletionsOptions;
use crate::demo::DemoOptions;
use crate::doctor::DoctorOptions;
#[cfg(feature = "farm")]
use crate::farm::FarmOptions;
#[cfg(feature = "ipbus")]
use crate::hub::HubOptions;
#[cfg(feature = "ipbus")]
use crate::ipbus::IpbusOptions;
use crate::limits::LimitsOptions;
use crate::manual::ManOptions;
#[cfg(feature = "roce")]
use crate::pingpong::PingPongOptions;
#[cfg(feature = "pva")]
use crate::pva::PvaOptions;
use crate::report::ReportOptions;
use crate::serve::ServeOptions;
#[cfg(feature = "spacewire")]
use crate::spacewire::SpacewireOptions;
use crate::version;
use crate::watch::WatchOptions;
use crate::why::WhyOptions;
use clap::{Parser, Subcommand};

/// Measures links: how fast one is, how fast it could be, and what limits it. Without a command it measures
/// every protocol on this host, for about 40 s.
#[derive(Debug, Parser)]
#[command(name = "hodo", version = version::text(), args_conflicts_with_subcommands = true, override_usage = "hodo [OPTIONS] [COMMAND]", after_help = MORE, after_long_help = EXAMPLES)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the demonstration.
    #[command(flatten)]
    pub demo: DemoOptions,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure how fast a link is.
    Bench(Box<BenchOptions>),
    /// Find out why a link is not faster, by experiment.
    Why(Box<WhyOptions>),
    /// Measure a link again and again, and show Prometheus the figures.
    Watch(Box<WatchOptions>),
    /// Run the far end of a link.
    Serve(ServeOptions),
    /// Run the hub between IPbus clients and boards, or query one.
    #[cfg(feature = "ipbus")]
    Hub(Box<HubOptions>),
    /// Find what this host, its interfaces and the path to a far end cost.
    Doctor(DoctorOptions),
    /// Calculate how fast a link could be.
    Limits(LimitsOptions),
    /// Rebuild any output from saved results.
    Report(ReportOptions),
    /// Compare two results: faster, slower or the same?
    Compare(CompareOptions),
    /// Read and write registers of IPbus devices, by address or name.
    #[cfg(feature = "ipbus")]
    Ipbus(IpbusOptions),
    /// Read, write, watch, call and serve the channels of EPICS pvAccess.
    #[cfg(feature = "pva")]
    Pva(Box<PvaOptions>),
    /// Simulate SpaceWire networks, and reach ports over a bridge.
    #[cfg(feature = "spacewire")]
    Spacewire(Box<SpacewireOptions>),
    /// Exchange messages over RDMA, as ibv_rc_pingpong does.
    #[cfg(feature = "roce")]
    Pingpong(PingPongOptions),
    /// Run a part of an event farm, or a whole one.
    #[cfg(feature = "farm")]
    Farm(Box<FarmOptions>),
    /// Print the completions of a shell.
    #[command(hide = true)]
    Completions(CompletionsOptions),
    /// Write the manual pages.
    #[command(hide = true)]
    Man(ManOptions),
}

const MORE: &str = "`hodo --help` has the options of this measurement, completions and manual pages.";

const EXAMPLES: &str = "\
Examples:
  hodo                                         the demonstration
  hodo bench tcp                               TCP on this host, the standard suite
  hodo serve tcp://:4242                       on the host `there`; then on this one:
  hodo bench tcp://there:4242 --out results/lab
  hodo limits --line-rate 1G --mtu 1500        what a line can carry
  hodo compare before.json after.json --fail-below 0.95

`hodo completions bash` (or zsh, fish) prints completions, and `hodo man --out DIR` writes manual
pages; `hodo completions -h` says where the shells look for them.

Exit status: 0 success; 1 a measurement or a check failed, or the run was interrupted;
2 usage error; 3 a comparison cannot tell.";

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
