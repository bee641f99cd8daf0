//! Updates on real sockets, of every protocol whose far end sends them.
use crate::plans;

use hodo_catalog::{Protocol, protocols};
use hodo_io::Clock;
use hodo_machine::Wait;
use hodo_measure::{
    Completion, Link, LinkError, Mode, Operation, Outcome, Plan, Run, Subscription, Test, Until, Unwatched, run,
};
use plans::served::{Served, serve_settings};
use plans::{opened, plan};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Another peer of a thread that sends updates to a subscriber as fast as it can is answered within this time.
const ANSWERED_WITHIN: Duration = Duration::from_millis(5);
const STOPPED_WITHIN: Duration = Duration::from_millis(100);
const TRIES: usize = 15;
/// One flood at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with_updates() -> impl Iterator<Item = &'static dyn Protocol> {
    protocols().filter(|protocol| protocol.description().has_updates)
}

fn updates(channels: u32, rate: Option<f64>) -> Plan {
    let until = Until::Elapsed(Duration::from_millis(300));
    let warmup = Duration::from_millis(50);
    Plan { channels, window: 512, rate, until, warmup, ..plan(Test::Updates, Mode::Receive, 64) }
}

#[track_caller]
fn measured(protocol: &dyn Protocol, plan: &Plan, threads: usize) -> Run {
    let served = Served::start(protocol, &hodo_catalog::ServeSettings { threads, ..serve_settings() });
    let mut opened = opened(&served.uri, plan);
    let found = run(&mut opened.links, plan, &Unwatched);
    assert_eq!(found.error, None, "{}", protocol.name());
    assert_eq!(found.latency.as_ref().map(|latency| latency.count), Some(found.operations));
    // The same link can be used for the next plan, and nothing more is pushed over it.
    let echoes =
        Plan { channels: plan.channels, until: Until::Count(100), ..plans::plan(Test::Channels, Mode::Both, 64) };
    let after = run(&mut opened.links, &echoes, &Unwatched);
    assert_eq!((after.error, after.loss.overrun, after.operations + after.loss.lost), (None, 0, 100));
    found
}

#[test]
#[ignore = "timing"]
fn updates_come_at_the_rate_that_is_asked_for() {
    let _alone = alone();
    for protocol in with_updates() {
        for (channels, threads) in [(1, 1), (7, 2)] {
            let found = measured(protocol, &updates(channels, Some(5_000.0)), threads);
            let due = 5_000.0 * found.elapsed_s;
            let counted = (found.operations + found.loss.lost + found.loss.overrun) as f64;
            // What a machine under load has delayed or skipped may be of before the counted time, or come after it.
            let latency = found.latency.as_ref().expect("updates came");
            let late = 5_000.0 * latency.max as f64 / 1e9 + (found.loss.lost + found.loss.overrun) as f64;
            let off = (counted - due).abs();
            assert!(off < 0.05 * due + late, "{}: {counted} of {due}, {late}: {:?}", protocol.name(), found.loss);
        }
    }
}

#[test]
#[ignore = "timing"]
fn updates_come_as_fast_as_they_can() {
    let _alone = alone();
    for protocol in with_updates() {
        for (channels, threads) in [(1, 1), (5, 2)] {
            let found = measured(protocol, &updates(channels, None), threads);
            assert!(found.rate.operations_per_s.median > 20_000.0, "{}: {found:?}", protocol.name());
            assert_eq!(found.loss.overrun, 0, "{}: without a rate nothing is skipped", protocol.name());
        }
    }
}

#[test]
fn both_ends_of_a_host_have_one_clock() {
    let _alone = alone();
    for protocol in with_updates() {
        // The fastest of many is far under the time for which two clocks of one host would be apart.
        let found = measured(protocol, &updates(1, Some(5_000.0)), 1);
        let clock = found.clock_difference.expect("its clock was read");
        assert_eq!(clock.error_ns, 0, "{}", protocol.name());
        let latency = found.latency.expect("updates came");
        assert!((500..500_000).contains(&latency.min), "{}: {latency:?}", protocol.name());
    }
}

#[test]
#[ignore = "timing"]
fn another_peer_is_answered_and_a_stop_is_noticed_while_updates_flow() {
    let _alone = alone();
    for protocol in with_updates() {
        let mut served = Served::start(protocol, &serve_settings());
        let mut subscriber = opened(&served.uri, &updates(1, None));
        let mut other = opened(&served.uri, &Plan { channels: 1, ..updates(1, None) });
        let uri = served.uri.clone();
        let (flowing, flows) = std::sync::mpsc::channel();
        let (enough, is_enough) = std::sync::mpsc::channel::<()>();
        let reader = std::thread::spawn(move || {
            let link = &mut subscriber.links[0];
            subscribe(link.as_mut()).expect("it has updates");
            let (mut total, mut done) = (0, Vec::new());
            while is_enough.try_recv().is_err() {
                let until = link.now() + Duration::from_millis(100);
                if let Err(error) = link.poll(Wait::Block, until, &mut done) {
                    return Some(error);
                }
                total += done.drain(..).count();
                if total > 10_000 {
                    // It is told once, and nobody listens from then on.
                    let _ = flowing.send(());
                }
            }
            None
        });
        flows.recv().expect("updates flow");
        let mut spans: Vec<Duration> = (0..TRIES).map(|_| answered(other.links[0].as_mut())).collect();
        spans.sort();
        assert!(spans[TRIES / 2] < ANSWERED_WITHIN, "{uri}: {spans:?}");
        let clock = Clock::start();
        let before = clock.now();
        served.end().expect("it ends in order");
        let span = clock.now() - before;
        assert!(span < STOPPED_WITHIN, "{uri}: {span:?}");
        // A stream has ended; over UDP nobody says so.
        let _ = enough.send(());
        reader.join().expect("it does not panic");
    }
}

fn subscribe(link: &mut dyn Link) -> Result<(), LinkError> {
    link.subscribe(Subscription { channel: 0, size: 64, rate: None, first_after: Duration::ZERO, queue: 8 })
}

/// Returns how long one echo takes.
fn answered(link: &mut dyn Link) -> Duration {
    let (from, mut done) = (link.now(), Vec::<Completion>::new());
    link.start(Operation { tag: 1, channel: 0, size: 64, mode: Mode::Both });
    while !done.iter().any(|completion| completion.outcome == Outcome::Done) {
        assert!(link.now() < from + Duration::from_secs(5), "no answer");
        link.poll(Wait::Block, from + Duration::from_secs(5), &mut done).expect("the far end is there");
    }
    link.now() - from
}
