mod followed;
mod rounds;
mod stalls;

use super::fake_link::{FakeLink, Service};
use super::*;
use crate::Size;
use crate::{Mode, Outcome};
use hodo_machine::{Random, Wait};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

fn plan() -> Plan {
    Plan {
        test: Test::Rate,
        mode: Mode::Both,
        size: Size::Fixed(1000),
        window: 1,
        unbounded: false,
        channels: 1,
        batch: 1,
        rounds: false,
        rate: None,
        pace: None,
        until: Until::Elapsed(Duration::from_millis(100)),
        warmup: Duration::from_millis(20),
        repeats: Repeats::Fixed(3),
        stages: false,
        wait: Wait::Block,
        seed: 7,
        stall: Duration::from_millis(500),
    }
}

fn over(link: FakeLink, plan: &Plan) -> Run {
    run(&mut [Box::new(link)], plan, &Unwatched)
}

/// Asserts that a value is within a thousandth of the truth.
#[track_caller]
fn near(found: f64, truth: f64) {
    assert!((found / truth - 1.0).abs() < 1e-3, "found {found}, truth {truth}");
}

#[test]
fn one_at_a_time_finds_the_time_of_one() {
    let found = over(FakeLink::steady(8_000, 2_000), &Plan { test: Test::Latency, ..plan() });
    near(found.rate.operations_per_s.median, 100_000.0);
    near(found.rate.payload_bits_per_s.median, 800e6);
    let latency = found.latency.expect("operations were done");
    near(latency.p50 as f64, 10_000.0);
    near(latency.max as f64, 10_000.0);
    assert_eq!((latency.count, found.operations, found.payload_bytes), (30_000, 30_000, 30_000_000));
    near(found.elapsed_s, 0.3);
    assert_eq!((found.verdict.state, found.repeats, found.error), (State::Stable, 3, None));
    assert_eq!(found.intervals.iter().map(|interval| interval.operations).sum::<u64>(), 30_000);
    assert!(found.intervals.len() <= 200 && found.intervals.len() > 100);
}

#[test]
fn the_window_over_the_round_trip_binds_and_then_the_server() {
    for (window, rate) in [(1, 1.0 / 1.001e-3), (10, 10.0 / 1.001e-3), (500, 500.0 / 1.001e-3), (4000, 1e6)] {
        let found = over(FakeLink::steady(1_000_000, 1_000), &Plan { window, ..plan() });
        near(found.rate.operations_per_s.median, rate);
        assert_eq!(found.verdict.state, State::Stable, "{}", found.verdict.text);
    }
}

#[test]
fn a_repeat_of_few_long_operations_has_the_exact_rate() {
    // 70 ms each in repeats of 100 ms: two of them, not 1.43.
    let found = over(FakeLink::steady(0, 70_000_000), &plan());
    near(found.rate.operations_per_s.median, 1.0 / 0.07);
}

#[test]
fn channels_share_the_links_by_their_number() {
    let plan = Plan { channels: 5, window: 4, ..plan() };
    let mut links: Vec<Box<dyn Link + Send>> = vec![];
    (0..2).for_each(|_| links.push(Box::new(FakeLink::steady(100_000, 1_000))));
    let found = run(&mut links, &plan, &Unwatched);
    // Each slot goes round in 100 us and a microsecond of service.
    near(found.rate.operations_per_s.median, 20.0 / 101e-6);
    assert_eq!(found.error, None);
}

#[test]
fn a_link_without_a_channel_is_left_alone() {
    let mut links: Vec<Box<dyn Link + Send>> = vec![];
    (0..3).for_each(|_| links.push(Box::new(FakeLink::steady(1_000, 1_000))));
    let found = run(&mut links, &Plan { channels: 2, ..plan() }, &Unwatched);
    near(found.rate.operations_per_s.median, 2.0 / 2e-6);
}

