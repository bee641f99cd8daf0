//! The conclusion from a ratio: faster, slower, or undecided.

use super::{Comparison, Pair};
use serde::Serialize;

/// The fewest repeats whose order gives an interval at 95 %.
const REPEATS_FOR_AN_INTERVAL: u32 = 6;
/// The most repeats that are asked for: if more were needed, the two are alike for every purpose.
const REPEATS_MAX: f64 = 10_000.0;

/// The conclusion from a pair of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The interval of the ratio is over 1.
    Faster,
    /// The interval of the ratio is under 1.
    Slower,
    /// The interval holds 1, or there is none.
    CannotTell,
}

impl Answer {
    /// Returns the conclusion in words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Answer::Faster => "faster",
            Answer::Slower => "slower",
            Answer::CannotTell => "cannot tell",
        }
    }

    /// Concludes from a ratio with the ends of its interval.
    #[must_use]
    pub fn of(low: Option<f64>, high: Option<f64>) -> Answer {
        match (low, high) {
            (Some(low), _) if low > 1.0 => Answer::Faster,
            (_, Some(high)) if high < 1.0 => Answer::Slower,
            _ => Answer::CannotTell,
        }
    }
}

/// Returns the number of repeats after which the interval of this ratio would exclude 1, if it stayed where it is: an interval narrows with the
/// square root of their number. `None` if a ratio is so near to 1 that no number of them would help.
pub(super) fn repeats_needed(ratio: f64, low: Option<f64>, high: Option<f64>, repeats: u32) -> Option<u32> {
    let (Some(low), Some(high)) = (low, high) else { return Some(REPEATS_FOR_AN_INTERVAL) };
    let towards_one = if ratio >= 1.0 { (ratio / low).ln() } else { (high / ratio).ln() };
    let needed = f64::from(repeats.max(1)) * (towards_one / ratio.ln()).powi(2);
    (needed.is_finite() && needed <= REPEATS_MAX).then(|| (needed.ceil() as u32).max(repeats + 1))
}

/// The result of a check against a threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Check<'a> {
    /// Pairs that are slower for certain, and by a ratio under the threshold.
    pub failed: Vec<&'a Pair>,
    /// Pairs that may be under the threshold: their interval reaches below it, or they have none.
    pub open: Vec<&'a Pair>,
}

impl Comparison {
    /// Checks every ratio against a threshold.
    #[must_use]
    pub fn check(&self, threshold: f64) -> Check<'_> {
        let is_failed =
            |pair: &&Pair| pair.answer == Answer::Slower && pair.ratio.is_some_and(|ratio| ratio < threshold);
        let is_open = |pair: &&Pair| !is_failed(pair) && pair.low.is_none_or(|low| low < threshold);
        Check {
            failed: self.pairs.iter().filter(is_failed).collect(),
            open: self.pairs.iter().filter(is_open).collect(),
        }
    }

    /// Counts all conclusions in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let count = |answer| self.pairs.iter().filter(|pair| pair.answer == answer).count();
        let (faster, slower, open) = (count(Answer::Faster), count(Answer::Slower), count(Answer::CannotTell));
        let plans = if self.pairs.len() == 1 { "1 plan".to_owned() } else { format!("{} plans", self.pairs.len()) };
        let most = self.pairs.iter().find(|pair| pair.answer != Answer::CannotTell);
        let most = most.and_then(|pair| Some(format!("; the largest effect: {}, {:.3}", pair.plan, pair.ratio?)));
        format!(
            "Of {plans}, B is faster in {faster} and slower in {slower}; {open} cannot tell{}.",
            most.unwrap_or_default()
        )
    }
}
