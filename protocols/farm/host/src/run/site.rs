//! The hosts of a farm, and the launcher that starts its processes there.

use super::Launch;
use super::file::Farm;
use super::signals::Signals;
use crate::Error;
use hodo_daemon::launch::{Allocation, Launcher};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

/// The name of this machine where it is the only one.
const HERE: &str = "localhost";
/// Between two looks at whether the wait for nodes is to end.
const LOOK: Duration = Duration::from_millis(100);

/// The hosts of a farm, and the launcher that starts its processes there.
#[derive(Debug)]
pub struct Site {
    /// The launcher that starts processes.
    pub launcher: Launcher,
    /// The hosts for roles that name none.
    pub pool: Vec<String>,
    /// The program `hodo` there.
    pub program: String,
    /// Slurm's job.
    _allocation: Option<Allocation>,
}

impl Site {
    /// Prepares the hosts, so that processes can be started; `None` if a signal came first.
    pub fn prepare(farm: &Farm, launch: Launch, signals: &Signals) -> Result<Option<Self>, Error> {
        if launch != Launch::Slurm {
            return Site::known(farm, launch).map(Some);
        }
        let allocation = match Allocation::current()? {
            Some(current) => current,
            None => match asked(farm, signals)? {
                Some(given) => given,
                None => return Ok(None),
            },
        };
        let foreign = named(farm).into_iter().find(|host| !allocation.hosts.contains(host));
        if let Some(host) = foreign {
            let (job, hosts) = (&allocation.job, allocation.hosts.join(","));
            return Err(Error::Settings(format!("job {job} has no node {host}; it has {hosts}")));
        }
        let pool = if farm.run.hosts.is_empty() { allocation.hosts.clone() } else { farm.run.hosts.clone() };
        Ok(Some(Site {
            launcher: Launcher::Slurm { job: allocation.job.clone(), options: farm.slurm.step_options.clone() },
            pool,
            program: program(farm, launch)?,
            _allocation: Some(allocation),
        }))
    }

    /// Returns the site as it would be, without asking anybody: nodes that Slurm would choose are numbered.
    pub fn imagined(farm: &Farm, launch: Launch) -> Result<Self, Error> {
        Site::known(farm, launch)
    }

    fn known(farm: &Farm, launch: Launch) -> Result<Self, Error> {
        let program = program(farm, launch)?;
        let (launcher, pool) = match launch {
            Launch::Local => (Launcher::Local, vec![HERE.to_owned()]),
            Launch::Ssh => (Launcher::Ssh { options: farm.ssh.options.clone() }, farm.run.hosts.clone()),
            Launch::Slurm => {
                let options = farm.slurm.step_options.clone();
                let hosts = named(farm);
                let more = farm.slurm.nodes.unwrap_or(1).saturating_sub(hosts.len() as u64);
                let more = (1..=more).map(|number| format!("NODE-{number}"));
                (Launcher::Slurm { job: "JOB".to_owned(), options }, hosts.into_iter().chain(more).collect())
            }
        };
        if pool.is_empty() && farm.groups.iter().any(|group| group.hosts.is_empty()) {
            return Err(Error::Settings(
                "there are roles without a host; write `hosts` in [run], as \"sfc,node[1-20]\"".to_owned(),
            ));
        }
        Ok(Site { launcher, pool, program, _allocation: None })
    }

    /// Returns the address by which others reach a process that listens at `at` on a host.
    pub fn reached(&self, host: &str, at: &str) -> String {
        match at.parse::<SocketAddr>() {
            Ok(address) if address.ip().is_unspecified() => {
                let name = self.address(host).unwrap_or_else(|| host.rsplit('@').next().unwrap_or(host).to_owned());
                let named = format!("{name}:{}", address.port());
                // Roles take numbers. Where there are none, they say what is wrong with the name.
                hodo_io::resolve(&named, address.port()).map_or(named, |resolved| resolved.to_string())
            }
            _ => at.to_owned(),
        }
    }

    /// Queries the launcher for a host's address.
    fn address(&self, host: &str) -> Option<String> {
        let words = self.launcher.address_words(host)?;
        let printed = Command::new(&words[0]).args(&words[1..]).output().ok()?;
        self.launcher.address(&String::from_utf8_lossy(&printed.stdout))
    }
}

/// Returns the hosts that the file names, each once.
fn named(farm: &Farm) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for host in farm.run.hosts.iter().chain(farm.groups.iter().flat_map(|group| &group.hosts)) {
        if !hosts.contains(host) {
            hosts.push(host.clone());
        }
    }
    hosts
}

/// Returns the options for `salloc` and `sbatch`.
pub fn job_options(farm: &Farm) -> Vec<String> {
    let hosts = named(farm);
    let nodes = farm.slurm.nodes.unwrap_or(1).max(hosts.len() as u64);
    let mut options = vec!["--job-name=hodo-farm".to_owned(), format!("--nodes={nodes}")];
    options.push("--ntasks-per-node=1".to_owned());
    if !hosts.is_empty() {
        options.push(format!("--nodelist={}", hosts.join(",")));
    }
    options.extend(farm.slurm.options.iter().cloned());
    options
}

fn asked(farm: &Farm, signals: &Signals) -> Result<Option<Allocation>, Error> {
    let mut asked = Allocation::ask(&job_options(farm))?;
    while !signals.is_stopped() {
        if let Some(given) = asked.wait(LOOK)? {
            return Ok(Some(given));
        }
    }
    Ok(None)
}

/// Returns the program `hodo` at the hosts: this one, where their files are taken to be the same.
fn program(farm: &Farm, launch: Launch) -> Result<String, Error> {
    match (&farm.run.program, launch) {
        (Some(program), _) => Ok(program.clone()),
        (None, Launch::Ssh) => Ok("hodo".to_owned()),
        (None, Launch::Local | Launch::Slurm) => this_program(),
    }
}

/// Returns the path of this program.
pub fn this_program() -> Result<String, Error> {
    let this = std::env::current_exe().map_err(|why| Error::run("the path of this program cannot be read", &why))?;
    Ok(this.display().to_string())
}
