//! Whether the figures of a measurement can be trusted.

use super::{Fairness, NodeShare};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the figures can be trusted, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// In a word.
    pub state: State,
    /// In a sentence.
    pub text: String,
}

impl Verdict {
    /// Returns this verdict with the fairness of these nodes appended, if there are several.
    #[must_use]
    pub fn with(mut self, nodes: &[NodeShare]) -> Verdict {
        if nodes.len() > 1
            && let Some(fairness) = Fairness::of_nodes(nodes, 0.0, None)
        {
            self.text = format!("{}; {}", self.text, fairness.text());
        }
        self
    }
}

/// Whether the figures can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The rate was the same throughout.
    Stable,
    /// The rate varied too much to quote.
    Noisy,
    /// The rate jumped between two levels.
    Bimodal,
    /// The rate had a slope: a longer run would find another figure.
    Drifting,
    /// The schedule of an open loop or of updates was not held.
    Missed,
    /// Nothing completed for longer than the test can explain.
    Stalled,
    /// The run was cut short; what had been measured is there.
    Interrupted,
    /// Nothing useful was measured.
    Failed,
}

impl State {
    /// All states, the best first: of two that apply, a row has the later one.
    pub const ALL: [State; 8] = [
        State::Stable,
        State::Noisy,
        State::Bimodal,
        State::Drifting,
        State::Missed,
        State::Stalled,
        State::Interrupted,
        State::Failed,
    ];

    /// Returns the state in a word, as in the document.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            State::Stable => "stable",
            State::Noisy => "noisy",
            State::Bimodal => "bimodal",
            State::Drifting => "drifting",
            State::Missed => "missed",
            State::Stalled => "stalled",
            State::Interrupted => "interrupted",
            State::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_tells_how_even_several_nodes_were() {
        let told = |events: &[u64]| {
            let nodes: Vec<NodeShare> =
                (0..).zip(events).map(|(number, events)| NodeShare { number, events: *events }).collect();
            Verdict { state: State::Stable, text: "stable".into() }.with(&nodes).text
        };
        assert_eq!(told(&[99, 100]), "stable; shares of nodes 0.990 least over most, Jain's index 1.0000");
        assert_eq!([told(&[]), told(&[7]), told(&[0, 0])], ["stable", "stable", "stable"]);
    }
}
