//! The pages of the daemon, and its metrics.

use crate::server::{ClientName, DiscoveryCounters, ServerCounters, ServerState};
use hodo_daemon::Exposition;
use std::fmt::Write;

/// The page about clients and traffic.
pub const STATS: &str = "/stats";
/// The page of the last puts.
pub const PUTS: &str = "/puts";
/// Clients that the page shows.
const SHOWN: usize = 1000;

/// Returns the state of a server for people.
#[must_use]
pub fn text(state: &ServerState) -> String {
    let ServerState { pvs, counters, discovery, merged_posts, waiting, overloaded, clients } = state;
    let ServerCounters { clients: came, reads, puts, calls, updates, merged, refused } = counters;
    let DiscoveryCounters { searches, answers, passed_on, over_budget, too_long, foreign, beacons } = discovery;
    let mut text = format!("{pvs} PVs; {came} clients connected so far, {} now\n", clients.len());
    let _ = writeln!(text, "{reads} values read, {puts} puts, {calls} calls, {refused} requests refused");
    let _ =
        writeln!(text, "{updates} updates sent, {merged} merged for slow subscribers, {merged_posts} merged before");
    let _ = writeln!(text, "{waiting} requests wait for a handler, {overloaded} were refused because too many did");
    let _ =
        writeln!(text, "{searches} searches over UDP, {answers} answered, {passed_on} passed on; {beacons} beacons");
    let _ = writeln!(text, "{foreign} foreign datagrams, {over_budget} answers over the budget, {too_long} too long");
    let _ = writeln!(text, "\nchannels\tsubscriptions\toperations\towed\treads\tclient");
    for client in clients.iter().take(SHOWN) {
        let name = ClientName::of(client);
        let reads = if client.is_blocked { "not" } else { "yes" };
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{}\t{reads}\t{name}",
            client.channels, client.subscriptions, client.operations, client.owed
        );
    }
    if clients.len() > SHOWN {
        let _ = writeln!(text, "... and {} more", clients.len() - SHOWN);
    }
    text
}

/// Adds the metrics of a server. Clients come and go, and so have no labels of their own.
pub fn metrics(state: &ServerState, to: &mut Exposition) {
    let ServerState { pvs, counters, discovery, merged_posts, waiting, overloaded, clients } = state;
    let ServerCounters { clients: came, reads, puts, calls, updates, merged, refused } = *counters;
    let sum = |count: fn(&crate::server::ClientStatistics) -> usize| clients.iter().map(count).sum::<usize>() as u64;
    for (name, help, value) in [
        ("pva_server_pvs", "PVs that are served.", *pvs as u64),
        ("pva_server_clients", "Clients that are connected.", clients.len() as u64),
        ("pva_server_channels", "Channels that clients have open.", sum(|client| client.channels)),
        ("pva_server_subscriptions", "Subscriptions of clients.", sum(|client| client.subscriptions)),
        ("pva_server_blocked_clients", "Clients that do not read.", sum(|client| usize::from(client.is_blocked))),
        ("pva_server_waiting", "Puts and calls that wait for a handler.", *waiting as u64),
    ] {
        to.gauge(name, help, &[], value);
    }
    for (name, help, count) in [
        ("pva_server_clients_total", "Clients that were connected.", came),
        ("pva_server_reads_total", "Replies that hold a value.", reads),
        ("pva_server_puts_total", "Puts, whatever became of them.", puts),
        ("pva_server_calls_total", "Calls, whatever became of them.", calls),
        ("pva_server_updates_total", "Updates that were sent.", updates),
        ("pva_server_merged_updates_total", "Updates merged because a subscriber's queue was full.", merged),
        ("pva_server_merged_posts_total", "Updates merged before the serving thread took them.", *merged_posts),
        ("pva_server_refused_total", "Requests refused with an error.", refused),
        ("pva_server_searches_total", "Searches over UDP.", discovery.searches),
        ("pva_server_answers_total", "Searches over UDP that were answered.", discovery.answers),
        ("pva_server_foreign_datagrams_total", "Datagrams that are no search.", discovery.foreign),
        ("pva_server_over_budget_total", "Searches not answered because the budget was spent.", discovery.over_budget),
        ("pva_server_beacons_total", "Beacons.", discovery.beacons),
        ("pva_server_overloaded_total", "Puts and calls refused because too many waited.", *overloaded),
    ] {
        to.counter(name, help, &[], count);
    }
}
