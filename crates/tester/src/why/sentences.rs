//! A diagnosis in sentences: what binds, what speaks for it, and what to change.

use super::causes::{Found, HELD_WITHIN, held};
use super::trials::Knob;
use hodo_measure::units::text::{bits_per_s, bytes, operations_per_s, percent, time_ns};
use hodo_measure::{Binding, Confidence, Diagnosis, Experiment, LimitKind, Measurement, State, Test};

/// Returns the diagnosis of a row in three sentences: the row and what binds it, the experiments, and the remedy.
#[must_use]
pub fn sentences(base: &Measurement, diagnosis: &Diagnosis) -> [String; 3] {
    let first = format!("{}: {}; {}.", base.link, figure(base), diagnosis.text());
    let evidence = format!("{}.", diagnosis.evidence.join("; "));
    [first, evidence, diagnosis.advice.clone()]
}

/// Returns the figure of a row that its test is about, in words.
fn figure(row: &Measurement) -> String {
    let size = row.size_bytes.map_or_else(|| "drawn sizes".to_owned(), bytes);
    let rate = row.rate.operations_per_s.median;
    match (&row.latency_ns, row.test) {
        (Some(latency), Test::Latency) => format!("an operation of {size} takes {}", time_ns(latency.p50 as f64)),
        _ => format!(
            "{} ({}) in operations of {size}",
            bits_per_s(row.rate.payload_bits_per_s.median),
            operations_per_s(rate)
        ),
    }
}

/// Returns what speaks for a bottleneck: what was observed in the row, then the experiments.
pub(super) fn evidence(base: &Measurement, bottleneck: Binding, experiments: &[Experiment]) -> Vec<String> {
    let limit = base.limit.as_ref().filter(|limit| limit.binds == bottleneck || bottleneck == Binding::Unknown);
    let observed = limit.and_then(|limit| limit.saw.clone());
    let rate = base.rate.operations_per_s.median;
    let change_of = |experiment: &&Experiment| (experiment.predicted / rate).ln().abs();
    let right = || experiments.iter().filter(|experiment| held(experiment.predicted, experiment.found));
    let told = right().max_by(|a, b| change_of(a).total_cmp(&change_of(b)));
    let told = told.map(|Experiment { change, predicted, found }| {
        format!("{change} gave {}, where {} was predicted", operations_per_s(*found), operations_per_s(*predicted))
    });
    let count =
        format!("{} of {} predictions held within {}", right().count(), experiments.len(), percent(HELD_WITHIN));
    observed.into_iter().chain(told).chain((!experiments.is_empty()).then_some(count)).collect()
}

/// Returns the change to make where this binds.
pub(super) fn advice(bottleneck: Binding, row: &Measurement, found: &[Found]) -> String {
    let by = |knob: Knob| found.iter().find(|found| found.knob == knob).map(|found| found.factor);
    let gain = |knob, what: &str| {
        by(knob)
            .filter(|factor| *factor > 1.1)
            .map_or_else(String::new, |factor| format!(" ({what} gave {factor:.1} times as much)"))
    };
    let window = row.window.map_or_else(|| "more in flight".to_owned(), |window| format!("--window {}", 2 * window));
    match bottleneck {
        Binding::Line => "The line is full: a faster one, larger packets (--mtu) or fewer bytes per operation would carry more.".to_owned(),
        Binding::Window => format!("More operations in flight: {window}{}.", gain(Knob::WindowTwice, "twice the window")),
        Binding::RoundTrip => format!(
            "Keep more than one operation in flight{}, or shorten the path; a faster program alone changes nothing.",
            gain(Knob::WindowTwice, "two")
        ),
        Binding::Schedule => "The link does all that is asked: raise --rate to find its own limit.".to_owned(),
        Binding::Cpu => format!(
            "Larger operations, several in a packet (--batch), or more threads (--channels){}; else a faster processor.",
            gain(Knob::TwoChannels, "twice the channels")
        ),
        Binding::FarEnd => "Look at the far end: its program, its processor and its receive buffer; this side and the way between wait for it.".to_owned(),
        Binding::Loss => format!(
            "Find what drops packets: a policer, a queue that is too short, a bad cable; several streams{} and another congestion control{} lose less by it.",
            gain(Knob::TwoChannels, "two"),
            gain(Knob::Congestion, "the other one")
        ),
        Binding::Buffer => format!(
            "Larger socket buffers, with --socket-buffer or net.ipv4.tcp_wmem and tcp_rmem, of at least rate times round-trip{}.",
            gain(Knob::TwoChannels, "a second stream with buffers of its own")
        ),
        Binding::Quota => "Raise the quota (cpu.max, or cpu.cfs_quota_us) of the control group that holds the process back.".to_owned(),
        Binding::Others => "End the other programs, or give the two ends processors of their own with --cpu.".to_owned(),
        Binding::Bus => "A wider or faster slot of the bus.".to_owned(),
        Binding::Unknown => "See where the time goes with --stages, and look at both hosts with `hodo doctor`.".to_owned(),
    }
}

