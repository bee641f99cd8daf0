use hodo_io::Clock;
use hodo_machine::Instant;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// A pulse of a thread that has ended in order, or that waits for work.
const AT_REST: u64 = u64::MAX;
/// A pulse of a thread that has ended in a panic.
const DEAD: u64 = u64::MAX - 1;

/// The health of a daemon: its own state, and whether its threads still turn and can do their work.
#[derive(Debug)]
pub struct Health {
    clock: Clock,
    patience: Duration,
    state: AtomicU8,
    pulses: Mutex<Vec<(String, Arc<AtomicU64>)>>,
    failing: Mutex<Option<String>>,
    wrong: OnceLock<String>,
}

/// The state that a daemon reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// The daemon does not serve yet.
    Starting,
    /// The daemon serves.
    Ready,
    /// The daemon finishes pending work and accepts nothing new.
    Draining,
}

/// A thread's sign of life.
#[derive(Debug)]
pub struct Pulse {
    clock: Clock,
    at: Arc<AtomicU64>,
}

impl Health {
    /// Creates the health of a daemon that starts; a thread that has not turned for `patience` counts as stuck.
    #[must_use]
    pub fn new(patience: Duration) -> Self {
        let state = AtomicU8::new(State::Starting as u8);
        Health {
            clock: Clock::start(),
            patience,
            state,
            pulses: Mutex::default(),
            failing: Mutex::default(),
            wrong: OnceLock::new(),
        }
    }

    /// Sets the state.
    pub fn set(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }

    /// Creates a pulse for a thread of this name, which begins now.
    pub fn pulse(&self, thread: &str) -> Pulse {
        let pulse = Pulse { clock: self.clock, at: Arc::default() };
        pulse.beat();
        self.pulses.lock().unwrap_or_else(PoisonError::into_inner).push((thread.to_owned(), Arc::clone(&pulse.at)));
        pulse
    }

    /// Sets why the daemon cannot do its work although every thread turns; `None` once it can again.
    pub fn set_failing(&self, why: Option<String>) {
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Sets what has gone wrong for good although the daemon serves on: an operator has to look at it. The first is the one that
    /// is told.
    pub fn set_wrong(&self, what: String) {
        let _ = self.wrong.set(what);
    }

    /// Returns whether every thread turns: none is stuck, and none has died.
    #[must_use]
    pub fn is_turning(&self) -> bool {
        self.stuck().is_none() && self.dead().is_none()
    }

    /// Returns a thread that has ended in a panic.
    #[must_use]
    pub fn dead(&self) -> Option<String> {
        let pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.iter().find(|(_, at)| at.load(Relaxed) == DEAD).map(|(thread, _)| thread.clone())
    }

    /// Returns a thread that is stuck, and for how long.
    #[must_use]
    pub fn stuck(&self) -> Option<(String, Duration)> {
        let now = self.clock.now();
        let pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.iter().find_map(|(thread, at)| {
            let silent = now - Instant::from_nanos(at.load(Relaxed));
            (silent > self.patience).then(|| (thread.clone(), silent))
        })
    }

    /// Returns the state as a word.
    ///
    /// # Errors
    /// The reason why the daemon does not serve.
    pub fn word(&self) -> Result<&'static str, String> {
        if let Some(thread) = self.dead() {
            return Err(format!("failing: the thread `{thread}` has died; its last words are in the log"));
        }
        if let Some((thread, silent)) = self.stuck() {
            return Err(format!("stuck: the thread `{thread}` has not turned for {} s", silent.as_secs()));
        }
        if let Some(why) = &*self.failing.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(format!("failing: {why}"));
        }
        if let Some(what) = self.wrong.get() {
            return Err(format!("wrong: {what}"));
        }
        match self.state.load(Relaxed) {
            state if state == State::Ready as u8 => Ok("ready"),
            state if state == State::Draining as u8 => Err("draining".to_owned()),
            _ => Err("starting".to_owned()),
        }
    }
}

impl Pulse {
    /// Records that the thread turns.
    #[inline]
    pub fn beat(&self) {
        self.at.store(self.clock.now().as_nanos(), Relaxed);
    }

    /// Records that the thread waits for work, however long that takes.
    #[inline]
    pub fn rest(&self) {
        self.at.store(AT_REST, Relaxed);
    }
}

impl Drop for Pulse {
    /// Records that the thread has ended, so that it does not count as stuck; in a panic it has died.
    fn drop(&mut self) {
        self.at.store(if std::thread::panicking() { DEAD } else { AT_REST }, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_that_is_ready_and_turns_is_well() {
        let health = Health::new(Duration::from_secs(3600));
        let pulse = health.pulse("hub 0");
        assert_eq!(health.word(), Err("starting".to_owned()));
        health.set(State::Ready);
        assert_eq!(health.word(), Ok("ready"));
        health.set(State::Draining);
        assert_eq!(health.word(), Err("draining".to_owned()));
        pulse.beat();
        assert_eq!(health.stuck(), None);
    }

    #[test]
    fn a_thread_that_dies_is_named_for_good() {
        let health = Health::new(Duration::from_secs(3600));
        health.set(State::Ready);
        let pulse = health.pulse("store");
        std::thread::spawn(move || {
            let _pulse = pulse;
            panic!("as told");
        })
        .join()
        .unwrap_err();
        assert!(!health.is_turning());
        assert!(health.word().unwrap_err().starts_with("failing: the thread `store` has died"));
    }

    #[test]
    fn one_that_cannot_do_its_work_says_why_and_is_well_again_when_it_can() {
        let health = Health::new(Duration::ZERO);
        health.set(State::Ready);
        health.pulse("store").rest();
        health.set_failing(Some("no space left".to_owned()));
        assert_eq!(health.word(), Err("failing: no space left".to_owned()));
        health.set_failing(None);
        assert_eq!(health.word(), Ok("ready"));
    }

    #[test]
    fn what_has_gone_wrong_is_told_for_good() {
        let health = Health::new(Duration::from_secs(3600));
        health.set(State::Ready);
        health.set_wrong("event 5 came twice".to_owned());
        health.set_wrong("event 6 came twice".to_owned());
        assert_eq!(health.word(), Err("wrong: event 5 came twice".to_owned()));
        assert!(health.is_turning(), "it serves on, and is not to be started again");
    }

    #[test]
    fn a_thread_that_does_not_turn_is_named_until_it_ends() {
        let health = Health::new(Duration::ZERO);
        health.set(State::Ready);
        let pulse = health.pulse("hub 0");
        while health.stuck().is_none() {}
        assert_eq!(health.word(), Err("stuck: the thread `hub 0` has not turned for 0 s".to_owned()));
        drop(pulse);
        assert_eq!(health.word(), Ok("ready"));
    }
}