#[test]
fn lost_operations_are_counted_and_not_timed() {
    let found = over(FakeLink::lossy(10_000, 1_000, 0.1, 5), &Plan { window: 64, ..plan() });
    let share = found.loss.lost as f64 / (found.loss.lost + found.operations) as f64;
    assert!((share - 0.1).abs() < 0.01, "{share}");
    let latency = found.latency.expect("most were done");
    assert_eq!(latency.count, found.operations);
    assert!(latency.max < 100_000);
}

#[test]
fn what_comes_after_it_was_given_up_is_not_lost() {
    let fate = |n: u64, _| {
        let outcome = if n.is_multiple_of(10) { Outcome::Recovered } else { Outcome::Done };
        Service { busy_ns: 1_000, outcome }
    };
    let found = over(FakeLink::new(10_000, fate), &Plan { window: 64, ..plan() });
    assert!(found.loss.lost <= 64, "all but those at the very end: {:?}", found.loss);
    let latency = found.latency.expect("most were done");
    assert!(found.operations > latency.count, "late ones count, without a time");
}

#[test]
fn refusals_are_told_apart() {
    let fate = |n: u64, _| {
        let outcome = if n.is_multiple_of(4) { Outcome::Refused } else { Outcome::Done };
        Service { busy_ns: 1_000, outcome }
    };
    let found = over(FakeLink::new(10_000, fate), &Plan { window: 8, ..plan() });
    let share = found.loss.refused as f64 / (found.loss.refused + found.operations) as f64;
    assert!((share - 0.25).abs() < 0.001 && found.loss.lost == 0, "{:?}", found.loss);
}

/// Takes operations that the kernel refused, so that nobody answered.
#[test]
fn what_never_left_this_side_is_refused_and_not_lost() {
    let lossy = || FakeLink::lossy(10_000, 1_000, 0.1, 5).unsending();
    let both = Plan { window: 64, ..plan() };
    for (link, plan) in [(lossy(), both.clone()), (lossy().telling(), Plan { mode: Mode::Send, ..both.clone() })] {
        let found = over(link, &plan);
        let share = found.loss.refused as f64 / (found.loss.refused + found.operations) as f64;
        assert!((share - 0.1).abs() < 0.01, "{:?} {:?}", plan.mode, found.loss);
        assert!(found.loss.lost <= 64, "{:?} {:?}", plan.mode, found.loss);
    }
}

#[test]
fn the_far_end_corrects_what_was_thought_lost() {
    // One of ten acknowledgements is lost, the payload never.
    let fate = |n: u64, _| {
        let outcome = if n.is_multiple_of(10) { Outcome::Recovered } else { Outcome::Done };
        Service { busy_ns: 1_000, outcome }
    };
    let send = Plan { mode: Mode::Send, window: 64, ..plan() };
    assert_eq!(over(FakeLink::new(10_000, fate).telling(), &send).loss.lost, 0);
    let found = over(FakeLink::lossy(10_000, 1_000, 0.2, 3).telling(), &send);
    let share = found.loss.lost as f64 / (found.loss.lost + found.operations) as f64;
    assert!((share - 0.2).abs() < 0.01, "{share}");
}

#[test]
fn the_far_end_tells_its_cpu_and_its_duplicates() {
    let found = over(FakeLink::steady(10_000, 1_000).telling(), &Plan { window: 64, ..plan() });
    let remote = found.cpu.remote.expect("it tells");
    assert!((remote.percent - 10.0).abs() < 0.1, "{remote:?}");
    let share = found.loss.duplicated as f64 / found.operations as f64;
    assert!((share - 0.01).abs() < 1e-4, "{share}");
    near(
        found.cpu.remote_ns_per_operation.expect("operations were done"),
        remote.user_s * 1e9 / found.operations as f64,
    );
    assert_eq!((found.cpu.local, found.cpu.machine_percent), (None, None));
}

#[test]
fn counts_exactly() {
    for (links, window) in [(1, 1), (1, 64), (3, 5)] {
        let mut all: Vec<Box<dyn Link + Send>> = vec![];
        (0..links).for_each(|_| all.push(Box::new(FakeLink::steady(10_000, 1_000))));
        let plan = Plan { channels: links, window, until: Until::Count(1001), ..plan() };
        let found = run(&mut all, &plan, &Unwatched);
        assert_eq!((found.operations, found.repeats), (3003, 3));
        assert_eq!(found.latency.map(|latency| latency.count), Some(3003));
    }
}

