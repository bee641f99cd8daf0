//! The figure that a measurement is about, and the words for plans that all reports share.

use crate::layout::clean;
use crate::units::{self, UNKNOWN};
use hodo_measure::{ClockDifference, Connection, Estimate, Measurement, Mode, PublishedFigure, State, Test, limits};

/// The figure that a test is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Payload bits per second.
    PayloadRate,
    /// Operations per second: the rate of operations without payload.
    OperationRate,
    /// The median time of an operation.
    Latency,
}

impl Figure {
    /// Returns the figure that this measurement's test is about: the rate, or the median time for latency and for what has
    /// a schedule.
    #[must_use]
    pub fn of(measurement: &Measurement) -> Figure {
        match measurement.test {
            Test::Latency | Test::Open => Figure::Latency,
            Test::Updates if measurement.rate_asked.is_some() => Figure::Latency,
            _ if measurement.payload_bytes == 0 && measurement.operations > 0 => Figure::OperationRate,
            _ => Figure::PayloadRate,
        }
    }

    /// Returns the figure's name in a sentence.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Figure::PayloadRate => "payload rate",
            Figure::OperationRate => "operation rate",
            Figure::Latency => "median time",
        }
    }

    /// Returns the measured value, in bits per second, operations per second or nanoseconds.
    #[must_use]
    pub fn value(self, measurement: &Measurement) -> Option<f64> {
        let value = match self {
            Figure::PayloadRate => Some(measurement.rate.payload_bits_per_s.median),
            Figure::OperationRate => Some(measurement.rate.operations_per_s.median),
            Figure::Latency => measurement.latency_ns.as_ref().map(|latency| latency.p50 as f64),
        };
        timed(measurement, value)
    }

    /// Returns a value with the figure's unit.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        match self {
            Figure::PayloadRate => units::bits_per_s(value),
            Figure::OperationRate => units::operations_per_s(value),
            Figure::Latency => units::time_ns(value),
        }
    }
}

/// Returns the limit of the test's figure, or of the nearest one that has a limit, with its unit.
pub(crate) fn limit_text(measurement: &Measurement) -> Option<String> {
    let limit = measurement.limit.as_ref()?;
    let rate = limit.payload_bits_per_s.map(units::bits_per_s);
    let operations = limit.operations_per_s.map(units::operations_per_s);
    let time = limit.latency_ns.map(units::time_ns);
    match Figure::of(measurement) {
        Figure::Latency => time.or(operations).or(rate),
        Figure::OperationRate => operations.or(rate).or(time),
        Figure::PayloadRate => rate.or(operations).or(time),
    }
}

/// Returns the average time between the ends of two operations: 1 over their rate.
pub(crate) fn spacing_ns(measurement: &Measurement) -> Option<f64> {
    Some(1e9 / measurement.rate.operations_per_s.median).filter(|spacing_ns| spacing_ns.is_finite())
}

/// Returns half the width of the confidence interval as a share of the median.
pub(crate) fn half_width(estimate: &Estimate) -> Option<f64> {
    let (low, high) = (estimate.low?, estimate.high?);
    let share = (high - low) / 2.0 / estimate.median;
    share.is_finite().then_some(share)
}

/// Returns the protocol, as `sim+udp` if it ran over the simulated network.
pub(crate) fn protocol_text(measurement: &Measurement) -> String {
    let Measurement { protocol, link, .. } = measurement;
    let simulated = link.strip_prefix("sim+").is_some_and(|rest| rest.starts_with(&format!("{protocol}:")));
    let protocol = if simulated { format!("sim+{protocol}") } else { protocol.clone() };
    // A link may have operations of several kinds.
    let options = link.split_once('?').map_or("", |(_, options)| options);
    match options
        .split('&')
        .find_map(|option| option.strip_prefix("operation="))
        .filter(|operation| *operation != "value")
    {
        Some(operation) => format!("{protocol} {operation}"),
        None => protocol,
    }
}

/// Returns the plan in a few words: `tcp rate send 1 KiB 64×1 adaptive`.
#[must_use]
pub fn plan_text(measurement: &Measurement) -> String {
    let m = measurement;
    let (protocol, size, window) = (protocol_text(m), size_text(m), window_text(m));
    let asked = m.rate_asked.map(units::operations_per_s).or_else(|| m.pace_asked.map(units::bits_per_s));
    let asked = asked.map_or_else(String::new, |rate| format!(" at {rate}"));
    let options = m.connection.as_ref().and_then(Connection::text);
    let options = options.map_or_else(String::new, |options| format!(", {options}"));
    let beside = beside_text(m).map_or_else(String::new, |other| format!(" beside {other}"));
    format!("{protocol} {} {} {size} {window} {}{asked}{options}{beside}", m.test, m.mode, m.wait)
}

