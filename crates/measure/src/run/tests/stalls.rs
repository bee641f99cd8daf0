//! Runs in which something stands still, and runs that pause.

use super::*;
use crate::{Stall, Whose};
use std::sync::atomic::AtomicU64;

/// Returns a link whose server stands still for `still_ns` once, when it has run for `at_s`; then it is as fast as before.
fn stopping(at_s: f64, still_ns: u64) -> FakeLink {
    let mut still_ns = Some(still_ns);
    FakeLink::new(80_000, move |_, started_s| {
        let still_ns = still_ns.take_if(|_| started_s >= at_s).unwrap_or(0);
        Service { busy_ns: 20_000 + still_ns, outcome: Outcome::Done }
    })
}

fn long(plan: &Plan) -> Plan {
    Plan { until: Until::Elapsed(Duration::from_secs(6)), repeats: Repeats::Fixed(1), ..plan.clone() }
}

#[track_caller]
fn only(found: &Run) -> Stall {
    let [stall] = found.stalls[..] else { panic!("{:?}", found.stalls) };
    stall
}

#[test]
fn a_server_that_stands_still_stalls_every_closed_loop() {
    for window in [1, 4, 64] {
        let plan = Plan { window, stall: Duration::from_secs(5), ..long(&plan()) };
        let found = over(stopping(2.0, 2_000_000_000), &plan);
        let stall = only(&found);
        assert!((stall.at_s - 2.0).abs() < 0.05 && (stall.lasted_s - 2.0).abs() < 0.01, "{stall:?}");
        assert_eq!((stall.operations_late, stall.whose), (u64::from(window), Some(Whose::FarEnd)));
        assert_eq!(found.verdict.state, State::Stalled);
        let text = &found.verdict.text;
        assert!(text.starts_with("stalled: nothing for 2.00 s from 1.98 s on; "), "{text}");
        assert!(text.ends_with("up to 2.00 s late; the silence was the far end's"), "{text}");
        let empty = found.intervals.iter().filter(|interval| interval.operations == 0).count() as f64;
        assert!((empty / found.intervals.len() as f64 - 1.0 / 3.0).abs() < 0.03, "{:?}", found.intervals);
    }
}

#[test]
fn a_schedule_that_is_late_is_stalled_and_its_intervals_are_empty_meanwhile() {
    let plan =
        Plan { test: Test::Open, rate: Some(500.0), window: 4096, stall: Duration::from_secs(5), ..long(&plan()) };
    let found = over(stopping(2.0, 2_000_000_000), &plan);
    let stall = only(&found);
    assert!((stall.at_s - 1.98).abs() < 0.01 && (stall.lasted_s - 2.0).abs() < 0.01, "{stall:?}");
    assert!(stall.operations_late.abs_diff(1000) < 20, "{stall:?}");
    assert_eq!(found.verdict.state, State::Stalled);
    assert!(found.verdict.text.contains("operations up to 2.00 s late"), "{}", found.verdict.text);
    assert!(found.intervals.iter().filter(|interval| interval.operations == 0).count() > 60);
}

#[test]
fn the_silence_in_which_a_run_ends_is_among_its_stalls() {
    let mut link = FakeLink::steady(8_000, 2_000);
    link.dead_from = 1_000_000_007 + 200_000_000;
    let found = over(link, &plan());
    assert_eq!(found.verdict.state, State::Interrupted);
    let stall = only(&found);
    assert!((stall.at_s - 0.18).abs() < 0.01 && (stall.lasted_s - 0.5).abs() < 0.01, "{stall:?}");
}

#[test]
fn a_hiccup_that_round_trips_explain_is_no_stall() {
    // Half a second each: 0.9 s for one of them is not even twice as long.
    let fate = |n: u64, _| Service { busy_ns: if n == 9 { 900_000_000 } else { 500_000_000 }, outcome: Outcome::Done };
    let plan = Plan { until: Until::Count(20), warmup: Duration::ZERO, stall: Duration::from_secs(5), ..plan() };
    let found = over(FakeLink::new(0, fate), &plan);
    assert_eq!((found.stalls.len(), found.error), (0, None));
}

/// A watch that pauses after each of the first three repeats.
#[derive(Default)]
struct Pausing {
    pauses: AtomicU64,
}

impl Watch for Pausing {
    fn pauses_after(&self, repeats: u32) -> bool {
        repeats <= 3
    }

    fn paused(&self) {
        self.pauses.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_pause_counts_for_nothing() {
    for (links, window, repeats, pauses) in [(1, 1, 6, 3), (1, 64, 2, 1), (3, 16, 4, 3), (2, 8, 1, 0)] {
        let plan = Plan { window, channels: links, repeats: Repeats::Fixed(repeats), ..plan() };
        let mut all: Vec<Box<dyn Link + Send>> = vec![];
        (0..links).for_each(|_| all.push(Box::new(FakeLink::steady(1_000_000, 10_000).telling())));
        let watch = Pausing::default();
        let found = run(&mut all, &plan, &watch);
        assert_eq!((found.error, found.repeats, watch.pauses.load(Relaxed)), (None, repeats, pauses));
        let rate = f64::from(links) * f64::from(window) / (1.01e-3_f64).max(f64::from(window) * 10e-6);
        assert!((found.rate.operations_per_s.median / rate - 1.0).abs() < 0.02, "{:?} of {rate}", found.rate);
        assert!((found.elapsed_s - 0.1 * f64::from(repeats)).abs() < 0.01, "{}", found.elapsed_s);
        assert_eq!(found.intervals.iter().map(|interval| interval.operations).sum::<u64>(), found.operations);
        assert_eq!((found.stalls.len(), found.loss.lost), (0, 0));
        assert!(found.cpu.remote.is_some(), "the far end was asked in each part");
    }
}

#[test]
fn a_schedule_is_not_paused() {
    let plan = Plan { test: Test::Open, rate: Some(1000.0), window: 64, ..plan() };
    let watch = Pausing::default();
    let found = run(&mut [Box::new(FakeLink::steady(1_000_000, 1_000))], &plan, &watch);
    assert_eq!((found.error, found.repeats, watch.pauses.load(Relaxed)), (None, 3, 0));
}

#[test]
fn a_link_that_breaks_lets_the_others_out_of_their_pause() {
    let plan = Plan { channels: 2, ..plan() };
    let mut dead = FakeLink::steady(1_000, 1_000);
    dead.dead_from = 1_000_000_007 + 60_000_000;
    let mut links: Vec<Box<dyn Link + Send>> = vec![Box::new(FakeLink::steady(1_000, 1_000)), Box::new(dead)];
    let found = run(&mut links, &plan, &Pausing::default());
    assert!(matches!(found.error, Some(LinkError::Stalled { .. })), "{:?}", found.error);
}
