//! `hodo spacewire`: simulated networks, and ports of SpaceWire behind a bridge.

mod bridge;

use crate::{Error, Outcome};
use clap::{Args, Subcommand};

/// Runs a command on SpaceWire.
pub fn run(spacewire: &SpacewireOptions) -> Result<Outcome, Error> {
    match &spacewire.command {
        SpacewireCommand::Bridge(options) => bridge::run(options),
    }
}

/// SpaceWire: simulated networks behind a bridge, exact to the character, and the ports of boxes that speak SSDTP2 or GRESB.
#[derive(Debug, Args)]
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
}
