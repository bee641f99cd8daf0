use super::status::StoreStatus;
use hodo_farm::controller::{Counters, NodeShare};
use hodo_farm::{Controller, Counts, Supply};
use hodo_machine::{Instant, Spans};

/// The state of one thread of a controller, or of all of them together, at one moment.
#[derive(Debug, Clone, Default)]
pub struct ControllerSnapshot {
    /// The time since the controller began.
    pub now: Instant,
    /// The balance of events.
    pub counts: Counts,
    /// All other counters.
    pub counters: Counters,
    /// Connected nodes.
    pub nodes: Vec<NodeShare>,
    /// Nodes that were connected before.
    pub gone: Vec<NodeShare>,
    /// The state of the store.
    pub store: StoreStatus,
    /// The time from dispatching an event to its token.
    pub answers: Spans,
    /// Connections of all threads that were closed at once because there were too many.
    pub turned_away: u64,
    /// Orders that every thread has carried out.
    pub orders: u64,
}

impl ControllerSnapshot {
    /// Reads the counters of a machine.
    pub fn of<S: Supply>(now: Instant, controller: &Controller<S>) -> Self {
        ControllerSnapshot {
            now,
            counts: controller.counts(),
            counters: controller.counters(),
            nodes: controller.shares(),
            answers: controller.answers().clone(),
            ..ControllerSnapshot::default()
        }
    }

    /// Adds the snapshot of another thread.
    #[must_use]
    pub fn plus(mut self, other: &ControllerSnapshot) -> Self {
        self.now = self.now.max(other.now);
        self.counts = self.counts.plus(&other.counts);
        self.counters = self.counters.plus(&other.counters);
        self.nodes.extend(other.nodes.iter().copied());
        self.gone.extend(other.gone.iter().copied());
        self.answers.add(&other.answers);
        self.store = other.store.clone();
        self.turned_away = self.turned_away.max(other.turned_away);
        self.orders = self.orders.min(other.orders);
        self
    }

    /// Returns the seconds during which events waited and could not be dispatched, averaged over the threads.
    #[must_use]
    pub fn dead_time_s(&self) -> f64 {
        self.counters.dead_time_ns as f64 * 1e-9 / self.counters.threads.max(1) as f64
    }
}
