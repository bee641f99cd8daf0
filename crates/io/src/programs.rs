//! The CPU time of all programs of this machine.

use crate::Clock;
use crate::usage::{MachineTime, Usage};
use std::fs;

/// The kernel's threads that serve the network where interrupts come too fast.
const PACKET_THREADS: &str = "ksoftirqd/";

/// A reader of the CPU time of all programs of this machine: what its processors were neither idle nor serving the network.
///
/// It is the time that passed less the idle time, which the kernel measures; what it says of the busy time is sampled, and off by
/// several percent over a second.
#[derive(Debug)]
pub struct Programs {
    clock: Clock,
    excepted: Vec<u32>,
}

impl Programs {
    /// Creates a reader that leaves out these processes and the kernel's threads for packets.
    #[must_use]
    pub fn except(processes: impl IntoIterator<Item = u32>) -> Self {
        Programs { clock: Clock::start(), excepted: processes.into_iter().chain(packet_threads()).collect() }
    }

    /// Returns the seconds of CPU time until now since any origin, including those in which the hypervisor ran another machine; `None`
    /// if `/proc/stat` cannot be read.
    #[must_use]
    pub fn used_s(&self) -> Option<f64> {
        let processors = MachineTime::of_processors()?;
        let passed_s = processors.len() as f64 * self.clock.now().as_nanos() as f64 * 1e-9;
        let neither = |(_, time): &(usize, MachineTime)| time.idle_s + time.interrupts_s;
        let excepted = self.excepted.iter().filter_map(|process| Usage::of(*process));
        Some(passed_s - processors.iter().map(neither).sum::<f64>() - excepted.map(|usage| usage.cpu_s()).sum::<f64>())
    }
}

fn packet_threads() -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let serves = |number: &u32| {
        fs::read_to_string(format!("/proc/{number}/comm")).is_ok_and(|name| name.starts_with(PACKET_THREADS))
    };
    numbers.filter(serves).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_this_process_counts_unless_it_is_left_out() {
        let (all, others) = (Programs::except([]), Programs::except([std::process::id()]));
        let (before, before_others) = (all.used_s().expect("Linux"), others.used_s().expect("Linux"));
        let own = Usage::of_process();
        while Usage::of_process().since(&own).cpu_s() < 0.2 {
            std::hint::black_box((0..1_000_000_u64).fold(1, |sum, i| std::hint::black_box(sum ^ i)));
        }
        let (used, used_others) =
            (all.used_s().expect("Linux") - before, others.used_s().expect("Linux") - before_others);
        assert!(used > 0.15, "{used}");
        assert!(used - used_others > 0.15, "{used} {used_others}");
    }
}
