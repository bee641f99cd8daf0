//! `hodo pva`: EPICS PVs over pvAccess.

mod serve;

use crate::{Error, Outcome};
use clap::{Args, Subcommand};

/// EPICS PVs over pvAccess.
#[derive(Debug, Args)]
pub struct PvaOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub command: PvaCommand,
}

/// The commands for PVs.
#[derive(Debug, Subcommand)]
pub enum PvaCommand {
    /// Serve the PVs of a file.
    Serve(Box<serve::ServeOptions>),
}

/// Runs a command for PVs.
pub fn run(pva: &PvaOptions) -> Result<Outcome, Error> {
    match &pva.command {
        PvaCommand::Serve(options) => serve::run(options),
    }
}