#[test]
fn a_count_ends_although_everything_is_lost() {
    let plan = Plan { until: Until::Count(50), ..plan() };
    let found = over(FakeLink::lossy(0, 1_000, 1.1, 1), &plan);
    assert_eq!((found.operations, found.verdict.state), (0, State::Failed));
    assert!(found.loss.lost >= 149, "{:?}", found.loss);
}

#[test]
fn without_a_warm_up_everything_counts() {
    let plan = Plan { until: Until::Count(10), warmup: Duration::ZERO, repeats: Repeats::Fixed(1), ..plan() };
    let found = over(FakeLink::steady(8_000, 2_000), &plan);
    assert_eq!(found.operations, 10);
    near(found.elapsed_s, 100e-6);
}

#[test]
fn drawn_sizes_are_uniform_and_repeatable() {
    let plan = Plan { size: Size::Uniform { min: 60, max: 1020 }, window: 8, ..plan() };
    let found = over(FakeLink::steady(1_000, 1_000), &plan);
    near(found.payload_bytes as f64 / found.operations as f64, 540.0);
    assert_eq!(over(FakeLink::steady(1_000, 1_000), &plan), found);
    let other = over(FakeLink::steady(1_000, 1_000), &Plan { seed: 8, ..plan });
    assert_ne!(other.payload_bytes, found.payload_bytes);
}

#[test]
fn a_decaying_server_is_called_drifting() {
    // The published decay's first quarter: from 776 to 612 Mbit/s.
    let fate = |_, t: f64| {
        let bits_per_s = 775.8e6 - (775.8e6 - 119.1e6) * t / 4.0;
        Service { busy_ns: (8_000.0 / bits_per_s * 1e9) as u64, outcome: Outcome::Done }
    };
    let plan =
        Plan { window: 16, until: Until::Elapsed(Duration::from_millis(960)), repeats: Repeats::Fixed(1), ..plan() };
    let found = over(FakeLink::new(5_000, fate), &plan);
    assert_eq!(found.verdict.state, State::Drifting, "{}", found.verdict.text);
    assert!(found.verdict.text.contains("Mbit/s"), "{}", found.verdict.text);
}

#[test]
fn a_server_of_two_minds_is_called_bimodal() {
    let fate = |_, t: f64| {
        let busy_ns = if ((t * 50.0) as u32).is_multiple_of(3) { 20_000 } else { 8_000 };
        Service { busy_ns, outcome: Outcome::Done }
    };
    let found = over(FakeLink::new(5_000, fate), &Plan { window: 16, repeats: Repeats::Fixed(5), ..plan() });
    assert_eq!(found.verdict.state, State::Bimodal, "{}", found.verdict.text);
}

#[test]
fn a_stalled_far_end_keeps_what_was_measured() {
    let mut link = FakeLink::steady(8_000, 2_000);
    link.dead_from = 1_000_000_007 + 170_000_000;
    let found = over(link, &Plan { window: 4, ..plan() });
    assert_eq!(found.error, Some(LinkError::Stalled { millis: 500 }));
    assert_eq!((found.verdict.state, found.repeats, found.loss.lost), (State::Interrupted, 1, 4));
    assert!(found.verdict.text.contains("stalled"), "{}", found.verdict.text);
    near(found.elapsed_s, 0.15);
    near(found.operations as f64, 0.15 / 2.5e-6);
    near(found.rate.operations_per_s.median, 400_000.0);
}

#[test]
fn a_single_operation_that_is_only_ever_given_up_has_stalled() {
    let fate = |_, t: f64| Service { busy_ns: 1_000, outcome: if t < 0.1 { Outcome::Done } else { Outcome::Lost } };
    let plan = Plan { until: Until::Elapsed(Duration::from_secs(60)), ..plan() };
    let found = over(FakeLink::new(9_000, fate), &plan);
    assert_eq!((found.error, found.verdict.state), (Some(LinkError::Stalled { millis: 500 }), State::Interrupted));
    near(found.elapsed_s, 0.08);
}

