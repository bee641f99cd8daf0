//! Ctrl-C and `kill`: the first asks the program to come to an end; a second Ctrl-C ends it at once.

use crate::Error;
use crate::logging::LogOptions;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns the flag that the first signal sets. The second Ctrl-C ends the process with status 130, as shells expect.
///
/// Only a second Ctrl-C ends the process at once: `timeout` sends its signal twice, to the process and to its group.
pub fn flag() -> Result<Arc<AtomicBool>, Error> {
    catch(&[SIGINT, SIGTERM, SIGHUP])
}

/// Returns the flag of [`flag()`] for a daemon: SIGHUP opens the log again if that is in a file.
pub fn flag_of_daemon(log: &LogOptions) -> Result<Arc<AtomicBool>, Error> {
    if log.reopens() { catch(&[SIGINT, SIGTERM]) } else { flag() }
}

fn catch(signals: &[i32]) -> Result<Arc<AtomicBool>, Error> {
    let set = Arc::new(AtomicBool::new(false));
    let cannot = |why| Error::Failed(format!("signals cannot be caught: {why}"));
    // Ahead of the next: only a flag that an earlier signal has set shuts down.
    flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&set)).map_err(cannot)?;
    for signal in signals {
        flag::register(*signal, Arc::clone(&set)).map_err(cannot)?;
    }
    Ok(set)
}
