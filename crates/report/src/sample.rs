//! A result as a real run yields it, made from formulas, for the tests of every form of report.

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use hodo_measure::{
    Binding, Clock, Cpu, Document, Environment, Estimate, FarEndFacts, Interval, Latency, Limit, LimitKind, Loss,
    Measurement, Mode, PlainLoop, Plan, ProcessCpu, Rate, SCHEMA, Side, SimulationCost, Stage, State, Test, Tool,
    Verdict,
};

/// How long each row was measured.
const ELAPSED_S: f64 = 2.0;

/// Rates, latencies, channels, random sizes and a schedule, over two protocols, with losses and doubtful verdicts.
pub(crate) fn document() -> Document {
    let sizes = [64, 512, 4096, 32_768, 131_072, 1 << 20];
    let mut measurements: Vec<Measurement> = [64, 1024, 32_768].map(latency).to_vec();
    for mode in [Mode::Send, Mode::Receive, Mode::Both] {
        measurements.extend(sizes.map(|size| rate("tcp", mode, size)));
    }
    measurements[14].verdict = Verdict {
        state: State::Drifting,
        text: "the rate fell by 31 % from the first quarter to the last: a longer run would find less".into(),
    };
    measurements[14].intervals = intervals(40, |t| 43e9 * (1.0 - 0.18 * t), 131_072);
    measurements.extend([1, 10, 100, 1000, 10_000].map(channels));
    measurements.extend([60, 300, 540, 780, 1020].map(random));
    measurements.extend([64, 1024, 8192].map(udp));
    measurements.extend([20_000.0, 80_000.0].map(open));
    Document {
        schema: SCHEMA.into(),
        tool: Tool { name: "hodo".into(), version: "0.1.0".into(), commit: Some("0123abc".into()) },
        environment: environment(),
        measurements,
        diagnosis: None,
        slo: None,
    }
}

/// Returns the rate test over loopback: the cost of an operation is 1.2 µs and 0.16 ns a byte.
pub(crate) fn rate(protocol: &str, mode: Mode, size: u64) -> Measurement {
    let share = match mode {
        Mode::Send => 1.0,
        Mode::Receive => 0.93,
        Mode::Both => 0.61,
    };
    let cost_ns = 1157.12 + size as f64 * 0.16;
    let rate = (1e9 / cost_ns * share).round();
    let mut m = plan(protocol, Test::Rate, mode, size, rate, 0.94);
    m.window = Some(32);
    m.latency_ns = Some(latency_around(32e9 / rate, (rate * 2.0) as u64));
    m.cpu = cpu(98.2, 96.1, rate);
    m
}

/// Returns a latency whose median is near `median_ns`, with the long tail that real ones have.
pub(crate) fn latency_around(median_ns: f64, count: u64) -> Latency {
    const POINTS: u64 = 5000;
    let mut histogram = Histogram::<u64>::new(3).expect("3 digits are allowed");
    for point in 0..POINTS {
        let rank = (point as f64 + 0.5) / POINTS as f64;
        let time_ns = median_ns * (0.915 + 0.07 * (1.0 - rank).powf(-0.3));
        histogram.record_n(time_ns as u64, (count / POINTS).max(1)).expect("the histogram grows");
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&histogram, &mut bytes).expect("a vector takes every byte");
    Latency {
        min: histogram.min(),
        mean: (histogram.mean() * 10.0).round() / 10.0,
        p50: histogram.value_at_quantile(0.5),
        p90: histogram.value_at_quantile(0.9),
        p99: histogram.value_at_quantile(0.99),
        p99_9: histogram.value_at_quantile(0.999),
        max: histogram.max(),
        count: histogram.len(),
        histogram: base64::engine::general_purpose::STANDARD.encode(bytes),
    }
}

/// Returns the latency test over loopback, with its stages.
pub(crate) fn latency(size: u64) -> Measurement {
    let time_ns = 6_100.0 + size as f64 * 0.31;
    let mut m = plan("tcp", Test::Latency, Mode::Both, size, (1e9 / time_ns).round(), 0.98);
    m.wait = "spin".into();
    m.latency_ns = Some(latency_around(time_ns, 2 * (1e9 / time_ns) as u64));
    m.cpu = cpu(99.8, 99.9, 1e9 / time_ns);
    m.stages = stages(time_ns, m.operations);
    let limit = m.limit.as_mut().expect("plan() sets one");
    limit.latency_ns = Some(time_ns * 0.98);
    limit.binds = Binding::RoundTrip;
    m
}

