//! The latest figures of a watched link, and their metrics.

use hodo_daemon::Exposition;
use hodo_measure::{Measurement, State};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The latest figures, which the pages read while the next are measured.
pub struct Figures {
    link: String,
    latest: Mutex<Latest>,
}

#[derive(Default)]
struct Latest {
    rounds: u64,
    failures: u64,
    /// Rows that did not meet a condition.
    conditions_missed: u64,
    /// Rounds that could not be written to the history.
    unwritten: u64,
    /// Whether everything was measured in the latest round, and when that ended.
    round: Option<(bool, f64)>,
    rows: Vec<Row>,
}

/// A measurement of the plan, as it was when it last succeeded.
struct Row {
    labels: [String; 5],
    figures: Option<RowFigures>,
    state: State,
    lost: u64,
    stalls: u64,
}

struct RowFigures {
    at_s: f64,
    operations_per_s: f64,
    payload_bits_per_s: f64,
    latency_s: Option<(f64, f64)>,
    lost: u64,
    stalls: u64,
    share_of_limit: Option<f64>,
}

/// The outcome of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundOutcome {
    /// Whether everything was measured.
    pub is_whole: bool,
    /// Rows that did not meet a condition.
    pub missed: u64,
    /// Whether the history has it, if there is one.
    pub is_written: bool,
}

impl Figures {
    /// Creates the figures of a link before its first round.
    pub fn new(link: &str) -> Self {
        Figures { link: link.to_owned(), latest: Mutex::default() }
    }

    /// Adds a round that ended at this time, in seconds since 1970.
    pub fn add(&self, rows: &[Measurement], outcome: RoundOutcome, at_s: f64) {
        let mut latest = self.latest();
        latest.rounds += 1;
        latest.failures += u64::from(!outcome.is_whole);
        latest.conditions_missed += outcome.missed;
        latest.unwritten += u64::from(!outcome.is_written);
        latest.round = Some((outcome.is_whole, at_s));
        for found in rows {
            let labels = labels(found);
            let row = match latest.rows.iter().position(|row| row.labels == labels) {
                Some(place) => &mut latest.rows[place],
                None => {
                    latest.rows.push(Row { labels, figures: None, state: State::Failed, lost: 0, stalls: 0 });
                    latest.rows.last_mut().expect("pushed above")
                }
            };
            row.add(found, at_s);
        }
    }

    /// Returns the rounds so far, and those that failed.
    pub fn rounds(&self) -> (u64, u64) {
        let latest = self.latest();
        (latest.rounds, latest.failures)
    }

