//! From options to the measurements to be run, one after the other.

use crate::Error;
use crate::args::sizes::Sizes;
use crate::args::{Bench, Choice, Measure};
use hodo_measure::{Mode, Plan, Repeats, Size, Test, Until};
use hodo_tester::{Description, Part};

/// Operations in flight on all channels together: what the tester keeps in memory for each is bounded by this.
const IN_FLIGHT_MAX: u64 = (1 << 24) - 1;
/// More per second cannot be told apart by a clock of nanoseconds.
const RATE_MAX: f64 = 1e9;
/// A schedule must not be held up by the window, so the open test's is wide.
const OPEN_WINDOW: u32 = 1024;
/// Where the random test's minimum begins, and by what it is multiplied, unless `--sizes` says so.
const RANDOM_FIRST: u32 = 64;
const RANDOM_FACTOR: u32 = 8;

/// The measurements that the options ask for; never none.
pub fn plans(bench: &Bench) -> Result<Vec<Plan>, Error> {
    let (protocol, choice) = (bench.link.protocol.description(), &bench.choice);
    check(protocol, choice)?;
    let mut plans = Vec::new();
    match choice.test {
        Some(test) => append(&asked(protocol, bench, test)?, bench, &mut plans)?,
        None => {
            for part in protocol.suite {
                append(&suited(part, bench), bench, &mut plans)?;
            }
        }
    }
    Ok(plans)
}

/// Tests of one kind, over several sizes.
struct Wanted {
    test: Test,
    mode: Mode,
    sizes: Sizes,
    /// Each in turn.
    windows: Vec<u32>,
    channels: u32,
}

/// What `--test` and its companions ask for; what they leave open is as in the protocol's suite.
fn asked(protocol: &Description, bench: &Bench, test: Test) -> Result<Wanted, Error> {
    let choice = &bench.choice;
    let mode = choice.mode.unwrap_or(protocol.modes[0]);
    let like = likeness(protocol, test, mode);
    let window = match test {
        Test::Latency => 1,
        Test::Open => like.window.max(OPEN_WINDOW),
        // As many packets in flight as without.
        _ => like.window * choice.batch,
    };
    let sizes = match test {
        Test::Random => random_sizes(like.sizes),
        Test::Open => Sizes::of(&like.sizes[..1]),
        _ => Sizes::of(like.sizes),
    };
    let wanted = Wanted {
        test,
        mode,
        sizes: choice.sizes.clone().unwrap_or(sizes),
        windows: given(&choice.window).unwrap_or_else(|| vec![window]),
        channels: choice.channels.unwrap_or(match test {
            Test::Latency => 1,
            Test::Channels => like.channels.max(bench.link.protocol.far_ends(&bench.link)),
            _ => bench.link.protocol.far_ends(&bench.link),
        }),
    };
    if test == Test::Random && wanted.sizes.rising().is_empty() {
        return Err(Error::Usage(format!(
            "--sizes {}: the random test needs a minimum and a maximum; write 64..32K*2, or 64,32K for one measurement",
            wanted.sizes
        )));
    }
    Ok(wanted)
}

/// A part of the suite, with what the options change in it.
fn suited(part: &Part, bench: &Bench) -> Wanted {
    let choice = &bench.choice;
    let one_at_a_time = part.test == Test::Latency;
    Wanted {
        test: part.test,
        mode: choice.mode.unwrap_or(part.mode),
        sizes: choice.sizes.clone().unwrap_or_else(|| Sizes::of(part.sizes)),
        windows: given(&choice.window).filter(|_| !one_at_a_time).unwrap_or_else(|| vec![part.window]),
        channels: match choice.channels {
            _ if one_at_a_time => part.channels,
            Some(channels) => channels,
            None => part.channels.max(bench.link.protocol.far_ends(&bench.link)),
        },
    }
}

fn given(windows: &[u32]) -> Option<Vec<u32>> {
    (!windows.is_empty()).then(|| windows.to_vec())
}

