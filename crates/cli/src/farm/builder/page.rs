use hodo_catalog::farm::builder::Counters;
use hodo_daemon::Exposition;
use hodo_machine::Instant;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// Where a builder tells of itself, as JSON.
pub const PATH: &str = "/builder";
/// Sources that are named in one line.
const NAMED_MAX: usize = 8;

/// A builder at one moment.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Since the builder began.
    pub now: Instant,
    pub counters: Counters,
    /// Sources that are not there.
    pub absent: Vec<u32>,
    /// Connections for which there was no room.
    pub turned_away: u64,
}

/// Sources that are not there, as the end of a line.
pub fn names(absent: &[u32]) -> String {
    if absent.is_empty() {
        return String::new();
    }
    let named: Vec<String> = absent.iter().take(NAMED_MAX).map(u32::to_string).collect();
    let more = absent.len().checked_sub(NAMED_MAX).filter(|more| *more > 0);
    let more = more.map_or_else(String::new, |more| format!(" and {more} more"));
    format!("; not there is source {}{more}", named.join(", "))
}

/// The state of a builder as its page tells it.
pub fn page(seen: &Seen, to: SocketAddr) -> Value {
    let counters = &seen.counters;
    json!({
        "state": if counters.is_draining { "draining" } else { "building" },
        "controller": to.to_string(),
        "uptime_s": seen.now.as_nanos() as f64 * 1e-9,
        "events": {
            "complete": counters.complete,
            "incomplete": counters.incomplete,
            "open": counters.events_open,
            "waiting": counters.events_waiting,
            "answered": counters.answered,
            "duplicates": counters.duplicates,
        },
        "fragments": {
            "taken_in": counters.fragments,
            "lost": counters.lost_fragments,
            "late": counters.late_fragments,
            "duplicate": counters.duplicate_fragments,
            "unexpected": counters.unexpected_fragments,
        },
        "datagrams": { "bad": counters.bad_datagrams },
        "bytes": { "taken_in": counters.bytes_in },
        "dead_time_s": counters.dead_time_ns as f64 * 1e-9,
        "connections": {
            "sources": counters.sources,
            "absent": seen.absent,
            "refused": counters.refused,
            "turned_away": seen.turned_away,
            "misbehaved": counters.misbehaved,
        },
    })
}

/// Adds the metrics of a builder.
pub fn tell(seen: &Seen, to: &mut Exposition) {
    let counters = &seen.counters;
    for (name, help, count) in [
        ("farm_builder_events_complete_total", "Events given on with all their fragments.", counters.complete),
        (
            "farm_builder_events_incomplete_total",
            "Events given on, or given up, without some of them.",
            counters.incomplete,
        ),
        ("farm_builder_events_answered_total", "Events with their verdict.", counters.answered),
        ("farm_builder_events_duplicate_total", "Events that the controller had already.", counters.duplicates),
        ("farm_builder_fragments_total", "Fragments that came.", counters.fragments),
        ("farm_builder_fragments_bytes_total", "Bytes of them.", counters.bytes_in),
        ("farm_builder_fragments_lost_total", "Fragments that did not come in time.", counters.lost_fragments),
        (
            "farm_builder_fragments_late_total",
            "Fragments whose event had gone on without them.",
            counters.late_fragments,
        ),
        ("farm_builder_fragments_duplicate_total", "Fragments that came again.", counters.duplicate_fragments),
        (
            "farm_builder_fragments_unexpected_total",
            "Fragments that belong to no event.",
            counters.unexpected_fragments,
        ),
        (
            "farm_builder_datagrams_bad_total",
            "Datagrams that could not be read, or were out of place.",
            counters.bad_datagrams,
        ),
        ("farm_builder_connections_refused_total", "Connections refused before they had greeted.", counters.refused),
        ("farm_builder_connections_turned_away_total", "Connections for which there was no room.", seen.turned_away),
        (
            "farm_builder_connections_misbehaved_total",
            "Connections ended for a breach of the rules.",
            counters.misbehaved,
        ),
    ] {
        to.counter(name, help, &[], count);
    }
    let dead_time_s = counters.dead_time_ns as f64 * 1e-9;
    let help = "Time in which events could not be given on.";
    to.counter("farm_builder_dead_time_seconds_total", help, &[], dead_time_s);
    for (name, help, value) in [
        ("farm_builder_events_open", "Events of which fragments are awaited.", counters.events_open),
        ("farm_builder_events_waiting", "Events that wait for their verdict.", counters.events_waiting),
        ("farm_builder_sources", "Sources that are there.", counters.sources),
    ] {
        to.gauge(name, help, &[], value);
    }
}
