use super::FarmRun;
use clap::{Args, Subcommand};

/// The event farm.
#[derive(Debug, Args)]
pub struct Farm {
    /// Which part of it.
    #[command(subcommand)]
    pub command: FarmCommand,
}

/// A part of a farm.
#[derive(Debug, Subcommand)]
pub enum FarmCommand {
    /// Run a whole farm, as a file says.
    Run(FarmRun),
}
