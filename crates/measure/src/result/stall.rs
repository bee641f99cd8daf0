//! Silences of a link that its test cannot explain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A time in which nothing completed, longer than ten usual gaps between completions, two round-trips, and 5 ms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stall {
    /// The beginning, from the start of the counted time.
    pub at_s: f64,
    /// The duration.
    pub lasted_s: f64,
    /// Operations that were in flight or fell due meanwhile.
    pub operations_late: u64,
    /// The part that was silent; null where the observations do not tell.
    pub whose: Option<Whose>,
    /// The observations of this host meanwhile.
    pub saw: Observed,
}

/// The part that stood still during a stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// The network between the two ends: packets were lost, or sent again.
    Link,
    /// The far end, which had everything and did not reply.
    FarEnd,
    /// This host: the thread that drives the link had no processor.
    Host,
}

impl Whose {
    /// Returns the part in words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Whose::Link => "the link's",
            Whose::FarEnd => "the far end's",
            Whose::Host => "this host's",
        }
    }
}

/// The observations of a host during a stall, or the counted time. Null where it cannot be known.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Observed {
    /// Segments that this side's TCP sent again.
    pub retransmitted: Option<u64>,
    /// Retransmission timeouts of this side's TCP.
    pub timeouts: Option<u64>,
    /// Packets dropped by the queue discipline of the interface.
    pub queue_drops: Option<u64>,
    /// Packets dropped by the interface itself.
    pub card_drops: Option<u64>,
    /// Seconds that the processors spent in software interrupts.
    pub softirq_s: Option<f64>,
    /// Seconds that the hypervisor gave to other machines.
    pub steal_s: Option<f64>,
    /// CPU seconds of other programs.
    pub others_s: Option<f64>,
    /// Seconds in which the driving thread could have run and had no processor.
    pub waited_for_processor_s: Option<f64>,
    /// Seconds in which threads of the far end, where its process is known, could have run and had no processor.
    pub far_waited_for_processor_s: Option<f64>,
    /// Seconds in which a control group kept this side's process from running, because its quota was used up.
    pub throttled_s: Option<f64>,
    /// Seconds in which a control group kept the far end's process from running.
    pub far_throttled_s: Option<f64>,
}

impl Observed {
    /// Returns the observations in two times together.
    #[must_use]
    pub fn and(&self, other: &Observed) -> Observed {
        let count = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        let time = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        Observed {
            retransmitted: count(self.retransmitted, other.retransmitted),
            timeouts: count(self.timeouts, other.timeouts),
            queue_drops: count(self.queue_drops, other.queue_drops),
            card_drops: count(self.card_drops, other.card_drops),
            softirq_s: time(self.softirq_s, other.softirq_s),
            steal_s: time(self.steal_s, other.steal_s),
            others_s: time(self.others_s, other.others_s),
            waited_for_processor_s: time(self.waited_for_processor_s, other.waited_for_processor_s),
            far_waited_for_processor_s: time(self.far_waited_for_processor_s, other.far_waited_for_processor_s),
            throttled_s: time(self.throttled_s, other.throttled_s),
            far_throttled_s: time(self.far_throttled_s, other.far_throttled_s),
        }
    }
}
