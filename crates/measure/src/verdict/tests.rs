use super::*;
use crate::random::normal;
use hodo_machine::Random;

/// Intervals of a tenth of a second with these rates, in Mbit/s, of 1,000-byte operations.
fn intervals(rates: impl IntoIterator<Item = f64>) -> Vec<Interval> {
    let each = |(i, rate): (usize, f64)| {
        let operations = (rate * 1e6 / 8000.0 / 10.0).round().max(0.0) as u64;
        Interval { t_s: (i + 1) as f64 / 10.0, operations, payload_bytes: operations * 1000 }
    };
    rates.into_iter().enumerate().map(each).collect()
}

fn noisy(n: usize, seed: u64, share: f64, level: impl Fn(f64) -> f64) -> Vec<Interval> {
    let mut random = Random::new(seed);
    intervals((0..n).map(|i| level(i as f64 / n as f64) * (1.0 + share * normal(&mut random))))
}

fn share_of(seeds: u64, state: State, run: impl Fn(u64) -> Vec<Interval>) -> f64 {
    let found: Vec<Verdict> = (0..seeds).map(|seed| verdict(&run(seed))).collect();
    if let Some(other) = found.iter().find(|verdict| verdict.state != state) {
        eprintln!("the first that is not {state:?}: {}", other.text);
    }
    found.iter().filter(|verdict| verdict.state == state).count() as f64 / seeds as f64
}

#[test]
fn convicts_the_published_decay_from_its_first_quarter() {
    for n in [25, 50, 200] {
        let quarter = |seed| noisy(n, seed, 0.05, |t| 775.8 + (119.1 - 775.8) * t / 4.0);
        let convicted = share_of(200, State::Drifting, quarter);
        assert!(convicted > 0.98, "{n} intervals: convicted in {convicted}");
    }
    let text = verdict(&noisy(200, 1, 0.0, |t| 775.8 + (119.1 - 775.8) * t / 4.0)).text;
    assert_eq!(text, "drifting: the rate falls 19 % over the run (768 -> 620 Mbit/s); a longer run would find less");
}

#[test]
fn convicts_the_published_decay_when_it_is_exponential() {
    let quarter = |seed| noisy(50, seed, 0.05, |t| 775.8 * (119.1f64 / 775.8).powf(t / 4.0));
    assert!(share_of(200, State::Drifting, quarter) > 0.99);
    let whole = verdict(&noisy(200, 9, 0.05, |t| 775.8 * (119.1f64 / 775.8).powf(t)));
    assert_eq!(whole.state, State::Drifting, "{}", whole.text);
}

#[test]
fn convicts_a_decay_that_is_steep_at_first() {
    let steep = |seed| noisy(100, seed, 0.03, |t| 800.0 / (1.0 + 100.0 * t).sqrt());
    assert!(share_of(200, State::Drifting, steep) > 0.98);
    assert_eq!(verdict(&noisy(50, 1, 0.0, |t| 800.0 / (1.0 + 30.0 * t))).state, State::Drifting);
}

#[test]
fn a_beginning_from_nothing_has_no_percentage() {
    let text = verdict(&noisy(200, 1, 0.0, |t| if t < 0.2 { 0.0 } else { 1000.0 * t })).text;
    assert!(text.starts_with("drifting: the rate rises over the run (0.0 -> "), "{text}");
}

#[test]
fn acquits_stationary_noise() {
    for n in [8, 12, 20, 50, 200] {
        let stable = share_of(1000, State::Stable, |seed| noisy(n, seed, 0.05, |_| 776.0));
        assert!(stable > 0.98, "{n} intervals: stable in {stable}");
    }
}

#[test]
fn acquits_noise_that_is_like_its_neighbour() {
    let wandering = |n: usize, memory: f64| {
        move |seed| {
            let mut random = Random::new(seed);
            let mut off = 0.0;
            let step = 0.05 * (1.0 - memory * memory).sqrt();
            let mut next = || {
                off = memory * off + step * normal(&mut random);
                776.0 * (1.0 + off)
            };
            intervals((0..n).map(|_| next()).collect::<Vec<_>>())
        }
    };
    for (n, memory) in [(50, 0.3), (50, 0.6), (50, 0.8), (200, 0.3), (200, 0.6), (200, 0.9)] {
        let convicted = share_of(1000, State::Drifting, wandering(n, memory));
        assert!(convicted < 0.04, "{n} intervals, memory {memory}: convicted in {convicted}");
    }
}

#[test]
fn a_small_slope_is_no_drift() {
    assert_eq!(verdict(&noisy(200, 4, 0.001, |t| 776.0 * (1.0 - 0.05 * t))).state, State::Stable);
}

#[test]
fn a_rise_says_that_the_warm_up_was_short() {
    let found = verdict(&noisy(100, 4, 0.02, |t| 500.0 + 300.0 * t));
    assert_eq!(found.state, State::Drifting);
    assert!(found.text.starts_with("drifting: the rate rises"), "{}", found.text);
}

#[test]
fn two_levels_are_bimodal() {
    // Every fifth second at half the rate.
    let dips = |seed| noisy(200, seed, 0.05, |t| if ((t * 20.0) as u32).is_multiple_of(5) { 400.0 } else { 800.0 });
    assert!(share_of(200, State::Bimodal, dips) > 0.98);
    let text = verdict(&noisy(200, 2, 0.0, |t| if ((t * 20.0) as u32).is_multiple_of(5) { 400.0 } else { 800.0 })).text;
    assert!(text.contains("400 Mbit/s for 20 % of the run and 800 Mbit/s for the rest"), "{text}");
}

#[test]
fn one_jump_is_two_levels_or_a_drift_and_never_stable() {
    for at in [0.2, 0.35, 0.5, 0.65, 0.8] {
        let found = verdict(&noisy(200, 5, 0.03, |t| if t < at { 800.0 } else { 500.0 }));
        assert!(matches!(found.state, State::Bimodal | State::Drifting), "at {at}: {}", found.text);
    }
}

#[test]
fn much_variation_is_noisy() {
    let wild = |seed| noisy(50, seed, 0.3, |_| 776.0);
    assert!(share_of(200, State::Noisy, wild) > 0.97);
}

#[test]
fn few_operations_per_piece_are_not_held_against_a_run() {
    // Arrivals at random, about nine in each tenth of a second: a third of variation by chance alone.
    let arrivals = |seed| {
        let mut random = Random::new(seed);
        let mut counts = [0u64; 50];
        (0..450).for_each(|_| counts[(random.unit() * 50.0) as usize] += 1);
        let each = |(i, n): (usize, u64)| Interval { t_s: (i + 1) as f64 / 10.0, operations: n, payload_bytes: n };
        counts.into_iter().enumerate().map(each).collect()
    };
    let stable = share_of(500, State::Stable, arrivals);
    assert!(stable > 0.95, "{stable}");
}

#[test]
fn a_short_run_is_not_judged() {
    assert_eq!(verdict(&[]).state, State::Noisy);
    let found = verdict(&intervals([100.0, 900.0, 20.0]));
    assert!(found.state == State::Noisy && found.text.contains("too short to judge"), "{}", found.text);
}

#[test]
fn a_schedule_is_missed_where_less_than_99_percent_of_it_was_held() {
    assert_eq!(missed(991.0, 1000.0), None);
    let verdict = missed(900.0, 1000.0).expect("a tenth is missing");
    assert_eq!(verdict.state, State::Missed);
    assert_eq!(verdict.text, "missed: 90.0 % of the schedule was held (900/s of 1000/s)");
}
