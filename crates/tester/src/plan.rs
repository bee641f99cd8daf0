//! The measurements of a benchmark, one after the other.

use crate::{Error, Preset, TestGroup, Uri};
use hodo_machine::Wait;
use hodo_measure::{Mode, Plan, Repeats, Size, Test, Until};
use std::time::Duration;

/// The most operations in flight on all channels together, which bounds what the tester keeps in memory for them.
const IN_FLIGHT_MAX: u64 = (1 << 24) - 1;
/// The highest rate per second: a clock of nanoseconds cannot distinguish more.
const RATE_MAX: f64 = 1e9;
/// The window of the open test: it is wide, because the window must not hold up the schedule.
const OPEN_WINDOW: u32 = 1024;
/// The operations on all channels together that are handed to a link at a time where no window holds them back: what a system takes at once.
const AT_ONCE: u32 = 256;
/// Where the random test's minimum begins, and by what it is multiplied, unless `--sizes` says so.
const RANDOM_FIRST: u32 = 64;
const RANDOM_FACTOR: u32 = 8;

/// The tests of a benchmark; what is left open is as in the protocol's suite.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// The test; `None` for the whole suite, or the preset.
    pub test: Option<Test>,
    /// A published study to repeat.
    pub preset: Option<&'static Preset>,
    /// The direction of the payload.
    pub mode: Option<Mode>,
    /// Bytes of payload per operation, one measurement each; empty for the suite's.
    pub sizes: Vec<u32>,
    /// Operations in flight per channel, one measurement each, of which `None` waits for none; empty for the suite's.
    pub windows: Vec<Option<u32>>,
    /// Channels.
    pub channels: Option<u32>,
    /// Operations in a packet.
    pub batch: u32,
    /// Whether the channels go round by round, as [`Plan::rounds`] says.
    pub rounds: bool,
    /// Operations per second that are due, for the open test, and updates per second; `None` for as fast as the far end
    /// can.
    pub rate: Option<f64>,
    /// The most payload bits per second of closed loops, on all channels; `None` for as fast as they go.
    pub pace: Option<f64>,
    /// Whether each operation has a connection of its own.
    pub reconnect: bool,
}

/// The timing of the measurements: duration, repeats and wait.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// The end of one repeat.
    pub until: Until,
    /// Time before the counted part.
    pub warmup: Duration,
    /// Repeats of the counted part.
    pub repeats: Repeats,
    /// How both sides wait.
    pub wait: Wait,
    /// The seed of everything drawn at random.
    pub seed: u64,
    /// Whether the stages of an operation are measured.
    pub stages: bool,
    /// How long connecting and a single answer may take before the far end counts as lost.
    pub timeout: Duration,
}

impl Timing {
    /// Returns the defaults for a link: six repeats of half a second. In virtual time nothing has to settle, and each
    /// operation takes a microsecond of real time to compute, so a simulated link is measured for a shorter time.
    #[must_use]
    pub fn of(link: &Uri) -> Timing {
        let (warmup, until) = if link.simulated { (20, 100) } else { (200, 500) };
        Timing {
            until: Until::Elapsed(Duration::from_millis(until)),
            warmup: Duration::from_millis(warmup),
            repeats: Repeats::Fixed(6),
            wait: Wait::Adaptive,
            seed: 1,
            stages: false,
            timeout: Duration::from_secs(5),
        }
    }
}

