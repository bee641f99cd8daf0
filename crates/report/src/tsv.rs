//! The flat table for spreadsheets and scripts.

use crate::figure;
use crate::units::round_to;
use hodo_measure::{Document, Latency, Measurement};

/// The columns, in order.
pub const COLUMNS: [&str; 70] = [
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
    "limit_kind",
    "limit_us",
    "binds",
    "rate_low",
    "rate_high",
    "latency_min_us",
    "latency_p90_us",
    "latency_p99_9_us",
    "latency_max_us",
    "cpu_local_ns_per_operation",
    "cpu_remote_ns_per_operation",
    "cpu_s_per_gbit",
    "user_s",
    "system_s",
    "rate_asked",
    "seed",
    "duplicated",
    "reordered",
    "refused",
    "overrun",
    "simulated",
    "host",
    "kernel",
    "started",
    "commit",
    "simulation_host_s",
    "simulation_times_real_time",
    "simulation_machine_percent",
    "simulation_local_percent",
    "simulation_local_ns_per_operation",
    "simulation_user_s",
    "simulation_system_s",
    "average_packet_time_us",
    "times_plain_loop",
    "stalls",
    "stalled_s",
    "cpu_local_polling_s",
    "cpu_remote_polling_s",
    "cpu_local_sleeps_per_operation",
    "cpu_remote_sleeps_per_operation",
    "rounds",
    "dscp",
    "ttl",
    "mss",
    "device",
    "sent_operations_per_s",
    "sent_mbit_per_s",
];

/// Writes one header line and one line for each measurement: tab-separated, no quoting, an empty cell for what is null.
///
/// If sizes were drawn at random, `size_bytes` holds their mean, rounded up, so that the column stays numeric and
/// `operations_per_s * size_bytes` stays the payload rate. Floats have seven significant digits. Tabs and line ends
/// inside a name become spaces. `rate_low` and `rate_high` are the ends of the interval of `operations_per_s`;
/// `cpu_s_per_gbit` is CPU time of both processes without polling, `user_s` and `system_s` that of this one; what begins with `simulation` is the cost of
/// computing a simulated link on this host; `average_packet_time_us` is one over the rate, where `average_time_us` is the time of an operation
/// from its start to its end.
#[must_use]
pub fn tsv(document: &Document) -> String {
    let mut text = COLUMNS.join("\t");
    text.push('\n');
    for measurement in &document.measurements {
        let cells = plan_cells(measurement)
            .into_iter()
            .chain(found_cells(measurement))
            .chain(limit_cells(measurement))
            .chain(detail_cells(measurement))
            .chain(document_cells(document))
            .chain(simulation_cells(measurement))
            .chain(cells_of_version_3(measurement))
            .chain(connection_cells(measurement))
            .chain(sent_cells(measurement));
        text.push_str(&cells.collect::<Vec<_>>().join("\t"));
        text.push('\n');
    }
    text
}

fn plan_cells(m: &Measurement) -> [String; 10] {
    [
        word(&m.protocol),
        word(&m.link),
        m.test.to_string(),
        m.mode.to_string(),
        figure::mean_size(m).map_or_else(String::new, |size| format!("{}", size.ceil())),
        m.window.map_or_else(String::new, |window| window.to_string()),
        m.channels.to_string(),
        m.batch.to_string(),
        word(&m.wait),
        m.repeats.to_string(),
    ]
}

fn found_cells(m: &Measurement) -> [String; 13] {
    let latency = m.latency_ns.as_ref();
    [
        number(Some(m.rate.operations_per_s.median)),
        number(Some(m.rate.payload_bits_per_s.median / 1e6)),
        time_us(latency.map(|latency| latency.mean)),
        time_us(latency.map(|latency| latency.p50 as f64)),
        time_us(latency.map(|latency| latency.p99 as f64)),
        number(m.cpu.machine_percent),
        number(m.cpu.local.map(|process| process.percent)),
        number(m.cpu.remote.map(|process| process.percent)),
        number(m.limit.as_ref().and_then(|limit| limit.payload_bits_per_s).map(|bits| bits / 1e6)),
        number(m.share_of_limit),
        m.loss.lost.to_string(),
        m.loss.retransmitted.to_string(),
        m.verdict.state.word().to_owned(),
    ]
}

