use super::storing::Stored;
use hodo_catalog::farm::controller::{Counters, NodeShare};
use hodo_catalog::farm::{Controller, Counts, Supply};
use hodo_io::usage::ProcessUsage;
use hodo_machine::{Instant, Spans};

/// One thread of a controller at one moment.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Since the controller began.
    pub now: Instant,
    pub counts: Counts,
    pub counters: Counters,
    pub nodes: Vec<NodeShare>,
    /// What nodes had done that are gone.
    pub gone: Vec<NodeShare>,
    pub stored: Stored,
    /// How long events were away, from when each was given to a node until its token came.
    pub answers: Spans,
    /// What the process has used, where that was looked at.
    pub usage: Option<ProcessUsage>,
    /// Connections for which there was no room, of all threads.
    pub turned_away: u64,
    /// Orders that every thread has carried out.
    pub orders: u64,
}

impl Seen {
    pub fn of<S: Supply>(now: Instant, controller: &Controller<S>, stored: Stored) -> Self {
        let (counts, counters, nodes) = (controller.counts(), controller.counters(), controller.shares());
        let answers = controller.answers().clone();
        Seen { now, counts, counters, nodes, stored, answers, ..Seen::default() }
    }

    /// Adds what another thread has seen.
    pub fn add(mut self, other: &Seen) -> Seen {
        self.now = self.now.max(other.now);
        self.counts = self.counts.plus(&other.counts);
        self.counters = self.counters.plus(&other.counters);
        self.nodes.extend(other.nodes.iter().copied());
        self.gone.extend(other.gone.iter().copied());
        self.answers.add(&other.answers);
        self.stored = other.stored.clone();
        self.turned_away = self.turned_away.max(other.turned_away);
        self.orders = self.orders.min(other.orders);
        self
    }

    /// The part of the time during which events waited and could not be given.
    pub fn dead_share(&self) -> f64 {
        self.dead_time_s() * 1e9 / (self.now.as_nanos() as f64).max(1.0)
    }

    /// Seconds of it; the mean of the threads.
    pub fn dead_time_s(&self) -> f64 {
        self.counters.dead_time_ns as f64 * 1e-9 / self.counters.threads.max(1) as f64
    }
}
