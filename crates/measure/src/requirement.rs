//! Conditions that a measurement has to meet, as `p99<1ms` or `lost=0`.

use crate::units::{self, text};
use crate::{Latency, Measurement};
use std::fmt;
use std::time::Duration;

/// A condition that a measurement has to meet. One whose figure is not known is not met.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Requirement {
    /// At least this share of the schedule was held.
    Held(f64),
    /// This figure of the operations' times is under the bound.
    Time(Quantile, Duration),
    /// No silence lasted as long as this.
    Stall(Duration),
    /// No more operations were lost than this.
    Lost(u64),
}

/// A figure of the operations' times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantile {
    /// The mean.
    Mean,
    /// Half of the operations took no longer.
    P50,
    /// 90 % took no longer.
    P90,
    /// 99 % took no longer.
    P99,
    /// 99.9 % took no longer.
    P999,
    /// The longest.
    Max,
}

impl Quantile {
    const ALL: [(&'static str, Quantile); 6] = [
        ("mean", Quantile::Mean),
        ("p50", Quantile::P50),
        ("p90", Quantile::P90),
        ("p99", Quantile::P99),
        ("p99.9", Quantile::P999),
        ("max", Quantile::Max),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, quantile)| *quantile == self).map_or("", |(name, _)| name)
    }

    fn of(self, latency: &Latency) -> f64 {
        match self {
            Quantile::Mean => latency.mean,
            Quantile::P50 => latency.p50 as f64,
            Quantile::P90 => latency.p90 as f64,
            Quantile::P99 => latency.p99 as f64,
            Quantile::P999 => latency.p99_9 as f64,
            Quantile::Max => latency.max as f64,
        }
    }
}

impl Requirement {
    /// Parses one condition: a share of the schedule as `0.99`, `p99<1ms` (or `mean`, `p50`, `p90`, `p99.9`, `max`), `stall<50ms`, or
    /// `lost=0` and `lost<10`.
    ///
    /// # Errors
    /// A sentence that says what to write instead.
    pub fn parse(text: &str) -> Result<Requirement, String> {
        let Some(place) = text.find(['<', '=']) else {
            let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
            return share.map(Requirement::Held).ok_or_else(|| unreadable(text));
        };
        let (name, bound) = (&text[..place], &text[place + 1..]);
        let is_under = text[place..].starts_with('<');
        let span = || units::span(bound).map_err(|why| format!("`{text}`: {why}"));
        let count = || bound.parse::<u64>().map_err(|_| unreadable(text));
        match (name, is_under) {
            ("stall", true) => Ok(Requirement::Stall(span()?)),
            ("lost", false) => Ok(Requirement::Lost(count()?)),
            ("lost", true) => count()?.checked_sub(1).map(Requirement::Lost).ok_or_else(|| unreadable(text)),
            (name, true) => {
                let known = Quantile::ALL.iter().find(|(known, _)| *known == name).ok_or_else(|| unreadable(text))?;
                Ok(Requirement::Time(known.1, span()?))
            }
            (_, false) => Err(unreadable(text)),
        }
    }

    /// Returns whether the condition is about a schedule, which only a test with a rate has.
    #[must_use]
    pub fn needs_rate(self) -> bool {
        matches!(self, Requirement::Held(_))
    }

    /// Returns why a measurement does not meet the condition; `None` if it does.
    #[must_use]
    pub fn missed_by(self, found: &Measurement) -> Option<String> {
        let (is_met, was) = match self {
            _ if found.operations == 0 => (false, "nothing completed".to_owned()),
            Requirement::Held(least) => match found.schedule_held() {
                Some(held) => (held >= least, format!("{} of the schedule was held", text::percent(held))),
                None => (false, "the test has no schedule".to_owned()),
            },
            Requirement::Time(quantile, bound) => match &found.latency_ns {
                Some(latency) => {
                    let time_ns = quantile.of(latency);
                    (time_ns < bound.as_nanos() as f64, format!("{} was {}", quantile.name(), text::time_ns(time_ns)))
                }
                None => (false, format!("{} is not known", quantile.name())),
            },
            Requirement::Stall(bound) => {
                let longest_s = found.stalls.iter().map(|stall| stall.lasted_s).fold(0.0, f64::max);
                (longest_s < bound.as_secs_f64(), format!("the longest stall was {}", text::time_ns(1e9 * longest_s)))
            }
            Requirement::Lost(most) => {
                let lost = found.loss.lost;
                (lost <= most, format!("{} lost", text::count(lost)))
            }
        };
        (!is_met).then(|| format!("{self} is not met: {was}"))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Requirement::Held(share) => write!(f, "{share}"),
            Requirement::Time(quantile, bound) => write!(f, "{}<{}", quantile.name(), units::span_text(*bound)),
            Requirement::Stall(bound) => write!(f, "stall<{}", units::span_text(*bound)),
            Requirement::Lost(most) => write!(f, "lost={most}"),
        }
    }
}

