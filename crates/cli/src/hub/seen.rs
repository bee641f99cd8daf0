use hodo_catalog::ipbus::hub::{BoardStatistics, ClientStatistics, Hub, HubCounters, HubStages};
use hodo_io::TraceCounters;
use hodo_machine::Instant;

/// A hub at one moment.
pub struct Seen {
    /// Since the hub began.
    pub now: Instant,
    pub counters: HubCounters,
    pub clients: Vec<ClientStatistics>,
    pub boards: Vec<BoardStatistics>,
    /// Packets, and the bytes of their buffers.
    pub held: (usize, usize),
    pub stages: HubStages,
    pub trace: Option<TraceCounters>,
}

impl Seen {
    pub fn of(now: Instant, hub: &Hub, trace: Option<TraceCounters>) -> Self {
        Seen {
            now,
            counters: hub.counters(),
            clients: hub.clients().collect(),
            boards: hub.boards().collect(),
            held: hub.held(),
            stages: hub.stages().clone(),
            trace,
        }
    }
}