fn stages(time_ns: f64, count: u64) -> Vec<Stage> {
    let stages = [
        ("queue", Side::Local, 0.03),
        ("send", Side::Local, 0.31),
        ("wire and far end", Side::Local, 0.62),
        ("queue", Side::Remote, 0.02),
        ("send", Side::Remote, 0.28),
        ("network, waking", Side::Remote, 0.32),
        ("completion", Side::Local, 0.04),
    ];
    let stage = |(name, side, share): (&str, Side, f64)| Stage {
        name: name.into(),
        side,
        count,
        mean_ns: (time_ns * share).round(),
        p50_ns: (name != "network, waking").then_some((time_ns * share * 0.995) as u64),
        p99_ns: (name != "network, waking").then_some((time_ns * share * 1.2) as u64),
        share,
    };
    stages.map(stage).to_vec()
}

/// Returns a row of a simulated link, which this host computed at twice real time.
pub(crate) fn simulated(size: u64) -> Measurement {
    let cpu = Cpu {
        machine_percent: Some(61.0),
        local: Some(ProcessCpu { user_s: 0.28, system_s: 0.01, ..ProcessCpu::default() }),
        local_ns_per_operation: Some(2_900.0),
        ..Cpu::default()
    };
    Measurement {
        link: "sim+tcp://".into(),
        cpu: Cpu::default(),
        simulation: SimulationCost::of(&cpu, 0.6, 0.3),
        ..rate("tcp", Mode::Send, size)
    }
}

fn channels(channels: u32) -> Measurement {
    let rate = (900_000.0 / (1.0 + f64::from(channels).log10() * 0.13)).round();
    let mut m = plan("tcp", Test::Channels, Mode::Both, 64, rate, 0.88);
    m.channels = channels;
    m.latency_ns = Some(latency_around(1e9 * f64::from(channels) / rate, (rate * 2.0) as u64));
    if channels == 10_000 {
        m.verdict =
            Verdict { state: State::Noisy, text: "the repeats differ by 23 %; repeat more often, or longer".into() };
        m.rate.operations_per_s.low = Some(rate * 0.86);
        m.rate.operations_per_s.high = Some(rate * 1.11);
    }
    m
}

fn random(min: u64) -> Measurement {
    let mean = f64::midpoint(min as f64, 1020.0);
    let mut m = plan("tcp", Test::Random, Mode::Send, mean as u64, (1e9 / (1157.12 + mean * 0.16)).round(), 0.91);
    (m.size_bytes, m.size_min_bytes, m.size_max_bytes) = (None, Some(min), Some(1020));
    m.window = Some(32);
    m
}

fn udp(size: u64) -> Measurement {
    let rate = (1e9 / (410.0 + size as f64 * 0.22)).round();
    let mut m = plan("udp", Test::Rate, Mode::Send, size, rate, 0.79);
    m.link = "udp://127.0.0.1:4242".into();
    m.window = Some(256);
    m.loss = Loss { lost: size * 3, duplicated: 0, reordered: size / 64, ..Loss::default() };
    m.limit.as_mut().expect("plan() sets one").binds = Binding::Cpu;
    if size == 8192 {
        m.verdict = Verdict { state: State::Bimodal, text: "the rate jumps between 24 and 36 Gbit/s".into() };
        m.intervals = intervals(40, |t| if ((t * 4.0) as u32).is_multiple_of(2) { 24e9 } else { 36e9 }, size);
    }
    m
}

fn open(asked: f64) -> Measurement {
    let mut m = plan("tcp", Test::Open, Mode::Both, 1024, asked, 1.0);
    m.rate_asked = Some(asked);
    m.latency_ns = Some(latency_around(7_000.0 + asked * 0.02, asked as u64 * 2));
    m.limit.as_mut().expect("plan() sets one").binds = Binding::Schedule;
    m
}

