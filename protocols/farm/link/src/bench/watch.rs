use super::shape::Flow;
use hodo_farm::controller::NodeShare as Share;
use hodo_farm_host::controller::ControllerSnapshot;
use hodo_machine::Spans;
use hodo_measure::{Fairness, Interval, NodeShare};
use std::collections::BTreeMap;

/// Entries of a measurement's timeline at most.
const INTERVALS_MAX: usize = 200;
/// The windows in which shares are looked at.
const WINDOW_S: f64 = 10.0;

/// The counted time of a farm: what it did, piece by piece.
pub struct Watched {
    flow: Flow,
    start: ControllerSnapshot,
    last: ControllerSnapshot,
    window: ControllerSnapshot,
    worst_window: Option<f64>,
    pieces: Vec<Piece>,
    /// The least length of an interval; doubled where there are too many.
    step_s: f64,
}

/// The rates of a farm over an interval, and its waiting events.
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    pub interval: Interval,
    /// Events that found no token.
    pub no_token: u64,
    /// Events that wait at the end of the interval.
    pub waiting: u64,
}

impl Piece {
    fn and(self, next: Piece) -> Piece {
        let interval = Interval {
            t_s: next.interval.t_s,
            operations: self.interval.operations + next.interval.operations,
            payload_bytes: self.interval.payload_bytes + next.interval.payload_bytes,
        };
        Piece { interval, no_token: self.no_token + next.no_token, waiting: next.waiting }
    }
}

impl Watched {
    /// Begins to count at this snapshot.
    pub fn from(flow: Flow, start: ControllerSnapshot) -> Self {
        Watched {
            flow,
            last: start.clone(),
            window: start.clone(),
            start,
            worst_window: None,
            pieces: Vec::new(),
            step_s: 0.1,
        }
    }

    /// Adds a snapshot.
    pub fn look(&mut self, snapshot: ControllerSnapshot) {
        if seconds(&self.last, &snapshot) >= self.step_s {
            let (from, to) = (&self.last.counters, &snapshot.counters);
            let interval = Interval {
                t_s: seconds(&self.start, &snapshot),
                operations: self.done(&snapshot) - self.done(&self.last),
                payload_bytes: to.given_bytes - from.given_bytes,
            };
            let no_token = to.waited_for_token - from.waited_for_token;
            self.pieces.push(Piece { interval, no_token, waiting: to.events_waiting });
            self.last = snapshot;
            if self.pieces.len() >= INTERVALS_MAX {
                self.halve();
            }
        }
        if seconds(&self.window, &self.last) >= WINDOW_S {
            let events: Vec<u64> = self.between(&self.window, &self.last).iter().map(|node| node.events).collect();
            let least = Fairness::of(&events, WINDOW_S, None).map(|fairness| fairness.min_over_max);
            self.worst_window = [self.worst_window, least].into_iter().flatten().min_by(f64::total_cmp);
            self.window = self.last.clone();
        }
    }

    /// Joins each two intervals.
    fn halve(&mut self) {
        self.step_s *= 2.0;
        self.pieces = self.in_groups(2);
    }

    /// Returns the pieces, each `of` of them joined into one.
    fn in_groups(&self, of: usize) -> Vec<Piece> {
        self.pieces.chunks(of.max(1)).filter_map(|group| group.iter().copied().reduce(Piece::and)).collect()
    }

    /// Returns the number of finished events: answered, or dispatched if nodes do not answer.
    fn done(&self, snapshot: &ControllerSnapshot) -> u64 {
        if self.flow == Flow::Poured { snapshot.counters.given } else { snapshot.counters.tokens }
    }

    pub fn elapsed_s(&self) -> f64 {
        seconds(&self.start, &self.last)
    }

    /// Returns the number of events that were answered, or dispatched if nodes do not answer.
    pub fn events(&self) -> u64 {
        self.done(&self.last) - self.done(&self.start)
    }

    /// Returns the bytes of the dispatched events.
    pub fn bytes(&self) -> u64 {
        self.last.counters.given_bytes - self.start.counters.given_bytes
    }

    /// Returns how long events were away from the controller.
    pub fn answers(&self) -> Spans {
        self.last.answers.since(&self.start.answers)
    }

    /// Returns the number of events that wait for a token.
    pub fn waiting(&self) -> u64 {
        self.last.counters.events_waiting
    }

    pub fn intervals(&self) -> Vec<Interval> {
        self.pieces.iter().map(|piece| piece.interval).collect()
    }

    /// Returns the counted time in about ten pieces.
    pub fn tenths(&self) -> Vec<Piece> {
        self.in_groups(self.pieces.len().div_ceil(10))
    }

    /// Returns the number of events of each node during the counted time.
    pub fn nodes(&self) -> Vec<NodeShare> {
        self.between(&self.start, &self.last)
    }

    fn between(&self, from: &ControllerSnapshot, to: &ControllerSnapshot) -> Vec<NodeShare> {
        let count = |node: &Share| if self.flow == Flow::Poured { node.given } else { node.answered };
        let before: BTreeMap<u32, u64> = from.nodes.iter().map(|node| (node.number, count(node))).collect();
        let since = |node: &Share| NodeShare {
            number: node.number,
            events: count(node).saturating_sub(before.get(&node.number).copied().unwrap_or(0)),
        };
        let mut nodes: Vec<NodeShare> = to.nodes.iter().map(since).collect();
        nodes.sort_by_key(|node| node.number);
        nodes
    }

    pub fn fairness(&self) -> Option<Fairness> {
        let events: Vec<u64> = self.nodes().iter().map(|node| node.events).collect();
        Fairness::of(&events, WINDOW_S, self.worst_window)
    }

    /// Returns how often an event went to another node, and how many nodes were lost.
    pub fn troubles(&self) -> (u64, u64) {
        let (start, last) = (&self.start.counters, &self.last.counters);
        (last.redispatched - start.redispatched, last.nodes_lost - start.nodes_lost)
    }
}

fn seconds(from: &ControllerSnapshot, to: &ControllerSnapshot) -> f64 {
    to.now.nanos_since(from.now) as f64 * 1e-9
}