/// Returns the summary of a whole run, without experiments: its highest rate and its longest latency with their limits, the most frequent
/// bottleneck, and what to try. Figures are those of stable rows where there are any. `None` without a row of each kind, a rate and a time.
#[must_use]
pub fn summary(rows: &[Measurement]) -> Option<(Diagnosis, [String; 3])> {
    let measured: Vec<&Measurement> = rows.iter().filter(|row| row.operations > 0).collect();
    let real = || measured.iter().copied().filter(|row| !row.is_simulated());
    let rate = |row: &&Measurement| row.rate.payload_bits_per_s.median;
    let rates = quotable(real().filter(|row| row.test != Test::Latency && rate(row) > 0.0));
    let fastest = rates.into_iter().max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    let median = |row: &&Measurement| row.latency_ns.as_ref().map_or(0, |latency| latency.p50);
    let slowest = quotable(real().filter(|row| row.test == Test::Latency)).into_iter().max_by_key(median)?;
    let kind = |row: &Measurement| if row.verdict.state == State::Stable { "stable " } else { "" };
    let rate = format!("Highest {}rate: {}", kind(fastest), about(fastest));
    let first = format!("{rate}; longest {}latency: {}.", kind(slowest), about(slowest));
    let words: Vec<Binding> = measured.iter().filter_map(|row| Some(row.limit.as_ref()?.binds)).collect();
    let count = |word: Binding| words.iter().filter(|other| **other == word).count();
    let known = || words.iter().copied().filter(|word| *word != Binding::Unknown);
    let highest = known().map(count).max().unwrap_or_default();
    let mut all: Vec<Binding> = Vec::new();
    for word in known() {
        if count(word) == highest && !all.contains(&word) {
            all.push(word);
        }
    }
    let most = all.first().copied().unwrap_or(Binding::Unknown);
    let second = frequent(&all, highest, measured.len());
    let example = measured.iter().find(|row| row.limit.as_ref().is_some_and(|limit| limit.binds == most))?;
    let third = format!("To try: {}", advice(most, example, &[]));
    let diagnosis = Diagnosis {
        bottleneck: most,
        confidence: Confidence::Low,
        evidence: vec![first.clone(), second.clone()],
        experiments: Vec::new(),
        advice: third.clone(),
    };
    Some((diagnosis, [first, second, third]))
}

/// Returns a sentence on the most frequent bottlenecks, each of `count` of `rows` rows.
fn frequent(words: &[Binding], count: usize, rows: usize) -> String {
    let named: Vec<String> = words.iter().map(|word| format!("`{}`", word.word())).collect();
    match &named[..] {
        [] => format!("The bottleneck of all {rows} rows is unknown."),
        [one] => format!("The most frequent bottleneck is {one}: {count} of {rows} rows."),
        [others @ .., last] => {
            format!("The most frequent bottlenecks are {} and {last}: {count} of {rows} rows each.", others.join(", "))
        }
    }
}

/// Returns the stable ones of these rows, or all where none is.
fn quotable<'a>(rows: impl Iterator<Item = &'a Measurement>) -> Vec<&'a Measurement> {
    let (stable, others): (Vec<_>, Vec<_>) = rows.partition(|row| row.verdict.state == State::Stable);
    if stable.is_empty() { others } else { stable }
}

