//! A whole farm from a file: its processes are placed on hosts, started, watched, and ended in order.

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
mod values;

pub use conduct::{Course, OutputLine};
pub use role::{CommandLine, Role, RoleOption, Takes};
pub use signals::Signals;

use crate::Error;
use file::Farm;
use site::Site;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The means by which the processes of a farm are started at their hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launch {
    /// This program, on this machine, whatever hosts the file names.
    Local,
    /// Connections of ssh.
    Ssh,
    /// A job of Slurm: the one in which this program runs, or else one of its own.
    Slurm,
}

impl Launch {
    fn of_name(name: &str) -> Option<Launch> {
        match name {
            "local" => Some(Launch::Local),
            "ssh" => Some(Launch::Ssh),
            "slurm" => Some(Launch::Slurm),
            _ => None,
        }
    }
}

/// A farm as a file describes it.
#[derive(Debug)]
pub struct FarmFile {
    path: PathBuf,
    farm: Farm,
    launch: Launch,
}

impl FarmFile {
    /// Reads and checks a file. `launch` goes before what the file says; without either, all runs on this machine.
    ///
    /// # Errors
    /// [`Error::Settings`] with the line of what is wrong.
    pub fn read(path: &Path, launch: Option<Launch>, commands: &dyn CommandLine) -> Result<Self, Error> {
        let farm = file::read(path, commands)?;
        plan::check(&farm, commands)?;
        let launch = launch.or(farm.run.launch).unwrap_or(Launch::Local);
        Ok(FarmFile { path: path.to_owned(), farm, launch })
    }

    /// Returns the commands of the farm, host by host, and the defaults of what the file leaves out.
    ///
    /// # Errors
    /// [`Error::Settings`] if a role has no host.
    pub fn commands(&self, commands: &dyn CommandLine) -> Result<String, Error> {
        let site = Site::imagined(&self.farm, self.launch)?;
        Ok(show::commands(&self.path, &self.farm, self.launch, &site, commands))
    }

    /// Returns the script of a batch job of Slurm that runs the farm.
    ///
    /// # Errors
    /// [`Error::Settings`] if the file is not there any more.
    pub fn script(&self, quiet: bool) -> Result<String, Error> {
        show::script(&self.path, &self.farm, quiet)
    }

    /// Submits the farm as a batch job. Returns whether Slurm took it.
    ///
    /// # Errors
    /// [`Error::Run`] if `sbatch` cannot be run.
    pub fn submit(&self, quiet: bool) -> Result<bool, Error> {
        let script = self.script(quiet)?;
        let cannot = |why: std::io::Error| Error::Run {
            what: "sbatch cannot be run".to_owned(),
            why: format!("{why}; is Slurm installed here?"),
        };
        let mut sbatch = Command::new("sbatch").stdin(Stdio::piped()).spawn().map_err(cannot)?;
        sbatch.stdin.take().expect("standard input is piped").write_all(script.as_bytes()).map_err(cannot)?;
        Ok(sbatch.wait().map_err(cannot)?.success())
    }

    /// Runs the farm to its end. Lines of its processes go to `say`. Returns `None` if a signal came before its hosts were
    /// there.
    ///
    /// # Errors
    /// [`Error::Settings`] if a role has no host, [`Error::Daemon`] if processes cannot be started.
    pub fn run(&self, signals: &Signals, say: &mut dyn FnMut(OutputLine<'_>)) -> Result<Option<Course>, Error> {
        let Some(site) = Site::prepare(&self.farm, self.launch, signals)? else { return Ok(None) };
        let processes = plan::place(&self.farm, &site.pool, self.launch == Launch::Local);
        conduct::run(&self.farm, &site, processes, signals, say).map(Some)
    }

    /// Returns whether a run went well.
    #[must_use]
    pub fn is_well(&self, course: &Course) -> bool {
        // Where nothing else would have ended it, an interrupt is how it ends.
        let is_endless = self.farm.run.events.is_none() && self.farm.run.time.is_none();
        course.failures.is_empty() && (!course.interrupted || is_endless)
    }

    /// Returns the outcome of a run in one line.
    #[must_use]
    pub fn summary(&self, course: &Course) -> String {
        let farm = &self.farm;
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
            1 => ", 1 process restarted".to_owned(),
            restarts => format!(", {restarts} processes restarted"),
        };
        let rate = match (course.decided.or(farm.run.events), course.events_took) {
            (Some(events), Some(took)) => {
                let seconds = took.as_secs_f64();
                format!("; {events} events in {seconds:.1} s, {:.0} events/s", events as f64 / seconds)
            }
            _ => String::new(),
        };
        format!("farm: {how} after {:.1} s; {}{again}{rate}\n", course.took.as_secs_f64(), roles.join(", "))
    }
}
