//! From options to a benchmark.

use super::options::{BenchOptions, MeasuringOptions, TestOptions};
use crate::Error;
use hodo_measure::{Mode, Repeats, Test, Until};
use hodo_tester::{Benchmark, Choice, Conditions, Content, Host, OtherFlow, Payload, Preset, Timing, Uri};
use std::iter;

/// Returns the benchmarks that the options ask for: one, or one for each setting of a study. A far end that is started is this program
/// in a process of its own.
///
/// # Errors [`Error::Failed`] if the path of this program cannot be read, [`Error::Usage`] if there is no such study.
pub fn benchmarks(bench: &BenchOptions) -> Result<Vec<Benchmark>, Error> {
    match bench.choice.preset.as_deref() {
        None => Ok(vec![benchmark(bench, None)?]),
        Some(name) => presets(&bench.link, name)?.into_iter().map(|preset| benchmark(bench, Some(preset))).collect(),
    }
}

fn benchmark(bench: &BenchOptions, preset: Option<&'static Preset>) -> Result<Benchmark, Error> {
    let BenchOptions { link, choice, measure, .. } = bench;
    let mut own = Benchmark {
        link: preset.map_or_else(|| link.clone(), |preset| preset.link(link)),
        choice: Choice {
            test: choice.test,
            preset,
            mode: choice.mode,
            sizes: choice.sizes.as_ref().map_or_else(Vec::new, |sizes| sizes.values().to_vec()),
            windows: choice.window.iter().map(|window| window.0).collect(),
            channels: choice.channels,
            batch: choice.batch,
            rounds: choice.rounds,
            rate: choice.rate,
            pace: choice.pace,
            reconnect: choice.reconnect,
        },
        timing: timing(bench, preset),
        conditions: Conditions {
            pages: measure.hub_pages,
            content: content(choice)?,
            ..measure.conditions.conditions()?
        },
        beside: None,
    };
    for link in iter::once(&own.link).chain(&choice.under) {
        own.conditions.content.check(link)?;
    }
    if choice.bidir {
        own.choice.mode = Some(Mode::Send);
        let mut back = own.clone();
        back.choice.mode = Some(Mode::Receive);
        own.beside = Some(OtherFlow { benchmark: Box::new(back), is_compared: false });
    }
    if let Some(load) = &choice.under {
        own.beside = Some(OtherFlow { benchmark: Box::new(loaded(load, &own)?), is_compared: true });
    }
    Ok(own)
}

/// Returns what the operations carry.
fn content(choice: &TestOptions) -> Result<Content, Error> {
    Ok(Content { is_checked: choice.check, file: choice.payload.as_deref().map(Payload::read).transpose()? })
}

/// Refuses two flows at the same time where a command measures one.
///
/// # Errors [`Error::Usage`] with the options.
pub fn check_one_flow(choice: &TestOptions, what: &str) -> Result<(), Error> {
    if choice.bidir || choice.under.is_some() {
        return Err(Error::Usage(format!("{what} measures one flow; leave --bidir and --under out")));
    }
    Ok(())
}

/// Returns the load that `--under` puts on a link: the largest operations of its suite, sent where that is possible.
fn loaded(link: &Uri, own: &Benchmark) -> Result<Benchmark, Error> {
    let modes = link.protocol.modes(link);
    let mode = modes.iter().copied().find(|mode| *mode == Mode::Send).unwrap_or(modes[0]);
    let choice = Choice { test: Some(Test::Rate), mode: Some(mode), batch: 1, ..Choice::default() };
    let mut load = Benchmark { link: link.clone(), choice, ..own.clone() };
    if link.protocol.name() != own.link.protocol.name() {
        load.conditions.congestion = None;
        load.conditions.path.mss = None;
    }
    load.choice.sizes.extend(load.plans()?.iter().map(|plan| plan.size.bounds().1).max());
    Ok(load)
}

/// Returns the host of far ends that are started: a process of this program.
///
/// # Errors [`Error::Failed`] if the path of this program cannot be read.
pub fn this_program() -> Result<Host, Error> {
    let this = std::env::current_exe();
    this.map(Host::Program).map_err(|why| Error::Failed(format!("the path of this program cannot be read: {why}")))
}

/// Returns the published study of this name: a part for each setting of the link.
fn presets(link: &Uri, name: &str) -> Result<Vec<&'static Preset>, Error> {
    let known: Vec<_> = link.protocol.presets(link).iter().filter(|preset| preset.name == name).collect();
    if !known.is_empty() {
        return Ok(known);
    }
    let plain = link.with_options(|_| false);
    let mut all: Vec<_> =
        hodo_catalog::protocols().flat_map(|protocol| protocol.presets(&plain)).map(|preset| preset.name).collect();
    all.dedup();
    let why = if link.protocol.presets(&plain).iter().any(|preset| preset.name == name) {
        format!("it is for {plain}, not for {link}")
    } else {
        format!("there is none for {link}; the known ones are {}", all.join(", "))
    };
    Err(Error::Usage(format!("--preset {name}: {why}")))
}

