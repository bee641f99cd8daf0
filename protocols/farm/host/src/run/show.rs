//! The commands of a farm as text: host by host, or as the script of a batch job.

use super::Launch;
use super::file::Farm;
use super::plan::place;
use super::role::CommandLine;
use super::role::Role;
use super::site::{self, Site};
use crate::Error;
use hodo_daemon::launch::quoted;
use hodo_units::span_text;
use std::fmt::Write as _;
use std::path::Path;

/// Returns the commands of a farm, host by host, and the defaults of what the file leaves out.
pub fn commands(file: &Path, farm: &Farm, launch: Launch, site: &Site, commands: &dyn CommandLine) -> String {
    let run = &farm.run;
    let mut text = format!(
        "# {}: start_within {}, end_within {}\n",
        file.display(),
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
        let options = commands.options(role).into_iter();
        let defaults = options.filter_map(|option| Some(format!("--{}={}", option.name, option.default?)));
        let _ = writeln!(text, "# {role}: {}", defaults.collect::<Vec<_>>().join(" "));
    }
    text
}

/// Returns the script of a batch job in which this command finds its nodes. The job sends a signal a minute ahead of its
/// end, so that the farm ends in order.
pub fn script(file: &Path, farm: &Farm, quiet: bool) -> Result<String, Error> {
    let path = std::fs::canonicalize(file);
    let path = path.map_err(|why| Error::Settings(format!("{}: cannot be read: {why}", file.display())))?;
    let program = site::this_program()?;
    let mut words = vec![program, "farm".to_owned(), "run".to_owned(), path.display().to_string()];
    words.push("--launch=slurm".to_owned());
    if quiet {
        words.push("--quiet".to_owned());
    }
    let mut text = "#!/bin/sh\n".to_owned();
    for option in site::job_options(farm) {
        let _ = writeln!(text, "#SBATCH {option}");
    }
    let _ = writeln!(text, "#SBATCH --signal=B:TERM@60\nexec {}", quoted(&words));
    Ok(text)
}
