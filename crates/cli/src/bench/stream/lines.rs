//! The lines of a stream: one JSON object for the start of a step, for each interval, for its result, and for the end.

use hodo_measure::{Measurement, Snapshot, TcpTimes};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The name and version of the lines' form.
const SCHEMA: &str = "hodo.stream/1";
/// The fields of a measurement that are in the line of its result, apart from those of its plan.
const RESULT: [&str; 12] = [
    "repeats",
    "operations",
    "payload_bytes",
    "elapsed_s",
    "rate",
    "latency_ns",
    "loss",
    "stalls",
    "limit",
    "share_of_limit",
    "times_plain_loop",
    "verdict",
];
/// The fields of a measurement that say what was measured.
const PLAN: [&str; 14] = [
    "protocol",
    "link",
    "test",
    "mode",
    "size_bytes",
    "size_min_bytes",
    "size_max_bytes",
    "window",
    "channels",
    "batch",
    "wait",
    "seed",
    "rate_asked",
    "pace_asked",
];

/// The state of a stream: the step under way, and its latest snapshot.
#[derive(Debug)]
pub struct Lines {
    every: Duration,
    step: u64,
    before: Option<Snapshot>,
}

impl Lines {
    /// Creates the lines of a run that is followed at these intervals.
    pub fn new(every: Duration) -> Self {
        Lines { every, step: 0, before: None }
    }

    /// Returns the line of a step that begins; `unmeasured` has its plan.
    pub fn step(&mut self, unmeasured: &Measurement) -> Value {
        self.step += 1;
        self.before = None;
        let head = json!({"event": "step", "schema": SCHEMA, "step": self.step, "every_s": self.every.as_secs_f64()});
        with(head, fields(unmeasured, &PLAN))
    }

    /// Returns the line of the interval that a snapshot ends; `None` if it ends none.
    pub fn interval(&mut self, now: Snapshot) -> Option<Value> {
        let before = self.before.take().unwrap_or_default();
        let is_any = now.t_s > before.t_s || now.operations > before.operations;
        let line = is_any.then(|| self.line(&before, &now));
        self.before = Some(if is_any || now.t_s == 0.0 { now } else { before });
        line
    }

    /// Returns the line of a step's result.
    pub fn result(&self, found: &Measurement) -> Value {
        with(json!({"event": "result", "step": self.step}), result(found))
    }

    fn line(&self, before: &Snapshot, now: &Snapshot) -> Value {
        let lasted_s = nanos((now.t_s - before.t_s).max(0.0));
        let operations = now.operations.saturating_sub(before.operations);
        let payload_bytes = now.payload_bytes.saturating_sub(before.payload_bytes);
        let per_s = |count: f64| (lasted_s > 0.0).then(|| count / lasted_s);
        json!({
            "event": "interval",
            "step": self.step,
            "t_s": nanos(now.t_s),
            "lasted_s": lasted_s,
            "operations": operations,
            "payload_bytes": payload_bytes,
            "operations_per_s": per_s(operations as f64),
            "payload_bits_per_s": per_s(payload_bytes as f64 * 8.0),
            "lost": now.given_up.saturating_sub(before.given_up),
            "recovered": now.recovered.saturating_sub(before.recovered),
            "retransmitted": since(now.retransmitted, before.retransmitted),
            "latency_ns": times(before, now),
            "tcp": now.tcp.map(|tcp| transport(&tcp, before.tcp.as_ref())),
        })
    }
}

/// Returns the last line: how many lines stand before it, and how many snapshots were left out because the reader was slow.
pub fn end(lines: u64, skipped: u64) -> Value {
    json!({"event": "end", "lines": lines, "skipped": skipped})
}

/// Returns a row as one object: when its run started, its plan and its result, without histogram and intervals.
pub fn row_line(started: Option<&str>, found: &Measurement) -> Value {
    let head = with(json!({"started": started}), fields(found, &PLAN));
    with(head, result(found))
}

fn result(found: &Measurement) -> Map<String, Value> {
    let mut result = fields(found, &RESULT);
    if let Some(Value::Object(latency)) = result.get_mut("latency_ns") {
        latency.remove("histogram");
    }
    result
}

/// Returns these fields of a measurement, those that it has.
fn fields(found: &Measurement, names: &[&str]) -> Map<String, Value> {
    let Ok(Value::Object(mut all)) = serde_json::to_value(found) else { return Map::new() };
    names.iter().filter_map(|name| Some(((*name).to_owned(), all.remove(*name)?))).collect()
}

fn with(head: Value, more: Map<String, Value>) -> Value {
    let Value::Object(mut head) = head else { return Value::Object(more) };
    head.extend(more);
    Value::Object(head)
}

