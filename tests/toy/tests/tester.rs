//! A protocol that nobody else names is benched, served, simulated and reported; its place in the list is one line.

use hodo_measure::{Document, Test, Until};
use hodo_report::Style;
use hodo_tester::{Benchmark, Catalog, ServeSettings};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CATALOG: Catalog = Catalog::new(&[&hodo_toy::TOY]);

fn measured(link: &str) -> Document {
    let mut benchmark = Benchmark::new(CATALOG.uri(link).expect("a URI of the toy"));
    benchmark.timing.until = Until::Count(200);
    benchmark.timing.warmup = Duration::ZERO;
    // A thread for each channel, however many processors there are.
    benchmark.choice.channels = link.starts_with("sim+").then_some(1);
    benchmark.choice.test = Some(Test::Rate);
    benchmark.measure().unwrap_or_else(|error| panic!("{link}: {error}"))
}

#[track_caller]
fn assert_is_whole(document: &Document, link: &str) {
    assert_eq!(document.measurements.len(), 2, "{link}: both sizes of the suite");
    for found in &document.measurements {
        assert_eq!((found.protocol.as_str(), found.operations), ("toy", 6 * 200), "{link}: {}", found.verdict.text);
    }
}

#[test]
fn is_benched_with_its_far_end_started_here() {
    let document = measured("toy");
    assert_is_whole(&document, "toy");
    assert!(document.measurements.iter().all(|found| found.limit.is_some()), "bare sockets set a limit");
}

#[test]
fn is_simulated() {
    let document = measured("sim+toy://?delay=5us&rate=1G");
    assert_is_whole(&document, "sim+toy");
    let again = measured("sim+toy://?delay=5us&rate=1G");
    let rates = |document: &Document| document.measurements.iter().map(|found| found.rate).collect::<Vec<_>>();
    assert_eq!(rates(&document), rates(&again), "virtual time goes the same way each time");
}

#[test]
fn is_served_to_others() {
    let settings = ServeSettings {
        threads: 1,
        cpus: Vec::new(),
        wait: hodo_machine::Wait::Block,
        congestion: None,
        path: hodo_io::PathOptions::default(),
        socket_buffer: None,
        payload: None,
        size_max: 1 << 20,
        peers_max: 10,
    };
    let server = hodo_tester::serve(&CATALOG.uri("toy").expect("a URI"), &settings).expect("a free port");
    let (uri, stop) = (server.uri().to_string(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| server.run(&stop));
        let document = measured(&uri);
        stop.store(true, Ordering::Relaxed);
        running.join().expect("it does not panic").expect("it runs");
        assert_is_whole(&document, &uri);
    });
}

#[test]
fn is_reported() {
    let document = measured("sim+toy://?delay=5us");
    let table = hodo_report::table(&document.measurements, Style { width: 160, color: false });
    assert!(table.contains("toy"), "{table}");
    assert_eq!(hodo_report::tsv(&document).lines().filter(|line| line.starts_with("toy\t")).count(), 2);
    let json = hodo_report::json::to_string(&document);
    let again = hodo_report::json::from_str(&json).expect("what was written is read");
    assert_eq!(again.measurements.len(), 2);
}
