//! A run of a farm as a measurement, with the tables that a document of results has no place for.

use hodo_farm_host::controller::shares::evenness;
use hodo_farm_host::controller::status::{Events, Moment, NodeStatus, Status};
use hodo_measure::{
    Cpu, Estimate, Fairness, Histogram, Interval, Loss, Measurement, Mode, NodeShare, Plan, ProcessCpu, Rate, State,
    Test, Verdict, stalled, stalls_between, verdict,
};
use hodo_report::Table;

/// Pieces of a run that are enough to judge it by.
const INNER_MIN: usize = 8;

/// Returns the run, from its first event to its last, as a measurement. `of` names the controller, as the address of its pages.
#[must_use]
pub fn measurement(of: &str, status: &Status) -> Measurement {
    let intervals = intervals(status);
    let operations: u64 = intervals.iter().map(|interval| interval.operations).sum();
    let payload_bytes: u64 = intervals.iter().map(|interval| interval.payload_bytes).sum();
    let elapsed_s = intervals.last().map_or(0.0, |last| last.t_s);
    let estimate = |count: f64| {
        let median = if elapsed_s > 0.0 { count / elapsed_s } else { 0.0 };
        Estimate { median, best: median, ..Estimate::default() }
    };
    let rate = Rate {
        operations_per_s: estimate(operations as f64),
        payload_bits_per_s: estimate(8.0 * payload_bytes as f64),
    };
    let stalls = stalls_between(&intervals);
    let verdict = if operations == 0 {
        Verdict { state: State::Failed, text: "failed: no event has a verdict".to_owned() }
    } else {
        // A run begins and ends amid the first and the last piece, which say nothing of its rate.
        let inner = intervals.get(1..intervals.len().saturating_sub(1)).filter(|inner| inner.len() >= INNER_MIN);
        let judged = |pieces: &[Interval]| stalled(&stalls, elapsed_s).unwrap_or_else(|| verdict(pieces));
        inner.map_or_else(|| judged(&intervals), |inner| judged(&since(intervals[0].t_s, inner)))
    };
    let nodes = status.nodes.len().max(1) as u64;
    let share = |node: &NodeStatus| NodeShare { number: node.number, events: node.answered };
    let mut shares: Vec<NodeShare> = status.nodes.iter().map(share).collect();
    shares.sort_by_key(|node| node.number);
    let in_flight: u64 = status.nodes.iter().map(|node| u64::from(node.in_flight)).sum();
    let link = format!("farm://{}", of.trim_start_matches("http://").trim_end_matches('/'));
    Measurement {
        test: Test::Rate,
        size_bytes: Some(status.bytes.taken_in / status.events.taken_in.max(1)),
        window: Some(((status.tokens.waiting + in_flight) / nodes) as u32),
        channels: status.nodes.len() as u32,
        seed: 0,
        repeats: 1,
        operations,
        payload_bytes,
        elapsed_s,
        rate,
        latency_ns: Histogram::from(&status.answers.0).latency(),
        cpu: Cpu::of_sides(
            status.cpu.as_ref().map(|usage| ProcessCpu::of(usage, status.uptime_s)),
            None,
            status.events.decided(),
        ),
        loss: Loss { duplicated: status.events.duplicates, ..Loss::default() },
        stalls,
        intervals,
        fairness: Fairness::of(&shares.iter().map(|node| node.events).collect::<Vec<_>>(), elapsed_s, None),
        nodes: shares,
        ..Plan::one(Mode::Send, 0).unmeasured("farm", &link, verdict)
    }
}

/// Returns these pieces of a run as those of one that began at this second of it.
fn since(start_s: f64, pieces: &[Interval]) -> Vec<Interval> {
    pieces.iter().map(|piece| Interval { t_s: piece.t_s - start_s, ..*piece }).collect()
}

/// Returns the pieces of the run, two moments of the page each, without those before the first event and behind the last.
fn intervals(status: &Status) -> Vec<Interval> {
    let moments = &status.timeline;
    let first = moments.windows(2).position(|pair| pair[1].decided > pair[0].decided);
    let last = moments.windows(2).rposition(|pair| pair[1].decided > pair[0].decided);
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    let run = &moments[first..=last + 1];
    let step = run.len().div_ceil(200).max(1);
    let ends = run.iter().step_by(step).chain(run.last().filter(|_| !(run.len() - 1).is_multiple_of(step)));
    let ends: Vec<_> = ends.collect();
    let piece = |pair: &[&Moment]| Interval {
        t_s: pair[1].at_s - run[0].at_s,
        operations: pair[1].decided - pair[0].decided,
        payload_bytes: pair[1].bytes_in.saturating_sub(pair[0].bytes_in),
    };
    ends.windows(2).map(piece).collect()
}