/// Returns the figure of a row that its test is about, with its limit or what bare sockets do.
fn about(row: &Measurement) -> String {
    let size = row.size_bytes.map_or_else(|| "drawn sizes".to_owned(), bytes);
    let limit = row.limit.as_ref();
    let (figure, sockets) = match (&row.latency_ns, row.test) {
        (Some(latency), Test::Latency) => (
            time_ns(latency.p50 as f64),
            limit.and_then(|limit| limit.latency_ns).map(|time| format!("take {}", time_ns(time))),
        ),
        _ => (
            bits_per_s(row.rate.payload_bits_per_s.median),
            limit.and_then(|limit| limit.payload_bits_per_s).map(|rate| format!("reach {}", bits_per_s(rate))),
        ),
    };
    let compared = match (limit, row.share_of_limit, sockets) {
        (Some(limit), _, Some(sockets)) if limit.kind == LimitKind::PlainLoop => {
            format!(", where bare sockets {sockets}")
        }
        (Some(limit), Some(share), _) => format!(", {} of its limit ({})", percent(share), limit.source()),
        _ => String::new(),
    };
    format!("{figure} ({} {}, {size}){compared}", row.protocol, row.test)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hodo_measure::{Latency, Limit, LimitKind, Plan, Verdict};

    fn row(test: Test, size: u32, state: State) -> Measurement {
        let verdict = Verdict { state, text: state.word().to_owned() };
        let plan = Plan { test, ..Plan::one(hodo_measure::Mode::Both, size) };
        Measurement { operations: 100, ..plan.unmeasured("tcp", "tcp://", verdict) }
    }

    fn limit(kind: LimitKind, binds: Binding) -> Limit {
        Limit {
            payload_bits_per_s: None,
            operations_per_s: None,
            latency_ns: None,
            kind,
            least: Some(binds),
            binds,
            formula: String::new(),
            assumes: String::new(),
            spread: None,
            saw: None,
        }
    }

    fn rate(size: u32, gigabits: f64, state: State) -> Measurement {
        let mut found = row(Test::Rate, size, state);
        found.rate.payload_bits_per_s.median = gigabits * 1e9;
        let limit = Limit { payload_bits_per_s: Some(gigabits * 2e9), ..limit(LimitKind::PlainLoop, Binding::Cpu) };
        Measurement { limit: Some(limit), ..found }
    }

    fn latency(size: u32, microseconds: u64) -> Measurement {
        let times = Latency { p50: 1000 * microseconds, ..Latency::default() };
        Measurement {
            latency_ns: Some(times),
            limit: Some(limit(LimitKind::Line, Binding::RoundTrip)),
            share_of_limit: Some(0.5),
            ..row(Test::Latency, size, State::Stable)
        }
    }

    #[test]
    fn a_run_is_summed_up_by_its_stable_rows() {
        let rows = [
            rate(1024, 7.0, State::Stalled),
            rate(64, 2.0, State::Stable),
            rate(0, 0.0, State::Stable),
            latency(64, 10),
            latency(1024, 30),
        ];
        let (diagnosis, [first, second, third]) = summary(&rows).expect("rates and times");
        assert_eq!(
            first,
            "Highest stable rate: 2.000 Gbit/s (tcp rate, 64 B), where bare sockets reach 4.000 Gbit/s; longest stable latency: 30.0 µs (tcp latency, 1 KiB), \
             50.0 % of its limit (roundtrip)."
        );
        assert_eq!(second, "The most frequent bottleneck is `cpu`: 3 of 5 rows.");
        assert!(third.starts_with("To try: Larger operations") && diagnosis.bottleneck == Binding::Cpu, "{third}");
        let (_, [first, ..]) = summary(&[rate(1024, 7.0, State::Stalled), latency(64, 10)]).expect("a rate and a time");
        assert!(first.starts_with("Highest rate: 7.000 Gbit/s"), "{first}");
        let (diagnosis, [_, second, _]) = summary(&rows[1..]).expect("rates and times");
        assert_eq!(second, "The most frequent bottlenecks are `cpu` and `roundtrip`: 2 of 4 rows each.");
        assert_eq!(diagnosis.bottleneck, Binding::Cpu, "the first of them");
        assert!(summary(&rows[..3]).is_none(), "no times");
    }
}
