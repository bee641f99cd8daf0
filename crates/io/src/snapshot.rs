use crate::Bell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A copy of a busy thread's state for other threads. The busy thread copies only on request, and otherwise reads one
/// flag.
#[derive(Debug)]
pub struct Snapshot<T> {
    wanted: AtomicBool,
    latest: Mutex<Latest<T>>,
    made: Condvar,
    bell: Bell,
}

#[derive(Debug)]
struct Latest<T> {
    number: u64,
    value: Option<Arc<T>>,
}

impl<T> Default for Snapshot<T> {
    fn default() -> Self {
        Snapshot::with_bell(&Bell::default())
    }
}

impl<T> Snapshot<T> {
    /// Creates a place for copies; the busy thread is called with this bell when somebody asks.
    #[must_use]
    pub fn with_bell(bell: &Bell) -> Self {
        let latest = Mutex::new(Latest { number: 0, value: None });
        Snapshot { wanted: AtomicBool::new(false), latest, made: Condvar::new(), bell: bell.clone() }
    }

    /// Makes a copy if somebody has asked since the last call. The busy thread calls this again and again.
    #[inline]
    pub fn offer(&self, make: impl FnOnce() -> T) {
        if self.wanted.load(Ordering::Relaxed) && self.wanted.swap(false, Ordering::Acquire) {
            let value = Arc::new(make());
            let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
            latest.number += 1;
            latest.value = Some(value);
            self.made.notify_all();
        }
    }

    /// Returns a copy made after this call; after `patience`, the latest copy, or `None` if there is none.
    pub fn ask(&self, patience: Duration) -> Option<Arc<T>> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let before = latest.number;
        self.wanted.store(true, Ordering::Release);
        self.bell.ring();
        let waited = self.made.wait_timeout_while(latest, patience, |latest| latest.number == before);
        waited.unwrap_or_else(PoisonError::into_inner).0.value.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn a_copy_is_made_only_when_it_is_asked_for() {
        let snapshot = Snapshot::default();
        snapshot.offer(|| unreachable!("nobody has asked"));
        assert_eq!(snapshot.ask(Duration::ZERO), None);
        snapshot.offer(|| 1);
        snapshot.offer(|| unreachable!("one copy for one question"));
        assert_eq!(snapshot.ask(Duration::ZERO).as_deref(), Some(&1), "the latest, where none comes in time");
    }

    #[test]
    fn who_asks_gets_what_is_made_after() {
        let (snapshot, ended) = (Snapshot::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut turn = 0_u64;
                while !ended.load(Ordering::Relaxed) {
                    turn += 1;
                    snapshot.offer(|| turn);
                    std::thread::yield_now();
                }
            });
            let turns: Vec<u64> = (0..10).map(|_| *snapshot.ask(LONG).expect("it turns")).collect();
            ended.store(true, Ordering::Relaxed);
            assert!(turns.windows(2).all(|pair| pair[0] < pair[1]), "{turns:?}");
        });
    }
}
