//! The time that threads spend looking for input that is not there: between the first empty look of a wait and the look that finds
//! input, or the sleep.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The nanoseconds that count as polling between two readings of the clock at most: if more have passed, others had the processor.
pub const ROUND_NS_MAX: u64 = 200_000;

/// The counters of the running threads, in nanoseconds, and the sum of those that have ended.
static THREADS: Mutex<Threads> = Mutex::new(Threads { running: Vec::new(), ended: 0 });

struct Threads {
    running: Vec<Arc<AtomicU64>>,
    ended: u64,
}

thread_local! {
    static OWN: Counter = Counter::new();
}

/// The counter of a thread, so that threads share nothing while they poll.
struct Counter(Arc<AtomicU64>);

impl Counter {
    fn new() -> Self {
        let counter = Arc::new(AtomicU64::new(0));
        threads().running.push(Arc::clone(&counter));
        Counter(counter)
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let mut threads = threads();
        threads.running.retain(|counter| !Arc::ptr_eq(counter, &self.0));
        threads.ended += self.0.load(Ordering::Relaxed);
    }
}

/// Adds to the time of the calling thread.
#[inline]
pub fn add(nanos: u64) {
    // Written by its thread alone, so that no locked operation is needed. A thread that ends polls no more.
    let _ = OWN.try_with(|Counter(own)| own.store(own.load(Ordering::Relaxed) + nanos, Ordering::Relaxed));
}

/// Returns the nanoseconds of the calling thread.
#[must_use]
pub fn of_thread() -> u64 {
    OWN.try_with(|Counter(own)| own.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Returns the nanoseconds of all threads since the process started.
#[must_use]
pub fn of_process() -> u64 {
    let threads = threads();
    threads.ended + threads.running.iter().map(|counter| counter.load(Ordering::Relaxed)).sum::<u64>()
}

fn threads() -> MutexGuard<'static, Threads> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds so much that what other tests of this process add is little beside it.
    #[test]
    fn the_time_of_a_thread_that_has_ended_stays_that_of_the_process() {
        const LONG: u64 = 1 << 60;
        let before = of_process();
        let thread = std::thread::spawn(|| {
            add(LONG);
            add(LONG);
            (of_thread(), of_process())
        });
        let (own, all) = thread.join().expect("it only adds");
        assert_eq!((own, (all - before) / LONG, (of_process() - before) / LONG), (2 * LONG, 2, 2));
    }
}
