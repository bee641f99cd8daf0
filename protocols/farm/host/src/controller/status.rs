//! The status of a controller: one struct for its page, its metrics, its text and its tables.

use super::snapshot::ControllerSnapshot;
use crate::Error;
use hodo_farm::controller::{Counters, NodeShare};
use hodo_farm::{Counts, Policy};
use hodo_io::usage::Usage;
use hodo_machine::Spans;
use hodo_store::Uploads;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// Path of the page that shows the status as JSON.
pub const PATH: &str = "/farm";

/// The status of a controller at one moment, as its page `/farm` shows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The run of events that the controller makes itself.
    pub run: u32,
    /// The state, by its name.
    pub state: String,
    /// The policy by which nodes get events.
    pub policy: String,
    /// Seconds since the controller began.
    pub uptime_s: f64,
    /// Events.
    pub events: Events,
    /// Bytes.
    pub bytes: Bytes,
    /// Control tokens.
    pub tokens: Tokens,
    /// Seconds during which events waited and could not be dispatched.
    pub dead_time_s: f64,
    /// The share of the time that this is.
    #[serde(default)]
    pub dead_time_share: f64,
    /// The time from dispatching an event to its token.
    #[serde(default)]
    pub answers: Answers,
    /// CPU and memory of the process.
    pub cpu: Option<Usage>,
    /// Connections.
    pub connections: Connections,
    /// The store.
    pub store: StoreStatus,
    /// Connected nodes.
    pub nodes: Vec<NodeStatus>,
    /// Nodes that were connected before.
    pub nodes_gone: Vec<NodeStatus>,
    /// Progress since the controller began.
    pub timeline: Vec<Moment>,
}

/// Counts of events. `taken_in` is the sum of the four verdicts and `in_hand`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// Events that came in, each once.
    pub taken_in: u64,
    /// Events that are stored.
    pub accepted: u64,
    /// Events that are not kept.
    pub rejected: u64,
    /// Events stored apart, because too many nodes failed over them.
    pub quarantined: u64,
    /// Events given up, because fragments were missing.
    pub incomplete: u64,
    /// Events among the accepted, rejected and quarantined that lacked fragments, since the controller began.
    #[serde(default)]
    pub partial: u64,
    /// Events among the quarantined that no node took for their size, since the controller began.
    #[serde(default)]
    pub too_large: u64,
    /// Events without a verdict.
    pub in_hand: u64,
    /// Events that were offered again.
    pub duplicates: u64,
    /// Those of them that could not be compared with what was given before.
    #[serde(default)]
    pub unchecked: u64,
    /// Events that came under numbers with other data, since the controller began; in no other of these counts.
    #[serde(default)]
    pub conflicts: u64,
    /// Events made by the controller that it had to drop: their run was over, or a source had given their numbers.
    #[serde(default)]
    pub not_taken: u64,
    /// Events that wait for a token.
    pub waiting: u64,
    /// Events that found no token.
    pub found_no_token: u64,
    /// Events given to nodes, each time counted.
    pub given: u64,
    /// Times that an event went to another node.
    pub redispatched: u64,
    /// Verdicts that wait for their commit.
    pub uncommitted: u64,
    /// Bytes of data that wait for their commit.
    #[serde(default)]
    pub uncommitted_bytes: u64,
}

impl Events {
    /// Returns the events with a verdict.
    #[must_use]
    pub const fn decided(&self) -> u64 {
        self.accepted + self.rejected + self.quarantined + self.incomplete
    }
}

/// Bytes of events and of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// Bytes of events that came in.
    pub taken_in: u64,
    /// Bytes of events given to nodes.
    pub given: u64,
    /// Bytes of data behind tokens.
    pub answered: u64,
}

/// Control tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Tokens that came.
    pub received: u64,
    /// Tokens that wait for an event.
    pub waiting: u64,
    /// Tokens for events that their sender did not have.
    pub unasked: u64,
}

/// Connections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Connected nodes.
    #[serde(default)]
    pub nodes: u64,
    /// Connected sources and builders.
    pub sources: u64,
    /// Nodes that were lost.
    pub nodes_lost: u64,
    /// Connections refused before they had greeted.
    #[serde(default)]
    pub refused: u64,
    /// Connections closed at once because there were too many.
    #[serde(default)]
    pub turned_away: u64,
    /// Connections ended because the peer broke the rules.
    #[serde(default)]
    pub misbehaved: u64,
    /// Ended connections by reason, see [`hodo_farm::Error::REASONS`].
    #[serde(default)]
    pub ended: BTreeMap<String, u64>,
}

/// The counters of the writer of the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// Events in the store.
    pub events: u64,
    /// Bytes of their data.
    pub bytes: u64,
    /// Groups of verdicts that were committed.
    pub commits: u64,
    /// Why nothing can be committed now.
    pub failing: Option<String>,
    /// Copies of closed segments elsewhere, where that was asked for.
    pub uploads: Option<Uploads>,
}

