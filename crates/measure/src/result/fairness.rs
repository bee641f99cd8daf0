//! The shares of the nodes of a link that distributes operations over several.

use crate::statistics;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The share of one node in the counted time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeShare {
    /// The number of the node.
    pub number: u32,
    /// Events that it answered.
    pub events: u64,
}

/// How evenly nodes were served.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fairness {
    /// Events of the node with the fewest, over those of the one with the most.
    pub min_over_max: f64,
    /// Jain's index: 1 for all alike, 1/n for all at one of n.
    pub jain: f64,
    /// The coefficient of variation.
    pub variation: f64,
    /// The length of the windows that `worst_window` is about.
    pub window_s: f64,
    /// The least `min_over_max` of any whole window; null where the run was shorter than one.
    pub worst_window: Option<f64>,
}

impl Fairness {
    /// Returns the fairness of these nodes; `None` if they served no events.
    #[must_use]
    pub fn of_nodes(nodes: &[NodeShare], window_s: f64, worst_window: Option<f64>) -> Option<Self> {
        let events: Vec<u64> = nodes.iter().map(|node| node.events).collect();
        Fairness::of(&events, window_s, worst_window)
    }

    /// Returns the fairness in words, for a verdict.
    #[must_use]
    pub fn text(&self) -> String {
        format!("shares of nodes {:.3} least over most, Jain's index {:.4}", self.min_over_max, self.jain)
    }

    /// Returns the fairness of these counts of events, one for each node; `None` if all are zero.
    #[must_use]
    pub fn of(events: &[u64], window_s: f64, worst_window: Option<f64>) -> Option<Self> {
        events.iter().find(|events| **events > 0)?;
        let events: Vec<f64> = events.iter().map(|events| *events as f64).collect();
        Some(Fairness {
            min_over_max: statistics::least_over_most(&events),
            jain: statistics::jain(&events),
            variation: statistics::coefficient_of_variation(&events),
            window_s,
            worst_window,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes the two extremes of the published 17-hour run, whose 20 nodes had from 9,168,862 to 10,709,545 events
    /// each.
    #[test]
    fn fairness_is_what_the_study_means_by_it() {
        let fairness = Fairness::of(&[9_168_862, 10_709_545], 10.0, None).unwrap();
        assert!((fairness.min_over_max - 0.856).abs() < 0.001, "{fairness:?}");
        assert!((Fairness::of(&[5, 5, 5], 10.0, None).unwrap().jain - 1.0).abs() < 1e-12);
        assert!((Fairness::of(&[9, 0, 0], 10.0, None).unwrap().jain - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(Fairness::of(&[], 10.0, None), None);
    }
}
