use super::snapshot::HubSnapshot;
use hodo_daemon::{Distribution, Exposition};
use hodo_ipbus::hub::{BoardCounters, BoardStatistics, ClientCounters, Ended, HubCounters};
use hodo_ipbus::window::WindowCounters;
use hodo_ipbus::wire::hub::Code;

const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// Adds the hub's metrics. Clients come and go, and so have no labels of their own: `hodo hub stats` tells of each.
pub fn write(snapshot: &HubSnapshot, to: &mut Exposition) {
    let HubCounters { clients, boards: _, came, ended, codes } = &snapshot.counters;
    to.gauge("ipbus_hub_clients", "Clients that are there.", &[], snapshot.clients.len());
    to.counter("ipbus_hub_clients_total", "Clients that came.", &[], *came);
    for (why, count) in Ended::ALL.into_iter().zip(*ended) {
        let labels = [("why", why.name())];
        to.counter("ipbus_hub_clients_ended_total", "Clients that are gone, by why.", &labels, count);
    }
    let ClientCounters { chunks, packets, malformed, replies: _, errors: _, bytes_in, bytes_out } = *clients;
    for (name, help, count) in [
        ("ipbus_hub_chunks_total", "Chunks from clients.", chunks),
        ("ipbus_hub_malformed_chunks_total", "Chunks that broke the rules.", malformed),
        ("ipbus_hub_packets_total", "Packets from clients.", packets),
        ("ipbus_hub_received_bytes_total", "Bytes from clients.", bytes_in),
        ("ipbus_hub_sent_bytes_total", "Bytes to clients.", bytes_out),
    ] {
        to.counter(name, help, &[], count);
    }
    for (code, count) in (0_u16..).zip(*codes) {
        let labels = [("code", &*code.to_string())];
        to.counter("ipbus_hub_answers_total", "Packets that were answered, by the hub's code.", &labels, count);
    }
    to.gauge("ipbus_hub_packets_held", "Packets that the hub holds.", &[], snapshot.held.0);
    to.gauge("ipbus_hub_buffer_bytes", "Bytes of the buffers of packets.", &[], snapshot.held.1);
    if let Some(trace) = &snapshot.trace {
        to.counter("ipbus_hub_trace_packets_total", "Packets in the trace.", &[], trace.packets);
        to.counter("ipbus_hub_trace_lost_packets_total", "Packets that the trace had no room for.", &[], trace.lost);
    }
    for (stage, spans) in snapshot.stages.iter().filter(|(_, spans)| spans.count() > 0) {
        let quantiles = QUANTILES.map(|share| (share, spans.quantile_ns(share) as f64 * 1e-9));
        let distribution =
            Distribution { count: spans.count(), sum: spans.sum_ns() as f64 * 1e-9, quantiles: &quantiles };
        to.summary("ipbus_hub_stage_seconds", "Where the time of packets goes.", &[("stage", stage)], distribution);
    }
    snapshot.boards.iter().for_each(|board| write_board(board, to));
}

fn write_board(board: &BoardStatistics, to: &mut Exposition) {
    let (target, version) = (board.target.to_string(), board.version.to_string());
    let labels = [("board", &*target), ("version", &*version)];
    let is_up = u64::from(board.state == Some(Code::Done));
    to.gauge("ipbus_hub_board_up", "Whether the board answers.", &labels, is_up);
    to.gauge("ipbus_hub_board_queued", "Packets that wait for their turn.", &labels, board.queued);
    to.gauge("ipbus_hub_board_in_flight", "Packets in flight.", &labels, board.in_flight);
    for (name, help, span) in [
        ("ipbus_hub_board_round_trip_seconds", "The usual round-trip.", board.round_trip),
        ("ipbus_hub_board_round_trip_min_seconds", "The shortest round-trip.", board.round_trip_min),
    ] {
        if let Some(span) = span {
            to.gauge(name, help, &labels, span.as_secs_f64());
        }
    }
    let BoardCounters { packets, replies, errors, malformed, deaths, link } = board.counters;
    let WindowCounters { packets: sent, requests_lost, replies_lost, statuses, late, strays, restarts } = link;
    for (name, help, count) in [
        ("ipbus_hub_board_packets_total", "Packets for the board.", packets),
        ("ipbus_hub_board_replies_total", "Packets that it has answered.", replies),
        ("ipbus_hub_board_errors_total", "Packets that were given up, or not tried.", errors),
        ("ipbus_hub_board_malformed_total", "Datagrams from it that are no packet.", malformed),
        ("ipbus_hub_board_deaths_total", "Times that it did not answer any more.", deaths),
        ("ipbus_hub_board_sent_total", "Packets sent to it, each once.", sent),
        ("ipbus_hub_board_requests_lost_total", "Packets sent again.", requests_lost),
        ("ipbus_hub_board_replies_lost_total", "Replies asked for again.", replies_lost),
        ("ipbus_hub_board_statuses_total", "Status requests.", statuses),
        ("ipbus_hub_board_late_total", "Times that an answer was late.", late),
        ("ipbus_hub_board_strays_total", "Answers to nothing that was outstanding.", strays),
        ("ipbus_hub_board_restarts_total", "Times that it had forgotten what was in flight.", restarts),
    ] {
        to.counter(name, help, &labels, count);
    }
}
