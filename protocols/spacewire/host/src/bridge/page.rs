//! The page of a bridge for people, and its metrics.

use super::Named;
use super::snapshot::{BridgeSnapshot, EndSnapshot};
use hodo_daemon::Exposition;
use hodo_spacewire::bridge::{GateCounters, LATE, Lateness};
use hodo_spacewire::end::{Counts, State};
use hodo_spacewire::network::PortFaults;
use std::fmt::Write;

/// The metric of how far the network has fallen behind, which the tester reads.
pub const SHORTFALL: &str = "spacewire_bridge_shortfall_seconds_total";
/// Path of the page.
pub const STATS: &str = "/stats";

/// Returns the state of a bridge for people: its gates, links and memories.
#[must_use]
pub fn text(snapshot: &BridgeSnapshot, names: &Named) -> String {
    let mut text = String::new();
    let up = snapshot.now.as_nanos() as f64 * 1e-9;
    let time = snapshot.network_time.as_nanos() as f64 * 1e-9;
    let behind = snapshot.shortfall.as_secs_f64();
    let _ = writeln!(text, "up {up:.1} s; the network's time is {time:.6} s; {behind:.3} s were given up");
    let Lateness { turns, over, max } = snapshot.lateness;
    if turns > 0 {
        let over = over.iter().zip(LATE).map(|(over, bound)| format!("{over} over {bound:?}"));
        let over = over.collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "late by at most {max:.1?}; of {turns} turns {over}");
    }
    if let Some(deadlock) = &snapshot.deadlock {
        let _ = writeln!(text, "{} packets in routers wait for each other in a circle", deadlock.blocked.len());
    }
    if let Some(recording) = &snapshot.recording {
        let _ = writeln!(text, "{} records written, {} lost", recording.packets, recording.lost);
    }
    let _ = writeln!(
        text,
        "\nhosts\tpackets in\tout\tbytes in\tout\ttime-codes in\tout\tunclaimed\trefused\tignored\tgate"
    );
    for ((hosts, counters), name) in snapshot.gates.iter().zip(&names.gates) {
        let GateCounters { packets_in, packets_out, bytes_in, bytes_out, .. } = counters;
        let GateCounters { time_codes_in, time_codes_out, unclaimed, refused, ignored, .. } = counters;
        let _ = writeln!(
            text,
            "{hosts}\t{packets_in}\t{packets_out}\t{bytes_in}\t{bytes_out}\t{time_codes_in}\t{time_codes_out}\t{unclaimed}\t\
             {refused}\t{ignored}\t{name}"
        );
    }
    let _ = writeln!(text, "\nstate\tNULLs\tFCTs\tdata\tEOPs\tEEPs\ttime-codes\terrors\tstarts\tcredit\tsent by");
    for (ends, links) in snapshot.links.iter().zip(&names.network.links) {
        for (end, (name, _)) in ends.iter().zip(links) {
            let Counts { nulls, fcts, data, eops, eeps, time_codes } = end.counts.sent;
            let _ = writeln!(
                text,
                "{:?}\t{nulls}\t{fcts}\t{data}\t{eops}\t{eeps}\t{time_codes}\t{}\t{}\t{}\t{name}",
                end.state,
                errors(end),
                end.counts.starts,
                end.credit
            );
        }
    }
    for (ends, links) in snapshot.links.iter().zip(&names.network.links) {
        for (end, (name, _)) in ends.iter().zip(links) {
            for (count, why) in faults(&end.faults).into_iter().filter(|(count, _)| *count > 0) {
                let _ = writeln!(text, "{name}: {count} {why}");
            }
        }
    }
    for (name, target) in &snapshot.targets {
        let _ = writeln!(
            text,
            "\nmemory {name}: {} reads, {} writes, {} read-modify-writes; {} bytes read, {} written; {} replies; {} headers \
             with a wrong CRC",
            target.reads,
            target.writes,
            target.modifies,
            target.bytes_read,
            target.bytes_written,
            target.replies,
            target.header_crc_errors
        );
    }
    text
}

fn errors(end: &EndSnapshot) -> u64 {
    let errors = end.counts.errors;
    errors.disconnect + errors.parity + errors.escape + errors.credit + errors.sequence
}