/// Datagrams that get lost from 0.17 s on are all given up in time, so that nothing else tells of a far end that is gone.
#[test]
fn a_far_end_that_reports_no_more_is_told_and_the_silence_lasts_to_the_end() {
    let fate = |_, t: f64| Service { busy_ns: 50_000, outcome: if t < 0.17 { Outcome::Done } else { Outcome::Lost } };
    let mut link = FakeLink::new(9_000, fate).telling();
    link.mute_from = 1_000_000_007 + 170_000_000;
    let found = over(link, &Plan { window: 4, ..plan() });
    let who = "the far end".to_owned();
    assert_eq!(found.error, Some(LinkError::Unreported { who, millis: 500 }));
    assert!(found.verdict.text.contains("has not reported for 500 ms"), "{}", found.verdict.text);
    let stall = found.stalls.last().expect("the silence at the end");
    near(stall.at_s + stall.lasted_s, found.elapsed_s);
    near(stall.at_s, 0.15);
}

#[test]
fn a_far_end_that_never_answers_has_failed() {
    let mut link = FakeLink::steady(8_000, 2_000);
    link.dead_from = 0;
    let found = over(link, &plan());
    assert_eq!((found.verdict.state, found.operations, found.latency), (State::Failed, 0, None));
    assert!(found.intervals.is_empty());
}

#[test]
fn a_far_end_that_refuses_everything_is_told_from_one_that_is_not_there() {
    let refusing = FakeLink::new(9_000, |_, _| Service { busy_ns: 1_000, outcome: Outcome::Refused });
    let found = over(refusing, &plan());
    assert_eq!((found.verdict.state, found.operations), (State::Failed, 0));
    assert!(found.loss.refused > 0 && found.verdict.text.starts_with("failed: all was refused"), "{:?}", found.verdict);
}

#[test]
fn one_broken_link_ends_the_others_with_what_they_have() {
    let mut broken = FakeLink::steady(8_000, 2_000);
    broken.dead_from = 1_000_000_007 + 170_000_000;
    let mut links: Vec<Box<dyn Link + Send>> = vec![Box::new(FakeLink::steady(8_000, 2_000)), Box::new(broken)];
    let plan = Plan { channels: 2, repeats: Repeats::Fixed(1_000), ..plan() };
    let found = run(&mut links, &plan, &Unwatched);
    assert_eq!(found.error, Some(LinkError::Stalled { millis: 500 }));
    assert!(found.verdict.state == State::Interrupted && found.operations > 0);
}

/// A watch that interrupts after `after` calls, pauses after so many repeats, and records the progress reports.
#[derive(Default)]
struct Impatient {
    after: u32,
    pauses: u32,
    asked: AtomicU32,
    told: std::sync::Mutex<Vec<Progress>>,
}

impl Watch for Impatient {
    fn local_usage(&self) -> Option<Usage> {
        Some(Usage { user_s: f64::from(self.asked.load(Relaxed)) * 1e-6, ..Usage::default() })
    }

    fn programs_s(&self) -> Option<f64> {
        Some(0.9 * f64::from(self.asked.load(Relaxed)))
    }

    fn machine_busy_s(&self) -> Option<(f64, f64)> {
        let asked = f64::from(self.asked.load(Relaxed));
        Some((asked, 4.0 * asked))
    }

    fn pauses_after(&self, repeats: u32) -> bool {
        repeats <= self.pauses
    }

    fn interrupted(&self) -> bool {
        self.asked.fetch_add(1, Relaxed) >= self.after
    }

