use crate::farm::seen::Seen;
use hodo_machine::Spans;
use hodo_measure::{Fairness, Interval, NodeShare};
use std::collections::BTreeMap;

/// Entries of a measurement's timeline at most.
const INTERVALS_MAX: usize = 200;
/// The windows in which shares are looked at.
const WINDOW_S: f64 = 10.0;

/// The counted time of a farm: what it did, piece by piece.
pub struct Watched {
    start: Seen,
    last: Seen,
    window: Seen,
    worst_window: Option<f64>,
    intervals: Vec<Interval>,
    /// The least length of an interval; doubled where there are too many.
    step_s: f64,
}

impl Watched {
    /// Counting begins.
    pub fn from(start: Seen) -> Self {
        Watched {
            last: start.clone(),
            window: start.clone(),
            start,
            worst_window: None,
            intervals: Vec::new(),
            step_s: 0.1,
        }
    }

    /// Takes a look.
    pub fn look(&mut self, seen: Seen) {
        if seconds(&self.last, &seen) >= self.step_s {
            self.intervals.push(Interval {
                t_s: seconds(&self.start, &seen),
                operations: seen.counters.tokens - self.last.counters.tokens,
                payload_bytes: seen.counters.given_bytes - self.last.counters.given_bytes,
            });
            self.last = seen;
            if self.intervals.len() >= INTERVALS_MAX {
                self.halve();
            }
        }
        if seconds(&self.window, &self.last) >= WINDOW_S {
            let events: Vec<u64> = nodes(&self.window, &self.last).iter().map(|node| node.events).collect();
            let least = Fairness::of(&events, WINDOW_S, None).map(|fairness| fairness.min_over_max);
            self.worst_window = [self.worst_window, least].into_iter().flatten().min_by(f64::total_cmp);
            self.window = self.last.clone();
        }
    }

    /// Joins each two intervals.
    fn halve(&mut self) {
        self.step_s *= 2.0;
        let joined = self.intervals.chunks(2).map(|pair| Interval {
            t_s: pair[pair.len() - 1].t_s,
            operations: pair.iter().map(|interval| interval.operations).sum(),
            payload_bytes: pair.iter().map(|interval| interval.payload_bytes).sum(),
        });
        self.intervals = joined.collect();
    }

    pub fn elapsed_s(&self) -> f64 {
        seconds(&self.start, &self.last)
    }

    /// Events that were answered.
    pub fn events(&self) -> u64 {
        self.last.counters.tokens - self.start.counters.tokens
    }

    /// Bytes of the events that were given.
    pub fn bytes(&self) -> u64 {
        self.last.counters.given_bytes - self.start.counters.given_bytes
    }

    /// How long events were away from the controller.
    pub fn answers(&self) -> Spans {
        self.last.answers.since(&self.start.answers)
    }

    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// What each node had.
    pub fn nodes(&self) -> Vec<NodeShare> {
        nodes(&self.start, &self.last)
    }

    pub fn fairness(&self) -> Option<Fairness> {
        let events: Vec<u64> = self.nodes().iter().map(|node| node.events).collect();
        Fairness::of(&events, WINDOW_S, self.worst_window)
    }

    /// Times that an event went to another node, and nodes that were lost.
    pub fn troubles(&self) -> (u64, u64) {
        let (start, last) = (&self.start.counters, &self.last.counters);
        (last.redispatched - start.redispatched, last.nodes_lost - start.nodes_lost)
    }
}

fn seconds(from: &Seen, to: &Seen) -> f64 {
    to.now.nanos_since(from.now) as f64 * 1e-9
}

fn nodes(from: &Seen, to: &Seen) -> Vec<NodeShare> {
    let before: BTreeMap<u32, u64> = from.nodes.iter().map(|node| (node.number, node.answered)).collect();
    let mut nodes: Vec<NodeShare> = to
        .nodes
        .iter()
        .map(|node| {
            let events = node.answered.saturating_sub(before.get(&node.number).copied().unwrap_or(0));
            NodeShare { number: node.number, events }
        })
        .collect();
    nodes.sort_by_key(|node| node.number);
    nodes
}
