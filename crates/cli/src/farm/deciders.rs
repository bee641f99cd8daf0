//! The programs of users that decide on events: a process for each worker, or one for each event.

mod exec;
mod process;
mod watch;

use super::node::DeciderOptions;
use crate::{Error, Outcome};
use exec::Exec;
use hodo_catalog::farm::{Deciding, Notice, decide};
use hodo_io::Stop;
use process::Process;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use watch::Watch;

/// Has events decided by a user's program until the end.
pub fn run(asked: &DeciderOptions, deciding: Deciding, stop: &Stop) -> Result<Outcome, Error> {
    let (command, is_long) = match (&asked.command, &asked.exec) {
        (Some(command), _) => (command, true),
        (None, Some(command)) => (command, false),
        (None, None) => return Err(Error::Usage("nobody decides: add --command or --exec".to_owned())),
    };
    check(&command[0])?;
    let (watch, workers) = (Watch::start(), usize::from(asked.workers));
    let (within, output_max) = (asked.decide_within, deciding.node.event_max);
    let told = |notice: Notice<'_>| match notice {
        Notice::Failed { event, why } => tracing::warn!("event {event}: {why}"),
        Notice::Left(error) => tracing::warn!("{error}; trying again"),
        Notice::Joined(_) => tracing::debug!("the controller has greeted"),
        Notice::Passed(_) => {}
    };
    let done = if is_long {
        let deciders = (0..workers).map(|worker| Process::new(command, worker, within, output_max, &watch));
        decide(deciding, deciders.collect(), told, stop)
    } else {
        let deciders = (0..workers).map(|worker| Exec::new(command, worker, within, output_max, &watch));
        decide(deciding, deciders.collect(), told, stop)
    };
    done.map_err(|error| Error::Failed(format!("deciding: {error}")))?;
    Ok(Outcome::Done)
}

/// A program that is not there is better told of before events are asked for.
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
    Err(Error::Usage(format!("there is no program `{program}`; give its path, and make it executable")))
}
