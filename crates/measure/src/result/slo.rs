//! The highest rate that holds conditions, and the curve of times over load on which it was found.

use crate::units::text::{operations_per_s, round_to};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The search for the highest rate of an open loop that holds some conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slo {
    /// The conditions, as they are written: `p99<1ms`.
    pub conditions: Vec<String>,
    /// The highest rate found to hold them, in operations per second; null if none did.
    pub rate: Option<f64>,
    /// The lower end of the interval of the true rate: the highest at which every repeat held.
    pub low: Option<f64>,
    /// The upper end: the lowest at which not every repeat held; null if every rate that was tried did hold.
    pub high: Option<f64>,
    /// The rate of a closed loop, which the search began with.
    pub closed_loop_per_s: f64,
    /// The rates that were tried, rising.
    pub curve: Vec<LoadPoint>,
    /// The answer in one sentence.
    pub text: String,
}

/// A rate that was tried, and what operations took at it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPoint {
    /// The operations per second that were due.
    pub rate: f64,
    /// The operations per second that completed: the median over the repeats.
    pub operations_per_s: f64,
    /// The median time of an operation, as the median over the repeats; null if nothing completed.
    pub p50_ns: Option<u64>,
    /// The time that 99 % did not exceed, likewise.
    pub p99_ns: Option<u64>,
    /// Operations lost in all repeats.
    pub lost: u64,
    /// Repeats that were made. After two that did not hold no more are.
    pub repeats: u32,
    /// Repeats in which all conditions held.
    pub repeats_held: u32,
    /// Whether all conditions held in every repeat.
    pub held: bool,
    /// The first condition that did not hold, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<String>,
}

impl Slo {
    /// Creates the result of a search over a link, from all that was tried.
    #[must_use]
    pub fn new(link: &str, conditions: Vec<String>, closed_loop_per_s: f64, mut curve: Vec<LoadPoint>) -> Slo {
        curve.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let high = curve.iter().find(|point| !point.held).map(|point| point.rate);
        let is_under = |point: &&LoadPoint| point.held && high.is_none_or(|high| point.rate < high);
        let low = curve.iter().filter(is_under).map(|point| point.rate).next_back();
        let mut slo = Slo { conditions, rate: low, low, high, closed_loop_per_s, curve, text: String::new() };
        slo.text = slo.sentence(link);
        slo
    }

    fn sentence(&self, link: &str) -> String {
        let conditions = self.conditions.join(" and ");
        let (hold, s) = if self.conditions.len() > 1 { ("hold", "") } else { ("holds", "s") };
        let rate = |rate: f64| operations_per_s(round_to(rate, 4));
        let why = |at: f64| {
            let point = self.curve.iter().find(|point| point.rate == at);
            point.and_then(|point| point.missed.clone()).unwrap_or_else(|| "not every repeat held".to_owned())
        };
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!(
                "{link}: {conditions} {hold} up to {} [{}, {}]; at {} {}",
                rate(low),
                rate(low),
                rate(high),
                rate(high),
                why(high)
            ),
            (Some(low), None) => {
                format!("{link}: {conditions} {hold} at {}, the highest rate that was tried", rate(low))
            }
            (None, Some(high)) => format!(
                "{link}: {conditions} hold{s} at no rate; at {}, the lowest that was tried, {}",
                rate(high),
                why(high)
            ),
            (None, None) => format!("{link}: no rate was tried, so there is no answer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(rate: f64, held: bool) -> LoadPoint {
        LoadPoint {
            rate,
            operations_per_s: rate,
            p50_ns: Some(20_000),
            p99_ns: Some(90_000),
            lost: 0,
            repeats: 3,
            repeats_held: if held { 3 } else { 1 },
            held,
            missed: (!held).then(|| "p99<1ms is not met: p99 was 3.10 ms".to_owned()),
        }
    }

    fn slo(curve: &[(f64, bool)], conditions: &[&str]) -> Slo {
        let curve = curve.iter().map(|(rate, held)| point(*rate, *held)).collect();
        Slo::new("udp://there", conditions.iter().map(|text| (*text).to_owned()).collect(), 30e3, curve)
    }

    #[test]
    fn the_answer_is_an_interval() {
        let found = slo(&[(20e3, true), (24e3, false), (22e3, true)], &["p99<1ms", "lost=0"]);
        assert_eq!((found.rate, found.low, found.high), (Some(22e3), Some(22e3), Some(24e3)));
        assert!(found.curve.windows(2).all(|pair| pair[0].rate < pair[1].rate));
        assert_eq!(
            found.text,
            "udp://there: p99<1ms and lost=0 hold up to 22.00 k/s [22.00 k/s, 24.00 k/s]; at 24.00 k/s p99<1ms is not met: p99 was 3.10 ms"
        );
    }

    #[test]
    fn a_rate_that_held_above_one_that_did_not_is_no_answer() {
        let found = slo(&[(10e3, true), (20e3, false), (22e3, true)], &["p99<1ms"]);
        assert_eq!((found.low, found.high), (Some(10e3), Some(20e3)));
    }

    #[test]
    fn an_answer_may_have_no_upper_or_no_lower_end() {
        let all = slo(&[(10e3, true)], &["lost=0"]);
        assert_eq!((all.low, all.high), (Some(10e3), None));
        assert_eq!(all.text, "udp://there: lost=0 holds at 10.00 k/s, the highest rate that was tried");
        let none = slo(&[(10.0, false)], &["p99<1ms"]);
        assert_eq!((none.rate, none.high), (None, Some(10.0)));
        assert!(
            none.text.starts_with("udp://there: p99<1ms holds at no rate; at 10.00/s, the lowest"),
            "{}",
            none.text
        );
    }
}
