//! A small table for a README or a paper.

use crate::figure::{self, Figure};
use crate::units::{self, UNKNOWN};
use hodo_measure::Measurement;

/// Writes a GitHub-flavoured table: one row for each measurement, the figures that a reader asks for first.
#[must_use]
pub fn markdown(measurements: &[Measurement]) -> String {
    let mut text = String::from(
        "| link | test | size | window × channels | operations | payload | p50 | p99 | reached | verdict |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|---|\n",
    );
    for measurement in measurements {
        text.push_str(&format!("| {} |\n", cells(measurement).join(" | ")));
    }
    text
}

fn cells(m: &Measurement) -> [String; 10] {
    let time = |ns: Option<u64>| ns.map_or_else(|| UNKNOWN.into(), |ns| units::time_ns(ns as f64));
    let lead = |is_lead: bool, text: String| if is_lead { format!("**{text}**") } else { text };
    let figure = Figure::of(m);
    [
        escape(&figure::protocol_text(m)),
        format!("{} {}", m.test, m.mode),
        figure::size_text(m),
        figure::window_text(m),
        lead(figure == Figure::OperationRate, units::operations_per_s(m.rate.operations_per_s.median)),
        lead(figure == Figure::PayloadRate, units::bits_per_s(m.rate.payload_bits_per_s.median)),
        lead(figure == Figure::Latency, time(m.latency_ns.as_ref().map(|latency| latency.p50))),
        time(m.latency_ns.as_ref().map(|latency| latency.p99)),
        figure::reached_text(m).unwrap_or_else(|| UNKNOWN.into()),
        m.verdict.state.word().into(),
    ]
}

/// Escapes a name, so that it stays in its cell and is no markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => escaped.extend(['\\', character]),
            _ if character.is_control() => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use hodo_measure::Mode;

    #[test]
    fn one_row_a_measurement_the_figure_of_the_test_in_bold() {
        let text = markdown(&[sample::rate("tcp", Mode::Send, 32_768)]);
        assert_eq!(
            text.lines().nth(2),
            Some(
                "| tcp | rate send | 32 KiB | 32×1 | 156.2 k/s | **40.96 Gbit/s** | 205 µs | 244 µs | 0.94 × plain loop | stable |"
            )
        );
    }

    #[test]
    fn a_simulated_link_is_called_so() {
        let mut measurement = sample::rate("udp", Mode::Send, 64);
        measurement.link = "sim+udp://?delay=5us".into();
        assert!(markdown(&[measurement]).lines().nth(2).unwrap().starts_with("| sim+udp | rate send |"));
    }

    #[test]
    fn a_name_cannot_break_the_table() {
        let mut measurement = sample::rate("a|b<c>\n", Mode::Send, 64);
        measurement.latency_ns = None;
        assert!(markdown(&[measurement]).lines().nth(2).unwrap().starts_with("| a\\|b&lt;c> "));
    }
}