/// The part of the suite that is most like a test.
fn likeness(protocol: &Description, test: Test, mode: Mode) -> &'static Part {
    let find = |fits: &dyn Fn(&Part) -> bool| protocol.suite.iter().find(|part| fits(part));
    find(&|part| part.test == test && part.mode == mode)
        .or_else(|| find(&|part| part.test == test))
        .or_else(|| find(&|part| part.test == Test::Rate && part.mode == mode))
        .unwrap_or(&protocol.suite[0])
}

fn random_sizes(like: &[u32]) -> Sizes {
    let max = like.iter().copied().max().unwrap_or(RANDOM_FIRST).max(2 * RANDOM_FIRST);
    let minima = std::iter::successors(Some(RANDOM_FIRST), |size| size.checked_mul(RANDOM_FACTOR));
    let mut sizes: Vec<u32> = minima.take_while(|size| *size < max).collect();
    sizes.push(max);
    Sizes::of(&sizes)
}

/// Appends a plan for each window and size, but none twice: options may make two parts of a suite the same.
fn append(wanted: &Wanted, bench: &Bench, plans: &mut Vec<Plan>) -> Result<(), Error> {
    for &window in &wanted.windows {
        let in_flight = u64::from(window) * u64::from(wanted.channels);
        if in_flight > IN_FLIGHT_MAX {
            return Err(Error::Usage(format!(
                "--window {window} on --channels {} are {in_flight} operations in flight, which is not in 1..={IN_FLIGHT_MAX}; take less of either",
                wanted.channels
            )));
        }
        let sizes = if wanted.test == Test::Random { wanted.sizes.rising() } else { wanted.sizes.fixed() };
        for size in sizes {
            let plan = plan(wanted, window, size, bench);
            if !plans.contains(&plan) {
                plans.push(plan);
            }
        }
    }
    Ok(())
}

fn plan(wanted: &Wanted, window: u32, size: Size, bench: &Bench) -> Plan {
    let Bench { choice, measure, .. } = bench;
    Plan {
        test: wanted.test,
        mode: wanted.mode,
        size,
        window,
        channels: wanted.channels,
        batch: choice.batch,
        rate: choice.rate,
        until: measure.count.map_or(Until::Elapsed(bench.duration()), Until::Count),
        warmup: bench.warmup(),
        repeats: repeats(measure),
        wait: measure.wait,
        seed: measure.seed,
        stages: measure.stages,
        stall: measure.timeout,
    }
}

/// How often the counted part is repeated.
pub fn repeats(measure: &Measure) -> Repeats {
    if measure.confidence.is_none() && measure.interval.is_none() {
        return Repeats::Fixed(measure.repeat);
    }
    Repeats::Confidence {
        percent: measure.confidence.unwrap_or(95.0),
        width: measure.interval.unwrap_or(5.0) / 100.0,
        max: measure.max_repeats,
    }
}

