//! Who got the events: the table of a farm's nodes.

use super::reading::{Node, Reading};
use hodo_measure::statistics::{coefficient_of_variation, jain, least_over_most};
use std::fmt::Write;

/// Where a controller shows it.
pub const PATH: &str = "/nodes";

/// The table, and how even it is.
pub fn text(reading: &Reading) -> String {
    let total: u64 = reading.nodes.iter().chain(&reading.gone).map(|node| node.given).sum();
    let mut text = format!(
        "{:>8} {:>14} {:>8} {:>12} {:>9} {:>9} {:>12} {:>12}\n",
        "node", "events", "share", "accepted", "failed", "in flight", "waits/us", "decides/us"
    );
    let mut nodes = reading.nodes.clone();
    nodes.sort_by_key(|node| node.number);
    for node in &nodes {
        line(&mut text, node, total, "");
    }
    for node in &reading.gone {
        line(&mut text, node, total, "  gone");
    }
    let _ = writeln!(text, "{}", evenness(&nodes));
    text
}

fn line(text: &mut String, node: &Node, total: u64, note: &str) {
    let Node { number, given, accepted, failed, in_flight, waited_us, decided_us, .. } = node;
    let share = 100.0 * *given as f64 / total.max(1) as f64;
    let _ = writeln!(
        text,
        "{number:>8} {given:>14} {share:>6.2} % {accepted:>12} {failed:>9} {in_flight:>9} {waited_us:>12.1} \
         {decided_us:>12.1}{note}"
    );
}

/// How evenly events are shared out over the nodes that are there.
pub fn evenness(nodes: &[Node]) -> String {
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

    /// The events of the study's run of 17 hours, of the nodes with the fewest and the most.
    #[test]
    fn the_table_says_how_even_it_is() {
        let node = |number, given| Node { number, given, ..Node::default() };
        let reading = Reading {
            nodes: vec![node(2, 10_709_545), node(1, 9_168_862)],
            gone: vec![node(3, 100)],
            ..Reading::default()
        };
        let text = text(&reading);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("       1        9168862  46.12 %"), "{text}");
        assert!(lines[3].ends_with("gone"), "{text}");
        assert_eq!(lines[4], "2 nodes with 9168862 to 10709545 events: min/max 0.8561, Jain 0.9940, CV 10.96 %");
    }
}