/// The counters of one node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The number that the node gave itself.
    pub number: u32,
    /// Events that it was given.
    pub given: u64,
    /// Bytes of these events.
    #[serde(default)]
    pub bytes: u64,
    /// Events that it has answered.
    pub answered: u64,
    /// Events that it has accepted.
    pub accepted: u64,
    /// Events over which it has failed.
    pub failed: u64,
    /// Events that it has now.
    pub in_flight: u32,
    /// Nanoseconds that its events waited before their decision.
    #[serde(default)]
    pub waited_ns: u64,
    /// Nanoseconds that it spent deciding.
    #[serde(default)]
    pub decided_ns: u64,
    /// Microseconds that an event waited on average.
    pub waited_us_mean: f64,
    /// Microseconds that a decision took on average.
    pub decided_us_mean: f64,
}

/// The progress of a farm at one moment; three numbers in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "(f64, u64, u64)", into = "(f64, u64, u64)")]
pub struct Moment {
    /// Seconds since the controller began.
    pub at_s: f64,
    /// Events with a verdict.
    pub decided: u64,
    /// Bytes that were taken in.
    pub bytes_in: u64,
}

impl From<(f64, u64, u64)> for Moment {
    fn from((at_s, decided, bytes_in): (f64, u64, u64)) -> Self {
        Moment { at_s, decided, bytes_in }
    }
}

impl From<Moment> for (f64, u64, u64) {
    fn from(Moment { at_s, decided, bytes_in }: Moment) -> Self {
        (at_s, decided, bytes_in)
    }
}

/// A histogram of answer times; in JSON its quantiles, its sum and the buckets of [`Spans`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers(pub Spans);

#[derive(Serialize, Deserialize)]
struct AnswersJson {
    p50_us: f64,
    p99_us: f64,
    sum_ns: u64,
    buckets: Vec<(u16, u32)>,
}

impl Answers {
    /// Returns the microseconds within which this share of the tokens came.
    #[must_use]
    pub fn quantile_us(&self, share: f64) -> f64 {
        self.0.quantile_ns(share) as f64 * 1e-3
    }
}

impl Serialize for Answers {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let buckets = self.0.buckets().collect();
        let (p50_us, p99_us) = (self.quantile_us(0.5), self.quantile_us(0.99));
        AnswersJson { p50_us, p99_us, sum_ns: self.0.sum_ns(), buckets }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Answers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let AnswersJson { sum_ns, buckets, .. } = AnswersJson::deserialize(from)?;
        let mut spans = Spans::new();
        spans.add_sum_ns(sum_ns);
        for (bucket, count) in buckets {
            if !spans.add_bucket(bucket, count) {
                return Err(serde::de::Error::custom(format!("there is no bucket {bucket}")));
            }
        }
        Ok(Answers(spans))
    }
}

impl From<&NodeShare> for NodeStatus {
    fn from(share: &NodeShare) -> Self {
        let NodeShare { number, given, bytes, answered, accepted, failed, in_flight, waited_ns, decided_ns } = *share;
        let mean_us = |sum_ns: u64| sum_ns as f64 * 1e-3 / answered.max(1) as f64;
        let (waited_us_mean, decided_us_mean) = (mean_us(waited_ns), mean_us(decided_ns));
        NodeStatus {
            number,
            given,
            bytes,
            answered,
            accepted,
            failed,
            in_flight,
            waited_ns,
            decided_ns,
            waited_us_mean,
            decided_us_mean,
        }
    }
}

/// Returns how many connections ended for each reason. The first one stands for none.
fn by_reason(ended: [u64; hodo_farm::Error::REASONS.len()]) -> BTreeMap<String, u64> {
    let ended = hodo_farm::Error::REASONS.into_iter().zip(ended).skip(1);
    ended.map(|(reason, count)| (reason.to_owned(), count)).collect()
}

impl Status {
    /// Makes the status of a snapshot. It takes every counter apart, so that a new one has to be given a place here.
    #[must_use]
    pub fn new(snapshot: &ControllerSnapshot, policy: Policy, timeline: &[Moment]) -> Status {
        let ControllerSnapshot { now, counts, counters, nodes, gone, store, answers, turned_away, orders: _ } =
            snapshot;
        let Counts { taken_in, accepted, rejected, quarantined, incomplete, duplicates, unchecked, conflicts } =
            *counts;
        let Counters {
            bytes_in,
            given,
            given_bytes,
            tokens,
            token_bytes,
            redispatched,
            waited_for_token,
            // In `dead_time_s`, with `threads`.
            dead_time_ns: _,
            not_taken,
            too_large,
            partial,
            unasked,
            refused,
            misbehaved,
            ended,
            nodes_lost,
            events_waiting,
            tokens_waiting,
            uncommitted,
            uncommitted_bytes,
            nodes: connected,
            sources,
            threads: _,
            state,
            run,
        } = *counters;
        Status {
            run,
            state: state.name().to_owned(),
            policy: policy.name().to_owned(),
            uptime_s: now.as_nanos() as f64 * 1e-9,
            events: Events {
                taken_in,
                accepted,
                rejected,
                quarantined,
                incomplete,
                partial,
                too_large,
                in_hand: counts.in_hand(),
                duplicates,
                unchecked,
                conflicts,
                not_taken,
                waiting: events_waiting,
                found_no_token: waited_for_token,
                given,
                redispatched,
                uncommitted,
                uncommitted_bytes,
            },
            bytes: Bytes { taken_in: bytes_in, given: given_bytes, answered: token_bytes },
            tokens: Tokens { received: tokens, waiting: tokens_waiting, unasked },
            dead_time_s: snapshot.dead_time_s(),
            dead_time_share: snapshot.dead_time_s() * 1e9 / (now.as_nanos() as f64).max(1.0),
            answers: Answers(answers.clone()),
            cpu: Some(Usage::of_process()),
            connections: Connections {
                nodes: connected,
                sources,
                nodes_lost,
                refused,
                turned_away: *turned_away,
                misbehaved,
                ended: by_reason(ended),
            },
            store: store.clone(),
            nodes: nodes.iter().map(NodeStatus::from).collect(),
            nodes_gone: gone.iter().map(NodeStatus::from).collect(),
            timeline: timeline.to_vec(),
        }
    }