/// Returns the measurements of a benchmark, one after the other; never none.
pub(crate) fn plans(link: &Uri, choice: &Choice, timing: &Timing) -> Result<Vec<Plan>, Error> {
    check(link, choice)?;
    let has_rate = choice.rate.is_some() || link.options.iter().any(|(name, _)| name.ends_with("rate"));
    if link.simulated && choice.test == Some(Test::Updates) && !has_rate {
        let text =
            "--test updates: nothing bounds how fast this simulated link is; add --rate, or ?rate=1G to the link";
        return Err(Error::Usage(text.to_owned()));
    }
    if timing.stages && choice.test == Some(Test::Updates) {
        let text = "--stages: an update does not start here, so it has no stages; leave --stages out".to_owned();
        return Err(Error::Usage(text));
    }
    if timing.stages && choice.windows.contains(&None) {
        let text = "--stages: what is sent without a window is not followed, so it has no stages; leave --stages out";
        return Err(Error::Usage(text.to_owned()));
    }
    let mut plans = Vec::new();
    match choice.test {
        Some(test) => append(&asked(link, choice, test)?, choice, timing, &mut plans)?,
        None => {
            for part in choice.preset.map_or_else(|| link.protocol.suite(link), |preset| preset.groups) {
                append(&suited(link, part, choice), choice, timing, &mut plans)?;
            }
        }
    }
    plans.iter().try_for_each(|plan| link.protocol.check(link, plan))?;
    Ok(plans)
}

/// Tests of one kind, over several sizes.
struct PlannedGroup {
    test: Test,
    mode: Mode,
    sizes: Vec<u32>,
    /// The windows, each in turn.
    windows: Vec<Option<u32>>,
    channels: u32,
    rounds: bool,
}

/// Returns the tests that `--test` and its companion options ask for; options not given are as in the protocol's suite.
fn asked(link: &Uri, choice: &Choice, test: Test) -> Result<PlannedGroup, Error> {
    let usual = if test == Test::Updates { Mode::Receive } else { link.protocol.modes(link)[0] };
    let mode = choice.mode.unwrap_or(usual);
    let like = likeness(link.protocol.suite(link), test, mode);
    let window = match test {
        Test::Latency => 1,
        Test::Open => like.window.max(OPEN_WINDOW),
        // As many packets in flight as without.
        _ => like.window * choice.batch.max(1),
    };
    let sizes = match test {
        Test::Random => random_sizes(like.sizes),
        Test::Open => like.sizes[..1].to_vec(),
        _ => like.sizes.to_vec(),
    };
    let group = PlannedGroup {
        test,
        mode,
        sizes: given(&choice.sizes).unwrap_or(sizes),
        windows: given(&choice.windows).unwrap_or_else(|| vec![Some(window)]),
        channels: choice.channels.unwrap_or(match test {
            Test::Latency => 1,
            Test::Channels => like.channels.max(link.protocol.far_ends(link)),
            _ => link.protocol.far_ends(link),
        }),
        rounds: choice.rounds,
    };
    if test == Test::Random && rising(&group.sizes).is_empty() {
        let sizes: Vec<String> = group.sizes.iter().map(ToString::to_string).collect();
        return Err(Error::Usage(format!(
            "--sizes {}: the random test needs a minimum and a maximum; write 64..32K*2, or 64,32K for one measurement",
            sizes.join(",")
        )));
    }
    Ok(group)
}

/// Returns a part of the suite, with what the options change in it.
fn suited(link: &Uri, part: &TestGroup, choice: &Choice) -> PlannedGroup {
    let one_at_a_time = part.test == Test::Latency;
    PlannedGroup {
        test: part.test,
        mode: choice.mode.unwrap_or(part.mode),
        sizes: given(&choice.sizes).unwrap_or_else(|| part.sizes.to_vec()),
        windows: given(&choice.windows).filter(|_| !one_at_a_time).unwrap_or_else(|| vec![Some(part.window)]),
        channels: match choice.channels {
            _ if one_at_a_time => part.channels,
            Some(channels) => channels,
            None => part.channels.max(link.protocol.far_ends(link)),
        },
        rounds: part.rounds,
    }
}

fn given<T: Clone>(values: &[T]) -> Option<Vec<T>> {
    (!values.is_empty()).then(|| values.to_vec())
}