/// Returns how long and how often is measured.
pub fn timing(bench: &BenchOptions, preset: Option<&Preset>) -> Timing {
    let (measure, usual) = (&bench.measure, Timing::of(&bench.link));
    let of_study = preset.and_then(|preset| preset.timing);
    let until = measure.count.map(Until::Count).or(measure.duration.map(Until::Elapsed));
    let until = until.or(of_study.map(|(_, repeat)| Until::Elapsed(repeat)));
    Timing {
        until: until.unwrap_or(usual.until),
        warmup: measure.warmup.or(of_study.map(|(warmup, _)| warmup)).unwrap_or(usual.warmup),
        repeats: repeats(measure),
        wait: preset.and_then(|preset| preset.wait).unwrap_or(measure.wait),
        seed: measure.seed,
        stages: measure.stages || preset.is_some_and(|preset| preset.stages),
        timeout: measure.timeout,
    }
}

/// Returns how often the counted part is repeated.
fn repeats(measure: &MeasuringOptions) -> Repeats {
    if measure.confidence.is_none() && measure.interval.is_none() {
        return Repeats::Fixed(measure.repeat);
    }
    Repeats::Confidence {
        percent: measure.confidence.unwrap_or(95.0),
        width: measure.interval.unwrap_or(5.0) / 100.0,
        max: measure.max_repeats,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::{Cli, Command};
    use clap::Parser;
    use hodo_measure::{Plan, Size};

    fn bench(line: &str) -> Box<BenchOptions> {
        let words = ["hodo", "bench"].into_iter().chain(line.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Some(Command::Bench(bench)) => bench,
            other => panic!("{other:?}"),
        }
    }

    fn planned(line: &str) -> Result<Vec<Plan>, Error> {
        Ok(benchmarks(&bench(line))?.iter().map(Benchmark::plans).collect::<Result<Vec<_>, _>>()?.concat())
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
    fn updates_are_received_at_a_rate_or_as_fast_as_they_come() {
        let plan = |line: &str| planned(line).unwrap().remove(0);
        let fast = plan("tcp --test updates --sizes 64 --channels 4 --window 8");
        assert_eq!((fast.mode, fast.rate, fast.channels, fast.window), (Mode::Receive, None, 4, 8));
        assert_eq!(plan("sim+udp --test updates --rate 10K").rate, Some(10_000.0));
        assert_eq!(plan("sim+udp://?rate=1G --test updates").rate, None);
        assert!(refused("sim+tcp --test updates").contains("--rate"));
        assert!(refused("tcp --test updates --mode both").contains("--mode both"));
        assert!(refused("tcp --test updates --stages").contains("--stages"));
        assert!(refused("tcp --test updates --rate 2G").contains("--rate 2000000000"));
        assert!(refused("farm --test updates").contains("sends nothing by itself"));
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
    fn two_flows_at_once_go_both_ways_or_one_loads_the_other() {
        let plans_of = |line: &str| {
            let own = benchmarks(&bench(line)).unwrap().remove(0);
            let other = own.beside.as_ref().expect("another flow").benchmark.plans().unwrap();
            (own.plans().unwrap(), other)
        };
        let (out, back) = plans_of("tcp --test rate --sizes 1K,4K --bidir");
        assert!(out.iter().all(|plan| plan.mode == Mode::Send) && back.iter().all(|plan| plan.mode == Mode::Receive));
        assert_eq!(
            out.iter().map(|plan| plan.size).collect::<Vec<_>>(),
            back.iter().map(|plan| plan.size).collect::<Vec<_>>()
        );
        let (own, load) = plans_of("udp --test latency --sizes 64 --under tcp");
        assert_eq!((own[0].test, load[0].test, load[0].mode), (Test::Latency, Test::Rate, Mode::Send));
        assert!(matches!(load[0].size, Size::Fixed(size) if size >= 32 << 10));
        let refused = |line: &str| {
            let own = benchmarks(&bench(line)).unwrap().remove(0);
            own.check(&own.plans().unwrap()).unwrap_err().to_string()
        };
        assert!(refused("sim+tcp --test rate --bidir").contains("a simulated link carries one flow"));
        assert!(refused("tcp --test rate --bidir --count 5").contains("--duration"));
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
