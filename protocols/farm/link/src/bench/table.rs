use super::watch::Watched;
use hodo_farm_host::controller::shares::evenness;
use hodo_farm_host::controller::status::NodeStatus;
use hodo_measure::Measurement;
use std::fmt::Write;

/// Returns the table of the nodes, as the study prints it.
pub fn nodes(found: &Measurement) -> String {
    let mut text = String::from("node      events    events/s   share\n");
    let most = found.nodes.iter().map(|node| node.events).max().unwrap_or(0).max(1);
    for node in &found.nodes {
        let per_s = node.events as f64 / found.elapsed_s;
        let share = node.events as f64 / most as f64;
        let _ = writeln!(text, "{:>4} {:>11} {per_s:>11.0} {share:>7.3}", node.number, node.events);
    }
    let nodes = found.nodes.iter().map(|node| NodeStatus { given: node.events, ..NodeStatus::default() });
    let _ = writeln!(text, "{}", evenness(&nodes.collect::<Vec<_>>()));
    if let Some((window_s, worst)) =
        found.fairness.and_then(|fairness| Some((fairness.window_s, fairness.worst_window?)))
    {
        let _ = writeln!(text, "min/max of the worst {window_s:.0} s: {worst:.4}");
    }
    let cpu = |ns: Option<f64>| ns.unwrap_or(0.0) / 1000.0;
    let (here, there) = (cpu(found.cpu.local_ns_per_operation), cpu(found.cpu.remote_ns_per_operation));
    let _ = writeln!(text, "CPU of an event: controller {here:.2} us, nodes {there:.2} us");
    text
}

/// Returns the table of a queue that grows, as the study prints that of its version 1.
pub fn queue(watched: &Watched, size: u64, bytes_max: u64) -> String {
    let mut text = String::from("\n    events   Mbit/s   found no token   waiting\n");
    let (mut events, mut from_s) = (0, 0.0);
    for piece in watched.tenths() {
        let interval = piece.interval;
        let bits_per_s = interval.operations as f64 * size as f64 * 8.0 / (interval.t_s - from_s).max(1e-9);
        (events, from_s) = (events + interval.operations, interval.t_s);
        let _ = writeln!(text, "{events:>10} {:>8.1} {:>16} {:>9}", bits_per_s / 1e6, piece.no_token, piece.waiting);
    }
    if watched.waiting() * size >= bytes_max {
        let _ = writeln!(text, "ended early: the events that wait take {bytes_max} bytes, which is --memory");
    }
    text
}
