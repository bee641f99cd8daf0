//! Observations of this host while a link is measured: the counters that tell what happened in a silence.

use hodo_io::Clock;
use hodo_io::host::{QuotaGroups, TcpEvents};
use hodo_io::nic::{Nic, QueueDiscipline};
use hodo_io::usage::{MachineTime, Usage};
use hodo_machine::Instant;
use hodo_measure::Counters;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A reading of the machine serves all threads that ask within this time.
const FRESH: Duration = Duration::from_millis(20);

/// The observers of a row: of the machine, of the interface that the link leaves by, of the far end's process.
pub(crate) struct Observation {
    clock: Clock,
    interface: Option<String>,
    far: FarProcess,
    /// The groups with a quota of this process, and those of the far end's.
    quotas: [Option<QuotaGroups>; 2],
    latest: Mutex<Option<(Instant, Counters)>>,
}

/// The far end's process, whose CPU time is not that of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FarProcess {
    /// The far end is this process, or on another host.
    None,
    /// The far end is this process of this host.
    Here(u32),
    /// The far end is on this host, in a process that is not known.
    Unknown,
}

impl Observation {
    pub(crate) fn new(interface: Option<String>, far: FarProcess) -> Self {
        let far_quotas = if let FarProcess::Here(process) = far { QuotaGroups::of(process) } else { None };
        let quotas = [QuotaGroups::of(std::process::id()), far_quotas];
        Observation { clock: Clock::start(), interface, far, quotas, latest: Mutex::new(None) }
    }

    /// Reads the counters of the machine, unless that was done just now, and of the calling thread.
    pub(crate) fn counters(&self) -> Counters {
        let now = self.clock.now();
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let machine = match *latest {
            Some((at, counters)) if now - at < FRESH => counters,
            _ => self.of_machine(),
        };
        *latest = Some((now, machine));
        Counters { waited_for_processor_s: Usage::waited_for_processor().map(|waited| waited.as_secs_f64()), ..machine }
    }

    fn of_machine(&self) -> Counters {
        let (time, tcp) = (MachineTime::until_now(), TcpEvents::until_now());
        let throttled_s = |groups: &Option<QuotaGroups>| Some(groups.as_ref()?.throttled()?.as_secs_f64());
        let interface = self.interface.as_deref();
        Counters {
            retransmitted: tcp.map(|tcp| tcp.retransmitted),
            timeouts: tcp.map(|tcp| tcp.timeouts),
            queue_drops: interface.map(|name| QueueDiscipline::dropped_by_roots(&QueueDiscipline::of(name))),
            card_drops: interface.and_then(Nic::counters).map(|counters| counters.rx_missed + counters.tx_dropped),
            softirq_s: time.map(|time| time.interrupts_s),
            steal_s: time.map(|time| time.stolen_s),
            others_s: time.and_then(|time| self.others_s(&time)),
            far_waited_for_processor_s: match self.far {
                FarProcess::Here(process) => {
                    Usage::longest_wait_for_processor(process).map(|waited| waited.as_secs_f64())
                }
                FarProcess::None | FarProcess::Unknown => None,
            },
            throttled_s: throttled_s(&self.quotas[0]),
            far_throttled_s: throttled_s(&self.quotas[1]),
            ..Counters::default()
        }
    }

    /// Returns the CPU seconds of programs that are neither side.
    fn others_s(&self, machine: &MachineTime) -> Option<f64> {
        let far_s = match self.far {
            FarProcess::None => 0.0,
            FarProcess::Here(process) => Usage::of(process)?.cpu_s(),
            FarProcess::Unknown => return None,
        };
        Some(machine.busy_s - machine.stolen_s - machine.interrupts_s - Usage::of_process().cpu_s() - far_s)
    }
}
