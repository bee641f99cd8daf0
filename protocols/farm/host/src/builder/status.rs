//! The status of a builder: one struct for its page, its metrics and its text.

use crate::Error;
use hodo_daemon::Exposition;
use hodo_farm::builder::Counters;
use hodo_machine::Instant;
use hodo_units::text::seconds;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Path of the page that shows the status as JSON.
pub const PATH: &str = "/builder";
/// Sources that are named in one line.
const NAMED_MAX: usize = 8;

/// The state of a builder's thread at one moment.
#[derive(Debug, Clone)]
pub struct BuilderSnapshot {
    /// The time since the builder began.
    pub now: Instant,
    /// The builder's counters.
    pub counters: Counters,
    /// Sources that are not connected.
    pub absent: Vec<u32>,
    /// Sources for which the first event waits that lacks fragments.
    pub waited_for: Vec<u32>,
    /// Connections for which there was no room.
    pub turned_away: u64,
}

/// The status of a builder at one moment, as its page `/builder` shows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BuilderStatus {
    /// `building` or `draining`.
    pub state: String,
    /// The address of the controller.
    pub controller: String,
    /// Seconds since the builder began.
    pub uptime_s: f64,
    /// Events.
    pub events: BuiltEvents,
    /// Fragments.
    pub fragments: Fragments,
    /// Datagrams.
    pub datagrams: Datagrams,
    /// Bytes.
    pub bytes: FragmentBytes,
    /// Seconds during which built events could not be given on.
    pub dead_time_s: f64,
    /// Seconds during which sources were held back by others, for whose fragments their events waited.
    #[serde(default)]
    pub held_back_s: f64,
    /// Connections.
    pub connections: SourceConnections,
}

/// Events of a builder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltEvents {
    /// Events given on with all their fragments.
    pub complete: u64,
    /// Events given on, or given up, without some of them.
    pub incomplete: u64,
    /// Events of which fragments are awaited.
    pub open: u64,
    /// Events that wait for their verdict.
    pub waiting: u64,
    /// Events with their verdict.
    pub answered: u64,
    /// Events that the controller had already.
    pub duplicates: u64,
}

/// Fragments of a builder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragments {
    /// Fragments that came.
    pub taken_in: u64,
    /// Fragments that did not come in time.
    pub lost: u64,
    /// Fragments whose event had gone on without them.
    pub late: u64,
    /// Fragments that came again.
    pub duplicate: u64,
    /// Fragments, and built events, that came under numbers with other data.
    #[serde(default)]
    pub conflicts: u64,
    /// Fragments that belong to no event.
    pub unexpected: u64,
}

/// Datagrams of a builder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Datagrams that could not be read, or were out of place.
    pub bad: u64,
}

/// Bytes of a builder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentBytes {
    /// Bytes of the fragments that came.
    pub taken_in: u64,
}

/// Connections of a builder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceConnections {
    /// Connected sources.
    pub sources: u64,
    /// Numbers of the sources that are not connected.
    pub absent: Vec<u32>,
    /// Numbers of the sources for which the first event waits that lacks fragments.
    #[serde(default)]
    pub waited_for: Vec<u32>,
    /// How often a source was connected, and gave nothing for so long that events went on without it.
    #[serde(default)]
    pub behind: u64,
    /// Connections refused before they had greeted.
    pub refused: u64,
    /// Connections for which there was no room.
    pub turned_away: u64,
    /// Connections ended because the peer broke the rules.
    pub misbehaved: u64,
}

impl BuilderStatus {
    /// Makes the status of a snapshot. It takes every counter apart, so that a new one has to be given a place here.
    #[must_use]
    pub fn new(snapshot: &BuilderSnapshot, controller: &str) -> Self {
        let BuilderSnapshot { now, counters, absent, waited_for, turned_away } = snapshot;
        let Counters {
            fragments,
            bytes_in,
            complete,
            incomplete,
            lost_fragments,
            late_fragments,
            duplicate_fragments,
            conflicts,
            unexpected_fragments,
            answered,
            duplicates,
            dead_time_ns,
            held_back_ns,
            behind,
            bad_datagrams,
            refused,
            misbehaved,
            events_open,
            events_waiting,
            sources,
            is_draining,
        } = *counters;
        BuilderStatus {
            state: if is_draining { "draining" } else { "building" }.to_owned(),
            controller: controller.to_owned(),
            uptime_s: now.as_nanos() as f64 * 1e-9,
            events: BuiltEvents {
                complete,
                incomplete,
                open: events_open,
                waiting: events_waiting,
                answered,
                duplicates,
            },
            fragments: Fragments {
                taken_in: fragments,
                lost: lost_fragments,
                late: late_fragments,
                duplicate: duplicate_fragments,
                conflicts,
                unexpected: unexpected_fragments,
            },
            datagrams: Datagrams { bad: bad_datagrams },
            bytes: FragmentBytes { taken_in: bytes_in },
            dead_time_s: dead_time_ns as f64 * 1e-9,
            held_back_s: held_back_ns as f64 * 1e-9,
            connections: SourceConnections {
                sources,
                absent: absent.clone(),
                waited_for: waited_for.clone(),
                behind,
                refused,
                turned_away: *turned_away,
                misbehaved,
            },
        }
    }