/// Returns the part of a suite that is most like a test.
fn likeness(suite: &'static [TestGroup], test: Test, mode: Mode) -> &'static TestGroup {
    let find = |fits: &dyn Fn(&TestGroup) -> bool| suite.iter().find(|part| fits(part));
    find(&|part| part.test == test && part.mode == mode)
        .or_else(|| find(&|part| part.test == test))
        .or_else(|| find(&|part| part.test == Test::Rate && part.mode == mode))
        .unwrap_or(&suite[0])
}

fn random_sizes(like: &[u32]) -> Vec<u32> {
    let max = like.iter().copied().max().unwrap_or(RANDOM_FIRST).max(2 * RANDOM_FIRST);
    let minima = std::iter::successors(Some(RANDOM_FIRST), |size| size.checked_mul(RANDOM_FACTOR));
    let mut sizes: Vec<u32> = minima.take_while(|size| *size < max).collect();
    sizes.push(max);
    sizes
}

/// Appends a plan for each window and size, but none twice: options may make two parts of a suite the same.
fn append(group: &PlannedGroup, choice: &Choice, timing: &Timing, plans: &mut Vec<Plan>) -> Result<(), Error> {
    for &window in &group.windows {
        let kept = window.unwrap_or_else(|| (AT_ONCE / group.channels).max(1));
        let in_flight = u64::from(kept) * u64::from(group.channels);
        if in_flight > IN_FLIGHT_MAX {
            return Err(Error::Usage(format!(
                "--window {kept} on --channels {} are {in_flight} operations in flight, which is not in 1..={IN_FLIGHT_MAX}; lower either",
                group.channels
            )));
        }
        let sizes = match group.test {
            Test::Random => rising(&group.sizes),
            _ => group.sizes.iter().copied().map(Size::Fixed).collect(),
        };
        for size in sizes {
            let plan = plan(group, (kept, window.is_none()), size, choice, timing);
            if !plans.contains(&plan) {
                plans.push(plan);
            }
        }
    }
    Ok(())
}

fn plan(group: &PlannedGroup, (window, unbounded): (u32, bool), size: Size, choice: &Choice, timing: &Timing) -> Plan {
    Plan {
        test: group.test,
        mode: group.mode,
        size,
        window,
        unbounded,
        channels: group.channels,
        batch: choice.batch.max(1),
        rounds: group.rounds,
        rate: choice.rate,
        pace: choice.pace.filter(|_| group.test.is_closed_loop()),
        until: timing.until,
        warmup: timing.warmup,
        repeats: timing.repeats,
        wait: timing.wait,
        seed: timing.seed,
        stages: timing.stages,
        stall: timing.timeout,
    }
}

/// Returns the sizes of the random test: each but the largest is once the minimum, under the same maximum.
fn rising(sizes: &[u32]) -> Vec<Size> {
    let max = sizes.iter().copied().max().unwrap_or(0);
    let mut minima: Vec<u32> = sizes.iter().copied().filter(|size| *size < max).collect();
    minima.sort_unstable();
    minima.dedup();
    minima.into_iter().map(|min| Size::Uniform { min, max }).collect()
}

/// Checks the options against each other.
fn check(link: &Uri, choice: &Choice) -> Result<(), Error> {
    let (protocol, modes) = (link.protocol.description(), link.protocol.modes(link));
    let usage = |text: String| Err(Error::Usage(text));
    let name = protocol.name;
    if let Some(size) = choice.sizes.iter().copied().max().filter(|size| *size > protocol.size_max) {
        let max = protocol.size_max;
        return usage(format!("--sizes {size}: an operation of {name} has a size in 1..={max} bytes"));
    }
    if let Some(channels) = choice.channels.filter(|channels| !(1..=protocol.channels_max).contains(channels)) {
        let max = protocol.channels_max;
        return usage(format!("--channels {channels}: a link of {name} has 1..={max} channels"));
    }
    if let Some(mode) = choice.mode.filter(|mode| !modes.contains(mode)) {
        let modes: Vec<String> = modes.iter().map(ToString::to_string).collect();
        return usage(format!(
            "--mode {mode}: the payload of {name} goes one way, {}; leave it out",
            modes.join(" or ")
        ));
    }
    match (choice.batch.max(1), protocol.batch_max) {
        (batch, most) if (1..=most).contains(&batch) => {}
        (batch, 1) => return usage(format!("--batch {batch}: {name} puts one operation into a packet; leave it at 1")),
        (batch, most) => return usage(format!("--batch {batch}: {name} puts 1..={most} operations into a packet")),
    }
    match (choice.test, choice.rate) {
        (Some(Test::Open), None) => {
            return usage("--test open needs --rate, the operations per second that are due, as --rate 10K".to_owned());
        }
        (Some(Test::Open | Test::Updates), Some(rate)) if rate > RATE_MAX => {
            return usage(format!("--rate {rate}: operations per second are above 0 and at most 1G"));
        }
        (Some(Test::Open | Test::Updates), Some(_)) | (_, None) => {}
        (_, Some(rate)) => {
            return usage(format!(
                "--rate {rate}: only --test open and --test updates have a schedule; add one, or leave --rate out"
            ));
        }
    }
    if let (Some(test), Some(pace)) = (choice.test.filter(|test| !test.is_closed_loop()), choice.pace) {
        return usage(format!(
            "--pace {pace}: --test {test} has no pace; for a schedule use --test open --rate, or take --test rate, random or channels"
        ));
    }
    if choice.test == Some(Test::Updates) {
        if !protocol.has_updates {
            return usage(format!("--test updates: the far end of {name} sends nothing by itself; take another test"));
        }
        if let Some(mode) = choice.mode.filter(|mode| *mode != Mode::Receive) {
            return usage(format!("--mode {mode}: updates come from the far end; leave it out"));
        }
    }
    if choice.test == Some(Test::Latency) {
        let numbers = choice.windows.iter().flatten().map(|window| ("--window", window));
        for (option, number) in numbers.chain(choice.channels.iter().map(|channels| ("--channels", channels))) {
            if *number != 1 {
                return usage(format!(
                    "{option} {number}: the latency test has one operation at a time, so 1..=1; for more in flight use --test rate, for more channels --test channels --window 1"
                ));
            }
        }
    }
    if choice.windows.contains(&None) {
        check_unbounded(link, choice)?;
    }
    if choice.rounds && !matches!(choice.test, Some(Test::Rate | Test::Random | Test::Channels)) {
        return usage(
            "--rounds: waiting for all answers before the next round goes with --test channels, rate or random"
                .to_owned(),
        );
    }
    if choice.reconnect && choice.test != Some(Test::Latency) {
        return usage("--reconnect: each operation on a connection of its own goes with --test latency".to_owned());
    }
    Ok(())
}

/// Checks that what is never waited for can be sent over a link.
fn check_unbounded(link: &Uri, choice: &Choice) -> Result<(), Error> {
    if !link.protocol.has_unbounded(link) {
        return Err(Error::Usage(format!(
            "--window none: over {} operations wait for each other in any case; it is for datagrams, as udp --mode send. Give a number",
            link.scheme
        )));
    }
    let is_stream = matches!(choice.test, Some(Test::Rate | Test::Channels)) && choice.mode == Some(Mode::Send);
    if !is_stream || choice.rounds {
        return Err(Error::Usage(format!(
            "--window none: what is sent and never waited for goes with --test rate or channels and --mode send; type \
             `hodo bench {} --test rate --mode send --window none`",
            link.scheme
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_rises_under_one_maximum() {
        assert_eq!(
            rising(&[1, 2, 4, 8]),
            [Size::Uniform { min: 1, max: 8 }, Size::Uniform { min: 2, max: 8 }, Size::Uniform { min: 4, max: 8 }]
        );
        assert!(rising(&[64]).is_empty());
    }
}
