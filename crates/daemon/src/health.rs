use hodo_io::Clock;
use hodo_machine::Instant;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Whether a daemon does what it is there for: what it says of itself, and whether its threads still turn.
#[derive(Debug)]
pub struct Health {
    clock: Clock,
    patience: Duration,
    state: AtomicU8,
    pulses: Mutex<Vec<(String, Arc<AtomicU64>)>>,
}

/// What a daemon says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// It serves nobody yet.
    Starting,
    /// It serves.
    Ready,
    /// It answers what is under way and takes nothing new.
    Draining,
}

/// One thread's sign that it turns.
#[derive(Debug)]
pub struct Pulse {
    clock: Clock,
    at: Arc<AtomicU64>,
}

impl Health {
    /// Starting; a thread that has not turned for `patience` is taken for stuck.
    #[must_use]
    pub fn new(patience: Duration) -> Self {
        let state = AtomicU8::new(State::Starting as u8);
        Health { clock: Clock::start(), patience, state, pulses: Mutex::default() }
    }

    /// Says how it does from now on.
    pub fn set(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }

    /// A pulse for a thread of this name, which begins now.
    pub fn pulse(&self, thread: &str) -> Pulse {
        let pulse = Pulse { clock: self.clock, at: Arc::default() };
        pulse.beat();
        self.pulses.lock().unwrap_or_else(PoisonError::into_inner).push((thread.to_owned(), Arc::clone(&pulse.at)));
        pulse
    }

    /// A thread that is stuck, and for how long.
    #[must_use]
    pub fn stuck(&self) -> Option<(String, Duration)> {
        let now = self.clock.now();
        let pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.iter().find_map(|(thread, at)| {
            let silent = now - Instant::from_nanos(at.load(Relaxed));
            (silent > self.patience).then(|| (thread.clone(), silent))
        })
    }

    /// A word on how it does; an error where it does not serve.
    pub fn word(&self) -> Result<&'static str, String> {
        if let Some((thread, silent)) = self.stuck() {
            return Err(format!("stuck: the thread `{thread}` has not turned for {} s", silent.as_secs()));
        }
        match self.state.load(Relaxed) {
            state if state == State::Ready as u8 => Ok("ready"),
            state if state == State::Draining as u8 => Err("draining".to_owned()),
            _ => Err("starting".to_owned()),
        }
    }
}

impl Pulse {
    /// It turns.
    #[inline]
    pub fn beat(&self) {
        self.at.store(self.clock.now().as_nanos(), Relaxed);
    }
}

impl Drop for Pulse {
    /// A thread that has ended in order is not stuck.
    fn drop(&mut self) {
        self.at.store(u64::MAX, Relaxed);
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
