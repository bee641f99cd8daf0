use crate::usage::Usage;
use crate::{Clock, affinity};
use hodo_machine::Instant;
use std::time::Duration;

/// The part of a processor that a busy thread of this program gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Occupancy {
    /// The processor.
    pub cpu: usize,
    /// The share of the time in which the thread ran, as the kernel counts it.
    pub share: f64,
    /// The longest time in which the thread did not run, whoever took the processor: another thread, an interrupt, the hypervisor.
    pub longest_pause: Duration,
}

/// Measures what a thread that never sleeps gets of each processor, on all of them at once, for this long. A processor that this
/// process may not use is left out.
#[must_use]
pub fn occupancy(cpus: &[usize], span: Duration) -> Vec<Occupancy> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = cpus.iter().map(|cpu| scope.spawn(move || occupy(*cpu, span))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
    })
}

fn occupy(cpu: usize, span: Duration) -> Option<Occupancy> {
    affinity::pin_thread(cpu).ok()?;
    let clock = Clock::start();
    let (begin, before) = (clock.now(), Usage::of_thread());
    let (mut last, mut longest_ns): (Instant, u64) = (begin, 0);
    while last < begin + span {
        let now = clock.now();
        longest_ns = longest_ns.max(now.nanos_since(last));
        last = now;
    }
    let (passed_s, ran_s) = (last.nanos_since(begin) as f64 * 1e-9, Usage::of_thread().since(&before).cpu_s());
    Some(Occupancy { cpu, share: (ran_s / passed_s).min(1.0), longest_pause: Duration::from_nanos(longest_ns) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_processor_that_may_be_used_is_measured() {
        let cpus = affinity::allowed_cpus().expect("Linux");
        let found = occupancy(&[cpus[0], 4096], Duration::from_millis(20));
        let [one] = found[..] else { panic!("{found:?}") };
        assert!(one.cpu == cpus[0] && one.share > 0.0 && one.share <= 1.0, "{one:?}");
        assert!(one.longest_pause > Duration::ZERO);
    }
}