/// Returns the times of the operations that completed between two snapshots; null if none did or they are not known.
fn times(before: &Snapshot, now: &Snapshot) -> Value {
    let Some(times) = &now.times else { return Value::Null };
    let since = before.times.as_ref().map_or_else(|| Some((**times).clone()), |before| times.since(before));
    let Some(since) = since.filter(|since| since.count() > 0) else { return Value::Null };
    json!({
        "p50": since.quantile(0.5),
        "p90": since.quantile(0.9),
        "p99": since.quantile(0.99),
        "p99_9": since.quantile(0.999),
        "max": since.quantile(1.0),
        "count": since.count(),
    })
}

/// Returns TCP's counters of an interval, and its round-trip and windows at the end.
fn transport(now: &TcpTimes, before: Option<&TcpTimes>) -> Value {
    let counted = |of: fn(&TcpTimes) -> u64| before.map(|before| of(now).saturating_sub(of(before)));
    json!({
        "congestion_window": now.congestion_window,
        "rtt_ns": now.rtt_ns,
        "segments": counted(|tcp| tcp.segments),
        "retransmitted": counted(|tcp| tcp.retransmitted),
        "timeouts": counted(|tcp| tcp.timeouts),
    })
}

fn since(now: Option<u64>, before: Option<u64>) -> Option<u64> {
    Some(now?.saturating_sub(before?))
}

/// Returns seconds without digits beyond a nanosecond, which would say nothing.
fn nanos(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_measure::{Histogram, Mode, Plan, State, Verdict};

    fn snapshot(t_s: f64, operations: u64) -> Snapshot {
        let mut times = Histogram::new();
        (0..operations).for_each(|number| times.record(1000 * (1 + number / 10)));
        let tcp = TcpTimes { retransmitted: operations / 10, congestion_window: 10, ..TcpTimes::default() };
        Snapshot {
            t_s,
            operations,
            payload_bytes: 100 * operations,
            retransmitted: Some(operations / 10),
            tcp: Some(tcp),
            times: Some(Box::new(times)),
            ..Snapshot::default()
        }
    }

    #[test]
    fn an_interval_has_what_was_counted_in_it() {
        let mut lines = Lines::new(Duration::from_secs(1));
        assert_eq!(lines.interval(Snapshot { retransmitted: Some(7), ..Snapshot::default() }), None);
        assert!(lines.interval(snapshot(1.0, 70)).is_some());
        let line = lines.interval(snapshot(1.5, 80)).expect("an interval");
        assert_eq!(
            (&line["operations"], &line["payload_bytes"], &line["lasted_s"]),
            (&json!(10), &json!(1000), &json!(0.5))
        );
        assert_eq!((&line["operations_per_s"], &line["payload_bits_per_s"]), (&json!(20.0), &json!(16000.0)));
        assert_eq!((&line["latency_ns"]["p50"], &line["latency_ns"]["count"]), (&json!(8003), &json!(10)));
        assert_eq!((&line["retransmitted"], &line["tcp"]["retransmitted"]), (&json!(1), &json!(1)));
    }

    #[test]
    fn what_a_slow_reader_missed_is_in_the_next_line() {
        let mut lines = Lines::new(Duration::from_secs(1));
        lines.interval(Snapshot::default());
        let line = lines.interval(snapshot(3.0, 300)).expect("an interval");
        assert_eq!((&line["operations"], &line["lasted_s"]), (&json!(300), &json!(3.0)));
        assert_eq!(line["tcp"]["retransmitted"], Value::Null, "the counters at the start are not known");
    }

    #[test]
    fn a_snapshot_that_ends_no_interval_has_no_line() {
        let mut lines = Lines::new(Duration::from_secs(1));
        lines.interval(Snapshot::default());
        assert!(lines.interval(snapshot(1.0, 10)).is_some());
        // A run that a silence ended: the counted time ends with the last operation.
        assert_eq!(lines.interval(snapshot(0.5, 10)), None);
        let line = lines.interval(snapshot(2.0, 10)).expect("a silence");
        assert_eq!((&line["operations"], &line["latency_ns"]), (&json!(0), &Value::Null));
    }

    #[test]
    fn a_step_has_its_plan_and_a_result_its_verdict() {
        let verdict = Verdict { state: State::Stable, text: "stable".into() };
        let found = Plan::one(Mode::Send, 64).unmeasured("tcp", "tcp://there", verdict);
        let mut lines = Lines::new(Duration::from_secs(1));
        let step = lines.step(&found);
        assert_eq!((&step["event"], &step["step"], &step["size_bytes"]), (&json!("step"), &json!(1), &json!(64)));
        assert_eq!(lines.result(&found)["verdict"]["state"], "stable");
        let row = row_line(Some("2026-01-01T00:00:00Z"), &found);
        assert_eq!(
            (&row["mode"], &row["operations"], &row["started"]),
            (&json!("send"), &json!(0), &json!("2026-01-01T00:00:00Z"))
        );
    }
}