    fn progress(&self, progress: &Progress) {
        self.told.lock().expect("one thread").push(*progress);
    }
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let watch = Impatient { after: 20_000, ..Impatient::default() };
    let found = run(&mut [Box::new(FakeLink::steady(8_000, 2_000))], &plan(), &watch);
    assert_eq!((found.verdict.state, found.error), (State::Interrupted, Some(LinkError::Interrupted)));
    assert_eq!((found.repeats, found.verdict.text.as_str()), (1, "interrupted: what had been measured is kept"));
    near(found.rate.operations_per_s.median, 100_000.0);
    near(found.elapsed_s, 0.18);
    near(found.cpu.machine_percent.expect("it tells"), 25.0);
    // Less what this side used, which is next to nothing.
    near(found.cpu.others_percent.expect("it tells"), 22.5);
    near(found.cpu.local_ns_per_operation.expect("it tells"), 1000.0);
}

#[test]
fn an_interrupt_is_no_failure_although_nothing_was_counted() {
    let watch = Impatient { after: 10, ..Impatient::default() };
    let found = run(&mut [Box::new(FakeLink::steady(8_000, 2_000))], &plan(), &watch);
    assert_eq!((found.verdict.state, found.operations), (State::Interrupted, 0));
    assert_eq!(found.verdict.text, "interrupted: nothing had been counted yet");
    assert_eq!((found.latency, found.intervals.len()), (None, 0), "operations of the warm-up had ended");
}

#[test]
fn a_single_burst_is_one_interval() {
    let plan =
        Plan { until: Until::Count(64), window: 64, warmup: Duration::ZERO, repeats: Repeats::Fixed(1), ..plan() };
    let found = over(FakeLink::steady(1_000_000, 0), &plan);
    assert_eq!(found.intervals, [Interval { t_s: 1e-3, operations: 64, payload_bytes: 64_000 }]);
    assert_eq!(found.verdict.text, "noisy: too short to judge, with 64 operations; a longer run would tell");
}

#[test]
fn an_operation_that_takes_longer_than_the_patience_is_no_stall_while_it_arrives() {
    let mut link = FakeLink::steady(0, 2_000_000_000);
    link.progresses = true;
    let found = over(link, &plan());
    assert_eq!((found.error, found.operations), (None, 3));
    assert_eq!(over(FakeLink::steady(0, 2_000_000_000), &plan()).error, Some(LinkError::Stalled { millis: 500 }));
}

#[test]
fn progress_is_told_ten_times_a_second() {
    let watch = Impatient { after: u32::MAX, ..Impatient::default() };
    run(&mut [Box::new(FakeLink::steady(80_000, 20_000))], &Plan { repeats: Repeats::Fixed(10), ..plan() }, &watch);
    let told = watch.told.into_inner().expect("one thread");
    assert!((9..=11).contains(&told.len()), "{}", told.len());
    near(told[5].operations_per_s, 10_000.0);
    assert!(told[8].repeats >= 7 && !told[8].warming_up);
}

#[test]
fn progress_has_the_rate_of_the_warm_up_too_and_no_pause_lowers_it() {
    for links in [1, 3] {
        let plan = Plan { warmup: Duration::from_millis(450), channels: links, repeats: Repeats::Fixed(5), ..plan() };
        let watch = Impatient { after: u32::MAX, pauses: 4, ..Impatient::default() };
        // Each question to the far end takes longer than a repeat.
        let link = |_| {
            let mut link = FakeLink::steady(80_000, 20_000).telling();
            link.ask_ns = 150_000_000;
            Box::new(link) as Box<dyn Link + Send>
        };
        let mut all: Vec<_> = (0..links).map(link).collect();
        let found = run(&mut all, &plan, &watch);
        assert_eq!((found.error, found.repeats), (None, 5));
        let told = watch.told.into_inner().expect("one thread");
        let warm_up = told.iter().filter(|progress| progress.warming_up).count();
        // Several links come as far at any time of a busy host; all are together in each pause.
        assert!(told.len() >= 3 && (links > 1 || warm_up >= 2), "{told:?}");
        // An operation that ends at a report is in the next one.
        let rate = f64::from(links) * 10_000.0;
        assert!(told.iter().all(|progress| (progress.operations_per_s / rate - 1.0).abs() < 0.002), "{told:?}");
    }
}

