//! The first lines of a daemon: where it listens, and where its pages are.

use crate::Error;
use crate::address::only_here;
use crate::serve::at_the_end_of_stdin;
use hodo_daemon::{Daemon, log};
use hodo_io::LISTENING_ON;
use hodo_tester::PAGES_ON;
use std::fmt::Display;

/// Prints each place where a daemon listens, and where its pages are. One that is tied stops when its standard input ends. `listen` is the
/// option that lets other hosts reach it.
pub fn announce(daemon: &Daemon, at: &[impl Display], is_tied: bool, listen: &str) -> Result<(), Error> {
    if is_tied {
        at_the_end_of_stdin(daemon.stop())?;
    }
    // First of all, so that whoever waits for the lines finds it so.
    let lines: String = at.iter().map(|at| format!("{LISTENING_ON}{at}\n")).collect();
    daemon.ready(lines.lines().next().unwrap_or_default());
    let pages = daemon.site().map(|pages| format!("{PAGES_ON}{pages}\n"));
    log::announce(&format!("{lines}{}", pages.unwrap_or_default()));
    if let Some(said) = at.first().and_then(|at| only_here(at, listen)).filter(|_| !is_tied) {
        tracing::info!("{said}");
    }
    Ok(())
}