fn limit_cells(m: &Measurement) -> [String; 5] {
    let limit = m.limit.as_ref();
    [
        limit.map_or_else(String::new, |limit| limit.kind.word().to_owned()),
        time_us(limit.and_then(|limit| limit.latency_ns)),
        limit.map_or_else(String::new, |limit| limit.binds.word().to_owned()),
        number(m.rate.operations_per_s.low),
        number(m.rate.operations_per_s.high),
    ]
}

fn detail_cells(m: &Measurement) -> [String; 16] {
    let latency = |of: fn(&Latency) -> u64| time_us(m.latency_ns.as_ref().map(|latency| of(latency) as f64));
    let gigabits = m.payload_bytes as f64 * 8e-9;
    let both_s = m.cpu.local.zip(m.cpu.remote).map(|(local, remote)| local.working_s() + remote.working_s());
    [
        latency(|latency| latency.min),
        latency(|latency| latency.p90),
        latency(|latency| latency.p99_9),
        latency(|latency| latency.max),
        number(m.cpu.local_ns_per_operation),
        number(m.cpu.remote_ns_per_operation),
        number(both_s.map(|both_s| both_s / gigabits)),
        number(m.cpu.local.map(|process| process.user_s)),
        number(m.cpu.local.map(|process| process.system_s)),
        number(m.rate_asked),
        m.seed.to_string(),
        m.loss.duplicated.to_string(),
        m.loss.reordered.to_string(),
        m.loss.refused.to_string(),
        m.loss.overrun.to_string(),
        m.is_simulated().to_string(),
    ]
}

fn document_cells(document: &Document) -> [String; 4] {
    let environment = &document.environment;
    [&environment.host, &environment.kernel, &environment.started, &document.tool.commit]
        .map(|text| text.as_deref().map_or_else(String::new, word))
}

fn simulation_cells(m: &Measurement) -> [String; 7] {
    let cost = m.simulation.as_ref();
    let local = cost.and_then(|cost| cost.local);
    [
        number(cost.map(|cost| cost.host_s)),
        number(cost.map(|cost| cost.times_real_time)),
        number(cost.and_then(|cost| cost.machine_percent)),
        number(local.map(|local| local.percent)),
        number(cost.and_then(|cost| cost.local_ns_per_operation)),
        number(local.map(|local| local.user_s)),
        number(local.map(|local| local.system_s)),
    ]
}

fn connection_cells(m: &Measurement) -> [String; 4] {
    let connection = m.connection.as_ref();
    let number = |number: Option<u32>| number.map_or_else(String::new, |number| number.to_string());
    [
        number(connection.and_then(|connection| connection.dscp.map(u32::from))),
        number(connection.and_then(|connection| connection.ttl.map(u32::from))),
        number(connection.and_then(|connection| connection.mss)),
        connection.and_then(|connection| connection.device.as_deref()).map_or_else(String::new, word),
    ]
}

fn sent_cells(m: &Measurement) -> [String; 2] {
    [number(m.sent.map(|sent| sent.operations_per_s)), number(m.sent.map(|sent| sent.payload_bits_per_s / 1e6))]
}

fn cells_of_version_3(m: &Measurement) -> [String; 9] {
    [
        time_us(figure::spacing_ns(m)),
        number(m.times_plain_loop),
        m.stalls.len().to_string(),
        number(Some(m.stalls.iter().fold(0.0, |sum, stall| sum + stall.lasted_s))),
        number(m.cpu.local.and_then(|process| process.polling_s)),
        number(m.cpu.remote.and_then(|process| process.polling_s)),
        number(m.cpu.local_sleeps_per_operation),
        number(m.cpu.remote_sleeps_per_operation),
        m.rounds.to_string(),
    ]
}