#[test]
fn an_open_loop_that_keeps_up_has_the_link_s_latency() {
    let plan = Plan { test: Test::Open, rate: Some(50_000.0), window: 100, channels: 4, ..plan() };
    let found = over(FakeLink::steady(100_000, 1_000), &plan);
    near(found.rate.operations_per_s.median, 50_000.0);
    near(found.latency.expect("operations were done").max as f64, 101_000.0);
}

#[test]
fn an_overloaded_open_loop_has_a_latency_that_grows() {
    // 200,000 per second are due, 100,000 can be served: after t seconds the wait is t / 2 x 2.
    let plan = Plan { test: Test::Open, rate: Some(200_000.0), window: 4, ..plan() };
    let found = over(FakeLink::steady(0, 10_000), &plan);
    near(found.rate.operations_per_s.median, 100_000.0);
    let latency = found.latency.expect("operations were done");
    assert!((latency.max as f64 / 160e6 - 1.0).abs() < 0.01, "half of 320 ms: {}", latency.max);
    assert!((latency.p50 as f64 / 85e6 - 1.0).abs() < 0.01, "half of 170 ms: {}", latency.p50);
}

#[test]
fn confidence_stops_as_soon_as_it_may() {
    let confidence = |max| Plan { repeats: Repeats::Confidence { percent: 95.0, width: 0.05, max }, ..plan() };
    assert_eq!(over(FakeLink::steady(8_000, 2_000), &confidence(30)).repeats, 3);
    let mut random = Random::new(4);
    let mut level = 0;
    let wild = move |n: u64, _| {
        if n.is_multiple_of(10_000) {
            level = 10_000 + random.bits() % 10_000;
        }
        Service { busy_ns: level, outcome: Outcome::Done }
    };
    let found = over(FakeLink::new(0, wild), &confidence(8));
    assert_eq!(found.repeats, 8);
    let estimate = found.rate.operations_per_s;
    assert!(estimate.low < Some(estimate.median) && Some(estimate.median) < estimate.high, "{estimate:?}");
}

#[test]
fn confidence_counts_the_same_repeats_of_every_link() {
    let mut links: Vec<Box<dyn Link + Send>> = vec![];
    (1..=3).for_each(|i| links.push(Box::new(FakeLink::steady(8_000, 2_000 * i))));
    let repeats = Repeats::Confidence { percent: 95.0, width: 0.05, max: 30 };
    let found = run(&mut links, &Plan { channels: 3, repeats, ..plan() }, &Unwatched);
    assert_eq!(found.repeats, 3);
    assert_eq!(found.latency.map(|latency| latency.count), Some(found.operations));
    assert_eq!(found.intervals.iter().map(|interval| interval.operations).sum::<u64>(), found.operations);
}

#[test]
fn a_link_serves_one_plan_after_another() {
    let mut links: [Box<dyn Link + Send>; 1] = [Box::new(FakeLink::lossy(10_000, 1_000, 0.3, 9).telling())];
    for mode in [Mode::Both, Mode::Send, Mode::Receive] {
        let found = run(&mut links, &Plan { window: 32, mode, ..plan() }, &Unwatched);
        assert_eq!(found.error, None);
        let share = found.loss.lost as f64 / (found.loss.lost + found.operations) as f64;
        assert!((share - 0.3).abs() < 0.01, "{mode}: {share}");
    }
}

#[test]
fn impossible_plans_name_their_remedy() {
    let refused = |plan: Plan| {
        let found = over(FakeLink::steady(0, 1), &plan);
        assert_eq!(found.verdict.state, State::Failed);
        found.verdict.text
    };
    assert!(refused(Plan { window: 0, ..plan() }).contains("window"));
    assert!(refused(Plan { channels: 0, ..plan() }).contains("channel"));
    assert!(refused(Plan { window: u32::MAX, channels: u32::MAX, ..plan() }).contains("lower the window"));
    assert!(refused(Plan { until: Until::Count(0), ..plan() }).contains("count"));
    assert!(refused(Plan { test: Test::Open, ..plan() }).contains("rate"));
    assert!(refused(Plan { test: Test::Open, rate: Some(f64::NAN), ..plan() }).contains("rate"));
    assert!(refused(Plan { size: Size::Uniform { min: 2, max: 1 }, ..plan() }).contains("swap"));
}

