//! Duplicates and reordering that a run counts, compared with the simulator's own counters.

use crate::link::RawLink;
use crate::open::simulated_link;
use hodo_machine::{Instant, Wait};
use hodo_measure::{
    Completion, FarEnd, Link, LinkError, Loss, Mode, Operation, Plan, Repeats, Run, Size, Test, Until, Unwatched, run,
};
use hodo_raw::{Client, Server};
use hodo_sim::{Counters as Truth, Sim};
use hodo_tester::{Catalog, Settings};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

const RAW: Catalog = Catalog::new(&[&crate::UDP]);

type Simulated = RawLink<Sim<Client, Server>>;

/// A link that can be looked at after the run that drove it.
#[derive(Clone)]
struct Kept(Arc<Mutex<Simulated>>);

impl Kept {
    fn link(&self) -> MutexGuard<'_, Simulated> {
        self.0.lock().expect("no test panics while it drives")
    }
}

impl Link for Kept {
    fn start(&mut self, operation: Operation) {
        self.link().start(operation);
    }

    fn poll(&mut self, wait: Wait, until: Instant, done: &mut Vec<Completion>) -> Result<(), LinkError> {
        self.link().poll(wait, until, done)
    }

    fn now(&self) -> Instant {
        self.link().now()
    }

    fn flush(&mut self) {
        self.link().flush();
    }

    fn far_end(&mut self, until: Instant, done: &mut Vec<Completion>) -> Result<Option<FarEnd>, LinkError> {
        self.link().far_end(until, done)
    }

    fn losses(&self) -> Loss {
        self.link().losses()
    }
}

/// Returns a run, and the simulator's counters of the ways out and back during it.
fn run_over(link_name: &str, mode: Mode, window: u32) -> (Run, Truth, Truth) {
    run_in(link_name, mode, window, false)
}

/// Returns the same of a run with a window or without one.
fn run_in(link_name: &str, mode: Mode, window: u32, unbounded: bool) -> (Run, Truth, Truth) {
    let plan = Plan {
        test: Test::Rate,
        mode,
        size: Size::Fixed(64),
        window,
        unbounded,
        channels: 1,
        batch: 1,
        rounds: false,
        rate: None,
        pace: unbounded.then_some(100e6),
        until: Until::Count(COUNT),
        warmup: Duration::ZERO,
        repeats: Repeats::Fixed(1),
        wait: Wait::Block,
        seed: 1,
        stages: false,
        stall: Duration::from_secs(5),
    };
    let settings = Settings { pace: None, ..Settings::of(&plan) };
    let kept = Kept(Arc::new(Mutex::new(
        simulated_link(&RAW.uri(link_name).expect("a URI"), &settings, &AtomicBool::new(false)).expect("opens"),
    )));
    let mut links: [Box<dyn Link + Send>; 1] = [Box::new(kept.clone())];
    let found = run(&mut links, &plan, &Unwatched);
    assert_eq!(found.error, None);
    let link = kept.link();
    (found, link.driver().counters(0, 1), link.driver().counters(1, 0))
}

const COUNT: u64 = 5_000;
/// Datagrams of one direction that are no operations: the greeting, four reports, a flush or its answer.
const OTHERS: u64 = 6;

/// Asserts that the run found what the simulator did to operations; up to [`OTHERS`] other datagrams may be affected
/// too.
#[track_caller]
fn assert_all_but_others(found: u64, truth: u64) {
    assert!(found <= truth && truth <= found + OTHERS, "{found} found, {truth} happened");
    assert!(truth > 100, "{truth}: too few to prove anything");
}

#[test]
fn duplicates_are_counted_as_the_simulator_made_them() {
    for (mode, network, out) in [
        (Mode::Send, "out.duplicate=0.1", true),
        (Mode::Both, "out.duplicate=0.1", true),
        (Mode::Both, "back.duplicate=0.1", false),
        (Mode::Receive, "back.duplicate=0.1", false),
    ] {
        for window in [1, 32] {
            let (found, there, back) = run_over(&format!("sim+udp://?{network}"), mode, window);
            assert_all_but_others(found.loss.duplicated, if out { there.duplicated } else { back.duplicated });
            assert_eq!((found.loss.lost, found.loss.reordered, found.operations), (0, 0, COUNT), "{mode} {network}");
        }
    }
    let (found, there, back) = run_over("sim+udp://?duplicate=0.1", Mode::Both, 32);
    assert_all_but_others(found.loss.duplicated, there.duplicated + back.duplicated);
}

#[test]
fn reordering_is_counted_as_the_simulator_made_it() {
    for (mode, network, out) in [
        (Mode::Send, "out.reorder=0.1", true),
        (Mode::Send, "out.jitter=3us", true),
        (Mode::Receive, "back.reorder=0.1", false),
        (Mode::Receive, "back.jitter=3us", false),
    ] {
        let (found, there, back) = run_over(&format!("sim+udp://?{network}"), mode, 32);
        assert_all_but_others(found.loss.reordered, if out { there.reordered } else { back.reordered });
        assert_eq!((found.loss.lost, found.loss.duplicated, found.operations), (0, 0, COUNT), "{mode} {network}");
    }
}

#[test]
fn what_the_simulator_loses_is_what_is_missing() {
    for network in ["out.loss=0.05", "out.loss=0.05&back.loss=0.05", "out.loss=0.05&out.jitter=5us&out.duplicate=0.1"] {
        for window in [1, 32] {
            let (found, there, _) = run_over(&format!("sim+udp://?{network}"), Mode::Send, window);
            assert_all_but_others(found.loss.lost, there.lost);
        }
    }
}

/// Operations sent are those that arrived and those that are missing, however many that are.
#[test]
fn without_a_window_the_far_end_counts_what_arrives() {
    for (network, share) in [("loss=0", 1.0), ("out.loss=0.5", 0.5), ("out.loss=0.95&back.loss=0.5", 0.05)] {
        let (found, there, _) =
            run_in(&format!("sim+udp://?rate=1G&delay=50us&queue=1G&{network}"), Mode::Send, 1 << 10, true);
        let sent = found.sent.expect("no window");
        let told = (found.operations + found.loss.lost) as f64;
        assert!((sent.operations as f64 / told - 1.0).abs() < 0.02, "{network}: {sent:?}, and {told} told of");
        // Where much is lost, questions to the far end are asked often.
        let others = there.lost.saturating_sub(found.loss.lost);
        assert!(
            found.loss.lost <= there.lost && others <= OTHERS + there.lost / 100,
            "{network}: {:?} {there:?}",
            found.loss
        );
        let arrived = found.operations as f64 / sent.operations as f64;
        assert!((arrived - share).abs() < 0.02, "{network}: {arrived} arrived");
        assert_eq!(found.latency, None, "nobody waited for any");
    }
}
