//! `hodo farm top`: what goes on in a farm, live.

use super::operate;
use super::reading::{Node, Reading, time};
use crate::args::FarmTop;
use crate::{Error, Outcome, interrupt, terminal};
use hodo_measure::statistics::{jain, least_over_most};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How soon Ctrl-C is noticed.
const NOTICE: Duration = Duration::from_millis(50);
/// Rows where there is no terminal to ask.
const ROWS: usize = 1000;
/// The other screen without a cursor, and back; to the first place; the rest of a line, and of the screen, is empty.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const END_OF_LINE: &str = "\x1b[K\n";
const END_OF_SCREEN: &str = "\x1b[J";

/// Shows it until a signal comes.
pub fn run(asked: &FarmTop) -> Result<Outcome, Error> {
    let stop = interrupt::flag()?;
    let is_live = std::io::stdout().is_terminal() && !asked.once;
    // Before the screen is taken, so that a wrong address is told as any error.
    let first = operate::read(asked.of.pages)?;
    if is_live {
        terminal::print(ENTER)?;
    }
    let shown = show(asked, first, is_live, &stop);
    if is_live {
        terminal::print(LEAVE)?;
    }
    shown.map(|()| Outcome::Done)
}

fn show(asked: &FarmTop, first: Reading, is_live: bool, stop: &AtomicBool) -> Result<(), Error> {
    let mut before = first;
    while !rest(asked.every, stop) {
        let text = match operate::read(asked.of.pages) {
            Ok(now) => {
                let rows = if is_live { rows() } else { ROWS };
                let text = view(&asked.of.pages.to_string(), &before, &now, rows);
                before = now;
                text
            }
            // It may be started again.
            Err(error) if is_live => format!("{error}\n"),
            Err(error) => return Err(error),
        };
        if is_live {
            let lines: String = text.lines().map(|line| format!("{line}{END_OF_LINE}")).collect();
            terminal::print(&format!("{HOME}{lines}{END_OF_SCREEN}"))?;
        } else if asked.once {
            return terminal::print(&text);
        } else {
            terminal::print(&format!("{text}\n"))?;
        }
    }
    Ok(())
}

/// Lets time pass; answers whether a signal has come.
fn rest(time: Duration, stop: &AtomicBool) -> bool {
    let until = Instant::now() + time;
    loop {
        if stop.load(Ordering::Relaxed) {
            return true;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(left.min(NOTICE));
    }
}

fn rows() -> usize {
    terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0))
}

/// What went on between two looks, in so many rows at most.
fn view(at: &str, before: &Reading, now: &Reading, rows: usize) -> String {
    let span_s = now.uptime_s - before.uptime_s;
    // Another process answers now.
    let zero = Reading { nodes: Vec::new(), ..Reading::default() };
    let (before, span_s) = if span_s > 0.0 { (before, span_s) } else { (&zero, now.uptime_s.max(1e-9)) };
    let rate = |of: fn(&Reading) -> u64| of(now).saturating_sub(of(before)) as f64 / span_s;
    let mut text = String::new();
    let _ = writeln!(text, "farm {at}   run {}   {}   {}   up {}", now.run, now.state, now.policy, time(now.uptime_s));
    let _ = writeln!(
        text,
        "in       {:>10}/s  {:>9} Mbit/s    accepted {:>9}/s  rejected {:>9}/s  stored {:>7} Mbit/s",
        short(rate(|reading| reading.events.taken_in)),
        short(rate(|reading| reading.bytes_in) * 8e-6),
        short(rate(|reading| reading.events.accepted)),
        short(rate(|reading| reading.events.rejected)),
        short(rate(|reading| reading.stored_bytes) * 8e-6),
    );
    let _ = writeln!(
        text,
        "decided  {:>10}/s  given {:>11}/s    found no token {:>7}/s ({} in all)  re-dispatched {}",
        short(rate(|reading| reading.events.decided())),
        short(rate(|reading| reading.events.given)),
        short(rate(|reading| reading.events.found_no_token)),
        now.events.found_no_token,
        now.events.redispatched,
    );
    let dead = 100.0 * (now.dead_time_s - before.dead_time_s) / span_s;
    let _ = writeln!(
        text,
        "waiting  {} events, {} tokens    in hand {}    uncommitted {}    dead time {:.1} %",
        now.events.waiting,
        now.tokens_waiting,
        now.events.in_hand,
        now.events.uncommitted,
        dead.clamp(0.0, 100.0),
    );
    let _ = writeln!(
        text,
        "total    {} in, {} accepted, {} rejected, {} quarantined, {} incomplete",
        now.events.taken_in, now.events.accepted, now.events.rejected, now.events.quarantined, now.events.incomplete,
    );
    if let Some(why) = &now.failing {
        let _ = writeln!(text, "NOTHING CAN BE STORED: {why}");
    }
    let used = text.lines().count();
    text + &nodes(before, now, span_s, rows.saturating_sub(used + 1))
}

