//! `hodo farm run`: the roles of a farm, placed, started and watched.

mod conduct;
mod file;
mod plan;
mod role;
mod show;
mod signals;
mod site;
mod table;
#[cfg(test)]
mod tests;

use crate::args::Cli;
use crate::{Error, Outcome, terminal};
use clap::{Args, CommandFactory, ValueEnum};
use conduct::Course;
use file::Farm;
use role::Role;
use signals::Signals;
use site::Site;
use std::path::PathBuf;

/// Runs a farm as a file says.
pub fn run(asked: &RunOptions) -> Result<Outcome, Error> {
    let mut cli = Cli::command();
    cli.build();
    let farm = file::read(&asked.file, cli.find_subcommand("farm").expect("this is one of its subcommands"))?;
    plan::check(&farm)?;
    let launch = asked.launch.or(farm.run.launch).unwrap_or(Launch::Local);
    if asked.sbatch {
        return show::batch(asked, &farm);
    }
    if asked.dry_run {
        let site = Site::imagined(&farm, launch)?;
        terminal::print(&show::commands(asked, &farm, launch, &site, &cli))?;
        return Ok(Outcome::Done);
    }
    let signals = Signals::catch()?;
    let Some(site) = Site::prepare(&farm, launch, &signals)? else { return Ok(Outcome::Failed) };
    let processes = plan::place(&farm, &site.pool, launch == Launch::Local);
    let course = conduct::run(&farm, &site, processes, &signals, asked.quiet)?;
    for failure in &course.failures {
        eprintln!("hodo farm run: {failure}");
    }
    if !asked.quiet {
        terminal::print(&summary(&farm, &course))?;
    }
    // Where nothing else would have ended it, an interrupt is how it ends.
    let is_endless = farm.run.events.is_none() && farm.run.time.is_none();
    let is_well = course.failures.is_empty() && (!course.interrupted || is_endless);
    Ok(if is_well { Outcome::Done } else { Outcome::Failed })
}

fn summary(farm: &Farm, course: &Course) -> String {
    let count = |role: Role| match farm.count(role) {
        1 => format!("1 {role}"),
        count => format!("{count} {role}s"),
    };
    let roles: Vec<String> = Role::ALL.into_iter().filter(|role| farm.count(*role) > 0).map(count).collect();
    let how = match (course.interrupted, course.failures.len()) {
        (true, 0) => "interrupted".to_owned(),
        (false, 0) => "done".to_owned(),
        (_, 1) => "1 failure".to_owned(),
        (_, failures) => format!("{failures} failures"),
    };
    let again = match course.restarts {
        0 => String::new(),
        1 => ", 1 process started again".to_owned(),
        restarts => format!(", {restarts} processes started again"),
    };
    let rate = match (farm.run.events, course.events_took) {
        (Some(events), Some(took)) => {
            let seconds = took.as_secs_f64();
            format!("; {events} events in {seconds:.1} s, {:.0} events/s", events as f64 / seconds)
        }
        _ => String::new(),
    };
    format!("farm: {how} after {:.1} s; {}{again}{rate}\n", course.took.as_secs_f64(), roles.join(", "))
}

/// A farm: its controller, builder, sources and nodes, placed, started and watched.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunOptions {
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
