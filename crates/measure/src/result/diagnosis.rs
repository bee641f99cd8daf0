//! The bottleneck of a link, found by experiment.

use super::Binding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The bottleneck of a link, how sure that is, and the remedy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// The bottleneck, in the words of `binds`.
    pub bottleneck: Binding,
    /// How sure that is.
    pub confidence: Confidence,
    /// The observations and experiments that speak for it, a sentence each.
    pub evidence: Vec<String>,
    /// The experiments, in the order in which they were made; none where the diagnosis is of observations alone.
    pub experiments: Vec<Experiment>,
    /// The change to make, in a sentence.
    pub advice: String,
}

/// How sure a diagnosis is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// An experiment confirmed it: the rate went where it had been predicted.
    High,
    /// The observations fit, and no experiment speaks against it.
    Medium,
    /// Only the absence of other causes speaks for it.
    Low,
}

impl Confidence {
    /// Returns what was seen of it, as the end of a sentence.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Confidence::High => "an experiment confirms it",
            Confidence::Medium => "no experiment contradicts it",
            Confidence::Low => "not every experiment agrees",
        }
    }
}

impl Diagnosis {
    /// Returns what binds and how sure that is, as the end of a sentence.
    #[must_use]
    pub fn text(&self) -> String {
        match self.bottleneck {
            Binding::Unknown => "no experiment explains why it is not faster".to_owned(),
            bottleneck => format!("`{}` is the bottleneck, and {}", bottleneck.word(), self.confidence.text()),
        }
    }
}

/// One change of the plan, and what it did to the rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Experiment {
    /// The change, as `window 16 -> 32`.
    pub change: String,
    /// The operations per second that were predicted before, if the bottleneck is the one that was named.
    pub predicted: f64,
    /// The operations per second that were found.
    pub found: f64,
}