fn time_us(ns: Option<f64>) -> String {
    number(ns.map(|ns| ns / 1e3))
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

    fn tsv_of(measurement: Measurement) -> String {
        tsv(&Document { measurements: vec![measurement], ..sample::document() })
    }

    #[test]
    fn one_line_a_measurement_with_the_columns_of_the_contract() {
        let measurement = sample::rate("tcp", hodo_measure::Mode::Send, 32_768);
        let text = tsv_of(measurement);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "protocol\tlink\ttest\tmode\tsize_bytes\twindow\tchannels\tbatch\twait\trepeats\toperations_per_s\t\
             payload_mbit_per_s\taverage_time_us\tlatency_p50_us\tlatency_p99_us\tcpu_machine_percent\t\
             cpu_local_percent\tcpu_remote_percent\tlimit_mbit_per_s\tshare_of_limit\tlost\tretransmitted\tverdict\t\
             limit_kind\tlimit_us\tbinds\trate_low\trate_high\tlatency_min_us\tlatency_p90_us\tlatency_p99_9_us\t\
             latency_max_us\tcpu_local_ns_per_operation\tcpu_remote_ns_per_operation\tcpu_s_per_gbit\tuser_s\t\
             system_s\trate_asked\tseed\tduplicated\treordered\trefused\toverrun\tsimulated\thost\tkernel\t\
             started\tcommit\tsimulation_host_s\tsimulation_times_real_time\tsimulation_machine_percent\t\
             simulation_local_percent\tsimulation_local_ns_per_operation\tsimulation_user_s\tsimulation_system_s\t\
             average_packet_time_us\ttimes_plain_loop\tstalls\tstalled_s\tcpu_local_polling_s\t\
             cpu_remote_polling_s\tcpu_local_sleeps_per_operation\tcpu_remote_sleeps_per_operation\trounds\t\
             dscp\tttl\tmss\tdevice\tsent_operations_per_s\tsent_mbit_per_s"
        );
        assert_eq!(
            lines[1],
            "tcp\ttcp://127.0.0.1:4242\trate\tsend\t32768\t32\t1\t1\tadaptive\t5\t156250\t40960\t207.8647\t205.055\t\
             244.351\t97.4\t98.2\t96.1\t43574.47\t\t0\t0\tstable\t\
             plain_loop\t\tcpu\t155000\t157344\t201.728\t216.063\t298.239\t414.719\t6285\t6150\t0.04743652\t\
             0.3928\t1.5712\t\t1\t0\t0\t0\t0\tfalse\tbench1\t6.1.0-18-amd64\t2024-05-17T09:30:00Z\t0123abc\t\t\t\t\t\t\t\t\
             6.4\t0.94\t0\t0\t0\t0\t0\t0\tfalse\t\t\t\t\t\t"
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
        let text = tsv_of(measurement);
        let cells: Vec<&str> = text.lines().nth(1).unwrap().split('\t').collect();
        assert_eq!(cells.len(), COLUMNS.len());
        assert_eq!(cells[1], "a b c  ");
        assert!(cells[11..20].iter().all(|cell| cell.is_empty()), "{cells:?}");
    }

    #[test]
    fn the_cost_of_a_simulation_stands_apart_from_that_of_a_link() {
        let text = tsv_of(sample::simulated(64));
        let cells: Vec<&str> = text.lines().nth(1).unwrap().split('\t').collect();
        let cell = |name: &str| cells[COLUMNS.iter().position(|column| *column == name).unwrap()];
        assert_eq!(["cpu_local_percent", "user_s", "cpu_local_ns_per_operation"].map(cell), ["", "", ""]);
        assert_eq!(
            ["host_s", "times_real_time", "local_percent"].map(|name| cell(&format!("simulation_{name}"))),
            ["0.3", "2", "96.66667"]
        );
    }

    #[test]
    fn sizes_drawn_at_random_stand_by_their_mean() {
        let mut measurement = sample::rate("tcp", hodo_measure::Mode::Send, 64);
        measurement.size_bytes = None;
        measurement.size_min_bytes = Some(60);
        measurement.size_max_bytes = Some(1021);
        assert_eq!(tsv_of(measurement).lines().nth(1).unwrap().split('\t').nth(4), Some("541"));
    }
}