    /// Parses the text of the page `/builder`.
    ///
    /// # Errors
    /// [`Error::NoStatus`] if the text is not the status of a builder.
    pub fn parse(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|why| Error::NoStatus { what: "builder", why: why.to_string() })
    }

    /// Returns the text of the page `/builder`.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a status has no key that is not text") + "\n"
    }

    /// Returns the status in a few lines for people.
    #[must_use]
    pub fn text(&self) -> String {
        let BuiltEvents { complete, incomplete, open, waiting, answered: _, duplicates } = self.events;
        let Fragments { taken_in, lost, late, duplicate, conflicts, unexpected } = self.fragments;
        let SourceConnections { sources, absent, waited_for, behind, refused, turned_away, misbehaved } =
            &self.connections;
        let mut text = format!("builder: {}, up {}\n", self.state, seconds(self.uptime_s));
        let _ = writeln!(
            text,
            "{taken_in} fragments in, {lost} lost, {late} late, {duplicate} duplicate, {unexpected} unexpected, {} bad \
             datagrams",
            self.datagrams.bad
        );
        let _ = writeln!(text, "{complete} events complete, {incomplete} incomplete, {open} open, {waiting} waiting");
        if duplicates > 0 {
            let _ = writeln!(text, "{duplicates} events the controller had already");
        }
        if conflicts > 0 {
            let _ = writeln!(text, "{conflicts} FRAGMENTS OR EVENTS CAME UNDER NUMBERS WITH OTHER DATA");
        }
        if refused + turned_away + misbehaved > 0 {
            let _ = writeln!(
                text,
                "{refused} connections were refused, {turned_away} found no room, {misbehaved} broke the rules"
            );
        }
        if *behind > 0 {
            let _ =
                writeln!(text, "{behind} TIMES EVENTS WENT ON WITHOUT A SOURCE THAT WAS CONNECTED AND GAVE NOTHING");
        }
        let share = |time_s: f64| format!("{} ({:.2} %)", seconds(time_s), 100.0 * time_s / self.uptime_s.max(1e-9));
        let (absent, waited_for) = (names("absent", absent), names("events wait for", waited_for));
        let _ = writeln!(
            text,
            "{sources} sources{absent}{waited_for}; held back {}; dead time {}",
            share(self.held_back_s),
            share(self.dead_time_s)
        );
        text
    }

    /// Adds the metrics of a builder.
    pub fn write_metrics(&self, to: &mut Exposition) {
        let BuiltEvents { complete, incomplete, open, waiting, answered, duplicates } = self.events;
        let Fragments { taken_in, lost, late, duplicate, conflicts, unexpected } = self.fragments;
        let SourceConnections { sources, absent, waited_for: _, behind, refused, turned_away, misbehaved } =
            &self.connections;
        for (name, help, count) in [
            ("farm_builder_events_complete_total", "Events given on with all their fragments.", complete),
            ("farm_builder_events_incomplete_total", "Events given on, or given up, without some of them.", incomplete),
            ("farm_builder_events_answered_total", "Events with their verdict.", answered),
            ("farm_builder_events_duplicate_total", "Events that the controller had already.", duplicates),
            ("farm_builder_fragments_total", "Fragments that came.", taken_in),
            ("farm_builder_fragments_bytes_total", "Bytes of the fragments.", self.bytes.taken_in),
            ("farm_builder_fragments_lost_total", "Fragments that did not come in time.", lost),
            ("farm_builder_fragments_late_total", "Fragments whose event had gone on without them.", late),
            ("farm_builder_fragments_duplicate_total", "Fragments that came again.", duplicate),
            (
                "farm_builder_conflicts_total",
                "Fragments, and built events, that came under numbers with other data.",
                conflicts,
            ),
            ("farm_builder_fragments_unexpected_total", "Fragments that belong to no event.", unexpected),
            (
                "farm_builder_datagrams_bad_total",
                "Datagrams that could not be read, or were out of place.",
                self.datagrams.bad,
            ),
            ("farm_builder_sources_behind_total", "Times that events went on without a connected source.", *behind),
            ("farm_builder_connections_refused_total", "Connections refused before they had greeted.", *refused),
            ("farm_builder_connections_turned_away_total", "Connections for which there was no room.", *turned_away),
            ("farm_builder_connections_misbehaved_total", "Connections ended for a breach of the rules.", *misbehaved),
        ] {
            to.counter(name, help, &[], count);
        }
        let help = "Time in which events could not be given on.";
        to.counter("farm_builder_dead_time_seconds_total", help, &[], self.dead_time_s);
        let help = "Time in which sources were held back by others, for whose fragments their events waited.";
        to.counter("farm_builder_held_back_seconds_total", help, &[], self.held_back_s);
        for (name, help, value) in [
            ("farm_builder_events_open", "Events of which fragments are awaited.", open),
            ("farm_builder_events_waiting", "Events that wait for their verdict.", waiting),
            ("farm_builder_sources", "Connected sources.", *sources),
            ("farm_builder_sources_absent", "Sources that are not connected.", absent.len() as u64),
        ] {
            to.gauge(name, help, &[], value);
        }
    }
}