fn updates() -> Plan {
    Plan { test: Test::Updates, mode: Mode::Receive, window: 8, channels: 4, ..plan() }
}

#[test]
fn updates_are_counted_without_being_started() {
    let found = over(FakeLink::steady(7_000, 0), &Plan { rate: Some(20_000.0), ..updates() });
    near(found.rate.operations_per_s.median, 20_000.0);
    assert_eq!((found.operations, found.payload_bytes, found.repeats), (6_000, 6_000_000, 3));
    let latency = found.latency.expect("updates came");
    assert!((6_990..7_010).contains(&latency.p50) && latency.count == 6_000, "{latency:?}");
    assert_eq!((found.verdict.state, found.loss, found.error), (State::Stable, Loss::default(), None));
    // As fast as the far end can: a million a second from each of four.
    near(over(FakeLink::steady(7_000, 0), &updates()).rate.operations_per_s.median, 4e6);
}

#[test]
fn a_count_of_updates_is_kept_to() {
    let until = Until::Count(1_000);
    let found = over(FakeLink::steady(0, 0), &Plan { until, rate: Some(1e6), ..updates() });
    assert_eq!((found.operations, found.repeats), (3_000, 3));
}

#[test]
fn updates_that_are_lost_or_skipped_miss_the_schedule() {
    let fate = |n: u64, _| {
        let outcome = match n % 10 {
            3 => Outcome::Lost,
            5 | 6 => Outcome::Refused,
            _ => Outcome::Done,
        };
        Service { busy_ns: 0, outcome }
    };
    let found = over(FakeLink::new(7_000, fate), &Plan { rate: Some(10_000.0), ..updates() });
    near(found.rate.operations_per_s.median, 7_000.0);
    assert_eq!((found.operations, found.loss.lost, found.loss.overrun), (2_100, 300, 600));
    assert_eq!((found.verdict.state, found.loss.refused), (State::Missed, 0));
}

#[test]
fn updates_that_stop_coming_stall_the_run_but_slow_ones_do_not() {
    let mut dead = FakeLink::steady(0, 0);
    dead.dead_from = 1_100_000_007;
    let found = over(dead, &Plan { rate: Some(1_000.0), ..updates() });
    // The 4 ms between two updates of one channel come on top.
    assert_eq!(found.error, Some(LinkError::Stalled { millis: 504 }));
    assert!(found.operations > 0 && found.loss == Loss::default(), "{found:?}");
    let until = Until::Count(3);
    let slow = over(FakeLink::steady(0, 0), &Plan { rate: Some(1.0), channels: 1, until, ..updates() });
    assert_eq!((slow.error, slow.operations), (None, 9));
}

#[test]
fn subscriptions_end_with_the_run() {
    let mut links: [Box<dyn Link + Send>; 1] = [Box::new(FakeLink::steady(1_000, 1_000))];
    assert_eq!(run(&mut links, &updates(), &Unwatched).error, None);
    let found = run(&mut links, &plan(), &Unwatched);
    near(found.rate.operations_per_s.median, 500_000.0);
}

#[test]
fn updates_that_cannot_be_measured_are_refused() {
    let refused = |plan: &Plan| over(FakeLink::steady(0, 1), plan).error;
    for plan in [
        Plan { mode: Mode::Both, ..updates() },
        Plan { size: Size::Uniform { min: 1, max: 2 }, ..updates() },
        Plan { rate: Some(0.0), ..updates() },
        Plan { rate: Some(2e9), ..updates() },
    ] {
        assert!(matches!(refused(&plan), Some(LinkError::Unsupported(_))), "{plan:?}");
    }
}