fn faults(faults: &PortFaults) -> [(u64, &'static str); 7] {
    [
        (faults.invalid_address, "packets without a route were spilled"),
        (faults.empty, "empty packets were discarded"),
        (faults.down, "packets for a link that does not run were spilled"),
        (faults.watchdog, "packets stood for too long and were cut"),
        (faults.cut, "packets were cut when their link failed"),
        (faults.replies_lost, "replies of the configuration port were lost"),
        (faults.time_codes, "time-codes were out of order and not forwarded"),
    ]
}

/// Adds the metrics of a bridge.
pub fn metrics(snapshot: &BridgeSnapshot, names: &Named, to: &mut Exposition) {
    let given_up = snapshot.shortfall.as_secs_f64();
    to.counter(SHORTFALL, "Time by which the network fell behind the clock.", &[], given_up);
    let Lateness { turns, over, max } = snapshot.lateness;
    to.gauge("spacewire_bridge_lateness_max_seconds", "The most that the network was late.", &[], max.as_secs_f64());
    to.counter("spacewire_bridge_turns_total", "Turns of the network in which something was due.", &[], turns);
    for (over, bound) in over.into_iter().zip(LATE) {
        let bound = format!("{}", bound.as_secs_f64());
        let about = "Turns in which the first thing due was late by more seconds than this.";
        to.counter("spacewire_bridge_late_turns_total", about, &[("over", &bound)], over);
    }
    let is_stuck = u64::from(snapshot.deadlock.is_some());
    to.gauge("spacewire_bridge_deadlock", "Whether packets wait for each other in a circle.", &[], is_stuck);
    if let Some(recording) = &snapshot.recording {
        let about = "Packets, time-codes and characters of the recording, by what became of them.";
        for (fate, count) in [("written", recording.packets), ("lost", recording.lost)] {
            to.counter("spacewire_bridge_records_total", about, &[("fate", fate)], count);
        }
    }
    for ((hosts, counters), name) in snapshot.gates.iter().zip(&names.gates) {
        to.gauge("spacewire_gate_hosts", "Hosts that are connected.", &[("gate", name)], *hosts as u64);
        for (direction, packets, bytes, time_codes) in [
            ("in", counters.packets_in, counters.bytes_in, counters.time_codes_in),
            ("out", counters.packets_out, counters.bytes_out, counters.time_codes_out),
        ] {
            let labels = [("gate", &**name), ("direction", direction)];
            to.counter("spacewire_gate_packets_total", "Packets between hosts and the network.", &labels, packets);
            to.counter("spacewire_gate_bytes_total", "Bytes of these packets.", &labels, bytes);
            to.counter(
                "spacewire_gate_time_codes_total",
                "Time-codes between hosts and the network.",
                &labels,
                time_codes,
            );
        }
        for (why, count) in
            [("unclaimed", counters.unclaimed), ("refused", counters.refused), ("ignored", counters.ignored)]
        {
            let labels = [("gate", &**name), ("why", why)];
            to.counter("spacewire_gate_dropped_total", "Packets and frames that went no further.", &labels, count);
        }
    }
    for (ends, links) in snapshot.links.iter().zip(&names.network.links) {
        for (end, (name, _)) in ends.iter().zip(links) {
            end_metrics(end, name, to);
        }
    }
}

fn end_metrics(end: &EndSnapshot, name: &str, to: &mut Exposition) {
    let labels = [("end", name)];
    let runs = u64::from(end.state == State::Run);
    to.gauge("spacewire_link_runs", "Whether the end of the link is in Run.", &labels, runs);
    to.counter("spacewire_link_starts_total", "Times that the end reached Run.", &labels, end.counts.starts);
    let Counts { nulls, fcts, data, eops, eeps, time_codes } = end.counts.sent;
    for (kind, count) in
        [("null", nulls), ("fct", fcts), ("data", data), ("eop", eops), ("eep", eeps), ("time-code", time_codes)]
    {
        let labels = [("end", name), ("kind", kind)];
        to.counter("spacewire_link_sent_characters_total", "Characters that the end sent.", &labels, count);
    }
    let errors = end.counts.errors;
    for (why, count) in [
        ("disconnect", errors.disconnect),
        ("parity", errors.parity),
        ("escape", errors.escape),
        ("credit", errors.credit),
        ("sequence", errors.sequence),
    ] {
        let labels = [("end", name), ("why", why)];
        to.counter("spacewire_link_errors_total", "Errors that took the link down.", &labels, count);
    }
}
