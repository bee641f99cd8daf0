//! Ctrl-C and `kill`: the first asks the program to come to an end, the second ends it.

use crate::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The flag that the first signal sets. Shells give 130 to a program that Ctrl-C ended, which the second does.
pub fn flag() -> Result<Arc<AtomicBool>, Error> {
    let set = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The order matters: only a flag that an earlier signal has set shuts down.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&set))
            .and_then(|_| flag::register(signal, Arc::clone(&set)))
            .map_err(|why| Error::Failed(format!("signal {signal} cannot be caught: {why}")))?;
    }
    Ok(set)
}
