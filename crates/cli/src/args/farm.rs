use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// The event farm: the files of its events.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Farm {
    /// What is done.
    #[command(subcommand)]
    pub command: FarmCommand,
}

/// What is done with a farm.
#[derive(Debug, Subcommand)]
pub enum FarmCommand {
    /// Write stored events to a Parquet file.
    Export(Export),
    /// Is every byte of a store as it was written?
    Verify(Verify),
}

const EXAMPLES: &str = "\
Examples:
  hodo farm verify /data/run7
  hodo farm export /data/run7 run7.parquet --run 7 --verdict accepted

Exit status: 0 done; 1 something is damaged or failed, of which the message tells the file and the place; 2 usage.";

/// What is exported: events with their data, a row each.
#[derive(Debug, Args)]
pub struct Export {
    /// The store's folder, or one of its segments.
    #[arg(value_name = "DIR")]
    pub store: PathBuf,
    /// The file that is written.
    #[arg(value_name = "OUT.parquet")]
    pub output: PathBuf,
    /// Only this run.
    #[arg(long, value_name = "N")]
    pub run: Option<u32>,
    /// Only events with this verdict.
    #[arg(long, value_enum, value_name = "VERDICT")]
    pub verdict: Option<Kept>,
}

/// Verdicts with which an event's data are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kept {
    /// A node wants it.
    Accepted,
    /// No node could decide on it.
    Quarantined,
}

/// What is checked.
#[derive(Debug, Args)]
pub struct Verify {
    /// The store's folder.
    #[arg(value_name = "DIR")]
    pub store: PathBuf,
}
