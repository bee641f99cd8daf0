use hodo_io::usage::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The CPU time that the measurement cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// The whole machine, 100 for all processors busy.
    pub machine_percent: Option<f64>,
    /// The busiest of the processors that this side, or a far end on this machine, may run on; interrupts included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_percent: Option<f64>,
    /// All programs but both sides, 100 for all processors busy; null where it is unknown what the far end used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_percent: Option<f64>,
    /// This process.
    pub local: Option<ProcessCpu>,
    /// The far end's process; null when unknown.
    pub remote: Option<ProcessCpu>,
    /// CPU time of this process per operation, without polling.
    pub local_ns_per_operation: Option<f64>,
    /// CPU time of the far end per operation, without polling as far as that is known.
    pub remote_ns_per_operation: Option<f64>,
    /// Times that a thread of this process slept, per operation.
    #[serde(default)]
    pub local_sleeps_per_operation: Option<f64>,
    /// Times that a thread of the far end slept, per operation.
    #[serde(default)]
    pub remote_sleeps_per_operation: Option<f64>,
}

impl Cpu {
    /// Other programs may use this much of the machine, in percent, before a row says so.
    pub const OTHERS_MAX_PERCENT: f64 = 5.0;

    /// Returns the CPU time of these two sides, in all and for each operation.
    #[must_use]
    pub fn of_sides(local: Option<ProcessCpu>, remote: Option<ProcessCpu>, operations: u64) -> Self {
        let each = |process: Option<ProcessCpu>, of: fn(&ProcessCpu) -> f64| {
            process.filter(|_| operations > 0).map(|process| of(&process) / operations as f64)
        };
        let (work_ns, sleeps) =
            (|side: &ProcessCpu| side.working_s() * 1e9, |side: &ProcessCpu| side.voluntary_switches as f64);
        Cpu {
            local,
            remote,
            local_ns_per_operation: each(local, work_ns),
            remote_ns_per_operation: each(remote, work_ns),
            local_sleeps_per_operation: each(local, sleeps),
            remote_sleeps_per_operation: each(remote, sleeps),
            ..Cpu::default()
        }
    }

    /// Returns the sentence about other programs that took their part of the machine; `None` where they took next to nothing.
    #[must_use]
    pub fn others_text(&self) -> Option<String> {
        let percent = self.others_percent.filter(|percent| *percent > Self::OTHERS_MAX_PERCENT)?;
        Some(format!("other programs took {percent:.0} % of the machine's CPU; end them for a figure to quote"))
    }
}

/// The cost of computing a simulated link on this host, by this host's clock. It says nothing of the link, whose time is virtual.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulationCost {
    /// The time that the counted part took.
    pub host_s: f64,
    /// The counted time of the simulation over that of the host: under 1, this host could not hold it in real time.
    pub times_real_time: f64,
    /// The whole machine meanwhile, 100 for all processors busy.
    pub machine_percent: Option<f64>,
    /// This process, in which both ends and what is between them are computed; percent is of the host's time.
    pub local: Option<ProcessCpu>,
    /// CPU time of this process per operation.
    pub local_ns_per_operation: Option<f64>,
}

impl SimulationCost {
    /// Returns the cost of a simulated run of `elapsed_s`, from what it used of this host in `host_s`; `None` if no time passed.
    #[must_use]
    pub fn of(cpu: &Cpu, elapsed_s: f64, host_s: f64) -> Option<Self> {
        let local = cpu.local.map(|local| ProcessCpu { percent: 100.0 * local.cpu_s() / host_s, ..local });
        (host_s > 0.0 && elapsed_s > 0.0).then_some(SimulationCost {
            host_s,
            times_real_time: elapsed_s / host_s,
            machine_percent: cpu.machine_percent,
            local,
            local_ns_per_operation: cpu.local_ns_per_operation,
        })
    }
}

/// One process over the counted time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProcessCpu {
    /// 100 for one processor busy.
    pub percent: f64,
    /// Seconds in user mode.
    pub user_s: f64,
    /// Seconds in the kernel.
    pub system_s: f64,
    /// Seconds of both that were spent looking for input that was not there; null when unknown.
    #[serde(default)]
    pub polling_s: Option<f64>,
    /// Context switches because it waited.
    pub voluntary_switches: u64,
    /// Context switches because its time slice ended.
    pub involuntary_switches: u64,
    /// The largest resident set.
    pub max_rss_bytes: u64,
}

impl ProcessCpu {
    /// Returns the seconds in user mode and in the kernel together.
    #[must_use]
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }

    /// Returns the seconds of CPU time without those of polling, as far as these are known.
    #[must_use]
    pub fn working_s(&self) -> f64 {
        (self.cpu_s() - self.polling_s.unwrap_or(0.0)).max(0.0)
    }

    /// Returns the CPU of a process that used this in so many seconds.
    #[must_use]
    pub fn of(usage: &Usage, elapsed_s: f64) -> Self {
        ProcessCpu {
            percent: if elapsed_s > 0.0 { 100.0 * usage.cpu_s() / elapsed_s } else { 0.0 },
            user_s: usage.user_s,
            system_s: usage.system_s,
            // By another clock, which also runs while others have the processor.
            polling_s: usage.polling_s.map(|polling_s| polling_s.min(usage.cpu_s())),
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
            max_rss_bytes: usage.max_rss_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_are_named_over_a_twentieth_of_the_machine() {
        let told = |percent| Cpu { others_percent: percent, ..Cpu::default() }.others_text();
        assert_eq!([told(None), told(Some(4.9))], [None, None]);
        let text = "other programs took 31 % of the machine's CPU; end them for a figure to quote";
        assert_eq!(told(Some(31.4)).as_deref(), Some(text));
    }

    #[test]
    fn an_operation_costs_what_is_not_polling() {
        let spinning = ProcessCpu { user_s: 0.5, system_s: 1.5, polling_s: Some(1.25), ..ProcessCpu::default() };
        let blocking = ProcessCpu { system_s: 0.5, voluntary_switches: 1_500, ..ProcessCpu::default() };
        let cpu = Cpu::of_sides(Some(spinning), Some(blocking), 1_000);
        assert_eq!((cpu.local_ns_per_operation, cpu.local_sleeps_per_operation), (Some(750_000.0), Some(0.0)));
        assert_eq!((cpu.remote_ns_per_operation, cpu.remote_sleeps_per_operation), (Some(500_000.0), Some(1.5)));
        assert_eq!(Cpu::of_sides(Some(spinning), None, 0).local_ns_per_operation, None);
    }

    /// Takes 0.6 s of a link that 0.3 s of the host computed, 0.29 s of which this process had a processor.
    #[test]
    fn a_simulation_costs_time_of_the_host_and_not_of_the_link() {
        // What was counted over virtual time is half of what it was.
        let local = ProcessCpu { percent: 48.3, user_s: 0.28, system_s: 0.01, ..ProcessCpu::default() };
        let cpu = Cpu {
            machine_percent: Some(61.0),
            local: Some(local),
            local_ns_per_operation: Some(2_900.0),
            ..Cpu::default()
        };
        let cost = SimulationCost::of(&cpu, 0.6, 0.3).expect("time has passed");
        assert_eq!((cost.host_s, cost.times_real_time, cost.machine_percent), (0.3, 2.0, Some(61.0)));
        assert_eq!(cost.local.map(|local| local.percent.round()), Some(97.0));
        assert_eq!(cost.local_ns_per_operation, Some(2_900.0));
        assert_eq!([SimulationCost::of(&cpu, 0.0, 0.3), SimulationCost::of(&cpu, 0.6, 0.0)], [None, None]);
    }
}
