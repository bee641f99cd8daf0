use crate::{Error, log};
use hodo_io::{Clock, Stop, process, scheduling};
use hodo_machine::Instant;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::thread::Builder;
use std::time::Duration;

/// Between two looks at whether the process is to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How long what is left behind the drain may take: with the last lines of the log, the process ends within a second.
const LAST: Duration = Duration::from_millis(600);
/// The exit status of a process that had to be ended.
const FAILED: i32 = 1;

/// The end of a daemon: how long work may go on once the daemon is told to stop.
///
/// With [`Ending::enforce`] the process ends a second after that at the latest, whatever its threads wait for.
#[derive(Debug)]
pub struct Ending {
    stop: Arc<Stop>,
    drain: Duration,
    clock: Clock,
    since: OnceLock<Instant>,
}

impl Ending {
    /// Creates the end of a daemon that may drain for this long once `stop` is set.
    #[must_use]
    pub fn new(stop: &Arc<Stop>, drain: Duration) -> Arc<Self> {
        Arc::new(Ending { stop: Arc::clone(stop), drain, clock: Clock::start(), since: OnceLock::new() })
    }

    /// Returns how long work may still go on.
    #[must_use]
    pub fn left(&self) -> Duration {
        if !self.stop.load(Ordering::Relaxed) {
            return self.drain;
        }
        let now = self.clock.now();
        let end = *self.since.get_or_init(|| now) + self.drain;
        if now < end { end - now } else { Duration::ZERO }
    }

    /// Returns whether work has to be over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left().is_zero() && self.stop.load(Ordering::Relaxed)
    }

    /// Ends the process if it is still there when its time is over, by a thread that waits for nothing else.
    ///
    /// # Errors
    /// [`Error::Start`] if there can be no thread.
    pub fn enforce(self: &Arc<Self>) -> Result<(), Error> {
        let ending = Arc::clone(self);
        let watch = move || {
            scheduling::set_before_realtime();
            while !ending.is_over() {
                hodo_io::sleep(if ending.stop.load(Ordering::Relaxed) { LOOK.min(ending.left()) } else { LOOK });
            }
            hodo_io::sleep(LAST);
            tracing::error!(
                "a thread has not ended {:?} after the order to stop; the process ends all the same",
                ending.drain + LAST
            );
            log::close();
            process::exit_at_once(FAILED);
        };
        let thread = Builder::new().name("end".to_owned()).spawn(watch);
        thread.map(drop).map_err(|why| {
            let what = "the thread that ends the process in time".to_owned();
            Error::Start { what, why: why.to_string() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_begins_with_the_order_to_stop() {
        let stop = Arc::new(Stop::default());
        let ending = Ending::new(&stop, Duration::from_secs(60));
        assert_eq!((ending.left(), ending.is_over()), (Duration::from_secs(60), false));
        stop.store(true, Ordering::Relaxed);
        assert!(ending.left() <= Duration::from_secs(60) && !ending.is_over());
        let at_once = Ending::new(&stop, Duration::ZERO);
        assert!(at_once.is_over());
    }
}
