use hodo_io::usage::Usage;
use serde::{Deserialize, Serialize};

/// The CPU time that the measurement cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
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
    /// CPU time of this process per operation.
    pub local_ns_per_operation: Option<f64>,
    /// CPU time of the far end per operation.
    pub remote_ns_per_operation: Option<f64>,
}

impl Cpu {
    /// Other programs may use this much of the machine, in percent, before a row says so.
    pub const OTHERS_MAX_PERCENT: f64 = 5.0;

    /// Returns the sentence about other programs that took their part of the machine; `None` where they took next to nothing.
    #[must_use]
    pub fn others_text(&self) -> Option<String> {
        let percent = self.others_percent.filter(|percent| *percent > Self::OTHERS_MAX_PERCENT)?;
        Some(format!("other programs took {percent:.0} % of the machine's CPU; end them for a figure to quote"))
    }
}

/// One process over the counted time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ProcessCpu {
    /// 100 for one processor busy.
    pub percent: f64,
    /// Seconds in user mode.
    pub user_s: f64,
    /// Seconds in the kernel.
    pub system_s: f64,
    /// Context switches because it waited.
    pub voluntary_switches: u64,
    /// Context switches because its time slice ended.
    pub involuntary_switches: u64,
    /// The largest resident set.
    pub max_rss_bytes: u64,
}

impl ProcessCpu {
    /// Returns the CPU of a process that used this in so many seconds.
    #[must_use]
    pub fn of(usage: &Usage, elapsed_s: f64) -> Self {
        ProcessCpu {
            percent: if elapsed_s > 0.0 { 100.0 * usage.cpu_s() / elapsed_s } else { 0.0 },
            user_s: usage.user_s,
            system_s: usage.system_s,
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
            max_rss_bytes: usage.max_rss_bytes,
        }
    }
}
