use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// A farm: its controller, builder, sources and nodes, placed, started and watched.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FarmRun {
    /// What the farm consists of.
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// By what the roles are started at their hosts [default: as the file says, or local].
    #[arg(long, value_name = "HOW")]
    pub launch: Option<Launch>,
    /// Only show what would be started where, with every default.
    #[arg(long, visible_alias = "print")]
    pub dry_run: bool,
    /// Submit the run to Slurm as a batch job, and return; with --dry-run, only print its script.
    #[arg(long)]
    pub sbatch: bool,
    /// Give on only what goes wrong.
    #[arg(long)]
    pub quiet: bool,
}

/// By what programs are started at their hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Launch {
    /// All on this machine, whatever hosts the file names.
    Local,
    /// Over connections of ssh.
    Ssh,
    /// As steps of a job of Slurm: of that in which this command runs, or else of one of its own.
    Slurm,
}

const EXAMPLES: &str = "\
Examples:
  hodo farm run farm.toml                      on this machine
  hodo farm run farm.toml --dry-run            what would be started, and where
  hodo farm run farm.toml --launch slurm       on nodes that salloc gives, or those of the job one is in
  hodo farm run farm.toml --sbatch             as a batch job

Ctrl-C ends the run in order: sources, builder, controller, nodes. A second one kills them.
Exit status: 0 done; 1 something failed, or the run was interrupted ahead of its end; 2 usage.";
