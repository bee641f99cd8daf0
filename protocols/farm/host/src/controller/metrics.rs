//! The metrics of a controller.

use super::status::{Bytes, Connections, Events, NodeStatus, Status, StoreStatus, Tokens};
use hodo_daemon::Exposition;
use hodo_farm::controller::State;
use hodo_store::Uploads;
use std::collections::BTreeMap;

/// Adds the metrics of a farm. Every group of counters is taken apart, so that a new one cannot be left out unnoticed.
pub fn write(status: &Status, to: &mut Exposition) {
    events(&status.events, to);
    let Bytes { taken_in, given, answered } = status.bytes;
    let Tokens { received, waiting, unasked } = status.tokens;
    for (name, help, count) in [
        ("farm_taken_in_bytes_total", "Bytes of events that came in.", taken_in),
        ("farm_given_bytes_total", "Bytes of events given to nodes.", given),
        ("farm_token_bytes_total", "Bytes of data behind tokens.", answered),
        ("farm_tokens_total", "Tokens that came.", received),
        ("farm_tokens_unasked_total", "Tokens for events that their sender did not have.", unasked),
    ] {
        to.counter(name, help, &[], count);
    }
    to.gauge("farm_tokens_waiting", "Tokens that wait for an event.", &[], waiting);
    let help = "Time in which events waited and could not be given.";
    to.counter("farm_dead_time_seconds_total", help, &[], status.dead_time_s);
    to.gauge("farm_run_number", "The run of the events that are made here.", &[], status.run);
    for state in State::ALL {
        let is_so = u64::from(state.name() == status.state);
        to.gauge("farm_state", "What the controller does: 1 for its state.", &[("state", state.name())], is_so);
    }
    connections(&status.connections, to);
    store(&status.store, to);
    nodes(status, to);
}

fn events(events: &Events, to: &mut Exposition) {
    let Events {
        taken_in,
        accepted,
        rejected,
        quarantined,
        incomplete,
        partial,
        too_large,
        in_hand,
        duplicates,
        unchecked,
        conflicts,
        not_taken,
        waiting,
        found_no_token,
        given,
        redispatched,
        uncommitted,
        uncommitted_bytes,
    } = *events;
    for (verdict, count) in
        [("accepted", accepted), ("rejected", rejected), ("quarantined", quarantined), ("incomplete", incomplete)]
    {
        to.counter("farm_events_total", "Events with their final verdict.", &[("verdict", verdict)], count);
    }
    for (name, help, count) in [
        ("farm_events_taken_in_total", "Events that came in, each once.", taken_in),
        ("farm_events_duplicate_total", "Events that were offered again.", duplicates),
        (
            "farm_events_unchecked_total",
            "Events that were offered again and could not be compared with what was given before.",
            unchecked,
        ),
        ("farm_events_conflicting_total", "Events that came under numbers with other data.", conflicts),
        (
            "farm_events_not_taken_total",
            "Events of the controller's own that were dropped: their run was over, or a source had given their numbers.",
            not_taken,
        ),
        ("farm_events_partial_total", "Events with a verdict of a node that lacked fragments.", partial),
        ("farm_events_too_large_total", "Events that were quarantined because no node takes so many bytes.", too_large),
        ("farm_events_given_total", "Events given to nodes, each time counted.", given),
        ("farm_events_redispatched_total", "Times that an event went to another node.", redispatched),
        ("farm_events_found_no_token_total", "Events that found no token.", found_no_token),
    ] {
        to.counter(name, help, &[], count);
    }
    for (name, help, value) in [
        ("farm_events_in_hand", "Events without a verdict.", in_hand),
        ("farm_events_waiting", "Events that wait for a token.", waiting),
        ("farm_verdicts_uncommitted", "Verdicts that wait for their commit.", uncommitted),
        ("farm_bytes_uncommitted", "Bytes of data that wait for their commit.", uncommitted_bytes),
    ] {
        to.gauge(name, help, &[], value);
    }
}