    /// Writes the metrics.
    pub fn expose(&self, to: &mut Exposition) {
        let latest = self.latest();
        let link = [("link", self.link.as_str())];
        to.counter("hodo_watch_rounds_total", "Rounds of measurements.", &link, latest.rounds);
        to.counter("hodo_watch_failures_total", "Rounds in which not everything was measured.", &link, latest.failures);
        let help = "Rows that did not meet a condition of --require.";
        to.counter("hodo_watch_conditions_missed_total", help, &link, latest.conditions_missed);
        let help = "Rounds that could not be written to the history.";
        to.counter("hodo_watch_unwritten_total", help, &link, latest.unwritten);
        if let Some((is_whole, at_s)) = latest.round {
            let help = "1 if everything was measured in the latest round, else 0.";
            to.gauge("hodo_watch_up", help, &link, u64::from(is_whole));
            to.gauge("hodo_watch_round_timestamp_seconds", "When the latest round ended.", &link, at_s);
        }
        latest.rows.iter().for_each(|row| row.expose(&self.link, to));
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Row {
    fn add(&mut self, found: &Measurement, at_s: f64) {
        self.state = found.verdict.state;
        self.lost += found.loss.lost;
        self.stalls += found.stalls.len() as u64;
        if matches!(found.verdict.state, State::Failed | State::Interrupted) {
            return;
        }
        let seconds = |ns: u64| ns as f64 * 1e-9;
        self.figures = Some(RowFigures {
            at_s,
            operations_per_s: found.rate.operations_per_s.median,
            payload_bits_per_s: found.rate.payload_bits_per_s.median,
            latency_s: found.latency_ns.as_ref().map(|latency| (seconds(latency.p50), seconds(latency.p99))),
            lost: found.loss.lost,
            stalls: found.stalls.len() as u64,
            share_of_limit: found.share_of_limit,
        });
    }

    fn expose(&self, link: &str, to: &mut Exposition) {
        let [test, mode, size, window, channels] = &self.labels;
        let labels = [
            ("link", link),
            ("test", test),
            ("mode", mode),
            ("size", size),
            ("window", window),
            ("channels", channels),
        ];
        to.counter("hodo_watch_lost_total", "Operations lost in all rounds.", &labels, self.lost);
        to.counter("hodo_watch_stalls_total", "Silences in all rounds.", &labels, self.stalls);
        for state in State::ALL {
            let [a, b, c, d, e, f] = labels;
            let help = "1 for the verdict of the latest round, 0 for all others.";
            let with_state = [a, b, c, d, e, f, ("state", state.word())];
            to.gauge("hodo_watch_verdict", help, &with_state, u64::from(state == self.state));
        }
        let Some(figures) = &self.figures else { return };
        let mut gauge = |name, help, value: f64| to.gauge(name, help, &labels, value);
        gauge("hodo_watch_measured_timestamp_seconds", "When these figures were measured.", figures.at_s);
        gauge("hodo_watch_operations_per_second", "The median rate of operations.", figures.operations_per_s);
        gauge("hodo_watch_payload_bits_per_second", "The median rate of payload.", figures.payload_bits_per_s);
        if let Some((p50, p99)) = figures.latency_s {
            gauge("hodo_watch_latency_p50_seconds", "The time that half of the operations did not exceed.", p50);
            gauge("hodo_watch_latency_p99_seconds", "The time that 99 % of the operations did not exceed.", p99);
        }
        gauge("hodo_watch_lost", "Operations lost.", figures.lost as f64);
        gauge("hodo_watch_stalls", "Silences that the test cannot explain.", figures.stalls as f64);
        if let Some(share) = figures.share_of_limit {
            gauge("hodo_watch_share_of_limit", "The share of the limit that was reached.", share);
        }
    }
}

/// Returns the labels of a row: test, mode, size, window and channels.
fn labels(found: &Measurement) -> [String; 5] {
    let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let size = match (found.size_min_bytes, found.size_max_bytes) {
        (Some(min), Some(max)) => format!("{min}..{max}"),
        _ => number(found.size_bytes),
    };
    let window = found.window.map_or_else(|| "none".to_owned(), |window| window.to_string());
    [found.test.to_string(), found.mode.to_string(), size, window, found.channels.to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_measure::{Latency, Mode, Plan, Verdict};

    fn row(state: State) -> Measurement {
        let verdict = Verdict { state, text: state.word().to_owned() };
        let mut row = Plan::one(Mode::Both, 64).unmeasured("tcp", "tcp://there", verdict);
        row.rate.operations_per_s.median = 5000.0;
        row.latency_ns = Some(Latency { p50: 20_000, p99: 90_000, ..Latency::default() });
        row.loss.lost = 2;
        row
    }

    fn text(figures: &Figures) -> String {
        let mut exposition = Exposition::default();
        figures.expose(&mut exposition);
        exposition.text()
    }

    #[test]
    fn a_failed_round_keeps_the_figures_and_says_that_it_failed() {
        let figures = Figures::new("tcp://there");
        assert!(!text(&figures).contains("hodo_watch_up"), "nothing is known before the first round");
        let whole = RoundOutcome { is_whole: true, missed: 1, is_written: true };
        figures.add(&[row(State::Stable)], whole, 1000.0);
        let failed = RoundOutcome { is_whole: false, missed: 0, is_written: false };
        figures.add(&[Measurement { latency_ns: None, ..row(State::Failed) }], failed, 1300.5);
        let text = text(&figures);
        let labels = r#"link="tcp://there",test="latency",mode="both",size="64",window="1",channels="1""#;
        for line in [
            r#"hodo_watch_up{link="tcp://there"} 0"#.to_owned(),
            r#"hodo_watch_rounds_total{link="tcp://there"} 2"#.to_owned(),
            r#"hodo_watch_failures_total{link="tcp://there"} 1"#.to_owned(),
            r#"hodo_watch_conditions_missed_total{link="tcp://there"} 1"#.to_owned(),
            r#"hodo_watch_unwritten_total{link="tcp://there"} 1"#.to_owned(),
            r#"hodo_watch_round_timestamp_seconds{link="tcp://there"} 1300.5"#.to_owned(),
            format!("hodo_watch_measured_timestamp_seconds{{{labels}}} 1000"),
            format!("hodo_watch_operations_per_second{{{labels}}} 5000"),
            format!("hodo_watch_latency_p50_seconds{{{labels}}} 0.00002"),
            format!("hodo_watch_lost_total{{{labels}}} 4"),
            format!(r#"hodo_watch_verdict{{{labels},state="failed"}} 1"#),
            format!(r#"hodo_watch_verdict{{{labels},state="stable"}} 0"#),
        ] {
            assert!(text.lines().any(|found| found.starts_with(&line)), "{line} is not in\n{text}");
        }
        assert_eq!(figures.rounds(), (2, 1));
    }
}