/// Names sources, where there are any, as the end of a line.
pub(super) fn names(label: &str, sources: &[u32]) -> String {
    if sources.is_empty() { String::new() } else { format!("; {label}: source {}", listed(sources)) }
}

/// Lists the numbers of sources.
pub(super) fn listed(sources: &[u32]) -> String {
    let named: Vec<String> = sources.iter().take(NAMED_MAX).map(u32::to_string).collect();
    let more = sources.len().checked_sub(NAMED_MAX).filter(|more| *more > 0);
    let more = more.map_or_else(String::new, |more| format!(" and {more} more"));
    named.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a status in which every counter has a value of its own, from 1001 on, and the number of counters.
    fn all_different() -> (BuilderStatus, u64) {
        let mut last = 1000;
        let mut next = || {
            last += 1;
            last
        };
        let counters = Counters {
            fragments: next(),
            bytes_in: next(),
            complete: next(),
            incomplete: next(),
            lost_fragments: next(),
            late_fragments: next(),
            duplicate_fragments: next(),
            conflicts: next(),
            unexpected_fragments: next(),
            answered: next(),
            duplicates: next(),
            dead_time_ns: 0,
            held_back_ns: 0,
            behind: next(),
            bad_datagrams: next(),
            refused: next(),
            misbehaved: next(),
            events_open: next(),
            events_waiting: next(),
            sources: next(),
            is_draining: false,
        };
        let (absent, waited_for) = (vec![1, 4], vec![4]);
        let snapshot = BuilderSnapshot { now: Instant::ZERO, counters, absent, waited_for, turned_away: next() };
        (BuilderStatus::new(&snapshot, "127.0.0.1:1"), last)
    }

    #[test]
    fn every_counter_is_on_the_page_and_a_metric() {
        let (status, last) = all_different();
        let (page, mut exposition) = (status.json(), Exposition::default());
        status.write_metrics(&mut exposition);
        let metrics = exposition.text();
        for value in 1001..=last {
            assert!(page.contains(&format!(" {value}")), "{value} is not on the page\n{page}");
            assert!(metrics.contains(&format!(" {value}\n")), "{value} is no metric\n{metrics}");
        }
        assert_eq!(BuilderStatus::parse(&page), Ok(status));
        assert!(BuilderStatus::parse("{}").is_err());
    }

    #[test]
    fn says_what_the_status_has() {
        let (mut status, _) = all_different();
        (status.fragments.lost, status.datagrams.bad, status.connections.sources) = (3, 7, 1);
        let text = status.text();
        for line in ["builder: building, up 0.0 s", ", 3 lost, ", "7 bad datagrams", "1003 events complete, 1004 inc"] {
            assert!(text.contains(line), "{text}");
        }
        assert!(
            text.contains(
                "1 sources; absent: source 1, 4; events wait for: source 4; held back 0.0 s (0.00 %); dead time"
            ),
            "{text}"
        );
    }
}
