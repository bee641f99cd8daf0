use crate::Error;
use hodo_io::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The exit status that shells give a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Requests to the process from outside: SIGTERM and Ctrl-C stop it, SIGHUP has it read its configuration again, SIGUSR1
/// switches something. A second Ctrl-C ends it at once.
#[derive(Debug, Clone)]
pub struct Signals {
    stop: Arc<Stop>,
    asked: Arc<AtomicBool>,
    reloads: Arc<AtomicUsize>,
    switch: Arc<AtomicBool>,
}

impl Signals {
    /// Catches the signals from now on.
    ///
    /// # Errors
    /// [`Error::Signals`] if the system refuses.
    pub fn catch() -> Result<Self, Error> {
        let signals = Signals::none();
        // Registered before the next, so that only a flag that an earlier signal set shuts down.
        flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&signals.stop))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&signals.stop)))
            .and_then(|_| flag::register(SIGTERM, Arc::clone(&signals.stop)))
            .and_then(|_| flag::register(SIGHUP, Arc::clone(&signals.asked)))
            .and_then(|_| flag::register(SIGUSR1, Arc::clone(&signals.switch)))
            .map_err(|error| Error::signals(&error))?;
        Ok(signals)
    }

    /// Creates signals that nothing catches, for a part of a process: only [`Signals::stop`] is ever set.
    #[must_use]
    pub fn none() -> Self {
        Signals { stop: Arc::default(), asked: Arc::default(), reloads: Arc::default(), switch: Arc::default() }
    }

    /// Returns the flag that is set when the process has to stop.
    #[must_use]
    pub fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    /// Returns how often SIGHUP came. Signals that come together count once.
    #[must_use]
    pub fn reloads(&self) -> usize {
        if self.asked.swap(false, Ordering::Relaxed) {
            self.reloads.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            self.reloads.load(Ordering::Relaxed)
        }
    }

    /// Returns `true` if SIGUSR1 came since the last call.
    #[must_use]
    pub fn is_switched(&self) -> bool {
        self.switch.load(Ordering::Relaxed) && self.switch.swap(false, Ordering::Relaxed)
    }
}
