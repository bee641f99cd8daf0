//! The first lines of a daemon: where it listens, and where its pages are.

use crate::serve::at_the_end_of_stdin;
use crate::{Error, terminal};
use hodo_daemon::Daemon;
use hodo_machine::Address;
use hodo_tester::{LISTENING_ON, PAGES_ON};

/// Prints where a daemon listens and where its pages are. One that is tied stops when its standard input ends.
pub fn announce(daemon: &Daemon, at: &Address, is_tied: bool) -> Result<(), Error> {
    if is_tied {
        at_the_end_of_stdin(daemon.stop());
    }
    // First of all, so that whoever waits for the lines finds it so.
    daemon.ready(&format!("{LISTENING_ON}{at}"));
    terminal::print(&format!("{LISTENING_ON}{at}\n"))?;
    match daemon.site() {
        Some(pages) => terminal::print(&format!("{PAGES_ON}{pages}\n")),
        None => Ok(()),
    }
}