fn connections(connections: &Connections, to: &mut Exposition) {
    let Connections { nodes, sources, nodes_lost, refused, turned_away, misbehaved, ended } = connections;
    for (name, help, count) in [
        ("farm_nodes_lost_total", "Nodes that were lost.", nodes_lost),
        ("farm_connections_refused_total", "Connections refused before they had greeted.", refused),
        ("farm_connections_turned_away_total", "Connections for which there was no room.", turned_away),
        ("farm_connections_misbehaved_total", "Connections ended for a breach of the rules.", misbehaved),
    ] {
        to.counter(name, help, &[], *count);
    }
    for (reason, count) in ended {
        to.counter("farm_connections_ended_total", "Connections that ended, by why.", &[("reason", reason)], *count);
    }
    to.gauge("farm_nodes", "Connected nodes.", &[], *nodes);
    to.gauge("farm_sources", "Connected sources and builders.", &[], *sources);
}

fn store(store: &StoreStatus, to: &mut Exposition) {
    let StoreStatus { events, bytes, commits, failing, uploads } = store;
    for (name, help, count) in [
        ("farm_stored_events_total", "Events in the store.", events),
        ("farm_stored_bytes_total", "Bytes of their data.", bytes),
        ("farm_commits_total", "Groups of verdicts that were committed.", commits),
    ] {
        to.counter(name, help, &[], *count);
    }
    let is_failing = u64::from(failing.is_some());
    to.gauge("farm_store_failing", "Whether nothing can be committed now.", &[], is_failing);
    let Some(Uploads { segments, bytes, waiting, failures, last_failure: _ }) = uploads else { return };
    for (name, help, count) in [
        ("farm_uploaded_segments_total", "Closed segments of the store that were uploaded.", segments),
        ("farm_uploaded_bytes_total", "Bytes of the uploaded segments.", bytes),
        ("farm_upload_failures_total", "Failed attempts to upload.", failures),
    ] {
        to.counter(name, help, &[], *count);
    }
    to.gauge("farm_uploads_waiting", "Closed segments that are not uploaded yet.", &[], *waiting);
}

fn nodes(status: &Status, to: &mut Exposition) {
    for (number, node) in by_number(status) {
        let number = number.to_string();
        let labels = [("node", &*number)];
        let NodeStatus { given, bytes, answered, accepted, failed, in_flight, waited_ns, decided_ns, .. } = node;
        for (name, help, count) in [
            ("farm_node_events_total", "Events given to a node.", given),
            ("farm_node_bytes_total", "Bytes of the events given to a node.", bytes),
            ("farm_node_answered_total", "Events that a node has answered.", answered),
            ("farm_node_accepted_total", "Events that a node has accepted.", accepted),
            ("farm_node_failed_total", "Events on which a node has failed.", failed),
        ] {
            to.counter(name, help, &labels, count);
        }
        let (waited_s, decided_s) = (waited_ns as f64 * 1e-9, decided_ns as f64 * 1e-9);
        to.counter("farm_node_waited_seconds_total", "Time that events waited at a node.", &labels, waited_s);
        to.counter("farm_node_decided_seconds_total", "Time that a node spent deciding.", &labels, decided_s);
        to.gauge("farm_node_in_flight", "Events that are with a node.", &labels, in_flight);
    }
}

/// Adds up all connections of a node, by its number: a series may be there only once.
fn by_number(status: &Status) -> BTreeMap<u32, NodeStatus> {
    let mut all: BTreeMap<u32, NodeStatus> = BTreeMap::new();
    for node in status.nodes.iter().chain(&status.nodes_gone) {
        let sum = all.entry(node.number).or_default();
        *sum = NodeStatus {
            given: sum.given + node.given,
            bytes: sum.bytes + node.bytes,
            answered: sum.answered + node.answered,
            accepted: sum.accepted + node.accepted,
            failed: sum.failed + node.failed,
            in_flight: sum.in_flight + node.in_flight,
            waited_ns: sum.waited_ns + node.waited_ns,
            decided_ns: sum.decided_ns + node.decided_ns,
            // Only sums are shown.
            ..*node
        };
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::status::tests::all_different;
    use hodo_farm::Policy;

    #[test]
    fn every_counter_is_a_metric() {
        let (snapshot, last) = all_different();
        let mut exposition = Exposition::default();
        write(&Status::new(&snapshot, Policy::TokenFifo, &[]), &mut exposition);
        let text = exposition.text();
        for value in 1001..=last {
            assert!(text.contains(&format!(" {value}\n")), "{value} is no metric\n{text}");
        }
    }
}
