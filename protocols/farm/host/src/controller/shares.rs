//! The table of a farm's nodes: how events are shared out over them.

use super::status::{NodeStatus, Status};
use hodo_units::statistics::{coefficient_of_variation, jain, least_over_most};
use std::fmt::Write;

/// Path of the page that shows the table.
pub const PATH: &str = "/nodes";

/// Returns the table, with how even it is in its last line.
#[must_use]
pub fn text(status: &Status) -> String {
    let total: u64 = status.nodes.iter().chain(&status.nodes_gone).map(|node| node.given).sum();
    let mut text = format!(
        "{:>8} {:>14} {:>8} {:>12} {:>9} {:>9} {:>12} {:>12}\n",
        "node", "events", "share", "accepted", "failed", "in flight", "waits/us", "decides/us"
    );
    let mut nodes = status.nodes.clone();
    nodes.sort_by_key(|node| node.number);
    for node in &nodes {
        line(&mut text, node, total, "");
    }
    for node in &status.nodes_gone {
        line(&mut text, node, total, "  gone");
    }
    let _ = writeln!(text, "{}", evenness(&nodes));
    text
}

fn line(text: &mut String, node: &NodeStatus, total: u64, note: &str) {
    let NodeStatus { number, given, accepted, failed, in_flight, waited_us_mean, decided_us_mean, .. } = node;
    let share = 100.0 * *given as f64 / total.max(1) as f64;
    let _ = writeln!(
        text,
        "{number:>8} {given:>14} {share:>6.2} % {accepted:>12} {failed:>9} {in_flight:>9} {waited_us_mean:>12.1} \
         {decided_us_mean:>12.1}{note}"
    );
}

/// Returns how evenly events are shared out over connected nodes, in one line.
#[must_use]
pub fn evenness(nodes: &[NodeStatus]) -> String {
    let given: Vec<f64> = nodes.iter().map(|node| node.given as f64).collect();
    let Some(least) = nodes.iter().map(|node| node.given).min() else { return "no nodes are there".to_owned() };
    let most = nodes.iter().map(|node| node.given).max().unwrap_or(least);
    format!(
        "{} nodes with {least} to {most} events: min/max {:.4}, Jain {:.4}, CV {:.2} %",
        nodes.len(),
        least_over_most(&given),
        jain(&given),
        100.0 * coefficient_of_variation(&given)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses the numbers of events of the nodes with the fewest and the most in the study's run of 17 hours.
    #[test]
    fn the_table_says_how_even_it_is() {
        let node = |number, given| NodeStatus { number, given, ..NodeStatus::default() };
        let status = Status {
            nodes: vec![node(2, 10_709_545), node(1, 9_168_862)],
            nodes_gone: vec![node(3, 100)],
            ..Status::default()
        };
        let text = text(&status);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("       1        9168862  46.12 %"), "{text}");
        assert!(lines[3].ends_with("gone"), "{text}");
        assert_eq!(lines[4], "2 nodes with 9168862 to 10709545 events: min/max 0.8561, Jain 0.9940, CV 10.96 %");
    }
}
