use crate::Clock;
use std::time::Duration;

/// The time for which this thread sleeps first, so that its processor slows down.
const REST: Duration = Duration::from_millis(60);
/// The duration of the work that follows.
const WORK: Duration = Duration::from_millis(60);

/// Measures how much slower a processor works right after it was idle than once it has worked for a while: 0.4 if it takes 1.67 times as
/// long. Takes an eighth of a second; `None` if the work was interrupted too often to tell.
#[must_use]
pub fn slow_start() -> Option<f64> {
    std::thread::sleep(REST);
    let clock = Clock::start();
    let end = clock.now() + WORK;
    let mut times = Vec::new();
    while clock.now() < end {
        let begin = clock.now();
        std::hint::black_box((0..20_000_u64).fold(1, |sum: u64, i| std::hint::black_box(sum.wrapping_mul(31) ^ i)));
        times.push(clock.now().nanos_since(begin));
    }
    // The first twentieth is some milliseconds; the shortest of each part had no interrupt in it.
    let shortest = |part: &[u64]| part.iter().copied().min().filter(|ns| *ns > 0).map(|ns| ns as f64);
    let (cold, warm) = times.split_at(times.len() / 20);
    Some((1.0 - shortest(warm)? / shortest(cold)?).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "timing"]
    fn a_share_is_measured() {
        assert!(slow_start().is_some_and(|share| (0.0..1.0).contains(&share)));
    }
}
