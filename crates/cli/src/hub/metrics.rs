use super::seen::Seen;
use hodo_catalog::ipbus::hub::{BoardStatistics, Ended};
use hodo_catalog::ipbus::wire::hub::Code;
use hodo_daemon::{Distribution, Exposition};

const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// Adds the hub's metrics. Clients come and go, and so have no labels of their own: `hodo hub stats` tells of each.
pub fn tell(seen: &Seen, to: &mut Exposition) {
    let counters = &seen.counters;
    to.gauge("ipbus_hub_clients", "Clients that are there.", &[], seen.clients.len());
    to.counter("ipbus_hub_clients_total", "Clients that came.", &[], counters.came);
    for (why, count) in Ended::ALL.into_iter().zip(counters.ended) {
        let labels = [("why", why.name())];
        to.counter("ipbus_hub_clients_ended_total", "Clients that are gone, by why.", &labels, count);
    }
    let clients = &counters.clients;
    for (name, help, count) in [
        ("ipbus_hub_chunks_total", "Chunks from clients.", clients.chunks),
        ("ipbus_hub_malformed_chunks_total", "Chunks that broke the rules.", clients.malformed),
        ("ipbus_hub_packets_total", "Packets from clients.", clients.packets),
        ("ipbus_hub_received_bytes_total", "Bytes from clients.", clients.bytes_in),
        ("ipbus_hub_sent_bytes_total", "Bytes to clients.", clients.bytes_out),
    ] {
        to.counter(name, help, &[], count);
    }
    for (code, count) in (0_u16..).zip(counters.codes) {
        let labels = [("code", &*code.to_string())];
        to.counter("ipbus_hub_answers_total", "Packets that were answered, by the hub's code.", &labels, count);
    }
    to.gauge("ipbus_hub_packets_held", "Packets that the hub holds.", &[], seen.held.0);
    to.gauge("ipbus_hub_buffer_bytes", "Bytes of the buffers of packets.", &[], seen.held.1);
    if let Some(trace) = &seen.trace {
        to.counter("ipbus_hub_trace_packets_total", "Packets in the trace.", &[], trace.packets);
        to.counter("ipbus_hub_trace_lost_packets_total", "Packets that the trace had no room for.", &[], trace.lost);
    }
    for (stage, spans) in seen.stages.iter().filter(|(_, spans)| spans.count() > 0) {
        let quantiles = QUANTILES.map(|share| (share, spans.quantile_ns(share) as f64 * 1e-9));
        let distribution =
            Distribution { count: spans.count(), sum: spans.sum_ns() as f64 * 1e-9, quantiles: &quantiles };
        to.summary("ipbus_hub_stage_seconds", "Where the time of packets goes.", &[("stage", stage)], distribution);
    }
    seen.boards.iter().for_each(|board| tell_board(board, to));
}

fn tell_board(board: &BoardStatistics, to: &mut Exposition) {
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
    let (counters, link) = (&board.counters, &board.counters.link);
    for (name, help, count) in [
        ("ipbus_hub_board_packets_total", "Packets for the board.", counters.packets),
        ("ipbus_hub_board_replies_total", "Packets that it has answered.", counters.replies),
        ("ipbus_hub_board_errors_total", "Packets that were given up, or not tried.", counters.errors),
        ("ipbus_hub_board_malformed_total", "Datagrams from it that are no packet.", counters.malformed),
        ("ipbus_hub_board_deaths_total", "Times that it did not answer any more.", counters.deaths),
        ("ipbus_hub_board_requests_lost_total", "Packets sent again.", link.requests_lost),
        ("ipbus_hub_board_replies_lost_total", "Replies asked for again.", link.replies_lost),
        ("ipbus_hub_board_statuses_total", "Status requests.", link.statuses),
        ("ipbus_hub_board_late_total", "Times that an answer was late.", link.late),
        ("ipbus_hub_board_strays_total", "Answers to nothing that was outstanding.", link.strays),
        ("ipbus_hub_board_restarts_total", "Times that it had forgotten what was in flight.", link.restarts),
    ] {
        to.counter(name, help, &labels, count);
    }
}
