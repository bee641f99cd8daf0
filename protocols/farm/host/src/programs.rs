//! The programs of users that decide on events: a process for each worker, or one for each event.

mod exec;
mod process;
mod watch;

use crate::{Deciding, Error, Notice, decide};
use exec::Exec;
use hodo_io::Stop;
use process::Process;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use watch::Watch;

/// Programs of users that decide on events.
#[derive(Debug, Clone)]
pub struct Programs {
    /// How often the program is started.
    pub started: Started,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Processes that decide at the same time.
    pub workers: usize,
    /// The time after which a decision has failed, and its process is killed.
    pub within: Duration,
}

/// How often a program that decides is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// Once for each worker: it decides on one event after the other, over its standard input and output.
    Once,
    /// Once for each event, which is its standard input; the verdict is its exit status.
    ForEachEvent,
}

/// Has events decided by programs until `stop` is set.
pub(crate) fn run(programs: &Programs, deciding: Deciding, stop: &Stop) -> Result<(), Error> {
    let Programs { started, command, workers, within } = programs;
    check(command.first().map_or(OsStr::new(""), OsString::as_os_str))?;
    let watch = Watch::start().map_err(|why| Error::run("starting the thread that watches programs", &why))?;
    let (within, output_max) = (*within, deciding.node.event_max);
    let to = deciding.node.controllers.first().map(ToString::to_string).unwrap_or_default();
    let told = |notice: Notice<'_>| match notice {
        Notice::Failed { event, why } => tracing::warn!("event {event}: {why}"),
        Notice::Left(error) => tracing::warn!("{to}: {error}; trying again"),
        Notice::Joined(_) => tracing::debug!("joined the controller"),
        Notice::Passed(_) => {}
    };
    let done = if *started == Started::Once {
        let deciders = (0..*workers).map(|worker| Process::new(command, worker, within, output_max, &watch));
        decide(deciding, deciders.collect(), told, stop)
    } else {
        let deciders = (0..*workers).map(|worker| Exec::new(command, worker, within, output_max, &watch));
        decide(deciding, deciders.collect(), told, stop)
    };
    done.map_err(|why| Error::run("deciding", &why))
}

/// Checks that there is a program before events are asked for.
fn check(program: &OsStr) -> Result<(), Error> {
    let is_program =
        |path: &Path| path.metadata().is_ok_and(|there| there.is_file() && there.permissions().mode() & 0o111 != 0);
    let there = if program.as_encoded_bytes().contains(&b'/') {
        is_program(Path::new(program))
    } else {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|folder| is_program(&folder.join(program)))
    };
    if there {
        return Ok(());
    }
    let program = program.display();
    Err(Error::Settings(format!("program `{program}` not found; give its path, and make it executable")))
}
