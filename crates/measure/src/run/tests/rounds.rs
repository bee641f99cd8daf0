//! Plans whose channels go round by round.

use super::*;
use std::sync::{Arc, Mutex};

/// Returns a plan of 100 channels with two operations each, in rounds.
fn in_rounds() -> Plan {
    Plan { test: Test::Channels, channels: 100, window: 2, rounds: true, ..plan() }
}

#[test]
fn a_round_starts_when_all_of_the_last_one_has_ended() {
    let starts = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&starts);
    // 200 operations of 1 us, one after the other, and a millisecond of travel.
    let link = FakeLink::new(1_000_000, move |_, at_s| {
        noted.lock().unwrap().push((at_s * 1e9).round() as u64);
        Service { busy_ns: 1_000, outcome: Outcome::Done }
    });
    let found = over(link, &in_rounds());
    near(found.rate.operations_per_s.median, 200.0 / 1.2e-3);
    // The last of a round has waited for the 199 before it.
    assert_eq!(found.latency.expect("operations were done").max, 1_200_127, "in three digits");
    assert_eq!((found.verdict.state, found.error), (State::Stable, None));
    let starts = starts.lock().unwrap();
    assert_eq!(starts.len() % 200, 0);
    for (round, started) in (0..).zip(starts.chunks(200)) {
        assert!(started.iter().all(|at| *at == round * 1_200_000), "round {round}: {started:?}");
    }
}

#[test]
fn without_rounds_each_operation_is_replaced_at_once() {
    let found = over(FakeLink::steady(1_000_000, 1_000), &Plan { rounds: false, ..in_rounds() });
    near(found.rate.operations_per_s.median, 200.0 / 1.001e-3);
}

#[test]
fn few_long_rounds_have_the_exact_rate() {
    // 70 ms each in repeats of 100 ms: two, one and two of them, not 1.43 each.
    let found = over(FakeLink::steady(0, 350_000), &in_rounds());
    near(found.rate.operations_per_s.median, 200.0 / 70e-3);
    near(found.elapsed_s, 5.0 * 70e-3);
}

#[test]
fn a_round_goes_on_without_what_was_lost() {
    let found = over(FakeLink::lossy(10_000, 1_000, 0.1, 5), &in_rounds());
    let share = found.loss.lost as f64 / (found.loss.lost + found.operations) as f64;
    assert!((share - 0.1).abs() < 0.01, "{share}");
    // What is lost is given up after a millisecond, which its round waits for.
    assert!(found.rate.operations_per_s.median < 200.0 / 1.2e-3);
    assert_eq!(found.error, None);
}

#[test]
fn a_pause_is_between_two_rounds() {
    struct Pausing;
    impl Watch for Pausing {
        fn pauses_after(&self, _: u32) -> bool {
            true
        }
    }
    let found = run(&mut [Box::new(FakeLink::steady(1_000_000, 1_000))], &in_rounds(), &Pausing);
    near(found.rate.operations_per_s.median, 200.0 / 1.2e-3);
    assert_eq!((found.repeats, found.operations % 200, found.error), (3, 0, None));
}

#[test]
fn one_operation_at_a_time_is_a_round() {
    let found = over(FakeLink::steady(8_000, 2_000), &Plan { rounds: true, ..plan() });
    near(found.rate.operations_per_s.median, 100_000.0);
}

#[test]
fn a_schedule_has_no_rounds() {
    let open = Plan { test: Test::Open, rate: Some(1e3), ..in_rounds() };
    let found = over(FakeLink::steady(1_000, 1_000), &open);
    assert!(matches!(found.error, Some(LinkError::Unsupported(text)) if text.contains("rounds")));
}
