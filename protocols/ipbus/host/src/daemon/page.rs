//! The page of a hub for people.

use super::snapshot::HubSnapshot;
use hodo_ipbus::hub::{BoardStatistics, ClientStatistics, Ended};
use hodo_ipbus::wire::hub::Code;
use std::fmt::Write;
use std::time::Duration;

/// Path of the page.
pub const PATH: &str = "/stats";

const CLIENTS: [&str; 8] = ["client", "chunks", "packets", "replies", "errors", "malformed", "waits for", "reads"];
const BOARDS: [&str; 13] = [
    "board",
    "version",
    "state",
    "packets",
    "replies",
    "errors",
    "requests lost",
    "replies lost",
    "late",
    "restarts",
    "round-trip",
    "least",
    "queue",
];

/// Returns the state of a hub for people: what it did, its clients, its boards.
#[must_use]
pub fn text(snapshot: &HubSnapshot) -> String {
    let mut text = String::new();
    let counters = &snapshot.counters;
    let mut line = |words: String| writeln!(text, "{words}").expect("a string takes whatever is written");
    let up = snapshot.now.as_nanos() / 1_000_000_000;
    line(format!("up {up} s; {} clients connected so far, {} now", counters.came, snapshot.clients.len()));
    let ended = Ended::ALL.into_iter().zip(counters.ended).filter(|(_, count)| *count > 0);
    for (why, count) in ended.filter(|(why, _)| !matches!(why, Ended::Finished)) {
        line(format!("{count} clients disconnected: {why}"));
    }
    line(format!("{} packets held, in buffers of {} KiB", snapshot.held.0, snapshot.held.1 >> 10));
    for (code, count) in (0..).zip(counters.codes).filter(|(_, count)| *count > 0) {
        line(format!("{count} packets answered: {}", Code::from_code(code)));
    }
    if let Some(trace) = &snapshot.trace {
        line(format!("{} packets in the trace; {} are missing there", trace.packets, trace.lost));
        trace.failed.iter().for_each(|why| line(format!("the trace has ended: {why}")));
    }
    for (stage, spans) in snapshot.stages.iter().filter(|(_, spans)| spans.count() > 0) {
        let [half, most] = [0.5, 0.99].map(|share| micros(Duration::from_nanos(spans.quantile_ns(share))));
        line(format!("{stage}: {half} half the time, {most} at the 99th percentile of {}", spans.count()));
    }
    table(&CLIENTS, snapshot.clients.iter().map(client), &mut text);
    table(&BOARDS, snapshot.boards.iter().map(board), &mut text);
    text
}

fn client(client: &ClientStatistics) -> [String; CLIENTS.len()] {
    let counters = &client.counters;
    [
        client.address.to_string(),
        counters.chunks.to_string(),
        counters.packets.to_string(),
        counters.replies.to_string(),
        counters.errors.to_string(),
        counters.malformed.to_string(),
        client.waiting.to_string(),
        if client.blocked { "not" } else { "yes" }.to_owned(),
    ]
}

fn board(board: &BoardStatistics) -> [String; BOARDS.len()] {
    let (counters, link) = (&board.counters, &board.counters.link);
    [
        board.target.to_string(),
        board.version.to_string(),
        match board.state {
            None => "unknown".to_owned(),
            Some(Code::Done) => "answers".to_owned(),
            Some(code) => format!("dead ({})", code.code()),
        },
        counters.packets.to_string(),
        counters.replies.to_string(),
        counters.errors.to_string(),
        link.requests_lost.to_string(),
        link.replies_lost.to_string(),
        link.late.to_string(),
        link.restarts.to_string(),
        board.round_trip.map_or_else(|| "-".to_owned(), micros),
        board.round_trip_min.map_or_else(|| "-".to_owned(), micros),
        (board.queued + board.in_flight).to_string(),
    ]
}

fn micros(span: Duration) -> String {
    format!("{:.1} us", span.as_secs_f64() * 1e6)
}

/// Columns as wide as they have to be; the first is flush left.
fn table<const N: usize>(head: &[&str; N], rows: impl Iterator<Item = [String; N]>, text: &mut String) {
    let rows: Vec<[String; N]> = std::iter::once(head.map(str::to_owned)).chain(rows).collect();
    if rows.len() == 1 {
        return;
    }
    let mut widths = [0; N];
    for (width, column) in widths.iter_mut().zip(0..) {
        *width = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    }
    text.push('\n');
    for row in rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text.push_str(&cells.collect::<Vec<_>>().join("  "));
        text.push('\n');
    }
}
