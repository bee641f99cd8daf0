//! An order to a server's threads is carried out at once, whether they sleep or are busy.

use crate::echo;

use echo::{Echo, TIMEOUT, anywhere};
use hodo_io::{Attendant, Bell, ServeOptions, Server, Stop};
use hodo_machine::{Address, Instant};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The time within which an order is carried out: the median of several tries.
const WITHIN: Duration = Duration::from_millis(20);
const TRIES: usize = 9;

/// Counts how often a thread has looked in.
struct Counting<'a>(&'a AtomicUsize);

impl Attendant for Counting<'_> {
    type Machine = Echo;

    fn told(&mut self, (): ()) -> Option<()> {
        None
    }

    fn look_in(&mut self, _: Instant, _: &Echo) -> Option<()> {
        self.0.fetch_add(1, Relaxed);
        None
    }
}

/// Serves with this many threads while `during` runs, then stops; returns how long the server took to stop.
fn stopped_after(threads: usize, during: impl FnOnce(&Address, &Bell, &[AtomicUsize])) -> Duration {
    let (bell, stop) = (Bell::default(), Stop::new(false));
    let looks: Vec<_> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
    let options = ServeOptions { threads, ..ServeOptions::default() };
    let server = Server::bind(&Address::Tcp(anywhere()), options).unwrap().with_bell(&bell);
    let at = server.address().clone();
    let make = |index: usize| (Echo::default(), Counting(&looks[index]));
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.attend(make, &stop));
        while looks.iter().any(|looks| looks.load(Relaxed) == 0) {
            std::thread::yield_now();
        }
        during(&at, &bell, &looks);
        let asked = std::time::Instant::now();
        stop.store(true, Relaxed);
        bell.ring();
        serving.join().expect("no panic").expect("it ends in order");
        asked.elapsed()
    })
}

/// Rings, and returns how long it takes until every thread has looked in.
fn looked_after(bell: &Bell, looks: &[AtomicUsize]) -> Duration {
    let before: Vec<_> = looks.iter().map(|looks| looks.load(Relaxed)).collect();
    let asked = std::time::Instant::now();
    bell.ring();
    while looks.iter().zip(&before).any(|(looks, before)| looks.load(Relaxed) == *before) {
        assert!(asked.elapsed() < TIMEOUT);
        std::thread::yield_now();
    }
    asked.elapsed()
}

fn median(mut spans: Vec<Duration>) -> Duration {
    spans.sort();
    spans[spans.len() / 2]
}

#[test]
#[ignore = "timing"]
fn sleeping_threads_look_in_at_once() {
    for threads in [1, 3] {
        stopped_after(threads, |_, bell, looks| {
            let spans: Vec<_> = (0..TRIES).map(|_| looked_after(bell, looks)).collect();
            assert!(median(spans.clone()) < WITHIN, "{threads} threads: {spans:?}");
        });
    }
}

#[test]
#[ignore = "timing"]
fn a_busy_thread_looks_in_at_once() {
    stopped_after(1, |at, bell, looks| {
        let (is_over, mut stream) = (AtomicBool::new(false), TcpStream::connect(at.ip().unwrap()).unwrap());
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    stream.write_all(&[1; 64]).unwrap();
                    stream.read_exact(&mut [0; 64]).unwrap();
                }
            });
            let spans: Vec<_> = (0..TRIES).map(|_| looked_after(bell, looks)).collect();
            is_over.store(true, Relaxed);
            assert!(median(spans.clone()) < WITHIN, "{spans:?}");
        });
    });
}

#[test]
#[ignore = "timing"]
fn a_server_stops_at_once() {
    for threads in [1, 3] {
        let spans: Vec<_> = (0..TRIES).map(|_| stopped_after(threads, |_, _, _| {})).collect();
        assert!(median(spans.clone()) < WITHIN, "{threads} threads: {spans:?}");
    }
}