/// Returns the plan of the row that was measured at the same time, in three words.
pub(crate) fn beside_text(m: &Measurement) -> Option<String> {
    m.beside.as_ref().map(|other| clean(&other.plan()))
}

/// Returns the size of the operations: `32 KiB`, or `60 B..1020 B` if sizes were drawn at random.
pub(crate) fn size_text(measurement: &Measurement) -> String {
    match (measurement.size_bytes, measurement.size_min_bytes, measurement.size_max_bytes) {
        (Some(size), _, _) => units::bytes(size),
        (None, Some(min), Some(max)) => format!("{}..{}", units::bytes(min), units::bytes(max)),
        _ => UNKNOWN.into(),
    }
}

/// Returns the size, or the mean of the sizes drawn.
pub(crate) fn mean_size(measurement: &Measurement) -> Option<f64> {
    match (measurement.size_bytes, measurement.size_min_bytes, measurement.size_max_bytes) {
        (Some(size), _, _) => Some(size as f64),
        (None, Some(min), Some(max)) => Some(f64::midpoint(min as f64, max as f64)),
        _ => None,
    }
}

/// Returns window and channels, as `32×1`, with the batch where operations are concatenated, `32×1 b8`, and `1×1000 rounds` where all channels
/// waited for each other.
pub(crate) fn window_text(measurement: &Measurement) -> String {
    let Measurement { window, channels, batch, rounds, .. } = measurement;
    let window = window.map_or_else(|| "none".to_owned(), |window| window.to_string());
    let batch = if *batch > 1 { format!(" b{batch}") } else { String::new() };
    format!("{window}×{channels}{batch}{}", if *rounds { " rounds" } else { "" })
}

/// Returns the link of a group of measurements, and how both sides wait where that is the same for all and in real time.
pub(crate) fn link_text(group: &[&Measurement]) -> String {
    let first = group[0];
    let is_named = !first.is_simulated() && group.iter().all(|m| m.wait == first.wait);
    if is_named { format!("{}, wait {}", first.link, first.wait) } else { first.link.clone() }
}

/// Describes a test in a few words.
pub(crate) const fn test_meaning(test: Test) -> &'static str {
    match test {
        Test::Rate => "as many operations as the window allows",
        Test::Latency => "one operation at a time",
        Test::Random => "sizes drawn at random, the smallest rising",
        Test::Channels => "many channels at once",
        Test::Open => "operations due on a schedule, times counted from when they were due",
        Test::Updates => "what the far end sends to subscriptions, unasked",
    }
}

/// Describes a verdict in a few words.
pub(crate) const fn state_meaning(state: State) -> &'static str {
    match state {
        State::Stable => "may be quoted",
        State::Drifting => "the rate has a slope or a step",
        State::Bimodal => "the rate has two levels",
        State::Noisy => "the rate varies too much, or too little was measured",
        State::Missed => "the schedule was not held",
        State::Stalled => "nothing completed for longer than the test can explain",
        State::Interrupted => "cut short",
        State::Failed => "nothing was measured",
    }
}

/// Returns whether the row has passed the limit of its line, which nothing can pass.
pub(crate) fn is_over_the_line(measurement: &Measurement) -> bool {
    let (limit, share) = (measurement.limit.as_ref(), measurement.share_of_limit);
    limit.zip(share).is_some_and(|(limit, share)| limits::red_flag(limit, share).is_some())
}

/// Returns whether anything was timed: nothing was where a run ended before its counted part began.
pub(crate) fn is_timed(measurement: &Measurement) -> bool {
    measurement.operations > 0 || measurement.elapsed_s > 0.0
}

/// Returns a figure of a row if it is known, and anything was timed.
pub(crate) fn timed(measurement: &Measurement, value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite() && is_timed(measurement))
}

/// Returns what the row has reached: `94 % of line`, or `0.94 × plain loop` where it has no bound; `None` where nothing was timed.
pub(crate) fn reached_text(measurement: &Measurement) -> Option<String> {
    let share = timed(measurement, measurement.share_of_limit).zip(measurement.limit.as_ref());
    let times = timed(measurement, measurement.times_plain_loop);
    share
        .map(|(share, limit)| format!("{:.0} % of {}", share * 100.0, limit.source()))
        .or_else(|| times.map(|times| format!("{times:.2} × plain loop")))
}

