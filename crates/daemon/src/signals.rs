use crate::Error;
use hodo_io::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What a shell says of a program that Ctrl-C has ended.
const INTERRUPTED: i32 = 130;

/// What the process is asked for from outside: SIGTERM and Ctrl-C ask it to come to its end, SIGHUP to read its
/// configuration again, SIGUSR1 to switch something. A second Ctrl-C ends it at once.
#[derive(Debug, Clone)]
pub struct Signals {
    stop: Arc<Stop>,
    asked: Arc<AtomicBool>,
    reloads: Arc<AtomicUsize>,
    switch: Arc<AtomicBool>,
}

impl Signals {
    /// From now on signals do nothing else.
    pub fn catch() -> Result<Self, Error> {
        let signals = Signals::none();
        // Ahead of the next: only a flag that an earlier signal has set shuts down.
        flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&signals.stop))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&signals.stop)))
            .and_then(|_| flag::register(SIGTERM, Arc::clone(&signals.stop)))
            .and_then(|_| flag::register(SIGHUP, Arc::clone(&signals.asked)))
            .and_then(|_| flag::register(SIGUSR1, Arc::clone(&signals.switch)))
            .map_err(|error| Error::signals(&error))?;
        Ok(signals)
    }

    /// Those of a part of a process, which does not catch any: only [`Signals::stop`] speaks.
    #[must_use]
    pub fn none() -> Self {
        Signals { stop: Arc::default(), asked: Arc::default(), reloads: Arc::default(), switch: Arc::default() }
    }

    /// Set when the process is to come to its end.
    #[must_use]
    pub fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    /// How often it was asked to read its configuration again. Signals that come together count once.
    #[must_use]
    pub fn reloads(&self) -> usize {
        if self.asked.swap(false, Ordering::Relaxed) {
            self.reloads.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            self.reloads.load(Ordering::Relaxed)
        }
    }

    /// Whether it was asked to switch something, since this was last called.
    #[must_use]
    pub fn is_switched(&self) -> bool {
        self.switch.load(Ordering::Relaxed) && self.switch.swap(false, Ordering::Relaxed)
    }
}