/// The nodes, in so many rows at most.
fn nodes(before: &Reading, now: &Reading, span_s: f64, rows: usize) -> String {
    let mut earlier: BTreeMap<u64, u64> = BTreeMap::new();
    for node in &before.nodes {
        *earlier.entry(node.number).or_default() += node.given;
    }
    let mut sorted = now.nodes.clone();
    sorted.sort_by_key(|node| node.number);
    // Nodes of one number are one here: nothing tells which of them it was before.
    let mut list: Vec<Node> = Vec::new();
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
        now.nodes_lost,
        now.sources,
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
            short(given / span_s),
            100.0 * given / total.max(1.0),
            node.in_flight,
            node.failed,
            node.waited_us,
            node.decided_us
        );
    }
    if shown < list.len() {
        let _ = writeln!(text, "     ... and {} more; hodo farm status has all", list.len() - shown);
    }
    text
}

/// Four digits.
fn short(value: f64) -> String {
    match value {
        v if v >= 9_999_500.0 => format!("{:.2}M", v * 1e-6),
        v if v >= 99_995.0 => format!("{:.1}k", v * 1e-3),
        v if v >= 100.0 || v == 0.0 => format!("{v:.0}"),
        v => format!("{v:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::farm::reading::Events;

    fn reading(uptime_s: f64, taken_in: u64, given: [u64; 2]) -> Reading {
        let events = Events { taken_in, rejected: taken_in, ..Events::default() };
        let nodes = (0..).zip(given).map(|(number, given)| Node { number, given, ..Node::default() });
        Reading { uptime_s, events, bytes_in: taken_in * 125_000, nodes: nodes.collect(), ..Reading::default() }
    }

    #[test]
    fn rates_are_of_the_time_between_two_looks() {
        let (before, now) = (reading(10.0, 1000, [600, 400]), reading(12.0, 3000, [1100, 1900]));
        let text = view("here", &before, &now, ROWS);
        assert!(text.contains("      1000/s       1000 Mbit/s"), "{text}");
        assert!(text.contains("min/max 0.333, Jain 0.8000"), "{text}");
        assert!(text.contains("       1        750.0") || text.contains("       1          750  75.00 %"), "{text}");
    }

    #[test]
    fn another_process_begins_at_nothing() {
        let text = view("here", &reading(100.0, 9000, [5000, 4000]), &reading(2.0, 200, [100, 100]), ROWS);
        assert!(text.contains("       100/s") && text.contains("Jain 1.0000"), "{text}");
    }

    #[test]
    fn it_fits_on_the_screen() {
        let nodes: Vec<Node> = (0..200).map(|number| Node { number, given: 1, ..Node::default() }).collect();
        let now = Reading { nodes, ..reading(1.0, 1, [0, 0]) };
        for rows in 1..300 {
            let text = view("here", &Reading::default(), &now, rows);
            assert!(text.lines().count() <= rows.max(6), "{rows} rows:\n{text}");
        }
        assert!(view("here", &Reading::default(), &now, 24).contains("and 185 more"), "what is left out is counted");
    }

    #[test]
    fn figures_are_short() {
        assert_eq!([0.0, 3.25, 3676.4, 123_456.0, 12_345_678.0].map(short), ["0", "3.2", "3676", "123.5k", "12.35M"]);
    }
}
