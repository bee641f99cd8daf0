//! `hodo farm report`: a run of a farm as a document of results, in every form that those have.

use super::bench::process_cpu;
use super::operate;
use super::reading::{Events, Node, Reading};
use super::shares::evenness;
use crate::args::FarmReport;
use crate::output_file::OutputFile;
use crate::{Error, Outcome, environment, terminal};
use hodo_catalog::farm::line_limit;
use hodo_measure::{
    Cpu, Document, Estimate, Fairness, Histogram, Interval, Loss, Measurement, Mode, NodeShare, Rate, SCHEMA, State,
    Test, Tool, Verdict, verdict,
};
use hodo_report::{Table, html_with};
use std::net::SocketAddr;
use std::path::Path;

/// Pieces of a run that are enough to judge it by.
const INNER_MIN: usize = 8;

/// Reads what a controller tells, or what was kept of that, and writes what is asked for; a table where nothing is.
pub fn run(asked: &FarmReport) -> Result<Outcome, Error> {
    let prepare = |option: &str, file: &Option<std::path::PathBuf>| {
        file.as_deref().map(|file| OutputFile::of_option(option, file)).transpose()
    };
    let (html, json) = (prepare("--html", &asked.html)?, prepare("--json", &asked.json)?);
    let reading = match crate::args::units::pages(&asked.of) {
        Ok(pages) => operate::read(pages)?,
        Err(_) => read_file(Path::new(&asked.of))?,
    };
    let document = document(asked, &reading);
    let written = |file: &OutputFile, text: String| {
        let failed = |why| Error::Failed(format!("{} cannot be written: {why}", file.path().display()));
        file.write(text.as_bytes()).map_err(failed)
    };
    if let Some(file) = &html {
        written(file, html_with(&document, &tables(&reading)))?;
    }
    if let Some(file) = &json {
        let text = hodo_report::json::to_string(&document);
        written(file, text)?;
    }
    if html.is_none() && json.is_none() {
        terminal::print(&hodo_report::table(&document.measurements, terminal::style(false)))?;
    }
    Ok(Outcome::Done)
}

fn read_file(file: &Path) -> Result<Reading, Error> {
    let wrong = |why: String| Error::Usage(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|why| {
        wrong(format!("this is no address as {}, and no file that can be read: {why}", crate::args::FARM_PAGES))
    })?;
    Reading::parse(&text).map_err(wrong)
}

fn document(asked: &FarmReport, reading: &Reading) -> Document {
    let tool = Tool {
        name: "hodo".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("HODO_COMMIT").map(str::to_owned),
    };
    // Of a controller elsewhere nothing is known of the host, and of a file neither.
    let is_here = crate::args::units::pages(&asked.of).is_ok_and(|pages: SocketAddr| pages.ip().is_loopback());
    let arguments = std::env::args().collect();
    let environment = if is_here {
        environment::of_host(arguments)
    } else {
        hodo_measure::Environment { arguments, ..hodo_measure::Environment::default() }
    };
    let mut found = measurement(&asked.of, reading);
    if let (Some(rate), Some(size)) = (asked.line_rate, found.size_bytes.filter(|size| *size > 0)) {
        found.limit = line_limit((rate, asked.mtu), size, reading.token_data);
        let most = found.limit.as_ref().and_then(|limit| limit.operations_per_s);
        found.share_of_limit = most.map(|most| found.rate.operations_per_s.median / most);
    }
    Document { schema: SCHEMA.to_owned(), tool, environment, measurements: vec![found] }
}

/// The run, from the first event to the last.
fn measurement(of: &str, reading: &Reading) -> Measurement {
    let intervals = intervals(reading);
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
    let verdict = if operations == 0 {
        Verdict { state: State::Failed, text: "failed: no event has a verdict".to_owned() }
    } else {
        // A run begins and ends amid the first and the last piece, which say nothing of its rate.
        let inner = intervals.get(1..intervals.len().saturating_sub(1)).filter(|inner| inner.len() >= INNER_MIN);
        verdict(inner.unwrap_or(&intervals))
    };
    let nodes = reading.nodes.len().max(1) as u64;
    let share = |node: &Node| NodeShare { number: node.number as u32, events: node.answered };
    let mut shares: Vec<NodeShare> = reading.nodes.iter().map(share).collect();
    shares.sort_by_key(|node| node.number);
    let in_flight: u64 = reading.nodes.iter().map(|node| node.in_flight).sum();
    Measurement {
        protocol: "farm".to_owned(),
        link: format!("farm://{}", of.trim_start_matches("http://").trim_end_matches('/')),
        test: Test::Rate,
        mode: Mode::Send,
        size_bytes: Some(reading.bytes_in / reading.events.taken_in.max(1)),
        size_min_bytes: None,
        size_max_bytes: None,
        window: ((reading.tokens_waiting + in_flight) / nodes) as u32,
        channels: reading.nodes.len() as u32,
        batch: 1,
        rate_asked: None,
        wait: "block".to_owned(),
        seed: 0,
        repeats: 1,
        operations,
        payload_bytes,
        elapsed_s,
        rate,
        latency_ns: Histogram::from(&reading.answers).latency(),
        cpu: Cpu {
            local: reading.usage.as_ref().map(|usage| process_cpu(usage, reading.uptime_s)),
            local_ns_per_operation: reading.cpu_ns_per_event(),
            ..Cpu::default()
        },
        tcp: None,
        loss: Loss { duplicated: reading.events.duplicates, ..Loss::default() },
        limit: None,
        share_of_limit: None,
        stages: Vec::new(),
        verdict,
        intervals,
        fairness: Fairness::of(&shares.iter().map(|node| node.events).collect::<Vec<_>>(), elapsed_s, None),
        nodes: shares,
    }
}

