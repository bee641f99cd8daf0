//! The activity of a farm between two snapshots, for a terminal.

use crate::builder::BuilderStatus;
use crate::controller::status::{NodeStatus, Status};
use crate::controller::uploaded;
use hodo_units::statistics::{jain, least_over_most};
use hodo_units::text::{self, bits_per_s, bytes, seconds};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The status of a controller, and of its builder where that is watched too, at one moment.
#[derive(Debug, Clone, Default)]
pub struct FarmSnapshot {
    /// The controller.
    pub controller: Status,
    /// The builder.
    pub builder: Option<BuilderStatus>,
}

/// Returns the activity between two snapshots as text of at most `rows` rows. No row has more than 79 columns, except
/// for reasons of failures. `at` names the controller.
#[must_use]
pub fn view(at: &str, before: &FarmSnapshot, now: &FarmSnapshot, rows: usize) -> String {
    let span_s = now.controller.uptime_s - before.controller.uptime_s;
    // Where the time goes back, another process answers now.
    let zero = FarmSnapshot::default();
    let (before, span_s) = if span_s > 0.0 { (before, span_s) } else { (&zero, now.controller.uptime_s.max(1e-9)) };
    let mut text = events(at, &before.controller, &now.controller, span_s);
    if let Some(building) = &now.builder {
        text += &builder(before.builder.as_ref(), building, span_s);
    }
    if let Some(uploads) = &now.controller.store.uploads {
        let _ = writeln!(text, "upload   {}", uploaded(uploads));
    }
    if let Some(why) = &now.controller.store.failing {
        let _ = writeln!(text, "NOTHING CAN BE STORED: {why}");
    }
    if let conflicts @ 1.. = now.controller.events.conflicts {
        let _ = writeln!(text, "{conflicts} EVENTS CAME UNDER NUMBERS WITH OTHER DATA");
    }
    let used = text.lines().count();
    text + &nodes(&before.controller, &now.controller, span_s, rows.saturating_sub(used + 1))
}

/// Reads one counter.
type Figure = fn(&Status) -> u64;

/// Returns the rows about events: rates, totals, and what waits.
fn events(at: &str, before: &Status, now: &Status, span_s: f64) -> String {
    let columns: [(&str, usize, Figure); 7] = [
        ("in", 9, |status| status.events.taken_in),
        ("accepted", 10, |status| status.events.accepted),
        ("rejected", 10, |status| status.events.rejected),
        ("quarantined", 12, |status| status.events.quarantined),
        ("incomplete", 11, |status| status.events.incomplete),
        ("given", 10, |status| status.events.given),
        ("no token", 9, |status| status.events.found_no_token),
    ];
    let row = |label: &str, cell: &dyn Fn(&str, Figure) -> String| {
        let cells = columns.iter().map(|(name, width, of)| format!("{:>width$}", cell(name, *of)));
        format!("{label:<8}{}\n", cells.collect::<String>())
    };
    let rate = |of: Figure| of(now).saturating_sub(of(before)) as f64 / span_s;
    let mut text =
        format!("farm {at}   run {}   {}   {}   up {}\n", now.run, now.state, now.policy, seconds(now.uptime_s));
    text += &row("", &|name, _| name.to_owned());
    text += &row("events/s", &|_, of| text::events(rate(of)));
    text += &row("total", &|_, of| of(now).to_string());
    let _ = writeln!(
        text,
        "data     {} in, {} stored, {} verdicts and {} uncommitted",
        bits_per_s(rate(|status| status.bytes.taken_in) * 8.0),
        bits_per_s(rate(|status| status.store.bytes) * 8.0),
        now.events.uncommitted,
        bytes(now.events.uncommitted_bytes),
    );
    let dead = 100.0 * (now.dead_time_s - before.dead_time_s) / span_s;
    let _ = writeln!(
        text,
        "waiting  {} events, {} tokens; {} in hand, {} re-dispatched, dead time {:.1} %",
        now.events.waiting,
        now.tokens.waiting,
        now.events.in_hand,
        now.events.redispatched,
        dead.clamp(0.0, 100.0),
    );
    text
}

fn builder(before: Option<&BuilderStatus>, now: &BuilderStatus, span_s: f64) -> String {
    let zero = BuilderStatus::default();
    let before = before.filter(|before| before.uptime_s < now.uptime_s).unwrap_or(&zero);
    let rate = |of: fn(&BuilderStatus) -> u64| text::events(of(now).saturating_sub(of(before)) as f64 / span_s);
    let mut text = format!(
        "builder  {} events/s complete, {}/s incomplete ({} in all), {} open, {} wait\n",
        rate(|building| building.events.complete),
        rate(|building| building.events.incomplete),
        now.events.incomplete,
        now.events.open,
        now.events.waiting,
    );
    let _ = writeln!(
        text,
        "         {} fragments/s, in all {} lost, {} late, {} again; {} of {} sources",
        rate(|building| building.fragments.taken_in),
        now.fragments.lost,
        now.fragments.late,
        now.fragments.duplicate,
        now.connections.sources,
        now.connections.sources + now.connections.absent.len() as u64,
    );
    text
}

