use crate::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ctrl-C and `kill`: the first asks the run to come to its end in order; a second Ctrl-C, to kill what still runs.
///
/// Only Ctrl-C is taken at its second word: `timeout` sends its signal twice, to the process and to its group.
#[derive(Debug, Default)]
pub struct Signals {
    stopped: Arc<AtomicBool>,
    interrupted: Arc<AtomicBool>,
    killed: AtomicBool,
}

impl Signals {
    /// Catches the signals: from now on they do nothing else. SIGHUP is left alone if it opens the log again.
    ///
    /// # Errors
    /// [`Error::Run`] if the system refuses.
    pub fn catch(hangup_reopens: bool) -> Result<Self, Error> {
        let signals = Signals::default();
        let cannot =
            |why: std::io::Error| Error::Run { what: "signals cannot be caught".to_owned(), why: why.to_string() };
        let hangup = (!hangup_reopens).then_some(SIGHUP);
        for signal in [SIGTERM].into_iter().chain(hangup) {
            flag::register(signal, Arc::clone(&signals.stopped)).map_err(cannot)?;
        }
        flag::register(SIGINT, Arc::clone(&signals.interrupted)).map_err(cannot)?;
        Ok(signals)
    }

    /// Returns whether the run is to end.
    pub fn is_stopped(&self) -> bool {
        if self.interrupted.swap(false, Ordering::Relaxed) && self.stopped.swap(true, Ordering::Relaxed) {
            self.killed.store(true, Ordering::Relaxed);
        }
        self.stopped.load(Ordering::Relaxed)
    }

    /// Returns whether the run is to end at once.
    pub fn is_killed(&self) -> bool {
        self.is_stopped() && self.killed.load(Ordering::Relaxed)
    }
}
