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
    for (n, least) in [(8, 0.95), (12, 0.98), (20, 0.98), (50, 0.98), (200, 0.98)] {
        let stable = share_of(500, State::Stable, |seed| noisy(n, seed, 0.05, |_| 776.0));
        assert!(stable > least, "{n} intervals: stable in {stable}");
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
        let convicted = share_of(500, State::Drifting, wandering(n, memory));
        assert!(convicted < 0.04, "{n} intervals, memory {memory}: convicted in {convicted}");
    }
}

#[test]
fn a_fall_by_nearly_all_is_a_drift_however_uneven() {
    // The decay of version 1: noise that is a third of the rate and like its neighbour.
    let falling = |seed| {
        let mut random = Random::new(seed);
        let mut off = 0.0;
        let mut next = |t: f64| {
            off = 0.7 * off + 0.2 * normal(&mut random);
            (900.0 * (0.01f64).powf(t) * (1.0 + off)).max(1.0)
        };
        intervals((0..25).map(|i| next(f64::from(i) / 25.0)).collect::<Vec<_>>())
    };
    assert_eq!(share_of(500, State::Drifting, falling), 1.0);
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
fn one_step_is_a_drift_wherever_it_is() {
    for at in [0.12, 0.35, 0.5, 0.65, 0.88] {
        for share in [0.02, 0.1] {
            let found =
                share_of(50, State::Drifting, |seed| noisy(200, seed, share, |t| if t < at { 800.0 } else { 624.0 }));
            assert!(found > 0.97, "a step of 22 % at {at}, noise of {share}: {found}");
        }
    }
    let text = verdict(&noisy(200, 5, 0.0, |t| if t < 0.2 { 800.0 } else { 624.0 })).text;
    assert_eq!(
        text,
        "drifting: the rate falls 22 % at 20 % of the run (800 -> 624 Mbit/s); a longer run would find less"
    );
}

#[test]
fn much_variation_is_noisy_and_hardly_ever_stable() {
    let wild = |seed| noisy(50, seed, 0.35, |_| 776.0);
    assert!(share_of(500, State::Noisy, wild) > 0.9);
    assert!(share_of(500, State::Stable, wild) < 0.04);
}

/// Returns a run of a steady link, or of one that steps at `at` to `then` of its rate, whose operations end in lumps of `lump`, give
/// or take half, a part of each before the rest.
fn lumps(seed: u64, operations: f64, lump: f64, at: f64, then: f64) -> Vec<Interval> {
    let mut random = Random::new(seed);
    let whole = at + (1.0 - at) * then;
    let when = |done: f64| {
        let share = done / operations * whole;
        if share <= at { share } else { at + (share - at) / then }
    };
    let (mut points, mut done) = (vec![(0.0, 0.0)], 0.0);
    while done < operations {
        let before = done;
        done = (done + lump * (0.5 + random.unit())).min(operations);
        points.push((when(done), before + (done - before) * (0.5 + 0.5 * random.unit())));
        points.push((when(done) + 1e-6, done));
    }
    // What has been told of at a moment, on the line between what is known before and after.
    let told = |t: f64| {
        let next = points.partition_point(|point| point.0 < t).clamp(1, points.len() - 1);
        let ((from, low), (to, high)) = (points[next - 1], points[next]);
        (low + (high - low) * ((t - from) / (to - from)).min(1.0)).round() as u64
    };
    let piece = |i: u64| (i as f64 / 200.0, told(i as f64 / 200.0));
    let each = |i: u64| {
        let operations = piece(i + 1).1 - piece(i).1;
        Interval { t_s: piece(i + 1).0, operations, payload_bytes: operations * 1000 }
    };
    (0..200).map(each).collect()
}

#[test]
fn lumps_are_not_held_against_a_steady_link() {
    // The last one is a window of 64 at 128 KiB in 6 s at 1 Gbit/s, all of it acknowledged at once.
    for (operations, lump) in [(20_000.0, 64.0), (5376.0, 16.0), (5376.0, 32.0), (5376.0, 64.0)] {
        let stable = share_of(200, State::Stable, |seed| lumps(seed, operations, lump, 1.0, 1.0));
        assert!(stable > 0.96, "{operations} operations in lumps of {lump}: {stable}");
    }
}

#[test]
fn lumps_do_not_hide_a_step() {
    for (operations, lump) in [(20_000.0, 64.0), (5376.0, 16.0), (5376.0, 64.0)] {
        for at in [0.2, 0.5, 0.75] {
            let run = |seed| lumps(seed, operations, lump, at, 0.78);
            let (stable, drifting) = (share_of(100, State::Stable, run), share_of(100, State::Drifting, run));
            assert!(stable < 0.06 && drifting > 0.85, "lumps of {lump}, a step at {at}: {stable}, {drifting}");
        }
    }
}

/// Reads the runs that were recorded.
#[test]
fn a_clean_wire_is_stable_and_every_decay_drifts() {
    for line in include_str!("recorded.txt").lines().filter(|line| !line.starts_with('#')) {
        let [name, due, seconds, counts] = line.split(": ").collect::<Vec<_>>()[..] else { panic!("{line}") };
        let seconds: f64 = seconds.parse().expect("seconds");
        let counts: Vec<u64> = counts.split(' ').map(|count| count.parse().expect("a count")).collect();
        let t_s = |i: usize| seconds * (i + 1) as f64 / counts.len() as f64;
        let each = |(i, n): (usize, &u64)| Interval { t_s: t_s(i), operations: *n, payload_bytes: n * 1000 };
        let found = verdict(&counts.iter().enumerate().map(each).collect::<Vec<_>>());
        assert_eq!(found.state.word(), due, "{name}: {}", found.text);
    }
}

#[test]
fn arrivals_at_random_are_judged_where_they_are_many() {
    let arrivals = |count: usize| {
        move |seed| {
            let mut random = Random::new(seed);
            let mut counts = [0u64; 50];
            (0..count).for_each(|_| counts[(random.unit() * 50.0) as usize] += 1);
            let each = |(i, n): (usize, u64)| Interval { t_s: (i + 1) as f64 / 10.0, operations: n, payload_bytes: n };
            counts.into_iter().enumerate().map(each).collect()
        }
    };
    let stable = share_of(200, State::Stable, arrivals(3000));
    assert!(stable > 0.95, "{stable}");
    // Of these, halves differ by a tenth by chance: nobody could tell a step from that.
    assert!(share_of(200, State::Stable, arrivals(450)) < 0.05);
    assert_eq!(
        verdict(&arrivals(450)(1)).text,
        "noisy: too short to judge, with 450 operations; a longer run would tell"
    );
}

#[test]
fn a_short_run_is_not_judged() {
    assert_eq!(verdict(&[]).state, State::Noisy);
    let found = verdict(&intervals([100.0, 900.0, 20.0]));
    assert!(found.state == State::Noisy && found.text.contains("too short to judge"), "{}", found.text);
}

#[test]
fn a_schedule_is_missed_where_less_than_99_percent_of_it_was_held() {
    assert_eq!(missed(991.0, 1000.0, &[]), None);
    // 1,000 a second are due; of what is done later, all is missing after 1.4 s.
    let run = |held_s: f64| {
        let each = |i: u32| {
            let t_s = f64::from(i) / 10.0;
            Interval { t_s, operations: if t_s <= held_s { 100 } else { 50 }, payload_bytes: 0 }
        };
        (1..=20).map(each).collect::<Vec<_>>()
    };
    let verdict = missed(900.0, 1000.0, &run(1.4)).expect("a tenth is missing");
    assert_eq!(verdict.state, State::Missed);
    let held = "missed: 90.0 % of the schedule was held (900/s of 1000/s), and it fell behind";
    assert_eq!(verdict.text, format!("{held} 1.4 s after its start"));
    assert_eq!(missed(900.0, 1000.0, &run(0.0)).expect("as before").text, format!("{held} from its start"));
    // What is made up for is not behind.
    let mut late = run(2.0);
    (late[3].operations, late[4].operations, late[17].operations) = (0, 200, 0);
    assert_eq!(missed(900.0, 1000.0, &late).expect("as before").text, format!("{held} 1.7 s after its start"));
}
