//! What would be run: every command at its host, or the script of a batch job.

use super::file::Farm;
use super::plan::place;
use super::role::Role;
use super::site::{self, Site};
use super::{Launch, RunOptions};
use crate::args::units::span_text;
use crate::{Error, Outcome, terminal};
use clap::{Arg, ArgAction, Command};
use hodo_daemon::launch::quoted;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

/// The commands of a farm, host by host, and the defaults of what the file leaves out.
pub fn commands(asked: &RunOptions, farm: &Farm, launch: Launch, site: &Site, cli: &Command) -> String {
    let run = &farm.run;
    let mut text = format!(
        "# {}: start_within {}, end_within {}\n",
        asked.file.display(),
        span_text(run.start_within),
        span_text(run.end_within)
    );
    if launch == Launch::Slurm {
        let _ = writeln!(text, "# JOB: salloc {}", quoted(&site::job_options(farm)));
    }
    let processes = place(farm, &site.pool, launch == Launch::Local);
    let mut hosts: Vec<&str> = Vec::new();
    for process in &processes {
        if !hosts.contains(&process.host.as_str()) {
            hosts.push(&process.host);
        }
    }
    let has_builder = farm.count(Role::Builder) > 0;
    for host in hosts {
        let _ = writeln!(text, "\n# at {host}");
        for process in processes.iter().filter(|process| process.host == host) {
            let to = match process.role {
                Role::Controller => None,
                Role::Source if has_builder => Some("BUILDER"),
                _ => Some("CONTROLLER"),
            };
            let _ = writeln!(text, "{}", quoted(&site.launcher.words(&process.task(&site.program, to))));
        }
    }
    text.push_str("\n# by default\n");
    for role in Role::ALL.into_iter().filter(|role| farm.count(*role) > 0) {
        let command = cli.find_subcommand("farm").and_then(|farm| farm.find_subcommand(role.word()));
        let defaults = defaults(command.expect("every role is a command"));
        let _ = writeln!(text, "# {role}: {}", defaults.join(" "));
    }
    text
}

fn defaults(command: &Command) -> Vec<String> {
    let takes = |argument: &Arg| !matches!(argument.get_action(), ArgAction::SetTrue);
    let arguments = command.get_arguments().filter(|argument| takes(argument));
    let arguments = arguments.filter(|argument| !argument.get_default_values().is_empty());
    let default = arguments.filter_map(|argument| {
        let values = argument.get_default_values().iter().map(|value| value.to_string_lossy());
        Some(format!("--{}={}", argument.get_long()?, values.collect::<Vec<_>>().join(",")))
    });
    default.collect()
}

/// Submits a run as a batch job, or prints its script.
pub fn batch(asked: &RunOptions, farm: &Farm) -> Result<Outcome, Error> {
    let script = script(asked, farm)?;
    if asked.dry_run {
        terminal::print(&script)?;
        return Ok(Outcome::Done);
    }
    let cannot = |why: std::io::Error| Error::Failed(format!("sbatch cannot be run: {why}; is Slurm installed here?"));
    let mut sbatch = std::process::Command::new("sbatch").stdin(Stdio::piped()).spawn().map_err(cannot)?;
    sbatch.stdin.take().expect("standard input is piped").write_all(script.as_bytes()).map_err(cannot)?;
    let status = sbatch.wait().map_err(cannot)?;
    Ok(if status.success() { Outcome::Done } else { Outcome::Failed })
}

/// A job in which this command finds its nodes. It gets a signal a minute ahead of the job's end, to end in order.
fn script(asked: &RunOptions, farm: &Farm) -> Result<String, Error> {
    let file = std::fs::canonicalize(&asked.file);
    let file = file.map_err(|why| Error::Usage(format!("{}: cannot be read: {why}", asked.file.display())))?;
    let program = site::this_program()?;
    let mut words = vec![program, "farm".to_owned(), "run".to_owned(), file.display().to_string()];
    words.push("--launch=slurm".to_owned());
    if asked.quiet {
        words.push("--quiet".to_owned());
    }
    let mut text = "#!/bin/sh\n".to_owned();
    for option in site::job_options(farm) {
        let _ = writeln!(text, "#SBATCH {option}");
    }
    let _ = writeln!(text, "#SBATCH --signal=B:TERM@60\nexec {}", quoted(&words));
    Ok(text)
}