fn unreadable(text: &str) -> String {
    format!("`{text}` is no condition; write a share of the schedule as 0.99, or p99<1ms, stall<50ms, lost=0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Observed, Plan, Stall, State, Verdict};

    #[test]
    fn conditions_are_read_and_written() {
        for text in
            ["0.99", "p99<1ms", "p50<20us", "p99.9<2s", "max<5ms", "mean<1ms", "stall<50ms", "lost=0", "lost=12"]
        {
            assert_eq!(Requirement::parse(text).map(|requirement| requirement.to_string()).as_deref(), Ok(text));
        }
        assert_eq!(Requirement::parse("lost<1"), Ok(Requirement::Lost(0)));
        for text in
            ["", "1.5", "-1", "p99", "p98<1ms", "p99<", "p99=1ms", "lost<0", "lost=-1", "stall=5ms", "x<1", "p99<1"]
        {
            assert!(Requirement::parse(text).is_err(), "{text}");
        }
        assert!(Requirement::parse("p99>1ms").is_err_and(|why| why.contains("write a share of the schedule")));
    }

    fn found() -> Measurement {
        let verdict = Verdict { state: State::Stable, text: "stable".into() };
        let mut found = Plan::one(Mode::Both, 64).unmeasured("tcp", "tcp://", verdict);
        found.operations = 100;
        found.rate.operations_per_s.median = 990.0;
        found.latency_ns = Some(Latency { p50: 20_000, p99: 900_000, max: 3_000_000, ..Latency::default() });
        found
    }

    fn why(text: &str, found: &Measurement) -> Option<String> {
        Requirement::parse(text).expect("a condition").missed_by(found)
    }

    #[test]
    fn a_condition_that_is_not_met_says_by_what() {
        let mut one = found();
        for met in ["p50<21us", "p99<1ms", "max<4ms", "stall<5ms", "lost=0"] {
            assert_eq!(why(met, &one), None, "{met}");
        }
        assert_eq!(why("p99<500us", &one).as_deref(), Some("p99<500us is not met: p99 was 900 µs"));
        one.loss.lost = 7;
        assert_eq!(why("lost=0", &one).as_deref(), Some("lost=0 is not met: 7 lost"));
        assert_eq!(why("lost=7", &one), None);
        let saw = Observed::default();
        one.stalls = vec![Stall { at_s: 1.0, lasted_s: 0.06, operations_late: 1, whose: None, saw }];
        assert_eq!(why("stall<50ms", &one).as_deref(), Some("stall<50ms is not met: the longest stall was 60.0 ms"));
        one.stalls[0].operations_late = 20;
        one.rate_asked = Some(1000.0);
        assert_eq!(why("0.9", &one).as_deref(), Some("0.9 is not met: 79.2 % of the schedule was held"));
        one.stalls.clear();
        assert_eq!(why("0.99", &one), None);
        assert_eq!(why("1", &one).as_deref(), Some("1 is not met: 99.0 % of the schedule was held"));
    }

    #[test]
    fn a_figure_that_is_not_known_meets_nothing() {
        let one = Measurement { latency_ns: None, ..found() };
        assert!(why("p99<1s", &one).is_some() && why("0.5", &one).is_some());
        let nothing = Measurement { operations: 0, ..found() };
        assert!(["p99<1s", "lost=0", "stall<1s"].iter().all(|text| why(text, &nothing).is_some()));
    }
}