/// Returns the balance of events and the nodes.
#[must_use]
pub fn tables(status: &Status) -> Vec<Table> {
    let Events { taken_in, accepted, rejected, quarantined, incomplete, in_hand, duplicates, conflicts, .. } =
        status.events;
    let part = |count: u64| format!("{:.3} %", 100.0 * count as f64 / taken_in.max(1) as f64);
    let verdicts = [
        ("accepted", accepted),
        ("rejected", rejected),
        ("quarantined", quarantined),
        ("incomplete", incomplete),
        ("in hand", in_hand),
        ("taken in", taken_in),
    ];
    let cpu = status.cpu_ns_per_event().map(|ns| format!("; CPU of the controller {:.2} µs an event", ns * 1e-3));
    let cpu = cpu.unwrap_or_default();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let balance = Table {
        title: format!("Events of run {}", status.run),
        note: format!(
            "Each event that was taken in stands in one of the other rows{}. {duplicates} were offered again, {conflicts} more \
             came under numbers with other data, {} found no token, {} were given to another node; dead time {:.2} %{cpu}.",
            partial(&status.events),
            status.events.found_no_token,
            status.events.redispatched,
            100.0 * status.dead_time_s / status.uptime_s.max(1e-9)
        ),
        columns: words(&["verdict", "events", "share"]),
        rows: verdicts.iter().map(|(name, count)| vec![(*name).to_owned(), count.to_string(), part(*count)]).collect(),
    };
    let total: u64 = status.nodes.iter().chain(&status.nodes_gone).map(|node| node.given).sum();
    let mut nodes = status.nodes.clone();
    nodes.sort_by_key(|node| node.number);
    let row = |node: &NodeStatus, is_gone: bool| {
        let share = 100.0 * node.given as f64 / total.max(1) as f64;
        vec![
            format!("{}{}", node.number, if is_gone { " (gone)" } else { "" }),
            node.given.to_string(),
            format!("{share:.2} %"),
            node.accepted.to_string(),
            node.failed.to_string(),
            format!("{:.1}", node.waited_us_mean),
            format!("{:.1}", node.decided_us_mean),
        ]
    };
    let there = nodes.iter().map(|node| row(node, false));
    let shares = Table {
        title: "Nodes".to_owned(),
        note: evenness(&nodes),
        columns: words(&["node", "events", "share", "accepted", "failed", "waits (µs)", "decides (µs)"]),
        rows: there.chain(status.nodes_gone.iter().map(|node| row(node, true))).collect(),
    };
    vec![balance, shares]
}

/// Returns the events that stand in one of the rows and were not as they should be.
fn partial(events: &Events) -> String {
    let mut text = String::new();
    for (count, what) in [(events.partial, "lacked fragments"), (events.too_large, "were larger than any node takes")] {
        if count > 0 {
            text += &format!("; {count} of them {what}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Moment;
    use super::*;

    fn run(rates: impl IntoIterator<Item = u64>) -> Status {
        let mut decided = 0;
        let moment = |(second, rate): (usize, u64)| {
            decided += rate;
            Moment { at_s: second as f64, decided, bytes_in: decided * 100 }
        };
        let timeline: Vec<Moment> = rates.into_iter().enumerate().map(moment).collect();
        Status { timeline, ..Status::default() }
    }

    #[test]
    fn a_run_is_from_its_first_event_to_its_last() {
        let found = measurement("here:1", &run([0, 0, 0].into_iter().chain([1000; 20]).chain([0; 30])));
        assert_eq!((found.operations, found.payload_bytes, found.elapsed_s), (20_000, 2_000_000, 20.0));
        assert_eq!(found.rate.operations_per_s.median, 1000.0);
        assert_eq!(found.verdict.state, State::Stable, "{}", found.verdict.text);
    }

    /// Leaves out the first interval and the last, because two samples of the page do not coincide with the first event
    /// and the last.
    #[test]
    fn what_a_run_begins_and_ends_with_says_nothing_of_its_rate() {
        let found = measurement("here:1", &run([0, 400].into_iter().chain([1000; 20]).chain([100, 0])));
        assert_eq!(found.verdict.state, State::Stable, "{}", found.verdict.text);
        assert_eq!(found.operations, 20_500);
    }

    #[test]
    fn a_long_run_has_pieces_that_add_up() {
        for count in [2, 199, 200, 201, 399, 400] {
            let found = intervals(&run((0..count).map(|_| 7)));
            assert!(found.len() <= 200, "{count}: {}", found.len());
            assert_eq!(found.iter().map(|piece| piece.operations).sum::<u64>(), 7 * (count - 1), "{count}");
        }
    }

    #[test]
    fn a_run_that_decays_is_convicted() {
        let found = measurement("here:1", &run((0..60).map(|second| 10_000 - 100 * second)));
        assert_eq!(found.verdict.state, State::Drifting, "{}", found.verdict.text);
    }

    #[test]
    fn nothing_is_no_run() {
        assert_eq!(measurement("here:1", &run([0; 10])).verdict.state, State::Failed);
    }
}