/// Returns what a study published for the same plan, beside what was measured here.
pub(crate) fn published_text(m: &Measurement) -> String {
    let all = m.published.iter().map(|published| {
        let figure = published_figure(m, published.figure);
        let remark = if published.remark.is_empty() { String::new() } else { format!(", {}", published.remark) };
        format!("{}: {figure}{remark}", clean(&published.setting))
    });
    format!("published of another machine, {}", all.collect::<Vec<_>>().join("; "))
}

fn published_figure(m: &Measurement, figure: PublishedFigure) -> String {
    let times = |ratio: f64| format!("{} times that", units::digits(ratio, 3));
    let rate = &m.rate.operations_per_s.median;
    match figure {
        PublishedFigure::OperationsPerS(published) if m.test == Test::Latency => {
            let (here_ns, there_ns) = (1e9 / rate, 1e9 / published);
            let (here, there) = (units::time_ns(here_ns), units::time_ns(there_ns));
            format!("{there} each (here {here}, {})", times(here_ns / there_ns))
        }
        PublishedFigure::OperationsPerS(published) => {
            format!("{} (here {})", units::operations_per_s(published), times(rate / published))
        }
        PublishedFigure::PayloadBitsPerS(published) => {
            let here = m.rate.payload_bits_per_s.median;
            format!("{} (here {})", units::format_rate(published), times(here / published))
        }
        PublishedFigure::LatencyMaxNs(published) => {
            let here =
                m.latency_ns.as_ref().map_or_else(|| UNKNOWN.into(), |latency| units::time_ns(latency.max as f64));
            format!("less than {} (here at most {here})", units::time_ns(published))
        }
    }
}

/// Returns whether the verdict says more than that the row is stable.
pub(crate) fn has_doubt(m: &Measurement) -> bool {
    m.verdict.state != State::Stable || is_over_the_line(m) || has_reason_to_doubt(m)
}

/// Returns whether other programs or a far end that did not keep its pace are in the verdict.
fn has_reason_to_doubt(m: &Measurement) -> bool {
    m.cpu.others_text().is_some() || m.shortfall_text().is_some()
}

/// Returns the verdict in a sentence that begins with its state, once.
pub(crate) fn verdict_text(measurement: &Measurement) -> String {
    let (word, text) = (measurement.verdict.state.word(), &measurement.verdict.text);
    if text.starts_with(word) { clean(text) } else { format!("{word}: {}", clean(text)) }
}

/// Returns rates over the run in the unit of the test's rate: pairs of (end of the piece in seconds, rate).
pub(crate) fn interval_rates(measurement: &Measurement) -> Vec<(f64, f64)> {
    let by_operations = measurement.intervals.iter().all(|interval| interval.payload_bytes == 0);
    let mut before_s = 0.0;
    let mut rates = Vec::with_capacity(measurement.intervals.len());
    for interval in &measurement.intervals {
        let length_s = interval.t_s - before_s;
        if length_s > 0.0 && length_s.is_finite() {
            let amount = if by_operations { interval.operations as f64 } else { 8.0 * interval.payload_bytes as f64 };
            rates.push((interval.t_s, amount / length_s));
            before_s = interval.t_s;
        }
    }
    rates
}

/// Groups measurements for a picture or a table: by protocol, link and test, in the order of the first of each.
pub(crate) fn groups(measurements: &[Measurement]) -> Vec<Vec<&Measurement>> {
    let mut groups: Vec<Vec<&Measurement>> = Vec::new();
    for measurement in measurements {
        let same = |group: &&mut Vec<&Measurement>| {
            let first = group[0];
            (&first.protocol, &first.link, first.test) == (&measurement.protocol, &measurement.link, measurement.test)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(measurement),
            None => groups.push(vec![measurement]),
        }
    }
    groups
}

/// Returns the mode as a word for a narrow column.
pub(crate) const fn mode_text(mode: Mode) -> &'static str {
    match mode {
        Mode::Both => "both",
        Mode::Send => "send",
        Mode::Receive => "receive",
    }
}
/// Returns how far a clock is from ours, and how sure that is.
pub(crate) fn clock_text(clock: ClockDifference) -> String {
    let way = if clock.ahead_ns < 0 { "behind" } else { "ahead" };
    let apart = units::time_ns(clock.ahead_ns.unsigned_abs() as f64);
    match clock.error_ns {
        0 if clock.ahead_ns == 0 => "ours".into(),
        0 => format!("{apart} {way}"),
        error_ns => format!("{apart} {way}, ± {}", units::time_ns(error_ns as f64)),
    }
}
