//! The flat table for spreadsheets and scripts.

use crate::figure;
use crate::units::round_to;
use hodo_measure::Measurement;

/// The columns, in order.
pub const COLUMNS: [&str; 23] = [
    "protocol",
    "link",
    "test",
    "mode",
    "size_bytes",
    "window",
    "channels",
    "batch",
    "wait",
    "repeats",
    "operations_per_s",
    "payload_mbit_per_s",
    "average_time_us",
    "latency_p50_us",
    "latency_p99_us",
    "cpu_machine_percent",
    "cpu_local_percent",
    "cpu_remote_percent",
    "limit_mbit_per_s",
    "share_of_limit",
    "lost",
    "retransmitted",
    "verdict",
];

/// One header line and one line a measurement: tab-separated, no quoting, an empty cell for what is null.
///
/// Where sizes were drawn, `size_bytes` holds their mean, rounded up, so that the column stays numeric and
/// `operations_per_s * size_bytes` stays the payload rate. Floats have seven significant digits. Tabs and line ends
/// inside a name become spaces.
#[must_use]
pub fn tsv(measurements: &[Measurement]) -> String {
    let mut text = COLUMNS.join("\t");
    text.push('\n');
    for measurement in measurements {
        text.push_str(&cells(measurement).join("\t"));
        text.push('\n');
    }
    text
}

fn cells(m: &Measurement) -> [String; COLUMNS.len()] {
    let time_us = |ns: Option<f64>| number(ns.map(|ns| ns / 1e3));
    let latency = m.latency_ns.as_ref();
    let limit = m.limit.as_ref();
    [
        word(&m.protocol),
        word(&m.link),
        m.test.to_string(),
        m.mode.to_string(),
        figure::mean_size(m).map_or_else(String::new, |size| format!("{}", size.ceil())),
        m.window.to_string(),
        m.channels.to_string(),
        m.batch.to_string(),
        word(&m.wait),
        m.repeats.to_string(),
        number(Some(m.rate.operations_per_s.median)),
        number(Some(m.rate.payload_bits_per_s.median / 1e6)),
        time_us(latency.map(|latency| latency.mean)),
        time_us(latency.map(|latency| latency.p50 as f64)),
        time_us(latency.map(|latency| latency.p99 as f64)),
        number(m.cpu.machine_percent),
        number(m.cpu.local.map(|process| process.percent)),
        number(m.cpu.remote.map(|process| process.percent)),
        number(limit.and_then(|limit| limit.payload_bits_per_s).map(|bits| bits / 1e6)),
        number(m.share_of_limit),
        m.loss.lost.to_string(),
        m.loss.retransmitted.to_string(),
        m.verdict.state.word().to_owned(),
    ]
}

fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| round_to(value, 7).to_string())
}

fn word(text: &str) -> String {
    text.replace(['\t', '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn one_line_a_measurement_with_the_columns_of_the_contract() {
        let measurement = sample::rate("tcp", hodo_measure::Mode::Send, 32_768);
        let text = tsv(&[measurement]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "protocol\tlink\ttest\tmode\tsize_bytes\twindow\tchannels\tbatch\twait\trepeats\toperations_per_s\t\
             payload_mbit_per_s\taverage_time_us\tlatency_p50_us\tlatency_p99_us\tcpu_machine_percent\t\
             cpu_local_percent\tcpu_remote_percent\tlimit_mbit_per_s\tshare_of_limit\tlost\tretransmitted\tverdict"
        );
        assert_eq!(
            lines[1],
            "tcp\ttcp://127.0.0.1:4242\trate\tsend\t32768\t32\t1\t1\tblock\t5\t156250\t40960\t207.8647\t205.055\t\
             244.351\t97.4\t98.2\t96.1\t43574.47\t0.94\t0\t0\tstable"
        );
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn null_is_an_empty_cell_and_no_name_breaks_a_line() {
        let mut measurement = sample::rate("tcp", hodo_measure::Mode::Send, 64);
        measurement.link = "a\tb\nc\r\n".into();
        measurement.latency_ns = None;
        measurement.limit = None;
        measurement.share_of_limit = None;
        measurement.cpu = hodo_measure::Cpu::default();
        measurement.rate.payload_bits_per_s.median = f64::NAN;
        let text = tsv(&[measurement]);
        let cells: Vec<&str> = text.lines().nth(1).unwrap().split('\t').collect();
        assert_eq!(cells.len(), COLUMNS.len());
        assert_eq!(cells[1], "a b c  ");
        assert!(cells[11..20].iter().all(|cell| cell.is_empty()), "{cells:?}");
    }

    #[test]
    fn sizes_drawn_at_random_stand_by_their_mean() {
        let mut measurement = sample::rate("tcp", hodo_measure::Mode::Send, 64);
        measurement.size_bytes = None;
        measurement.size_min_bytes = Some(60);
        measurement.size_max_bytes = Some(1021);
        assert_eq!(tsv(&[measurement]).lines().nth(1).unwrap().split('\t').nth(4), Some("541"));
    }
}