/// What single options cannot know of each other.
fn check(protocol: &Description, choice: &Choice) -> Result<(), Error> {
    let usage = |text: String| Err(Error::Usage(text));
    let name = protocol.name;
    if let Some(sizes) = choice.sizes.as_ref().filter(|sizes| sizes.largest() > protocol.size_max) {
        let (size, max) = (sizes.largest(), protocol.size_max);
        return usage(format!("--sizes {size}: an operation of {name} has a size in 1..={max} bytes"));
    }
    if let Some(mode) = choice.mode.filter(|mode| !protocol.modes.contains(mode)) {
        let modes: Vec<String> = protocol.modes.iter().map(ToString::to_string).collect();
        return usage(format!(
            "--mode {mode}: the payload of {name} goes one way, {}; leave it out",
            modes.join(" or ")
        ));
    }
    match (choice.batch, protocol.batch_max) {
        (batch, most) if (1..=most).contains(&batch) => {}
        (batch, 1) => return usage(format!("--batch {batch}: {name} puts one operation into a packet; leave it at 1")),
        (batch, most) => return usage(format!("--batch {batch}: {name} puts 1..={most} operations into a packet")),
    }
    match (choice.test, choice.rate) {
        (Some(Test::Open), None) => {
            return usage("--test open needs --rate, the operations per second that are due, as --rate 10K".to_owned());
        }
        (Some(Test::Open), Some(rate)) if rate > RATE_MAX => {
            return usage(format!("--rate {rate}: operations per second are above 0 and at most 1G"));
        }
        (Some(Test::Open), Some(_)) | (_, None) => {}
        (_, Some(rate)) => {
            return usage(format!("--rate {rate}: only --test open has a schedule; add it, or leave --rate out"));
        }
    }
    if choice.test == Some(Test::Latency) {
        let numbers = choice.window.iter().map(|window| ("--window", window));
        for (option, number) in numbers.chain(choice.channels.iter().map(|channels| ("--channels", channels))) {
            if *number != 1 {
                return usage(format!(
                    "{option} {number}: the latency test has one operation at a time, so 1..=1; for more in flight take --test rate, for more channels --test channels --window 1"
                ));
            }
        }
    }
    if choice.reconnect && choice.test != Some(Test::Latency) {
        return usage("--reconnect: each operation on a connection of its own goes with --test latency".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn bench(line: &str) -> Box<Bench> {
        let words = ["hodo", "bench"].into_iter().chain(line.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Some(Command::Bench(bench)) => bench,
            other => panic!("{other:?}"),
        }
    }

    fn planned(line: &str) -> Result<Vec<Plan>, Error> {
        plans(&bench(line))
    }

    fn refused(line: &str) -> String {
        match planned(line) {
            Err(Error::Usage(text)) => text,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn without_a_test_the_suite_is_run() {
        for protocol in hodo_catalog::protocols() {
            let steps: usize = protocol.description().suite.iter().map(|part| part.sizes.len()).sum();
            assert_eq!(planned(protocol.name()).unwrap().len(), steps, "{}", protocol.name());
        }
    }

    #[test]
    fn options_change_the_suite_without_repeating_it() {
        let plans = planned("tcp --sizes 64 --mode send --window 7").unwrap();
        assert!(plans.iter().all(|plan| plan.size == Size::Fixed(64) && plan.mode == Mode::Send));
        assert_eq!(plans.iter().filter(|plan| plan.test == Test::Rate).count(), 1);
        assert!(plans.iter().all(|plan| plan.window == if plan.test == Test::Latency { 1 } else { 7 }));
    }

    #[test]
    fn windows_are_swept_in_one_run() {
        let plans = planned("ipbus --test rate --mode receive --sizes 4,1388 --window 1,2,16").unwrap();
        let found: Vec<(u32, Size)> = plans.iter().map(|plan| (plan.window, plan.size)).collect();
        let each = |window| [(window, Size::Fixed(4)), (window, Size::Fixed(1388))];
        assert_eq!(found, [1, 2, 16].map(each).concat());
        let suite = planned("tcp --sizes 64 --window 1,1,8").unwrap();
        assert_eq!(suite.iter().filter(|plan| plan.test == Test::Rate && plan.mode == Mode::Send).count(), 2);
        assert_eq!(suite.iter().filter(|plan| plan.test == Test::Latency).count(), 1);
        assert!(refused("tcp --test latency --window 1,2").contains("--window 2"));
        assert!(refused("tcp --test rate --window 4,1048576 --channels 17").contains("--window 1048576"));
    }

    #[test]
    fn every_test_has_defaults() {
        for test in ["rate", "latency", "random", "channels", "open --rate 1K"] {
            for name in ["tcp", "udp", "unix"] {
                for mode in ["both", "send", "receive"] {
                    let plans = planned(&format!("{name} --test {test} --mode {mode}")).unwrap();
                    assert!(!plans.is_empty() && plans.iter().all(|plan| plan.window >= 1 && plan.channels >= 1));
                }
            }
        }
        assert_eq!(planned("tcp --test channels").unwrap()[0].channels, 20);
    }

    #[test]
    fn events_of_a_farm_go_one_way() {
        let plans = planned("farm --test latency").unwrap();
        assert!(plans.iter().all(|plan| plan.mode == Mode::Send && plan.channels == 1));
        assert!(refused("farm --mode both").contains("goes one way, send"));
        assert_eq!(planned("farm --test channels").unwrap()[0].channels, 20);
        assert_eq!(planned("farm://a,b,c --test rate --sizes 64").unwrap()[0].channels, 3);
    }

    #[test]
    fn every_device_that_is_named_has_a_channel() {
        let channels = |line| planned(line).unwrap().iter().map(|plan| plan.channels).collect::<Vec<u32>>();
        assert_eq!(channels("ipbusudp-2.0://a,b:7,c --test rate --sizes 4"), [3]);
        assert_eq!(channels("chtcp-2.0://hub?target=a,b --test rate --sizes 4"), [2]);
        assert_eq!(channels("ipbusudp-2.0://a,b --test rate --sizes 4 --channels 4"), [4]);
        assert_eq!(channels("ipbusudp-2.0://a,b --test latency --sizes 4"), [1]);
        assert_eq!(channels("ipbus --test channels --sizes 4"), [8]);
        assert_eq!(channels("tcp://a --test rate --sizes 4"), [1]);
        assert!(
            planned("ipbusudp-2.0://a,b").unwrap().iter().all(|plan| plan.test == Test::Latency || plan.channels >= 2)
        );
    }

    #[test]
    fn a_simulated_link_is_measured_for_a_shorter_time() {
        let times = |line| {
            let plan = &planned(line).unwrap()[0];
            (plan.warmup.as_millis(), plan.until)
        };
        let millis = |millis| Until::Elapsed(std::time::Duration::from_millis(millis));
        assert_eq!(times("tcp"), (200, millis(500)));
        assert_eq!(times("sim+tcp"), (20, millis(100)));
        assert_eq!(times("sim+tcp --duration 2s --warmup 0"), (0, millis(2000)));
    }

    #[test]
    fn random_sizes_rise_to_a_maximum() {
        let sizes: Vec<Size> =
            planned("tcp --test random --sizes 1..8*2").unwrap().iter().map(|plan| plan.size).collect();
        assert_eq!(sizes.len(), 3);
        assert_eq!(sizes[2], Size::Uniform { min: 4, max: 8 });
        assert!(refused("tcp --test random --sizes 64").contains("--sizes 64"));
    }

    #[test]
    fn repeats_are_fixed_or_until_narrow() {
        let repeats = |line| planned(line).unwrap()[0].repeats;
        assert_eq!(repeats("tcp"), Repeats::Fixed(6));
        assert_eq!(repeats("tcp --repeat 3"), Repeats::Fixed(3));
        assert_eq!(repeats("tcp --interval 10%"), Repeats::Confidence { percent: 95.0, width: 0.1, max: 30 });
        assert_eq!(
            repeats("tcp --confidence 99 --max-repeats 50"),
            Repeats::Confidence { percent: 99.0, width: 0.05, max: 50 }
        );
    }

    #[test]
    fn says_which_option_is_wrong() {
        assert!(refused("udp --sizes 65508").contains("--sizes 65508: an operation of udp has a size in 1..=65507"));
        assert!(refused("tcp --test open").contains("--rate"));
        assert!(refused("tcp --test rate --rate 5").contains("--rate 5"));
        assert!(refused("tcp --test latency --window 2").contains("--window 2"));
        assert!(refused("tcp --test latency --channels 2").contains("--channels 2"));
        assert!(refused("tcp --test rate --window 1048576 --channels 20000").contains("in flight"));
        assert!(refused("tcp --test rate --reconnect").contains("--reconnect"));
        assert!(refused("tcp --batch 2").contains("--batch 2"));
    }
}
