use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What is exported: events with their data, a row each.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FarmExport {
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
    pub verdict: Option<FarmKept>,
}

const EXAMPLES: &str = "\
Examples:
  hodo farm export /data/run7 run7.parquet --run 7 --verdict accepted

Exit status: 0 done; 1 something is damaged or failed, of which the message tells the file and the place; 2 usage.";

/// Verdicts with which an event's data are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FarmKept {
    /// A node wants it.
    Accepted,
    /// No node could decide on it.
    Quarantined,
}

/// What is checked.
#[derive(Debug, Args)]
pub struct FarmVerify {
    /// The store's folder.
    #[arg(value_name = "DIR")]
    pub store: PathBuf,
}
