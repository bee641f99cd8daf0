//! The conclusions from ratios: of a row, of a check against a threshold, and of all rows in a sentence.

use super::{Comparison, Pair};
use crate::units;
use serde::Serialize;

/// The fewest repeats whose order gives an interval at 95 %.
const REPEATS_FOR_AN_INTERVAL: u32 = 6;
/// The most repeats that are recommended: if more were needed, the two are alike for every purpose.
const REPEATS_MAX: f64 = 10_000.0;

/// The conclusion from a pair of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The interval of the ratio is over 1.
    Faster,
    /// The interval of the ratio is under 1.
    Slower,
    /// The whole interval is so near to 1 that the difference does not matter.
    Same,
    /// The interval holds 1 and reaches further than what does not matter, or there is none.
    CannotTell,
}

impl Answer {
    /// Returns the conclusion in words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Answer::Faster => "faster",
            Answer::Slower => "slower",
            Answer::Same => "same",
            Answer::CannotTell => "cannot tell",
        }
    }

    /// Concludes from the interval of a ratio; `same_within` is the distance from 1 that does not matter.
    #[must_use]
    pub fn of(interval: Option<(f64, f64)>, same_within: f64) -> Answer {
        match interval {
            Some((low, high)) if low >= 1.0 - same_within && high <= 1.0 + same_within => Answer::Same,
            Some((low, _)) if low > 1.0 => Answer::Faster,
            Some((_, high)) if high < 1.0 => Answer::Slower,
            _ => Answer::CannotTell,
        }
    }
}

/// Returns the number of repeats after which the interval of this ratio would have an answer, if the ratio stayed where it is: an interval
/// narrows with the square root of their number. `None` if no reasonable number of them would do.
pub(super) fn repeats_needed(ratio: f64, interval: Option<(f64, f64)>, repeats: u32, same_within: f64) -> Option<u32> {
    let Some((low, high)) = interval else { return Some(REPEATS_FOR_AN_INTERVAL) };
    let (down, up) = ((ratio / low).ln(), (high / ratio).ln());
    // The factors by which the interval is too wide to exclude 1, and to lie within what does not matter.
    let excludes_one = if ratio >= 1.0 { down / ratio.ln() } else { up / -ratio.ln() };
    let (under, over) = ((ratio / (1.0 - same_within)).ln(), ((1.0 + same_within) / ratio).ln());
    let is_same = if under > 0.0 && over > 0.0 { (down / under).max(up / over) } else { f64::INFINITY };
    let needed = f64::from(repeats.max(1)) * excludes_one.min(is_same).powi(2);
    (needed.is_finite() && needed <= REPEATS_MAX).then(|| (needed.ceil() as u32).max(repeats + 1))
}

/// The result of a check against a threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Check<'a> {
    /// Pairs that are slower for certain, and by a ratio under the threshold.
    pub failed: Vec<&'a Pair>,
    /// Rows that only one file has a figure of, in sentences: these fail, too.
    pub missing: Vec<String>,
    /// Pairs that may be under the threshold: their interval reaches below it, or they have none.
    pub open: Vec<&'a Pair>,
}

impl Comparison {
    /// Checks every ratio against a threshold.
    #[must_use]
    pub fn check(&self, threshold: f64) -> Check<'_> {
        let is_failed = |pair: &Pair| {
            let is_slower = pair.high.is_some_and(|high| high < 1.0);
            is_slower && pair.ratio.is_some_and(|ratio| ratio < threshold)
        };
        let mut check = Check { failed: Vec::new(), missing: Vec::new(), open: Vec::new() };
        check.missing.extend(self.only_in_a.iter().map(|plan| format!("{plan}: not in B")));
        check.missing.extend(self.only_in_b.iter().map(|plan| format!("{plan}: not in A")));
        for pair in &self.pairs {
            match (pair.missing_in(), pair.low) {
                (Some(file), _) => check.missing.push(format!("{}: nothing was measured in {file}", pair.plan)),
                _ if is_failed(pair) => check.failed.push(pair),
                (None, Some(low)) if low >= threshold => {}
                _ => check.open.push(pair),
            }
        }
        check
    }

    /// Returns the distance of a ratio from 1 that does not matter, in percent as it was requested.
    pub(super) fn same_percent(&self) -> f64 {
        units::round_to(self.same_within * 100.0, 6)
    }

    /// Returns all conclusions in one sentence: `B is 1.7 ± 0.1 times faster in 41 rows, cannot tell in 3.`
    ///
    /// A factor is the geometric mean of its rows; what follows the ± holds both the intervals of the rows and how far they differ.
    #[must_use]
    pub fn sentence(&self) -> String {
        let rows = |answer: Answer| self.pairs.iter().filter(move |pair| pair.answer == answer);
        let mut parts = Vec::new();
        let mut part = |words: String, count: usize| {
            let noun = match (parts.is_empty(), count) {
                (false, _) => "",
                (true, 1) => " row",
                (true, _) => " rows",
            };
            if count > 0 {
                parts.push(format!("{words} in {count}{noun}"));
            }
        };
        for answer in [Answer::Faster, Answer::Slower] {
            let found: Vec<&Pair> = rows(answer).collect();
            part(format!("{} times {}", factor_text(&found), answer.text()), found.len());
        }
        part(format!("the same within {} %", self.same_percent()), rows(Answer::Same).count());
        let is_known = self.pairs.iter().any(|pair| pair.answer != Answer::CannotTell);
        part(if is_known { "cannot tell" } else { "Cannot tell" }.into(), rows(Answer::CannotTell).count());
        let alone = match self.only_in_a.len() + self.only_in_b.len() {
            0 => String::new(),
            1 => "; 1 row is in one file only".into(),
            count => format!("; {count} rows are in one file only"),
        };
        if parts.is_empty() {
            return "No row is in both files.".into();
        }
        format!("{}{}{alone}.", if is_known { "B is " } else { "" }, parts.join(", "))
    }
}

/// Returns the mean factor of rows that all lie on one side of 1, and its uncertainty, as `1.7 ± 0.1`.
fn factor_text(rows: &[&Pair]) -> String {
    let effects = rows.iter().filter_map(|pair| {
        let half = (pair.high?.ln() - pair.low?.ln()) / 2.0;
        Some((pair.ratio?.ln().abs(), half))
    });
    let effects: Vec<(f64, f64)> = effects.collect();
    let mean_of = |value: &dyn Fn(&(f64, f64)) -> f64| effects.iter().map(value).sum::<f64>() / effects.len() as f64;
    let mean = mean_of(&|(effect, _)| *effect);
    let half = mean_of(&|(effect, half)| (effect - mean).powi(2) + half.powi(2)).sqrt();
    units::with_uncertainty(mean.exp(), mean.exp() * half.sinh())
}