fn plan(protocol: &str, test: Test, mode: Mode, size: u64, rate: f64, share: f64) -> Measurement {
    let bits = rate * size as f64 * 8.0;
    let verdict = Verdict { state: State::Stable, text: "no slope, one level, repeats within 2 %".into() };
    Measurement {
        test,
        size_bytes: Some(size),
        repeats: 5,
        operations: (rate * 2.0) as u64,
        payload_bytes: (rate * 2.0) as u64 * size,
        elapsed_s: ELAPSED_S,
        rate: Rate { operations_per_s: estimate(rate), payload_bits_per_s: estimate(bits) },
        limit: Some(Limit {
            payload_bits_per_s: Some((bits / share).round()),
            operations_per_s: Some((rate / share).round()),
            latency_ns: None,
            kind: LimitKind::PlainLoop,
            least: None,
            binds: Binding::Cpu,
            formula: format!("bare sockets, 32 in flight of {size} B: {}/s, 4 % apart", (rate / share) as u64),
            assumes: "measured before and after with the same wait and placement".into(),
            spread: Some(0.04),
            saw: Some(format!("{:.0} % of the plain loop; the busiest processor 98 % busy", share * 100.0)),
        }),
        times_plain_loop: Some(share),
        plain_loop: Some(PlainLoop {
            operations_per_s: (rate / share).round(),
            payload_bits_per_s: (bits / share).round(),
            latency_ns: None,
            cost_ns: Some(1e9 / rate),
            looks: 5,
            spread: 0.04,
            shape: format!("32 in flight of {size} B"),
        }),
        intervals: intervals(PIECES, |t| bits * (1.0 + 0.02 * (t * 23.0).sin()), size),
        ..Plan::one(mode, size as u32).unmeasured(protocol, "tcp://127.0.0.1:4242", verdict)
    }
}

fn estimate(median: f64) -> Estimate {
    let about = |share: f64| Some((median * share).round());
    Estimate { median, low: about(0.992), high: about(1.007), confidence: Some(95.0), best: median * 1.01 }
}

fn cpu(local: f64, remote: f64, rate: f64) -> Cpu {
    let process = |percent: f64| ProcessCpu {
        percent,
        user_s: percent / 100.0 * 0.4,
        system_s: percent / 100.0 * 1.6,
        polling_s: Some(0.0),
        voluntary_switches: 12,
        involuntary_switches: 40,
        max_rss_bytes: 6 << 20,
    };
    Cpu {
        machine_percent: Some(97.4),
        busiest_percent: Some(98.6),
        others_percent: Some(0.4),
        local: Some(process(local)),
        remote: Some(process(remote)),
        local_ns_per_operation: Some((local * 1e7 / rate).round()),
        remote_ns_per_operation: Some((remote * 1e7 / rate).round()),
        local_sleeps_per_operation: Some(0.0),
        remote_sleeps_per_operation: Some(0.0),
    }
}

/// So few pieces are enough where nothing depends on how the rate changes.
const PIECES: u32 = 4;

fn intervals(pieces: u32, bits_per_s: impl Fn(f64) -> f64, size: u64) -> Vec<Interval> {
    let length_s = ELAPSED_S / f64::from(pieces);
    (1..=pieces)
        .map(|piece| {
            let t_s = f64::from(piece) * length_s;
            let payload_bytes = (bits_per_s(t_s) * length_s / 8.0) as u64;
            Interval { t_s, operations: payload_bytes / size.max(1), payload_bytes }
        })
        .collect()
}

fn environment() -> Environment {
    Environment {
        host: Some("bench1".into()),
        kernel: Some("6.1.0-18-amd64".into()),
        cpu: Some("Example CPU at 2.9 GHz".into()),
        cores: Some(2),
        memory_bytes: Some(8 << 30),
        congestion_control: Some("cubic".into()),
        mtu: Some(65_536),
        nic: None,
        placement: Some("here cpu 0, far end cpu 1".into()),
        scheduling: Some("SCHED_OTHER".into()),
        clock: Some(Clock { source: "tsc".into(), cost_ns: 21.4 }),
        hypervisor: Some("kvm".into()),
        governor: None,
        started: Some("2024-05-17T09:30:00Z".into()),
        arguments: ["hodo", "bench", "tcp"].map(String::from).to_vec(),
        far_end: Some(FarEndFacts { wait: Some("adaptive".into()), ..FarEndFacts::default() }),
    }
}

/// The file that the tests of the page read is this document.
#[test]
fn the_sample_file_is_this_document() {
    snapshot("../../tests/report/sample.json", &crate::json::to_string(&document()));
}

/// Compares with a file of this crate, or writes it where `HODO_UPDATE_SNAPSHOTS` is set.
pub(crate) fn snapshot(path: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("HODO_UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("the folder can be made");
        std::fs::write(&path, text).expect("the snapshot can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == text, "{} differs from:\n{text}\nHODO_UPDATE_SNAPSHOTS=1 accepts it", path.display());
}
