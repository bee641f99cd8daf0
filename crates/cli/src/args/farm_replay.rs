use clap::Args;
use std::path::PathBuf;

/// What only made events have.
const MADE: [&str; 4] = ["size", "different", "numbered", "seed"];

/// Events that were recorded, in place of those that are made.
#[derive(Debug, Args)]
pub struct FarmRecorded {
    /// Give the events of this store, or of one of its segments, again: as they were stored, with their numbers. --first,
    /// --step and --events choose among them.
    #[arg(long, value_name = "DIR", conflicts_with_all = MADE)]
    pub replay: Option<PathBuf>,
    /// Number them from 0 on instead, without the gaps of what was not stored.
    #[arg(long, requires = "replay")]
    pub renumber: bool,
}

pub const EXAMPLES: &str = "\
Examples:
  hodo farm source --to builder:5501 --number 2 --size normal:32K,4K --rate 10k
  hodo farm source --to builder:5501 --udp                       over UDP, to a builder with --udp
  hodo farm source --replay /data/run7 --rate 1000               what was stored of run 7, again";
