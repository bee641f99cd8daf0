//! `hodo farm run`: the roles of a farm, placed, started and watched.

use crate::command_line::Cli;
use crate::logging::LogOptions;
use crate::{Error, Outcome, terminal};
use clap::{Arg, ArgAction, Args, Command, CommandFactory, ValueEnum};
use hodo_daemon::log;
use hodo_farm_host::run::{CommandLine, FarmFile, Launch, OutputLine, Role, RoleOption, Signals, Takes};
use std::path::PathBuf;

/// Runs a farm as a file says.
pub fn run(options: &RunOptions) -> Result<Outcome, Error> {
    let commands = Commands::new();
    let farm = FarmFile::read(&options.file, options.launch.map(Launch::from), &commands)?;
    if options.dry_run {
        let text = if options.sbatch { farm.script(options.quiet)? } else { farm.commands(&commands)? };
        terminal::print(&text)?;
        return Ok(Outcome::Done);
    }
    if options.sbatch {
        return Ok(if farm.submit(options.quiet)? { Outcome::Done } else { Outcome::Failed });
    }
    options.log.open("hodo farm run", false)?;
    let signals = Signals::catch(options.log.reopens())?;
    let mut say = |said: OutputLine<'_>| match said {
        OutputLine::Printed(name, line) if !options.quiet => log::queue(&format!("{name} | {line}\n")),
        OutputLine::Printed(..) => {}
        OutputLine::Complained(name, line) => log::relay(&format!("{name} | {line}")),
    };
    let Some(course) = farm.run(&signals, &mut say)? else { return Ok(Outcome::Failed) };
    for failure in &course.failures {
        let mut lines = failure.lines();
        tracing::error!("{}", lines.next().unwrap_or_default());
        lines.for_each(log::relay);
    }
    if !options.quiet {
        log::announce(&farm.summary(&course));
    }
    Ok(if farm.is_well(&course) { Outcome::Done } else { Outcome::Failed })
}

/// The command line of this program.
struct Commands(Command);

impl Commands {
    fn new() -> Self {
        let mut cli = Cli::command();
        cli.build();
        Commands(cli)
    }
}

impl CommandLine for Commands {
    fn options(&self, role: Role) -> Vec<RoleOption> {
        let command = self.0.find_subcommand("farm").and_then(|farm| farm.find_subcommand(role.word()));
        let arguments = command.expect("every role is a command").get_arguments();
        arguments.filter_map(option).collect()
    }

    fn check(&self, words: &[String]) -> Result<(), String> {
        let matched = Cli::command().try_get_matches_from(words);
        matched.map(|_| ()).map_err(|error| {
            // The first line says what is wrong; the usage after it is of the command line.
            let text = error.to_string();
            text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })
    }
}

fn option(argument: &Arg) -> Option<RoleOption> {
    let takes_more = argument.get_num_args().is_some_and(|range| range.max_values() > 1);
    let takes = match argument.get_action() {
        ArgAction::SetTrue => Takes::Nothing,
        _ if takes_more && argument.get_value_delimiter().is_none() => Takes::Words,
        _ => Takes::Value,
    };
    let values: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let default = (takes != Takes::Nothing && !values.is_empty()).then(|| values.join(","));
    Some(RoleOption { name: argument.get_long()?.to_owned(), takes, default })
}

/// A farm: its controller, builder, sources and nodes, placed, started and watched.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct RunOptions {
    /// File that describes the farm.
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// How to start the roles on their hosts [default: as the file says, otherwise local].
    #[arg(long, value_name = "HOW")]
    pub launch: Option<LaunchBy>,
    /// Only show what would be started where, with all defaults.
    #[arg(long, visible_alias = "print")]
    pub dry_run: bool,
    /// Submit the run to Slurm as a batch job and return; with --dry-run, only print its script.
    #[arg(long)]
    pub sbatch: bool,
    /// The log.
    #[command(flatten)]
    pub log: LogOptions,
    /// Print only what goes wrong.
    #[arg(long)]
    pub quiet: bool,
}

/// By what programs are started at their hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LaunchBy {
    /// Start all on this machine, whatever hosts the file names.
    Local,
    /// Start them over ssh.
    Ssh,
    /// Start them as steps of a Slurm job: the one in which this command runs, otherwise a new one.
    Slurm,
}

impl From<LaunchBy> for Launch {
    fn from(launch: LaunchBy) -> Launch {
        match launch {
            LaunchBy::Local => Launch::Local,
            LaunchBy::Ssh => Launch::Ssh,
            LaunchBy::Slurm => Launch::Slurm,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  hodo farm run farm.toml                      on this machine
  hodo farm run farm.toml --dry-run            what would be started, and where
  hodo farm run farm.toml --launch slurm       on the nodes of a Slurm job
  hodo farm run farm.toml --sbatch             as a batch job

Ctrl-C stops the run in order: sources, builder, controller, nodes. A second Ctrl-C kills them.
Exit status: 0 success; 1 something failed, or the run was interrupted before its end; 2 usage error.";