/// Returns the rows about nodes, at most this many.
fn nodes(before: &Status, now: &Status, span_s: f64, rows: usize) -> String {
    let mut earlier: BTreeMap<u32, u64> = BTreeMap::new();
    for node in &before.nodes {
        *earlier.entry(node.number).or_default() += node.given;
    }
    let mut sorted = now.nodes.clone();
    sorted.sort_by_key(|node| node.number);
    // Nodes of one number are one here: nothing tells which of them it was before.
    let mut list: Vec<NodeStatus> = Vec::new();
    for node in sorted {
        match list.last_mut().filter(|last| last.number == node.number) {
            Some(last) => {
                (last.given, last.in_flight) = (last.given + node.given, last.in_flight + node.in_flight);
                last.failed += node.failed;
            }
            None => list.push(node),
        }
    }
    let given: Vec<f64> = list
        .iter()
        .map(|node| {
            let since = earlier.get(&node.number).filter(|given| **given <= node.given);
            (node.given - since.copied().unwrap_or(0)) as f64
        })
        .collect();
    let total: f64 = given.iter().sum();
    let mut text = format!(
        "nodes    {} ({} lost), sources {}: min/max {:.3}, Jain {:.4} since the last look\n",
        now.nodes.len(),
        now.connections.nodes_lost,
        now.connections.sources,
        least_over_most(&given),
        jain(&given)
    );
    if rows < 4 {
        return text;
    }
    let _ = writeln!(
        text,
        "{:>8} {:>12} {:>8} {:>9} {:>9} {:>12} {:>12}",
        "node", "events/s", "share", "in flight", "failed", "waits/us", "decides/us"
    );
    let shown = if list.len() + 2 > rows { rows - 3 } else { list.len() };
    for (node, given) in list.iter().zip(&given).take(shown) {
        let _ = writeln!(
            text,
            "{:>8} {:>12} {:>6.2} % {:>9} {:>9} {:>12.1} {:>12.1}",
            node.number,
            text::events(given / span_s),
            100.0 * given / total.max(1.0),
            node.in_flight,
            node.failed,
            node.waited_us_mean,
            node.decided_us_mean
        );
    }
    if shown < list.len() {
        let _ = writeln!(text, "     ... and {} more; hodo farm status has all", list.len() - shown);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::status::{BuiltEvents, Fragments};
    use crate::controller::status::{Bytes, Events};

    const ROWS: usize = 1000;

    fn look(uptime_s: f64, taken_in: u64, given: [u64; 2]) -> FarmSnapshot {
        let events = Events { taken_in, rejected: taken_in, ..Events::default() };
        let nodes = (0..).zip(given).map(|(number, given)| NodeStatus { number, given, ..NodeStatus::default() });
        let bytes = Bytes { taken_in: taken_in * 125_000, ..Bytes::default() };
        let controller = Status { uptime_s, events, bytes, nodes: nodes.collect(), ..Status::default() };
        FarmSnapshot { controller, builder: None }
    }

    #[test]
    fn rates_are_of_the_time_between_two_looks() {
        let (before, now) = (look(10.0, 1000, [600, 400]), look(12.0, 3000, [1100, 1900]));
        let text = view("here", &before, &now, ROWS);
        assert!(text.contains("\nevents/s     1000 "), "{text}");
        assert!(text.contains("\ndata     1.000 Gbit/s in, 0 bit/s stored, "), "{text}");
        assert!(text.contains("min/max 0.333, Jain 0.8000"), "{text}");
        assert!(text.contains("       1        750.0") || text.contains("       1          750  75.00 %"), "{text}");
    }

    #[test]
    fn another_process_begins_at_nothing() {
        let text = view("here", &look(100.0, 9000, [5000, 4000]), &look(2.0, 200, [100, 100]), ROWS);
        assert!(text.contains("\nevents/s      100 ") && text.contains("Jain 1.0000"), "{text}");
    }

    #[test]
    fn it_fits_on_the_screen() {
        let nodes: Vec<NodeStatus> =
            (0..200).map(|number| NodeStatus { number, given: 1, ..NodeStatus::default() }).collect();
        let mut now = look(1.0, 1, [0, 0]);
        now.controller.nodes = nodes;
        for rows in 1..300 {
            let text = view("here", &FarmSnapshot::default(), &now, rows);
            assert!(text.lines().count() <= rows.max(7), "{rows} rows:\n{text}");
        }
        assert!(
            view("here", &FarmSnapshot::default(), &now, 24).contains("and 186 more"),
            "what is left out is counted"
        );
    }

    #[test]
    fn no_line_goes_over_to_the_next() {
        let many = 200_000_000;
        let mut now = look(100_000.0, many, [many; 2]);
        now.controller.events =
            Events { given: many, found_no_token: many, waiting: 1_000_000, ..now.controller.events };
        now.builder = Some(BuilderStatus {
            events: BuiltEvents { complete: many, ..BuiltEvents::default() },
            fragments: Fragments { lost: 1_000_000, taken_in: 3 * many, ..Fragments::default() },
            ..BuilderStatus::default()
        });
        let text = view("192.168.100.100:9205", &FarmSnapshot::default(), &now, ROWS);
        for line in text.lines().skip(1) {
            assert!(line.len() < 80, "{line}");
        }
    }
}
