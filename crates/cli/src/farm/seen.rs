use super::storing::Stored;
use hodo_catalog::farm::controller::{Counters, NodeShare};
use hodo_catalog::farm::{Controller, Counts, Supply};
use hodo_machine::Instant;

/// One thread of a controller at one moment.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Since the controller began.
    pub now: Instant,
    pub counts: Counts,
    pub counters: Counters,
    pub nodes: Vec<NodeShare>,
    pub stored: Stored,
}

impl Seen {
    pub fn of<S: Supply>(now: Instant, controller: &Controller<S>, stored: Stored) -> Self {
        Seen { now, counts: controller.counts(), counters: controller.counters(), nodes: controller.shares(), stored }
    }

    /// Adds what another thread has seen.
    pub fn add(mut self, other: &Seen) -> Seen {
        self.now = self.now.max(other.now);
        self.counts = self.counts.plus(&other.counts);
        self.counters = self.counters.plus(&other.counters);
        self.nodes.extend(other.nodes.iter().copied());
        self.stored = other.stored.clone();
        self
    }

    /// The part of the time during which events waited and could not be given.
    pub fn dead_share(&self) -> f64 {
        let threads = self.counters.threads.max(1) as f64;
        self.counters.dead_time_ns as f64 / (self.now.as_nanos() as f64 * threads).max(1.0)
    }
}
