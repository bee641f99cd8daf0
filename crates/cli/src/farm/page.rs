use super::seen::Seen;
use super::timeline::Moment;
use hodo_catalog::farm::controller::NodeShare;
use hodo_io::usage::ProcessUsage;
use hodo_machine::Spans;
use serde_json::{Value, json};

/// Where a controller tells of itself, as JSON.
pub const PATH: &str = "/farm";

/// The state of a farm as its page tells it.
pub fn page(seen: &Seen, policy: &str, timeline: &[Moment]) -> Value {
    let (counts, counters) = (&seen.counts, &seen.counters);
    let shares = |of: &[NodeShare]| of.iter().map(node).collect::<Vec<Value>>();
    let (nodes, gone) = (shares(&seen.nodes), shares(&seen.gone));
    // Seconds since the controller began, events with a verdict, bytes taken in.
    let timeline: Vec<Value> = timeline.iter().map(|at| json!([at.at_s, at.decided, at.bytes_in])).collect();
    json!({
        "run": counters.run,
        "state": counters.state.name(),
        "policy": policy,
        "uptime_s": seen.now.as_nanos() as f64 * 1e-9,
        "events": {
            "taken_in": counts.taken_in,
            "accepted": counts.accepted,
            "rejected": counts.rejected,
            "quarantined": counts.quarantined,
            "incomplete": counts.incomplete,
            "in_hand": counts.in_hand(),
            "duplicates": counts.duplicates,
            "waiting": counters.events_waiting,
            "found_no_token": counters.waited_for_token,
            "given": counters.given,
            "redispatched": counters.redispatched,
            "uncommitted": counters.uncommitted,
            "uncommitted_bytes": counters.uncommitted_bytes,
        },
        "bytes": { "taken_in": counters.bytes_in, "given": counters.given_bytes, "answered": counters.token_bytes },
        "tokens": { "received": counters.tokens, "waiting": counters.tokens_waiting, "unasked": counters.unasked },
        "dead_time_s": seen.dead_time_s(),
        "dead_time_share": seen.dead_share(),
        "answers": answers(&seen.answers),
        "cpu": seen.usage.as_ref().map(cpu),
        "connections": {
            "nodes": counters.nodes,
            "sources": counters.sources,
            "nodes_lost": counters.nodes_lost,
            "refused": counters.refused,
            "turned_away": seen.turned_away,
            "misbehaved": counters.misbehaved,
        },
        "store": {
            "events": seen.stored.events,
            "bytes": seen.stored.bytes,
            "commits": seen.stored.commits,
            "failing": seen.stored.failing,
            "uploads": seen.stored.uploads.as_ref().map(uploads),
        },
        "nodes": nodes,
        "nodes_gone": gone,
        "timeline": timeline,
    })
}

fn node(share: &NodeShare) -> Value {
    let answered = share.answered.max(1);
    json!({
        "number": share.number,
        "given": share.given,
        "bytes": share.bytes,
        "answered": share.answered,
        "accepted": share.accepted,
        "failed": share.failed,
        "in_flight": share.in_flight,
        "waited_us_mean": share.waited_ns as f64 * 1e-3 / answered as f64,
        "decided_us_mean": share.decided_ns as f64 * 1e-3 / answered as f64,
    })
}

/// From when an event is given to a node until its token comes: the sum, and how many took how long, by the buckets of
/// [`Spans`].
fn answers(answers: &Spans) -> Value {
    let buckets: Vec<(u16, u32)> = answers.buckets().collect();
    let us = |share| answers.quantile_ns(share) as f64 * 1e-3;
    json!({ "p50_us": us(0.5), "p99_us": us(0.99), "sum_ns": answers.sum_ns(), "buckets": buckets })
}

fn cpu(usage: &ProcessUsage) -> Value {
    json!({
        "user_s": usage.user_s,
        "system_s": usage.system_s,
        "voluntary_switches": usage.voluntary_switches,
        "involuntary_switches": usage.involuntary_switches,
        "max_rss_bytes": usage.max_rss_bytes,
    })
}

fn uploads(uploads: &hodo_store::Uploads) -> Value {
    json!({
        "segments": uploads.segments,
        "bytes": uploads.bytes,
        "waiting": uploads.waiting,
        "failures": uploads.failures,
        "last_failure": uploads.last_failure,
    })
}