/// The pieces of the run, two moments of the page each, without those before the first event and behind the last.
fn intervals(reading: &Reading) -> Vec<Interval> {
    let moments = &reading.timeline;
    let first = moments.windows(2).position(|pair| pair[1].decided > pair[0].decided);
    let last = moments.windows(2).rposition(|pair| pair[1].decided > pair[0].decided);
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    let run = &moments[first..=last + 1];
    let step = run.len().div_ceil(200).max(1);
    let ends = run.iter().step_by(step).chain(run.last().filter(|_| !(run.len() - 1).is_multiple_of(step)));
    let ends: Vec<_> = ends.collect();
    let piece = |pair: &[&super::timeline::Moment]| Interval {
        t_s: pair[1].at_s - run[0].at_s,
        operations: pair[1].decided - pair[0].decided,
        payload_bytes: pair[1].bytes_in.saturating_sub(pair[0].bytes_in),
    };
    ends.windows(2).map(piece).collect()
}

/// What a document of results has no place for.
fn tables(reading: &Reading) -> Vec<Table> {
    let Events { taken_in, accepted, rejected, quarantined, incomplete, in_hand, duplicates, .. } = reading.events;
    let part = |count: u64| format!("{:.3} %", 100.0 * count as f64 / taken_in.max(1) as f64);
    let verdicts = [
        ("accepted", accepted),
        ("rejected", rejected),
        ("quarantined", quarantined),
        ("incomplete", incomplete),
        ("in hand", in_hand),
        ("taken in", taken_in),
    ];
    let cpu = reading.cpu_ns_per_event().map(|ns| format!("; CPU of the controller {:.2} µs an event", ns * 1e-3));
    let cpu = cpu.unwrap_or_default();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let balance = Table {
        title: format!("Events of run {}", reading.run),
        note: format!(
            "Each event that was taken in stands in one of the other rows. {duplicates} were offered again, {} found no \
             token, {} were given to another node; dead time {:.2} %{cpu}.",
            reading.events.found_no_token,
            reading.events.redispatched,
            100.0 * reading.dead_time_s / reading.uptime_s.max(1e-9)
        ),
        columns: words(&["verdict", "events", "share"]),
        rows: verdicts.iter().map(|(name, count)| vec![(*name).to_owned(), count.to_string(), part(*count)]).collect(),
    };
    let total: u64 = reading.nodes.iter().chain(&reading.gone).map(|node| node.given).sum();
    let mut nodes = reading.nodes.clone();
    nodes.sort_by_key(|node| node.number);
    let row = |node: &Node, is_gone: bool| {
        let share = 100.0 * node.given as f64 / total.max(1) as f64;
        vec![
            format!("{}{}", node.number, if is_gone { " (gone)" } else { "" }),
            node.given.to_string(),
            format!("{share:.2} %"),
            node.accepted.to_string(),
            node.failed.to_string(),
            format!("{:.1}", node.waited_us),
            format!("{:.1}", node.decided_us),
        ]
    };
    let there = nodes.iter().map(|node| row(node, false));
    let shares = Table {
        title: "Nodes".to_owned(),
        note: evenness(&nodes),
        columns: words(&["node", "events", "share", "accepted", "failed", "waits (µs)", "decides (µs)"]),
        rows: there.chain(reading.gone.iter().map(|node| row(node, true))).collect(),
    };
    vec![balance, shares]
}

#[cfg(test)]
mod tests {
    use super::super::timeline::Moment;
    use super::*;

    fn reading(rates: impl IntoIterator<Item = u64>) -> Reading {
        let mut decided = 0;
        let moment = |(second, rate): (usize, u64)| {
            decided += rate;
            Moment { at_s: second as f64, decided, bytes_in: decided * 100 }
        };
        let timeline: Vec<Moment> = rates.into_iter().enumerate().map(moment).collect();
        Reading { timeline, ..Reading::default() }
    }

    #[test]
    fn a_run_is_from_its_first_event_to_its_last() {
        let found = measurement("here:1", &reading([0, 0, 0].into_iter().chain([1000; 20]).chain([0; 30])));
        assert_eq!((found.operations, found.payload_bytes, found.elapsed_s), (20_000, 2_000_000, 20.0));
        assert_eq!(found.rate.operations_per_s.median, 1000.0);
        assert_eq!(found.verdict.state, State::Stable, "{}", found.verdict.text);
    }

    /// As two moments of the page do not fall together with the first event and the last.
    #[test]
    fn what_a_run_begins_and_ends_with_says_nothing_of_its_rate() {
        let found = measurement("here:1", &reading([0, 400].into_iter().chain([1000; 20]).chain([100, 0])));
        assert_eq!(found.verdict.state, State::Stable, "{}", found.verdict.text);
        assert_eq!(found.operations, 20_500);
    }

    #[test]
    fn a_long_run_has_pieces_that_add_up() {
        for count in [2, 199, 200, 201, 399, 400] {
            let found = intervals(&reading((0..count).map(|_| 7)));
            assert!(found.len() <= 200, "{count}: {}", found.len());
            assert_eq!(found.iter().map(|piece| piece.operations).sum::<u64>(), 7 * (count - 1), "{count}");
        }
    }

    #[test]
    fn a_run_that_decays_is_convicted() {
        let found = measurement("here:1", &reading((0..60).map(|second| 10_000 - 100 * second)));
        assert_eq!(found.verdict.state, State::Drifting, "{}", found.verdict.text);
    }

    #[test]
    fn nothing_is_no_run() {
        assert_eq!(measurement("here:1", &reading([0; 10])).verdict.state, State::Failed);
    }
}
