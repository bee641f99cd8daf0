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

use crate::args::{Cli, FarmRun, Launch};
use crate::{Error, Outcome, terminal};
use clap::CommandFactory;
use conduct::Course;
use file::Farm;
use role::Role;
use signals::Signals;
use site::Site;

/// Runs a farm as a file says.
pub fn run(asked: &FarmRun) -> Result<Outcome, Error> {
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