    /// Parses the text of the page `/farm`.
    ///
    /// # Errors
    /// [`Error::NoStatus`] if the text is not the status of a controller.
    pub fn parse(text: &str) -> Result<Status, Error> {
        serde_json::from_str(text).map_err(|why| Error::NoStatus { what: "controller", why: why.to_string() })
    }

    /// Returns the text of the page `/farm`.
    #[must_use]
    pub fn json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("a status has no key that is not text") + "\n"
    }

    /// Returns the controller's CPU time for each event with a verdict in nanoseconds, without polling.
    #[must_use]
    pub fn cpu_ns_per_event(&self) -> Option<f64> {
        let decided = self.events.decided();
        self.cpu.filter(|_| decided > 0).map(|usage| usage.working_s() * 1e9 / decided as f64)
    }

    /// Returns the mean bytes of data behind a token, rounded up.
    #[must_use]
    pub fn token_data(&self) -> u64 {
        self.bytes.answered.div_ceil(self.tokens.received.max(1))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use hodo_farm::controller::State;

    /// Returns a snapshot in which every counter has a value of its own, from 1001 on, and the number of counters.
    pub(crate) fn all_different() -> (ControllerSnapshot, u64) {
        let mut last = 1000;
        let mut next = || {
            last += 1;
            last
        };
        let counts = Counts {
            accepted: next(),
            rejected: next(),
            quarantined: next(),
            incomplete: next(),
            duplicates: next(),
            unchecked: next(),
            conflicts: next(),
            taken_in: 10_000,
        };
        let counters = Counters {
            bytes_in: next(),
            given: next(),
            given_bytes: next(),
            tokens: next(),
            token_bytes: next(),
            redispatched: next(),
            waited_for_token: next(),
            not_taken: next(),
            too_large: next(),
            partial: next(),
            unasked: next(),
            refused: next(),
            misbehaved: next(),
            ended: std::array::from_fn(|reason| if reason == 0 { 0 } else { next() }),
            nodes_lost: next(),
            events_waiting: next(),
            tokens_waiting: next(),
            uncommitted: next(),
            uncommitted_bytes: next(),
            nodes: next(),
            sources: next(),
            dead_time_ns: 2_500_000_000,
            threads: 1,
            state: State::Paused,
            run: next() as u32,
        };
        let store = StoreStatus { events: next(), bytes: next(), commits: next(), failing: None, uploads: None };
        let turned_away = next();
        (ControllerSnapshot { counts, counters, store, turned_away, ..ControllerSnapshot::default() }, last)
    }

    #[test]
    fn every_counter_is_on_the_page() {
        let (snapshot, last) = all_different();
        let page = Status::new(&snapshot, Policy::TokenFifo, &[]).json();
        for value in 1001..=last {
            assert!(page.contains(&format!(" {value}")), "{value} is not on the page\n{page}");
        }
    }

    #[test]
    fn a_page_is_read_back() {
        let share = NodeShare { number: 7, given: 5, answered: 4, decided_ns: 8000, ..NodeShare::default() };
        let (mut snapshot, _) = all_different();
        (snapshot.nodes, snapshot.gone) = (vec![share], vec![share, share]);
        [20_000, 20_000, 90_000].into_iter().for_each(|nanos| snapshot.answers.record(nanos));
        let moment = Moment { at_s: 0.5, decided: 4, bytes_in: 9 };
        let status = Status::new(&snapshot, Policy::RoundRobin, &[moment]);
        assert_eq!(Status::parse(&status.json()), Ok(status.clone()));
        assert!((status.nodes[0].decided_us_mean - 2.0).abs() < 1e-9);
        assert_eq!((status.policy.as_str(), status.events.in_hand), ("round-robin", 10_000 - status.events.decided()));
        assert!(Status::parse("{}").is_err_and(|why| why.to_string().contains("controller")));
    }
}
