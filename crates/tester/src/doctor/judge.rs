//! Facts become answers: pure functions, one for each subject. The formulas are in docs/doctor.md.

mod interface;
mod path;
mod processors;
mod queues;
#[cfg(test)]
mod tests;
mod transport;

use super::{Answer, Facts, Finding, Outcome, PathFacts, Report, Topic};
use std::time::Duration;

/// Judges facts, and ranks the findings.
#[must_use]
pub fn judge(facts: &Facts) -> Report {
    let judges: [fn(&Facts) -> Vec<Answer>; 18] = [
        path::mtu,
        processors::quota,
        processors::one_processor,
        processors::neighbour,
        interface::offloads,
        queues::queue_drops,
        queues::card_drops,
        queues::softnet,
        transport::socket_limits,
        transport::congestion_control,
        interface::coalescence,
        queues::rings,
        interface::affinity,
        interface::receive_queues,
        processors::clock_source,
        processors::wake_up,
        processors::steal,
        processors::governor,
    ];
    Report::of(facts.path.clone(), judges.iter().flat_map(|judge| judge(facts)))
}

fn found(topic: Topic, about: &str, finding: Finding) -> Answer {
    Answer { topic, about: about.to_owned(), outcome: Outcome::Found(finding) }
}

fn fine(topic: Topic, about: &str, text: impl Into<String>) -> Answer {
    Answer { topic, about: about.to_owned(), outcome: Outcome::Fine(text.into()) }
}

fn unknown(topic: Topic, about: &str, text: impl Into<String>) -> Answer {
    Answer { topic, about: about.to_owned(), outcome: Outcome::Unknown(text.into()) }
}

/// Returns `1 processor` or `3 processors`.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// The line rate that is assumed where none is known, in bits per second.
const ASSUMED_LINE: f64 = 1e9;

impl Facts {
    /// Returns the longest time for which a processor was taken from a busy thread.
    fn longest_pause(&self) -> Option<Duration> {
        self.occupancy.iter().map(|each| each.longest_pause).max()
    }

    /// Returns the rate of the line in bits per second, if an interface reports one.
    fn line(&self) -> Option<f64> {
        self.interfaces.iter().find_map(|each| each.nic.line_rate_bits_per_s())
    }

    /// Returns the rate that a stream could have here, and whose it is: of the line, else the one that this host's own stack
    /// reaches over a path without delay, else an assumed line.
    fn attainable(&self) -> (f64, &'static str) {
        let is_short = self.path.as_ref().and_then(PathFacts::round_trip).is_some_and(|span| span < SHORT);
        match (self.line(), self.tcp.large_buffers) {
            (Some(line), _) => (line, "the line's"),
            (None, Some(stack)) if is_short => (stack, "loopback's"),
            _ => (ASSUMED_LINE, "an assumed line's"),
        }
    }
}

/// A round-trip within one room, over which this host's stack can be the limit.
const SHORT: Duration = Duration::from_millis(1);
