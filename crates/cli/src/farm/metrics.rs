use super::seen::Seen;
use hodo_catalog::farm::Error;
use hodo_catalog::farm::controller::{NodeShare, State};
use hodo_daemon::Exposition;
use std::collections::BTreeMap;

/// Adds the metrics of a farm.
pub fn tell(seen: &Seen, to: &mut Exposition) {
    let (counts, counters) = (&seen.counts, &seen.counters);
    to.counter("farm_events_taken_in_total", "Events that came in, each once.", &[], counts.taken_in);
    for (verdict, count) in [
        ("accepted", counts.accepted),
        ("rejected", counts.rejected),
        ("quarantined", counts.quarantined),
        ("incomplete", counts.incomplete),
    ] {
        let labels = [("verdict", verdict)];
        to.counter("farm_events_total", "Events with their final verdict.", &labels, count);
    }
    for (name, help, count) in [
        ("farm_events_duplicate_total", "Events that were offered again.", counts.duplicates),
        ("farm_events_given_total", "Events given to nodes, each time counted.", counters.given),
        ("farm_events_redispatched_total", "Times that an event went to another node.", counters.redispatched),
        ("farm_events_found_no_token_total", "Events that found no token.", counters.waited_for_token),
        ("farm_taken_in_bytes_total", "Bytes of events that came in.", counters.bytes_in),
        ("farm_given_bytes_total", "Bytes of events given to nodes.", counters.given_bytes),
        ("farm_tokens_total", "Tokens that came.", counters.tokens),
        ("farm_tokens_unasked_total", "Tokens for events that their sender had not.", counters.unasked),
        ("farm_nodes_lost_total", "Nodes that were lost.", counters.nodes_lost),
        ("farm_connections_refused_total", "Connections refused before they had greeted.", counters.refused),
        ("farm_connections_turned_away_total", "Connections for which there was no room.", seen.turned_away),
        ("farm_connections_misbehaved_total", "Connections ended for a breach of the rules.", counters.misbehaved),
        ("farm_stored_events_total", "Events in the store.", seen.stored.events),
        ("farm_stored_bytes_total", "Bytes of them.", seen.stored.bytes),
        ("farm_commits_total", "Groups of verdicts that were committed.", seen.stored.commits),
    ] {
        to.counter(name, help, &[], count);
    }
    for (reason, count) in Error::REASONS.into_iter().zip(counters.ended).skip(1) {
        to.counter("farm_connections_ended_total", "Connections that ended, by why.", &[("reason", reason)], count);
    }
    let help = "Time in which events waited and could not be given.";
    to.counter("farm_dead_time_seconds_total", help, &[], seen.dead_time_s());
    to.gauge("farm_run_number", "The run of the events that are made here.", &[], counters.run);
    for state in State::ALL {
        let labels = [("state", state.name())];
        to.gauge(
            "farm_state",
            "What the controller does: 1 for its state.",
            &labels,
            u64::from(state == counters.state),
        );
    }
    for (name, help, value) in [
        ("farm_events_in_hand", "Events without a verdict.", counts.in_hand()),
        ("farm_events_waiting", "Events that wait for a token.", counters.events_waiting),
        ("farm_tokens_waiting", "Tokens that wait for an event.", counters.tokens_waiting),
        ("farm_verdicts_uncommitted", "Verdicts that wait for their commit.", counters.uncommitted),
        ("farm_bytes_uncommitted", "Bytes of what is to be stored of them.", counters.uncommitted_bytes),
        ("farm_nodes", "Nodes that are there.", counters.nodes),
        ("farm_sources", "Sources and builders that are there.", counters.sources),
        ("farm_store_failing", "Whether nothing can be committed now.", u64::from(seen.stored.failing.is_some())),
    ] {
        to.gauge(name, help, &[], value);
    }
    if let Some(uploads) = &seen.stored.uploads {
        tell_uploads(uploads, to);
    }
    for (number, share) in by_number(seen) {
        let number = number.to_string();
        let labels = [("node", &*number)];
        to.counter("farm_node_events_total", "Events given to a node.", &labels, share.given);
        to.counter("farm_node_accepted_total", "Events that a node has accepted.", &labels, share.accepted);
        to.counter("farm_node_failed_total", "Events over which a node has failed.", &labels, share.failed);
        let (waited_s, decided_s) = (share.waited_ns as f64 * 1e-9, share.decided_ns as f64 * 1e-9);
        to.counter("farm_node_waited_seconds_total", "Time that events waited at a node.", &labels, waited_s);
        to.counter("farm_node_decided_seconds_total", "Time that a node spent deciding.", &labels, decided_s);
        to.gauge("farm_node_in_flight", "Events that are with a node.", &labels, share.in_flight);
    }
}

fn tell_uploads(uploads: &hodo_store::Uploads, to: &mut Exposition) {
    for (name, help, count) in [
        ("farm_uploaded_segments_total", "Closed segments of the store that were uploaded.", uploads.segments),
        ("farm_uploaded_bytes_total", "Bytes of them.", uploads.bytes),
        ("farm_upload_failures_total", "Uploads that failed, and were or are tried again.", uploads.failures),
    ] {
        to.counter(name, help, &[], count);
    }
    to.gauge("farm_uploads_waiting", "Closed segments that are not uploaded yet.", &[], uploads.waiting);
}

/// One entry for each number, of whoever has it now and had it before: a series may be there only once.
fn by_number(seen: &Seen) -> BTreeMap<u32, NodeShare> {
    let mut all: BTreeMap<u32, NodeShare> = BTreeMap::new();
    for share in seen.nodes.iter().chain(&seen.gone) {
        let sum = all.get(&share.number).map_or(*share, |before| before.plus(share));
        all.insert(share.number, sum);
    }
    all
}
