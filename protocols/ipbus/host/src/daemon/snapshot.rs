use hodo_io::TraceCounters;
use hodo_ipbus::hub::{BoardStatistics, ClientStatistics, Hub, HubCounters, HubStages};
use hodo_machine::Instant;

/// The state of a hub at one moment.
#[derive(Debug)]
pub struct HubSnapshot {
    /// The time since the hub began.
    pub now: Instant,
    /// All counters.
    pub counters: HubCounters,
    /// Connected clients.
    pub clients: Vec<ClientStatistics>,
    /// Known boards.
    pub boards: Vec<BoardStatistics>,
    /// Packets that the hub holds, and the bytes of their buffers.
    pub held: (usize, usize),
    /// Where the time of sampled packets goes.
    pub stages: HubStages,
    /// The counters of the trace, if there is one.
    pub trace: Option<TraceCounters>,
}

impl HubSnapshot {
    /// Reads the state of a hub.
    #[must_use]
    pub fn of(now: Instant, hub: &Hub, trace: Option<TraceCounters>) -> Self {
        HubSnapshot {
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
